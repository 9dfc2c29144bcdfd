//! What a study is: which task sets, on which platform, under which policies, over which grid (000
//! §5; 002 §6.2–6.4).

use crate::axis::{Axis, Quantity, Swept};
use crate::charged::{Caches, Charged};
use crate::grid::{Cap, Factor, Grid};
use analyze::Guarantee;
use generate::{Amount, Deadlines, Fill, Periods, Recipe, Utilizations};
use model::{Bytes, Duration, Error, Overheads, Platform, Result};

/// A study. Plain data; [`Study::prepare`] checks it.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// A short name, such as `ospert10-fig5`.
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// Where it comes from; empty if from nowhere.
    pub source: String,
    /// The processors and who shares caches.
    pub platform: Platform,
    /// Policies by name; see [`Candidate::find`].
    pub policies: Vec<String>,
    /// Hard or soft.
    pub guarantee: Guarantee,
    /// The distribution of utilizations.
    pub utilizations: Utilizations,
    /// The distribution of periods.
    pub periods: Periods,
    /// The kind of deadlines.
    pub deadlines: Deadlines,
    /// What becomes of the task that would exceed the cap.
    pub fill: Fill,
    /// The caps U; shares of the processors where their number is swept.
    pub caps: Grid<Cap>,
    /// What is swept.
    pub axis: Axis,
    /// Up to which number of the axis charts go: nanoseconds, bytes, thousandths, processors. `None`:
    /// to its end.
    pub drawn_to: Option<u64>,
    /// What caches cost where the axis does not sweep it.
    pub cache: Cache,
    /// A factor on all overheads of the profile, cache delays included, where the axis does not
    /// sweep it.
    pub overhead_factor: Factor,
    /// Which overheads the factor multiplies, swept or not.
    pub factor_on: Overheads,
    /// How many sets for each cap; with `until_ci` at most.
    pub sets: u32,
    /// Sets are added until the 95 % interval of every share at the cap is at most so wide.
    pub until_ci: Option<f64>,
    /// The seed of the sets.
    pub seed: u64,
    /// How many delays D a job is charged: e′ = e + overhead + charge × D. 1 in 000 §2.
    pub charge: u32,
    /// What every WCET grows by before D.
    pub overhead: Duration,
    /// What is charged besides D, and how.
    pub charged: Charged,
}

/// The most sets for each cap: their numbers fill the lower half of a stream's number.
pub const MAX_SETS: u32 = 100_000_000;

/// The most counts of a study: caps times points times policies. A hundred times those of the
/// largest preset.
pub const MAX_COUNTS: usize = 10_000_000;

/// What a preemption or migration costs where a study does not sweep it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cache {
    /// One delay D.
    Delay(Duration),
    /// What the profile says for tasks with this working set size ξ.
    WorkingSet(Bytes),
}

impl Cache {
    /// Caches cost nothing.
    pub const NOTHING: Cache = Cache::Delay(Duration::ZERO);

    /// The key of a study file that sets it.
    pub const fn key(self) -> &'static str {
        match self {
            Cache::Delay(_) => "delay",
            Cache::WorkingSet(_) => "working_set",
        }
    }
}

impl Study {
    /// Checks the study.
    ///
    /// # Errors
    /// No sets; a cap above the processors; a policy that the platform has no clusters for.
    pub fn check(&self) -> Result<()> {
        self.prepare().map(drop)
    }

    /// The same study on another platform. Caps that end at the number of processors end at the new
    /// one, with the same step; of others those above it are left out: no task set above that can be
    /// scheduled.
    ///
    /// # Errors
    /// All caps are above that.
    pub fn on(self, platform: Platform) -> Result<Study> {
        if self.caps_are_shares() {
            return Ok(Study { platform, ..self });
        }
        let most = Cap::from_thousandths((platform.usable().len() as u32).saturating_mul(1000));
        let before =
            Cap::from_thousandths((self.platform.usable().len() as u32).saturating_mul(1000));
        let all = match self.caps.last() == Some(before) {
            true => self.caps.going_on_to(most),
            false => self.caps,
        };
        let caps = all.up_to(most).ok_or_else(|| {
            Error::new(format!(
                "the lowest cap of the study is above the {} processors of `{}`",
                platform.usable().len(),
                platform.name
            ))
            .remedy("give more processors, or write a study with lower caps")
        })?;
        let title = match platform.is_scaled() {
            true => format!(
                "{}, scaled to {} processors",
                self.title,
                platform.usable().len()
            ),
            false => self.title,
        };
        Ok(Study {
            platform,
            caps,
            title,
            ..self
        })
    }

    /// Are caps shares of the processors, as their number is swept?
    pub fn caps_are_shares(&self) -> bool {
        self.axis.quantity() == Quantity::Processors
    }

    /// Do tasks have a working set size, so that the profile says what caches cost?
    pub fn has_working_sets(&self) -> bool {
        match self.axis.quantity() {
            Quantity::Delay => false,
            Quantity::WorkingSet => true,
            Quantity::OverheadFactor | Quantity::Processors => {
                matches!(self.cache, Cache::WorkingSet(_))
            }
        }
    }

    /// The axis, as results tell it.
    pub(crate) fn swept(&self) -> Swept {
        Swept {
            scaled_from: self.caps_are_shares().then(|| self.platform.name.clone()),
            factor_on: Some(self.factor_on).filter(|on| {
                self.axis.quantity() == Quantity::OverheadFactor && *on != Overheads::ALL
            }),
            drawn_to: self.drawn_to,
            ..self.axis.swept()
        }
    }

    /// What is charged, as results tell it.
    pub(crate) fn told(&self) -> crate::charged::Told {
        let caches = match self.has_working_sets() {
            true => Caches::WorkingSet,
            false => Caches::Delay,
        };
        let charged = Charged {
            caches,
            ..self.charged.clone()
        };
        let told = charged.told(self.guarantee);
        crate::charged::Told {
            load: told.load.filter(|_| !self.names_loads()),
            ..told
        }
    }

    /// Does a policy name the load of its cache delays itself, as in `edf-wm@idle`?
    pub(crate) fn names_loads(&self) -> bool {
        self.policies.iter().any(|policy| policy.contains('@'))
    }

    /// How the sets of a cap are made.
    pub fn recipe(&self, cap: Cap) -> Recipe {
        Recipe {
            amount: Amount::Cap {
                utilizations: self.utilizations,
                cap: cap.ratio(),
                fill: self.fill,
            },
            periods: self.periods.clone(),
            deadlines: self.deadlines,
        }
    }

    /// The number of a set under the seed: its cap and its place. So a cap has the same sets in
    /// every grid, and the first hundred are the same whether a hundred are drawn or a thousand.
    pub fn set_number(cap: Cap, index: u32) -> u64 {
        u64::from(cap.thousandths()) << 32 | u64::from(index)
    }

    /// How many questions the study asks at most: sets × policies × points of the axis.
    pub fn judgments(&self) -> u64 {
        let points = self.caps.values().len() * self.axis.numbers().len() * self.policies.len();
        points as u64 * u64::from(self.sets)
    }
}
