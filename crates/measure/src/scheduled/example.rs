//! One sample that stands for how all are taken (000, Fig. 1): of the largest group of samples of
//! one policy, number of tasks, load, write ratio, size and way to resume, that whose delay is the
//! median.

use super::file::Scheduled;
use model::{Bytes, CpuId, Load, Resumption};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job that went as in the figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Example {
    /// The policy, as written.
    pub policy: String,
    /// How many tasks its set had.
    pub tasks: u32,
    /// What else ran.
    pub load: Load,
    /// How it went on, as documents write it.
    pub resumption: String,
    /// The working set.
    pub wss: Bytes,
    /// The processor that it was on.
    pub from: u32,
    /// The processor on which it went on.
    pub to: u32,
    /// Its first walk.
    pub cold_ns: u64,
    /// Its warm walk.
    pub warm_ns: u64,
    /// Its walk after the preemption.
    pub post_ns: u64,
    /// How long the engine told it that it was away.
    pub told_ns: u64,
    /// The same by its own clock.
    pub away_ns: u64,
}

/// The example among these; `None` where no sample counts.
pub fn of(samples: &[Scheduled]) -> Option<Example> {
    type Kind<'a> = (&'a str, u32, Load, u64, Bytes, Resumption);
    let mut groups: BTreeMap<Kind<'_>, Vec<&Scheduled>> = BTreeMap::new();
    for one in samples.iter().filter(|s| s.sample.discarded.is_none()) {
        let s = &one.sample;
        let ratio = s.write_ratio.to_bits();
        let kind = (
            one.policy.as_str(),
            one.tasks,
            s.load,
            ratio,
            s.wss,
            s.resumption,
        );
        groups.entry(kind).or_default().push(one);
    }
    // The first of those that are equally large.
    let mut largest = groups.into_values().rev().max_by_key(Vec::len)?;
    largest.sort_by_key(|one| one.sample.delay);
    let one = largest[largest.len() / 2];
    let s = &one.sample;
    let CpuId(from) = s.from;
    let CpuId(to) = s.to;
    Some(Example {
        policy: one.policy.clone(),
        tasks: one.tasks,
        load: s.load,
        resumption: s.resumption.to_string(),
        wss: s.wss,
        from,
        to,
        cold_ns: s.cold.nanos(),
        warm_ns: s.warm.nanos(),
        post_ns: s.post.nanos(),
        told_ns: s.asked.nanos(),
        away_ns: s.preempted.nanos(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Discard;
    use crate::scheduled::results::tests::taken;

    #[test]
    fn the_median_of_the_largest_group_that_counts_stands_for_all() {
        let mut samples = taken("p-edf", 4, 0, [1, 2, 3]);
        samples.extend(taken("g-edf", 8, 1, [90, 10, 50, 70, 20]));
        samples.extend(taken("g-edf", 12, 2, 0..9));
        for s in samples.iter_mut().filter(|s| s.tasks == 12) {
            s.sample.discarded = Some(Discard::Gap);
        }
        let example = of(&samples).unwrap();
        let sample = &samples
            .iter()
            .find(|s| s.sample.delay.nanos() == 50)
            .unwrap()
            .sample;
        assert_eq!((example.policy.as_str(), example.tasks), ("g-edf", 8));
        assert_eq!(example.post_ns, sample.post.nanos());
        assert_eq!(example.away_ns, sample.preempted.nanos());
        assert_eq!(of(&samples[8..]), None);
        let kept = serde_json::to_string(&example).unwrap();
        assert_eq!(serde_json::from_str::<Example>(&kept).unwrap(), example);
    }
}
