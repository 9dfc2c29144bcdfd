//! Clocks for short intervals: the time-stamp counter, and the system's monotonic clock where there
//! is none.
//!
//! 000 §3.3: intervals are taken with a counter per processor; clock skew is avoided by taking both
//! ends of an interval on one processor, which [`Clock::stamp_on`] lets the caller check.
//! Assumes a counter of constant rate that does not stop (`constant_tsc`, `nonstop_tsc`);
//! [`counter`] refuses others. The counter may step by more than one: [`Calibration::step`] says by
//! how much, single short intervals mean nothing.

use model::{CpuId, Duration, Error, Result};
use rustix::time::{ClockId, clock_gettime};

/// A reading of a clock. Only differences mean anything, and only between readings of the same
/// clock.
pub type Stamp = u64;

/// A clock that costs some tens of nanoseconds to read.
pub trait Clock: Copy + Send + Sync {
    /// What it is, for provenance.
    fn name(&self) -> &'static str;
    /// Reads the clock after everything before it in the program is done (loads and stores), and
    /// before anything after it begins.
    fn stamp(&self) -> Stamp;
    /// The same, with the processor on which it was read.
    fn stamp_on(&self) -> (Stamp, CpuId);
    /// Reads the clock without waiting for anything: some tens of instructions early or late.
    fn glance(&self) -> Stamp;
}

/// The time-stamp counter of x86-64.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Tsc(());

