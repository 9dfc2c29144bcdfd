//! How long `cyclictest` (of rt-tests) waits from a timer to its thread in the guest, beside what a
//! run says of its jobs: the least that a release takes there.

use model::{Duration, Error, Result};

/// What a histogram of cyclictest (`-h`) says of all threads together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latencies {
    /// How many there are.
    pub samples: u64,
    /// The middle one; whole microseconds, as all of them.
    pub median: Duration,
    /// The longest.
    pub longest: Duration,
}

/// Reads such a histogram: a line has microseconds, and how many latencies of each thread have so
/// many.
///
/// # Errors
/// There is none, or latencies lie beyond it.
pub fn read(text: &str) -> Result<Latencies> {
    let bad = |what: &str| Error::new(format!("cyclictest {what}: {text}"));
    let beyond = text
        .lines()
        .find_map(|line| line.strip_prefix("# Histogram Overflows:"));
    let beyond = beyond.ok_or_else(|| bad("says nothing of latencies beyond its histogram"))?;
    if beyond
        .split_whitespace()
        .any(|count| count.bytes().any(|digit| digit != b'0'))
    {
        return Err(bad("has latencies beyond its histogram"));
    }
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut counted: Vec<(u64, u64)> = Vec::new();
    for line in lines {
        let words: Option<Vec<u64>> = line.split_whitespace().map(|w| w.parse().ok()).collect();
        // Others are not of the histogram.
        if let Some([time, counts @ ..]) = words.as_deref() {
            counted.push((*time, counts.iter().sum()));
        }
    }
    let samples: u64 = counted.iter().map(|(_, count)| count).sum();
    let mut passed = 0;
    let median = counted.iter().find(|(_, count)| {
        passed += count;
        2 * passed >= samples
    });
    let longest = counted.iter().rfind(|(_, count)| *count > 0);
    let (Some((median, _)), Some((longest, _))) = (median, longest) else {
        return Err(bad("has measured nothing"));
    };
    Ok(Latencies {
        samples,
        median: Duration::from_micros(*median),
        longest: Duration::from_micros(*longest),
    })
}

/// Says how long releases took in a run: of sorted times from the releases of jobs that were chosen
/// then to their first instructions.
#[cfg(feature = "init")]
pub(crate) fn tell(case: &str, by: &str, sorted: &[u32]) {
    let at = |place: usize| Duration::from_nanos(sorted.get(place).copied().unwrap_or(0).into());
    println!(
        "guest: {case}: release to first instruction {by}: {} at the median, {} at most, of {}",
        at(sorted.len() / 2).rounded(),
        at(sorted.len().saturating_sub(1)).rounded(),
        sorted.len()
    );
}

/// Calls cyclictest for two seconds on each of four processors.
///
/// # Errors
/// The guest was not given it; it fails, or says nothing that can be read.
#[cfg(feature = "init")]
pub(crate) fn cyclictest(case: &str) -> Result<()> {
    const PROGRAM: &str = "/cyclictest";
    let line = "--mlockall --quiet --policy=fifo --priority=97 --interval=10000 --distance=1000 \
                --threads=4 --affinity=0-3 --loops=200 --histogram=5000";
    let output = std::process::Command::new(PROGRAM)
        .args(line.split_whitespace())
        .output();
    let output = output.map_err(|e| Error::io(PROGRAM, "start it", &e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!(
            "cyclictest ended with {}: {said}",
            output.status
        )));
    }
    let read = read(&String::from_utf8_lossy(&output.stdout))?;
    println!(
        "guest: {case}: cyclictest: {} at the median, {} at most, of {}",
        read.median, read.longest, read.samples
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_a_histogram_is_that_of_all_threads() {
        let text = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\t000000\n\
                    000007 000002\t000001\n000009 000000\t000003\n000031 000001\t000000\n\
                    # Total: 000000003 000000004\n# Histogram Overflows: 00000 00000\n";
        let us = Duration::from_micros;
        let read_it = read(text).unwrap();
        assert_eq!(
            read_it,
            Latencies {
                samples: 7,
                median: us(9),
                longest: us(31)
            }
        );
        let beyond = text.replace("Overflows: 00000 00000", "Overflows: 00000 00002");
        assert!(read(&beyond).unwrap_err().cause().contains("beyond"));
        assert!(read("# Histogram Overflows: 00000\n").is_err());
        assert!(read("").is_err());
    }
}
