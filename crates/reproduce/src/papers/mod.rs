//! One file a paper, and what several share: cache delays (000 and 002 print the same ones),
//! overheads (002 and 003), and studies (002 has more than a file holds).

mod cpmd;
mod overheads;
mod p000;
mod p001;
mod p001_model;
mod p002;
mod p002_split;
mod p002_studies;
mod p003;
mod p004;

use crate::entry::Entry;

/// Every entry, paper by paper, in the papers' order.
pub fn all() -> Vec<Entry> {
    [
        p000::entries(),
        p001::entries(),
        p002::entries(),
        p002_studies::entries(),
        p003::entries(),
        p004::entries(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