#[cfg(target_arch = "x86_64")]
impl Clock for Tsc {
    fn name(&self) -> &'static str {
        "time-stamp counter"
    }
    #[inline(always)]
    fn stamp(&self) -> Stamp {
        self.stamp_on().0
    }
    #[inline(always)]
    fn stamp_on(&self) -> (Stamp, CpuId) {
        use core::arch::x86_64::{__rdtscp, _mm_lfence, _mm_mfence};
        let mut aux = 0;
        // SAFETY: `mfence` and `lfence` are part of x86-64; `Tsc` exists only where the kernel
        // lists `rdtscp`.
        let stamp = unsafe {
            _mm_mfence(); // stores before it are visible
            _mm_lfence(); // loads before it are done
            let stamp = __rdtscp(&mut aux);
            _mm_lfence(); // nothing after it has begun
            stamp
        };
        // Linux keeps the processor in the low 12 bits and the NUMA node above.
        (stamp, CpuId(aux & 0xfff))
    }
    #[inline(always)]
    fn glance(&self) -> Stamp {
        // SAFETY: as above.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

/// The system's monotonic clock that nobody adjusts, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn name(&self) -> &'static str {
        "CLOCK_MONOTONIC_RAW"
    }
    #[inline(always)]
    fn stamp(&self) -> Stamp {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let stamp = monotonic_raw();
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        stamp
    }
    #[inline(always)]
    fn stamp_on(&self) -> (Stamp, CpuId) {
        (self.stamp(), current_cpu())
    }
    #[inline(always)]
    fn glance(&self) -> Stamp {
        monotonic_raw()
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`.
pub fn monotonic_raw() -> u64 {
    nanos_of(ClockId::MonotonicRaw)
}

#[inline]
fn nanos_of(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    (t.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.tv_nsec as u64)
}

/// Nanoseconds of processor time that the calling thread has used.
pub fn thread_time() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ThreadCPUTime))
}

/// Nanoseconds of processor time that all threads of this process have used.
pub fn process_time() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ProcessCPUTime))
}

/// The processor that the caller runs on; outdated as soon as it is known, unless the caller is
/// pinned.
pub fn current_cpu() -> CpuId {
    CpuId(u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0))
}

/// The time-stamp counter, if this machine has one that can be trusted.
///
/// # Errors
/// The kernel does not list the flags that make it constant, unstoppable and readable together with
/// the processor.
#[cfg(target_arch = "x86_64")]
pub fn counter() -> Result<Tsc> {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    counter_of(&info)
}

#[cfg(target_arch = "x86_64")]
fn counter_of(cpuinfo: &str) -> Result<Tsc> {
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    for wanted in ["constant_tsc", "nonstop_tsc", "rdtscp"] {
        if !flags.split_whitespace().any(|flag| flag == wanted) {
            return Err(Error::new(format!(
                "the time-stamp counter cannot be trusted: no `{wanted}`"
            ))
            .at("/proc/cpuinfo")
            .remedy("the system's monotonic clock is used instead"));
        }
    }
    Ok(Tsc(()))
}

/// Runs a body with the best clock of this machine: the counter where it can be trusted, the
/// system's clock elsewhere. The body is compiled for each.
#[macro_export]
macro_rules! with_clock {
    ($clock:ident => $body:expr) => {{
        #[cfg(target_arch = "x86_64")]
        let counter = $crate::clock::counter().ok();
        #[cfg(not(target_arch = "x86_64"))]
        let counter: Option<$crate::clock::Monotonic> = None;
        match counter {
            Some($clock) => $body,
            None => {
                let $clock = $crate::clock::Monotonic;
                $body
            }
        }
    }};
}

/// How a clock's ticks become nanoseconds, found by comparing it with `CLOCK_MONOTONIC_RAW`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calibration {
    /// Ticks that passed while the clocks were compared.
    ticks: u64,
    /// Nanoseconds that passed meanwhile.
    nanos: u64,
    /// The largest error of a converted interval, in parts per million of its length.
    pub error_ppm: u64,
    /// The smallest step seen between two different readings, in ticks.
    pub step: u64,
    start: (Stamp, u64),
}

/// Both clocks at one moment, and how uncertain that moment is in nanoseconds: the narrowest of
/// many tries.
fn pair<C: Clock>(clock: C) -> (Stamp, u64, u64) {
    (0..64)
        .map(|_| {
            let before = monotonic_raw();
            let stamp = clock.stamp();
            let after = monotonic_raw();
            let width = after.saturating_sub(before);
            (stamp, before + width / 2, width)
        })
        .min_by_key(|(_, _, width)| *width)
        .unwrap_or((clock.stamp(), monotonic_raw(), u64::MAX))
}

impl Calibration {
    /// Compares the clock with the system's for about `over`. The error bound shrinks with the time
    /// spent.
    ///
    /// # Errors
    /// The clock stands still, or runs backwards.
    pub fn of<C: Clock>(clock: C, over: Duration) -> Result<Self> {
        let start = pair(clock);
        std::thread::sleep(std::time::Duration::from_nanos(over.nanos()));
        let mut calibration = Calibration {
            ticks: 1,
            nanos: 1,
            error_ppm: 0,
            step: smallest_step(clock),
            start: (start.0, start.1),
        };
        calibration.refine_from(start, pair(clock), clock.name())?;
        Ok(calibration)
    }

    fn refine_from(
        &mut self,
        start: (Stamp, u64, u64),
        end: (Stamp, u64, u64),
        name: &str,
    ) -> Result<()> {
        self.ticks = end.0.saturating_sub(start.0);
        self.nanos = end.1.saturating_sub(start.1);
        if self.ticks == 0 || self.nanos == 0 {
            return Err(
                Error::new(format!("the {name} stands still or runs backwards"))
                    .remedy("see `dmesg | grep -i tsc` for what the kernel thinks of it"),
            );
        }
        let uncertain = u128::from(start.2.saturating_add(end.2)) / 2 + 1;
        self.error_ppm = u64::try_from((uncertain * 1_000_000).div_ceil(u128::from(self.nanos)))
            .unwrap_or(u64::MAX);
        Ok(())
    }

    /// By how many parts per million the rate since the calibration began differs from the
    /// calibrated one: a clock that was moved to another host or stopped meanwhile gives itself
    /// away.
    pub fn drift_ppm<C: Clock>(&self, clock: C) -> u64 {
        let (stamp, nanos, _) = pair(clock);
        let passed = nanos.saturating_sub(self.start.1).max(1);
        let converted = self
            .between(self.start.0, stamp)
            .map_or(0, |duration| duration.nanos());
        u64::try_from(u128::from(converted.abs_diff(passed)) * 1_000_000 / u128::from(passed))
            .unwrap_or(u64::MAX)
    }

    /// The time between two stamps, to the nearest nanosecond; `None` if the second is before the
    /// first.
    pub fn between(&self, first: Stamp, second: Stamp) -> Option<Duration> {
        second.checked_sub(first).map(|ticks| self.duration(ticks))
    }

    /// A number of ticks as a time, to the nearest nanosecond.
    pub fn duration(&self, ticks: u64) -> Duration {
        let half = u128::from(self.ticks / 2);
        let ns = (u128::from(ticks) * u128::from(self.nanos) + half) / u128::from(self.ticks);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Ticks per second, in Hz.
    pub fn frequency(&self) -> u64 {
        u64::try_from(u128::from(self.ticks) * 1_000_000_000 / u128::from(self.nanos))
            .unwrap_or(u64::MAX)
    }
}

/// The smallest step that the clock was seen to make, over some thousand readings.
fn smallest_step<C: Clock>(clock: C) -> u64 {
    let mut last = clock.glance();
    (0..4096)
        .filter_map(|_| {
            let now = clock.glance();
            let step = now.wrapping_sub(last);
            last = now;
            (step > 0 && step < u64::MAX / 2).then_some(step)
        })
        .min()
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn calibration(ticks: u64, nanos: u64) -> Calibration {
        Calibration {
            ticks,
            nanos,
            error_ppm: 0,
            step: 1,
            start: (0, 0),
        }
    }

    #[test]
    fn ticks_become_nanoseconds_to_the_nearest() {
        // 2.3 GHz: 23 ticks are 10 ns.
        let c = calibration(2_300_000, 1_000_000);
        assert_eq!(c.duration(23).nanos(), 10);
        assert_eq!(c.duration(1).nanos(), 0);
        assert_eq!(c.duration(2).nanos(), 1);
        assert_eq!(c.frequency(), 2_300_000_000);
        assert_eq!(c.between(10, 9), None);
        assert_eq!(c.between(10, 33).unwrap().nanos(), 10);
    }

    #[test]
    fn the_error_bound_comes_from_the_width_of_the_readings() {
        let mut c = calibration(1, 1);
        c.refine_from((0, 0, 100), (2_300_000, 1_000_000, 98), "test")
            .unwrap();
        assert_eq!(c.error_ppm, 100, "100 ns of a millisecond");
        assert!(
            c.refine_from((5, 0, 1), (5, 10, 1), "test").is_err(),
            "stands still"
        );
        assert!(
            c.refine_from((5, 0, 1), (4, 10, 1), "test").is_err(),
            "backwards"
        );
    }

    #[test]
    fn the_system_clock_calibrates_against_itself() {
        let c = Calibration::of(Monotonic, Duration::from_millis(5)).unwrap();
        let second = c.duration(1_000_000_000).nanos();
        let bound = 1_000 * c.error_ppm + 1;
        assert!(
            second.abs_diff(1_000_000_000) <= bound,
            "{second} within {bound}"
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_counter_that_may_stop_is_refused() {
        let good = "flags\t\t: fpu rdtscp constant_tsc nonstop_tsc\n";
        assert!(counter_of(good).is_ok());
        let e = counter_of("flags : fpu rdtscp constant_tsc\n").unwrap_err();
        assert!(e.to_string().contains("no `nonstop_tsc`"), "{e}");
        assert!(counter_of("").is_err());
    }

    proptest! {
        #[test]
        fn longer_intervals_never_convert_to_shorter(a in 0u64..u64::MAX / 2, b in 0u64..1 << 40) {
            let c = calibration(2_294_608_123, 1_000_000_007);
            prop_assert!(c.duration(a) <= c.duration(a + b));
        }
    }
}
