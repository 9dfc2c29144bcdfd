//! Scheduling overheads, as curves over the number of tasks, and how they lengthen WCETs.
//!
//! 002 §2.4 (the seven overheads) and §6.1 (accounting). The formulas and their sources stand
//! together in `docs/overheads.md`. Overheads that a job brings about by itself (scheduling,
//! context switches, cache delay, the interrupt that tells another processor) lengthen its WCET;
//! interrupts that hit it whatever it does (ticks, releases of others, timer transfers) take their
//! part of the time that it needs.
//!
//! [`account`] takes an assignment and says what everything costs in it; [`pack`] makes an
//! assignment that holds with its overheads.

mod account;
mod accounting;
pub mod bins;
pub(crate) mod clear_servers;
pub(crate) mod clear_turns;
pub mod edf_fm;
pub mod edf_wm;
mod holds;
mod kinds;
pub mod nps_f;
pub mod one_delay;
mod packing;
pub mod quanta;
mod slots;
mod system;

pub use account::{Accounted, Piece, Place, account, longest_delay};
pub use holds::holds;
pub use kinds::{Each, Kind, Lost, Parts};
pub(crate) use packing::inflated_in;
pub use packing::{Packed, Way, pack, pack_where, pack_with};
pub use system::{CacheCharge, CacheDelays, Precedence, System};

use model::profile::{Code, OverheadKind, Statistic};
use model::{Delay, Duration, Profile};
use serde::Serialize;

/// The overheads at one number of tasks; the seventh, cache delay, is per task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Overheads {
    /// Servicing the interrupt that releases a job.
    pub release: Duration,
    /// Choosing the next job.
    pub scheduling: Duration,
    /// Switching stacks and registers.
    pub context_switch: Duration,
    /// From sending an inter-processor interrupt to its service.
    pub ipi_latency: Duration,
    /// Programming a timer on another processor; semi-partitioned policies only (002 §2.4).
    pub timer_transfer: Duration,
    /// Servicing the periodic tick, with the engine's watch for standstills.
    pub tick: Duration,
    /// The time between two ticks; not zero.
    pub tick_period: Duration,
}

impl Overheads {
    /// Nothing costs anything.
    pub const NONE: Overheads = Overheads {
        release: Duration::ZERO,
        scheduling: Duration::ZERO,
        context_switch: Duration::ZERO,
        ipi_latency: Duration::ZERO,
        timer_transfer: Duration::ZERO,
        tick: Duration::ZERO,
        tick_period: Profile::DEFAULT_TICK_PERIOD,
    };

    /// Is every one of them zero?
    pub const fn are_free(&self) -> bool {
        self.release.is_zero()
            && self.scheduling.is_zero()
            && self.context_switch.is_zero()
            && self.ipi_latency.is_zero()
            && self.timer_transfer.is_zero()
            && self.tick.is_zero()
    }

    /// The overheads of `policy` at this number of tasks, and the kinds that had to be extrapolated
    /// or that the profile does not have (which count as zero and must be shown as missing).
    pub fn read(
        profile: &Profile,
        policy: &str,
        tasks: u32,
        statistic: Statistic,
    ) -> (Overheads, Gaps) {
        let mut gaps = Gaps::default();
        let mut at = |kind: OverheadKind| {
            let curve = profile.overhead_curve(kind, policy);
            let reading = curve.and_then(|c| Some((c.code, c.at(tasks, statistic)?)));
            match reading {
                Some((code, reading)) => {
                    if code == Some(Code::Own) {
                        gaps.own_only.push(kind);
                    }
                    if reading.extrapolated {
                        gaps.extrapolated.push(kind);
                    }
                    Delay::cost(reading.value)
                }
                None => {
                    gaps.missing.push(kind);
                    Duration::ZERO
                }
            }
        };
        let mut overheads = Overheads {
            release: at(OverheadKind::Release),
            scheduling: at(OverheadKind::Scheduling),
            context_switch: at(OverheadKind::ContextSwitch),
            ipi_latency: at(OverheadKind::IpiLatency),
            timer_transfer: at(OverheadKind::TimerTransfer),
            tick: at(OverheadKind::Tick),
            tick_period: profile.tick_period.unwrap_or(Profile::DEFAULT_TICK_PERIOD),
        };
        let period = overheads.tick_period;
        if let Some(watch) = profile.watch_in_tick(policy, tasks, statistic, period) {
            gaps.watch = watch.value.cost();
            overheads.tick = overheads.tick.saturating_add(gaps.watch);
            if watch.extrapolated {
                gaps.extrapolated.push(OverheadKind::Watch);
            }
        }
        (overheads, gaps)
    }
}

/// What a profile did not say about overheads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Gaps {
    /// Read beyond the numbers of tasks that were measured.
    pub extrapolated: Vec<OverheadKind>,
    /// The profile has the engine's part alone; the kernel's is taken as zero.
    pub own_only: Vec<OverheadKind>,
    /// Not in the profile; taken as zero.
    pub missing: Vec<OverheadKind>,
    /// What of the tick is the engine's watch for standstills; zero: nobody watches.
    #[serde(rename = "watch_ns", serialize_with = "model::time::ns::serialize")]
    pub watch: Duration,
}
