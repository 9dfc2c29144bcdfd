//! The words of costs: which overhead, under which load, which number of a sample. They are defined
//! and parsed here alone.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What else ran while a delay was measured (000 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Nothing: the best case.
    Idle,
    /// A cache polluter on every processor: the worst case.
    Load,
}

/// Which number of a sample: hard real time asks for the worst case, soft for the average (002
/// §6.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Mean of the samples.
    Average,
    /// Largest sample; of overheads the largest that is no outlier (002 §5.1).
    Maximum,
    /// Largest sample, outliers of overheads among them; where a source removes none or does not
    /// say it is the maximum.
    Untrimmed,
}

/// The seven overheads of 002 §2.4.
///
/// On one processor they nest: one that begins while another is open suspends it, and ends before
/// it. The exception is the latency of an inter-processor interrupt, which is under way while the
/// processor goes on with its work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Overhead {
    /// Servicing the interrupt that releases a job.
    Release = 0,
    /// Choosing the next job.
    Scheduling = 1,
    /// Switching stacks and registers.
    ContextSwitch = 2,
    /// From sending an inter-processor interrupt until the addressed processor serves it.
    IpiLatency = 3,
    /// Programming a timer on behalf of another processor; semi-partitioned policies only.
    TimerTransfer = 4,
    /// Servicing the periodic tick.
    Tick = 5,
    /// Cache-related preemption and migration delay: reloading the working set.
    Cpmd = 6,
}

/// An overhead that a profile has as a curve over the number of tasks: all but CPMD, which has
/// curves over working set sizes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverheadKind {
    /// Servicing the interrupt that releases a job.
    Release,
    /// Choosing the next job.
    Scheduling,
    /// Switching stacks and registers.
    ContextSwitch,
    /// From sending an inter-processor interrupt to its service.
    IpiLatency,
    /// Programming a timer on another processor.
    TimerTransfer,
    /// Servicing the periodic tick.
    Tick,
    /// The engine's own watch for standstills, which interrupts all jobs as the tick does and is
    /// charged with it. 002 has none.
    Watch,
    /// Setting the timer of one's own processor (002, Figs. B.2 and C.2). It is a part of the
    /// overhead that ends with it, which tasks are charged: so nobody is charged it.
    TimerRearming,
}

/// Whose code an overhead was measured in, where scheduling is shared between an engine in user
/// space and the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Code {
    /// The engine's own: not all that a task loses.
    Own,
    /// The kernel's: likewise.
    Kernel,
    /// Both.
    Both,
}

impl Code {
    /// All.
    pub const ALL: [Code; 3] = [Code::Own, Code::Kernel, Code::Both];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Own => "own",
            Code::Kernel => "kernel",
            Code::Both => "both",
        }
    }
}

impl Load {
    /// Both.
    pub const ALL: [Load; 2] = [Load::Idle, Load::Load];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Load => "load",
        }
    }
}

impl Statistic {
    /// All.
    pub const ALL: [Statistic; 3] = [Statistic::Average, Statistic::Maximum, Statistic::Untrimmed];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::Average => "average",
            Statistic::Maximum => "maximum",
            Statistic::Untrimmed => "untrimmed",
        }
    }
}

impl Overhead {
    /// All seven, in the order of their numbers, which is that of the paper.
    pub const ALL: [Overhead; 7] = [
        Overhead::Release,
        Overhead::Scheduling,
        Overhead::ContextSwitch,
        Overhead::IpiLatency,
        Overhead::TimerTransfer,
        Overhead::Tick,
        Overhead::Cpmd,
    ];

    /// The overhead of a number, if there is one.
    pub fn from_number(number: u64) -> Option<Self> {
        usize::try_from(number)
            .ok()
            .and_then(|n| Overhead::ALL.get(n))
            .copied()
    }

    /// As profiles, traces and answers write it.
    pub const fn name(self) -> &'static str {
        match self {
            Overhead::Release => "release",
            Overhead::Scheduling => "scheduling",
            Overhead::ContextSwitch => "context-switch",
            Overhead::IpiLatency => "ipi-latency",
            Overhead::TimerTransfer => "timer-transfer",
            Overhead::Tick => "tick",
            Overhead::Cpmd => "cpmd",
        }
    }

    /// Does it keep the processor from executing the job? All do but the latency of an interrupt
    /// that is still on its way.
    pub const fn occupies_processor(self) -> bool {
        !matches!(self, Overhead::IpiLatency)
    }
}

