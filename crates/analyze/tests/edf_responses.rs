//! Response times under EDF against a simulation of every offset, time unit by time unit.

use analyze::uniprocessor::{Work, edf_response};
use model::{Duration, Ratio, Timing, exact};
use proptest::prelude::*;

/// The response of the job of `task` released at `a`: all others are released together at 0, `task`
/// as often before `a` as it can since then; equal deadlines go against it.
fn respond(tasks: &[Timing], task: usize, a: u64) -> u64 {
    let of = |i: usize| {
        let t = &tasks[i];
        (t.wcet.nanos(), t.period.nanos(), t.deadline.nanos())
    };
    // (deadline, is the task's own, release, execution left)
    let mut jobs: Vec<(u64, bool, u64, u64)> = Vec::new();
    let due = a + of(task).2;
    for i in 0..tasks.len() {
        let (e, p, d) = of(i);
        let mut release = if i == task { a % p } else { 0 };
        while release + d <= due {
            jobs.push((release + d, i == task, release, e));
            release += p;
        }
    }
    jobs.sort_unstable();
    for now in 0.. {
        let job = jobs.iter_mut().find(|j| j.2 <= now && j.3 > 0);
        if let Some(job) = job {
            job.3 -= 1;
            if job.1 && job.2 == a && job.3 == 0 {
                return now + 1 - a;
            }
        }
    }
    unreachable!("a job of a set with U ≤ 1 ends")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_worst_response_is_that_of_the_worst_offset(
        set in prop::collection::vec((1u64..=4, 2u64..=12, 1u64..=16), 1..=4),
    ) {
        let mut tasks: Vec<Timing> = set
            .iter()
            .map(|(e, p, d)| Timing {
                wcet: Duration::from_nanos(*e),
                period: Duration::from_nanos(*p),
                deadline: Duration::from_nanos(*d),
            })
            .collect();
        while exact::cmp_sum(tasks.iter().map(Timing::utilization), Ratio::ONE).is_gt() {
            tasks.pop();
        }
        let found = edf_response::response_times(&tasks, &mut Work::new()).unwrap();
        for (task, found) in found.iter().enumerate() {
            let worst = (0..=200).map(|a| respond(&tasks, task, a)).max().unwrap();
            prop_assert_eq!(found.nanos(), worst, "task {} of {:?}", task, tasks);
        }
    }
}
