//! Which blocks of samples belong together: those during which the (virtual) machine was placed
//! alike.
//!
//! Virtual processors float between the cache complexes of their host; the line transfer time
//! between two of them then flips by a factor (DESIGN, "Facts about these machines"). Blocks in
//! which it changed, and blocks in which it differs from that of most blocks, are kept apart:
//! counted, in the raw samples, and out of the profile.

use crate::cpmd::blocks::BlockRecord;
use crate::line::Transfer;
use crate::samples::Discard;
use crate::statistics::median;
use model::CpuId;

/// Two transfer times are of different placements when one is more than so much of the other: 3/2.
const FACTOR: (u64, u64) = (3, 2);

fn alike(a: u64, b: u64) -> bool {
    let (low, high) = (a.min(b), a.max(b));
    high.saturating_mul(FACTOR.1) <= low.saturating_mul(FACTOR.0)
}

fn time_of(transfers: &[Transfer], pair: (CpuId, CpuId)) -> Option<u64> {
    transfers
        .iter()
        .find(|t| (t.a, t.b) == pair)
        .map(|t| t.time.nanos())
}

/// For each block, why it is kept apart.
pub fn classify(blocks: &[BlockRecord]) -> Vec<Option<Discard>> {
    let mut pairs: Vec<(CpuId, CpuId)> = blocks
        .iter()
        .flat_map(|b| b.before.iter().chain(&b.after))
        .map(|t| (t.a, t.b))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let usual: Vec<u64> = pairs
        .iter()
        .map(|pair| {
            let mut times: Vec<u64> = blocks
                .iter()
                .flat_map(|b| [time_of(&b.before, *pair), time_of(&b.after, *pair)])
                .flatten()
                .collect();
            median(&mut times)
        })
        .collect();
    blocks
        .iter()
        .map(|block| {
            let (mut moved, mut apart) = (false, false);
            for (pair, usual) in pairs.iter().zip(&usual) {
                let (before, after) = (time_of(&block.before, *pair), time_of(&block.after, *pair));
                if let (Some(before), Some(after)) = (before, after) {
                    moved |= !alike(before, after);
                }
                apart |= [before, after]
                    .into_iter()
                    .flatten()
                    .any(|t| !alike(t, *usual));
            }
            match (moved, apart) {
                (true, _) => Some(Discard::Moved),
                (false, true) => Some(Discard::Apart),
                (false, false) => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;

    fn block(number: u32, before: u64, after: u64) -> BlockRecord {
        let transfer = |ns| {
            vec![Transfer {
                a: CpuId(0),
                b: CpuId(1),
                time: Duration::from_nanos(ns),
            }]
        };
        BlockRecord {
            number,
            before: transfer(before),
            after: transfer(after),
            spent: Duration::ZERO,
            foreign: 0.0,
            steal: 0.0,
            samples: Vec::new(),
        }
    }

    #[test]
    fn a_machine_that_moved_is_seen_and_its_blocks_are_kept_apart() {
        let blocks: Vec<BlockRecord> = [
            (40, 42),
            (41, 55), // noise adds, it does not double
            (40, 200),
            (200, 198),
            (205, 40),
            (40, 40),
            (39, 41),
        ]
        .into_iter()
        .zip(0..)
        .map(|((before, after), number)| block(number, before, after))
        .collect();
        assert_eq!(
            classify(&blocks),
            [
                None,
                None,
                Some(Discard::Moved),
                Some(Discard::Apart),
                Some(Discard::Moved),
                None,
                None
            ]
        );
    }

    #[test]
    fn one_processor_has_no_transfers_and_nothing_is_kept_apart() {
        let mut alone = block(0, 1, 1);
        (alone.before, alone.after) = (Vec::new(), Vec::new());
        assert_eq!(classify(&[alone]), [None]);
        assert!(classify(&[]).is_empty());
    }
}
