//! What a study charges besides its delays, and how.

use analyze::Guarantee;
use analyze::policies::{Accounting, Costs};
use model::{Bytes, Duration, Error, Load, Platform, Profile, Result, Statistic};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Where the costs of preemptions and migrations come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Caches {
    /// One delay D, whatever the policy does to a job (002 §6.3).
    #[default]
    Delay,
    /// The profile, by working set size and by what the policy does to a job (002 §6.4).
    WorkingSet,
}

/// By which heuristics and tests EDF is judged, partitioned, in clusters or global.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judging {
    /// As `check` does: every heuristic and every test.
    Check,
    /// As 000 §5 and 002 §6.3 do: worst fit in decreasing utilization, and for hard clusters five
    /// tests ([`MAJOR_TESTS`](crate::MAJOR_TESTS)).
    Paper,
}

impl Judging {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Judging::Check => "check",
            Judging::Paper => "paper",
        }
    }
}

impl fmt::Display for Judging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Judging {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let all = [Judging::Check, Judging::Paper];
        all.into_iter().find(|j| j.name() == text).ok_or_else(|| {
            Error::new(format!("unknown way of judging `{text}`"))
                .remedy("write `check` for every heuristic and test, or `paper` for worst fit and five tests")
        })
    }
}

/// What a study charges besides its delays D, and how: as the options of `check` say it.
#[derive(Clone, PartialEq, Debug)]
pub struct Charged {
    /// What the scheduler costs, by number of tasks; its cache delays where tasks have a working
    /// set size.
    pub profile: Option<Profile>,
    /// Which cache delays of the profile are read where tasks have a working set size.
    pub load: Load,
    /// Which number of an overhead; `None`: as the guarantee asks for.
    pub statistic: Option<Statistic>,
    /// How overheads are charged; `None`: as the costs suggest.
    pub accounting: Option<Accounting>,
    /// Where the costs of preemptions and migrations come from. A study sets it as its axis asks
    /// for.
    pub caches: Caches,
    /// By which heuristics and tests EDF is judged; `None`: as in the paper where one delay D a job
    /// is charged, else as `check` does.
    pub judging: Option<Judging>,
}

impl Default for Charged {
    fn default() -> Self {
        Charged {
            profile: None,
            load: Load::Load,
            statistic: None,
            accounting: None,
            caches: Caches::Delay,
            judging: None,
        }
    }
}

impl Charged {
    /// The costs with this delay for tasks that have no working set size.
    pub fn costs(&self, delay: Duration) -> Costs<'_> {
        Costs {
            cpmd: Some(delay),
            profile: self.profile.as_ref(),
            load: self.load,
            statistic: self.statistic,
            accounting: self.accounting,
        }
    }

    /// How overheads are charged.
    pub fn accounting(&self) -> Accounting {
        self.costs(Duration::ZERO).accounting()
    }

    /// By which heuristics and tests EDF is judged.
    pub fn judging(&self) -> Judging {
        let is_plain = self.accounting() == Accounting::OneDelay && self.caches == Caches::Delay;
        self.judging.unwrap_or(match is_plain {
            true => Judging::Paper,
            false => Judging::Check,
        })
    }

    /// The profile, where its overheads are charged.
    pub fn overheads(&self) -> Option<&Profile> {
        let charged = self.costs(Duration::ZERO).rule().has_interrupts();
        let profile = self.profile.as_ref().filter(|_| charged);
        profile.filter(|profile| !profile.overheads.is_empty())
    }

    /// The longest cache delay of a task with this working set size on the platform, whatever a
    /// policy does to it. Nothing for no working set, or without a profile.
    ///
    /// # Errors
    /// The profile lacks the delay of a way to go on that the platform has.
    pub fn longest_delay(
        &self,
        wss: Bytes,
        platform: &Platform,
        guarantee: Guarantee,
    ) -> Result<Duration> {
        let Some(profile) = self.profile.as_ref().filter(|_| wss.get() > 0) else {
            return Ok(Duration::ZERO);
        };
        let statistic = self.costs(Duration::ZERO).statistic_for(guarantee);
        let kinds = platform.resumptions();
        let longest = profile.worst_cpmd(&kinds, self.load, wss, statistic)?;
        Ok(longest.value.cost())
    }

    /// What every result tells of it.
    pub fn told(&self, guarantee: Guarantee) -> Told {
        let profile = self.profile.as_ref().map(|p| p.platform.clone());
        let sized = self.caches == Caches::WorkingSet;
        Told {
            accounting: self.accounting(),
            load: (sized && profile.is_some()).then_some(self.load),
            statistic: profile
                .is_some()
                .then(|| self.costs(Duration::ZERO).statistic_for(guarantee)),
            profile,
        }
    }
}

/// By what a study was charged, as every result tells it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Told {
    /// How overheads were charged.
    pub accounting: Accounting,
    /// The profile that they were read from.
    pub profile: Option<String>,
    /// Which number of an overhead, where there is a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// Under which load its cache delays were measured, where they were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}

impl Told {
    /// Its two columns of a table of comma-separated values; no profile is an empty one.
    pub(crate) fn columns(&self) -> String {
        let profile = self.profile.as_deref().unwrap_or_default();
        match profile.contains([',', '"', '\n', '\r']) {
            true => format!("{},\"{}\"", self.accounting, profile.replace('"', "\"\"")),
            false => format!("{},{profile}", self.accounting),
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accounting {}, ", self.accounting)?;
        match (&self.profile, self.statistic) {
            (Some(profile), Some(statistic)) => match self.load {
                Some(load) => write!(f, "profile {profile} ({statistic}, {load})"),
                None => write!(f, "profile {profile} ({statistic})"),
            },
            (Some(profile), None) => write!(f, "profile {profile}"),
            (None, _) => f.write_str("no profile"),
        }
    }
}
