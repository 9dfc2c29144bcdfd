//! What a study charges besides its delays, and how.

use analyze::Guarantee;
use analyze::policies::{Accounting, Costs};
use model::{Duration, Load, Profile, Statistic};
use serde::Serialize;
use std::fmt;

/// What a study charges besides its delays D, and how: as the options of `check` say it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Charged {
    /// What the scheduler costs, by number of tasks. Its cache delays are not read: tasks that are
    /// drawn have no working sets, and D is their delay.
    pub profile: Option<Profile>,
    /// Which number of an overhead; `None`: as the guarantee asks for.
    pub statistic: Option<Statistic>,
    /// How overheads are charged; `None`: as the costs suggest.
    pub accounting: Option<Accounting>,
}

impl Charged {
    /// The costs with this delay.
    pub fn costs(&self, delay: Duration) -> Costs<'_> {
        Costs {
            cpmd: Some(delay),
            profile: self.profile.as_ref(),
            // Says which cache delays are read, and none are.
            load: Load::Load,
            statistic: self.statistic,
            accounting: self.accounting,
        }
    }

    /// How overheads are charged.
    pub fn accounting(&self) -> Accounting {
        self.costs(Duration::ZERO).accounting()
    }

    /// The profile, where its overheads are charged.
    pub fn overheads(&self) -> Option<&Profile> {
        let charged = self.costs(Duration::ZERO).rule().has_interrupts();
        let profile = self.profile.as_ref().filter(|_| charged);
        profile.filter(|profile| !profile.overheads.is_empty())
    }

    /// What every result tells of it.
    pub fn told(&self, guarantee: Guarantee) -> Told {
        let profile = self.profile.as_ref().map(|p| p.platform.clone());
        Told {
            accounting: self.accounting(),
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
            (Some(profile), Some(statistic)) => write!(f, "profile {profile} ({statistic})"),
            (Some(profile), None) => write!(f, "profile {profile}"),
            (None, _) => f.write_str("no profile"),
        }
    }
}
