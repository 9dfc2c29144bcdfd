//! The latest samples of a time.

/// So many of the latest samples are kept.
pub(crate) const SAMPLES: usize = 1 << 16;

/// The latest samples of a time, in nanoseconds; memory is set aside at the start.
#[derive(Debug)]
pub(crate) struct Samples {
    kept: Vec<u32>,
    count: usize,
}

impl Samples {
    pub fn new() -> Self {
        Samples {
            kept: Vec::with_capacity(SAMPLES),
            count: 0,
        }
    }
    pub fn record(&mut self, ns: u64) {
        let ns = u32::try_from(ns).unwrap_or(u32::MAX);
        match self.kept.get_mut(self.count % SAMPLES) {
            Some(slot) => *slot = ns,
            None => self.kept.push(ns),
        }
        self.count += 1;
    }
    pub fn all(&self) -> &[u32] {
        &self.kept
    }
}
