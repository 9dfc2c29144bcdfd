//! What a cost was on each processor, beside the curves of all.

use serde::Serialize;
use std::collections::BTreeMap;

/// Samples of one cost on one processor: those that are kept, of all sets and sizes, outliers among
/// them. Curves compare equally many of each size without outliers, and so have other values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct OnProcessor {
    /// The processor's number.
    pub cpu: u32,
    /// How many samples.
    pub samples: u64,
    /// Their mean, in nanoseconds, rounded down.
    pub average_ns: u64,
    /// The largest, in nanoseconds.
    pub maximum_ns: u64,
}

/// Counts samples by processor.
#[derive(Default)]
pub struct ByProcessor(BTreeMap<u32, Sum>);

#[derive(Default)]
struct Sum {
    samples: u64,
    total: u128,
    largest: u32,
}

impl ByProcessor {
    /// Adds samples with the processor of each. Nothing is added where processors are not known, as
    /// of an interrupt that goes from one to another.
    pub fn add(&mut self, samples: &[u32], cpus: &[u32]) {
        for (sample, cpu) in samples.iter().zip(cpus) {
            let sum = self.0.entry(*cpu).or_default();
            sum.samples += 1;
            sum.total += u128::from(*sample);
            sum.largest = sum.largest.max(*sample);
        }
    }

    /// In the order of processors.
    pub fn list(&self) -> Vec<OnProcessor> {
        let of = |(cpu, sum): (&u32, &Sum)| OnProcessor {
            cpu: *cpu,
            samples: sum.samples,
            average_ns: (sum.total / u128::from(sum.samples.max(1))) as u64,
            maximum_ns: u64::from(sum.largest),
        };
        self.0.iter().map(of).collect()
    }
}