impl OverheadKind {
    /// Every kind, those of 002 in the order in which they occur (§2.4).
    pub const ALL: [OverheadKind; 8] = [
        OverheadKind::Release,
        OverheadKind::Scheduling,
        OverheadKind::ContextSwitch,
        OverheadKind::IpiLatency,
        OverheadKind::TimerTransfer,
        OverheadKind::Tick,
        OverheadKind::Watch,
        OverheadKind::TimerRearming,
    ];

    /// Are tasks charged it? All but timer re-arming, which is a part of others.
    pub const fn is_charged(self) -> bool {
        !matches!(self, OverheadKind::TimerRearming)
    }

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            OverheadKind::Release => Overhead::Release.name(),
            OverheadKind::Scheduling => Overhead::Scheduling.name(),
            OverheadKind::ContextSwitch => Overhead::ContextSwitch.name(),
            OverheadKind::IpiLatency => Overhead::IpiLatency.name(),
            OverheadKind::TimerTransfer => Overhead::TimerTransfer.name(),
            OverheadKind::Tick => Overhead::Tick.name(),
            OverheadKind::Watch => "watch",
            OverheadKind::TimerRearming => "timer-rearming",
        }
    }

    /// For sentences: `IPI latency`.
    pub const fn words(self) -> &'static str {
        match self {
            OverheadKind::IpiLatency => "IPI latency",
            OverheadKind::TimerTransfer => "timer transfer",
            OverheadKind::TimerRearming => "timer re-arming",
            kind => kind.name(),
        }
    }
}

/// The one of `all` that has this name.
pub(crate) fn find<T: Copy>(
    all: &[T],
    name: fn(T) -> &'static str,
    what: &str,
    text: &str,
) -> Result<T> {
    let found = all.iter().copied().find(|t| name(*t) == text);
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|t| format!("`{}`", name(*t))).collect();
        let remedy = match &names[..] {
            [one, other] => format!("write {one} or {other}"),
            _ => format!("known are {}", names.join(", ")),
        };
        Error::new(format!("unknown {what} `{text}`")).remedy(remedy)
    })
}

impl FromStr for Load {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        find(&Load::ALL, Load::name, "load", text)
    }
}

impl FromStr for Statistic {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        find(&Statistic::ALL, Statistic::name, "statistic", text)
    }
}

impl FromStr for Code {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        find(&Code::ALL, Code::name, "code", text)
    }
}

impl FromStr for OverheadKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        find(&OverheadKind::ALL, OverheadKind::name, "overhead", text)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_written() {
        for code in Code::ALL {
            assert_eq!(code.to_string().parse::<Code>().unwrap(), code);
        }
        for load in Load::ALL {
            assert_eq!(load.to_string().parse(), Ok(load));
            assert_eq!(serde_json::to_value(load).unwrap(), load.name());
        }
        for statistic in Statistic::ALL {
            assert_eq!(statistic.to_string().parse(), Ok(statistic));
            assert_eq!(serde_json::to_value(statistic).unwrap(), statistic.name());
        }
        for kind in OverheadKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for (number, overhead) in Overhead::ALL.into_iter().enumerate() {
            assert_eq!(Overhead::from_number(number as u64), Some(overhead));
            assert_eq!(serde_json::to_value(overhead).unwrap(), overhead.name());
        }
        assert_eq!(Overhead::from_number(7), None);
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        let e = "busy".parse::<Load>().unwrap_err().to_string();
        assert_eq!(e, "unknown load `busy`; write `idle` or `load`");
        let e = "median".parse::<Statistic>().unwrap_err().to_string();
        assert_eq!(
            e,
            "unknown statistic `median`; known are `average`, `maximum`, `untrimmed`"
        );
        let e = "cpmd".parse::<OverheadKind>().unwrap_err().to_string();
        assert!(
            e.starts_with("unknown overhead `cpmd`; known are `release`, `scheduling`, "),
            "{e}"
        );
    }
}
