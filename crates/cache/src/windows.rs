//! Misses by time, for a trace of unknown length: windows of equally many accesses, of which two
//! become one as soon as there are too many.

/// There are at most so many windows, and at least half as many in a trace that is long enough.
pub const MOST: usize = 256;

/// Misses of some caches by time.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Accesses of a window.
    width: u64,
    /// Accesses so far.
    now: u64,
    /// Misses in each window, for each cache.
    misses: Vec<Vec<u64>>,
}

impl Windows {
    /// For so many caches, with windows of one access to begin with.
    pub fn new(caches: usize) -> Self {
        Windows {
            width: 1,
            now: 0,
            misses: vec![Vec::new(); caches],
        }
    }

    /// An access goes by. Misses that are counted after this call are its.
    #[inline]
    pub fn access(&mut self) {
        if self.now == self.width * MOST as u64 {
            for misses in &mut self.misses {
                *misses = misses.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
            self.width *= 2;
        }
        self.now += 1;
    }

    /// It missed in a cache.
    pub fn missed(&mut self, cache: usize) {
        let window = (self.now.saturating_sub(1) / self.width) as usize;
        let misses = &mut self.misses[cache];
        if misses.len() <= window {
            misses.resize(window + 1, 0);
        }
        misses[window] += 1;
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        self.now
    }

    /// Accesses of a window; the last one may have fewer.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// How many windows there are.
    pub fn len(&self) -> usize {
        self.now.div_ceil(self.width) as usize
    }

    /// Was there no access?
    pub fn is_empty(&self) -> bool {
        self.now == 0
    }

    /// Misses of a cache in each window.
    pub fn misses(&self, cache: usize) -> Vec<u64> {
        let mut misses = self.misses[cache].clone();
        misses.resize(self.len(), 0);
        misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_miss_is_in_its_window_however_long_the_trace() {
        for length in [1, 255, 256, 257, 512, 513, 1000, 100_000] {
            let mut windows = Windows::new(2);
            let misses = |n: u64| n.is_multiple_of(7) || n > length / 2;
            for n in 0..length {
                windows.access();
                if misses(n) {
                    windows.missed(1);
                }
            }
            assert!(windows.len() <= MOST);
            let width = windows.width();
            let expected: Vec<u64> = (0..windows.len() as u64)
                .map(|w| {
                    (w * width..((w + 1) * width).min(length))
                        .filter(|n| misses(*n))
                        .count()
                })
                .map(|count| count as u64)
                .collect();
            assert_eq!(windows.misses(1), expected, "{length}");
            assert_eq!(windows.misses(0), vec![0; windows.len()]);
        }
    }
}
