//! Accounting for overheads (002 §6.1): by hand, against an independent slow version, and what must
//! hold of any of it.

mod by_hand;
mod by_piece;
mod properties;
mod reference;

use analyze::overheads::CacheDelays;
use analyze::semi::processors;
use model::{CpuSet, Platform, Resumption};
use testing::sets::implicit_us as task;
use testing::times::us;

fn each_alone(m: u32) -> Vec<CpuSet> {
    processors(m)
        .into_iter()
        .map(|c| [c].into_iter().collect())
        .collect()
}
/// By task: the delay of a preemption, and what a migration costs more; in microseconds.
fn delays_of(platform: &Platform, tasks: usize, by_task: &[(u64, u64)]) -> CacheDelays {
    CacheDelays::of(platform, tasks, |task, kind| {
        let (stays, more) = by_task[task.index()];
        Ok(us(if kind == Resumption::Preemption {
            stays
        } else {
            stays + more
        }))
    })
    .unwrap()
}
