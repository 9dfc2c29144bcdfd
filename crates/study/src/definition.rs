//! What a study is: which task sets, on which platform, under which policies, over which grid (000
//! §5; 002 §6.2–6.3).

use crate::charged::Charged;
use crate::grid::{Cap, Grid};
use crate::judge::Candidate;
use analyze::Guarantee;
use analyze::policies::Accounting;
use generate::{Amount, Deadlines, Fill, Generator, Periods, Recipe, Utilizations};
use model::profile::OverheadKind;
use model::{Duration, Error, Platform, Ratio, Result};

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
    /// The caps U.
    pub caps: Grid<Cap>,
    /// The delays D.
    pub delays: Grid<Duration>,
    /// How many sets for each cap.
    pub sets: u32,
    /// The seed of the sets.
    pub seed: u64,
    /// How many delays a job is charged: e′ = e + overhead + charge × D. 1 in 000 §2.
    pub charge: u32,
    /// What every WCET grows by before D.
    pub overhead: Duration,
    /// What is charged besides D, and how.
    pub charged: Charged,
}

/// The most sets for each cap: their numbers fill the lower half of a stream's number.
pub const MAX_SETS: u32 = 100_000_000;

/// The most counts of a study: caps times delays times policies. A hundred times those of the
/// largest preset.
pub const MAX_COUNTS: usize = 10_000_000;

/// A study that was found sound.
pub(crate) struct Prepared {
    pub caps: Vec<Cap>,
    pub generators: Vec<Generator>,
    pub delays: Vec<Duration>,
    /// What is charged for each of them.
    pub charged: Vec<Duration>,
    /// What every WCET grows by without a delay.
    pub overhead: Duration,
    pub policies: Vec<Candidate>,
    pub processors: u32,
}

impl Study {
    /// Checks the study.
    ///
    /// # Errors
    /// No sets; a cap above the processors; a policy that the platform has no clusters for.
    pub fn check(&self) -> Result<()> {
        self.prepare().map(drop)
    }

    /// The same study on another platform, without the caps above what it has: no task set above
    /// that can be scheduled.
    ///
    /// # Errors
    /// All caps are above that.
    pub fn on(self, platform: Platform) -> Result<Study> {
        let most = Cap::from_thousandths((platform.usable().len() as u32).saturating_mul(1000));
        let caps = self.caps.up_to(most).ok_or_else(|| {
            Error::new(format!(
                "the lowest cap of the study is above the {} processors of `{}`",
                platform.usable().len(),
                platform.name
            ))
            .remedy("give more processors, or write a study with lower caps")
        })?;
        Ok(Study {
            platform,
            caps,
            ..self
        })
    }

    /// Checks the study and finds its policies.
    pub(crate) fn prepare(&self) -> Result<Prepared> {
        if self.sets == 0 || self.sets > MAX_SETS {
            return Err(Error::new(format!("{} sets for each cap", self.sets))
                .at("sets")
                .remedy(format!("give 1 to {MAX_SETS}")));
        }
        let processors = self.platform.usable().len() as u32;
        let caps = self.caps.values();
        let highest = caps.last().map_or(Ratio::ZERO, |c| c.ratio());
        if highest > Ratio::whole(u64::from(processors)) {
            return Err(Error::new(format!(
                "the cap {} is above the {processors} processors of `{}`",
                highest.to_f64(),
                self.platform.name
            ))
            .at("caps")
            .remedy(format!(
                "end at {processors}: nothing above can be scheduled"
            )));
        }
        let generators = caps
            .iter()
            .map(|cap| self.recipe(*cap).prepare().map_err(|e| e.at("caps")))
            .collect::<Result<_>>()?;
        let delays = self.delays.values();
        self.check_counts(caps.len(), delays.len())?;
        let times =
            |d: &Duration| Duration::from_nanos(d.nanos().saturating_mul(u64::from(self.charge)));
        let charged = delays.iter().map(times).collect();
        let accounting = self.charged.accounting();
        if accounting != Accounting::OneDelay && self.charge != 1 {
            return Err(Error::new(format!(
                "the accounting `{accounting}` counts delays itself, and `charge` asks for {} a job",
                self.charge
            ))
            .at("charge")
            .remedy("leave out `charge`, or set `accounting = \"one-delay\"`"));
        }
        let policies = self.candidates()?;
        Ok(Prepared {
            caps,
            generators,
            delays,
            charged,
            overhead: self.overhead,
            policies,
            processors,
        })
    }

    /// Refuses more counts than [`MAX_COUNTS`], by how many caps and delays there are.
    fn check_counts(&self, caps: usize, delays: usize) -> Result<()> {
        let counts = caps.saturating_mul(delays);
        let counts = counts.saturating_mul(self.policies.len().max(1));
        if counts > MAX_COUNTS {
            return Err(Error::new(format!(
                "{} caps, {} delays and {} policies are {counts} counts",
                caps,
                delays,
                self.policies.len()
            ))
            .remedy(format!(
                "at most {MAX_COUNTS}: widen the steps, or split the study"
            )));
        }
        Ok(())
    }

    /// The policies, each once.
    fn candidates(&self) -> Result<Vec<Candidate>> {
        if self.policies.is_empty() {
            return Err(Error::new("no policy is named")
                .at("policies")
                .remedy("give at least one, such as `g-edf`"));
        }
        let candidates: Vec<Candidate> = self
            .policies
            .iter()
            .map(|name| {
                Candidate::find(name, &self.platform, self.guarantee, &self.charged)
                    .map_err(|e| e.at("policies"))
            })
            .collect::<Result<_>>()?;
        for (i, policy) in candidates.iter().enumerate() {
            if candidates[..i].iter().any(|p| p.label() == policy.label()) {
                return Err(
                    Error::new(format!("the policy `{}` is named twice", policy.name()))
                        .at("policies")
                        .remedy("name it once"),
                );
            }
        }
        Ok(candidates)
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

    /// What one must know to trust the results, in sentences.
    pub(crate) fn notes(&self, prepared: &Prepared) -> Vec<String> {
        let mut notes: Vec<String> = self.left_out().into_iter().collect();
        notes.extend(self.overheads(prepared));
        if prepared.delays.iter().all(|d| d.is_zero()) {
            return notes;
        }
        let accounting = self.charged.accounting();
        if accounting != Accounting::OneDelay {
            notes.push(format!(
                "Delays are charged by the accounting `{accounting}`: to policies where they preempt and migrate, to tests \
                 once a job."
            ));
        }
        let (count, charged) = match self.charge {
            1 => ("one delay".to_owned(), "is"),
            n => (format!("{n} delays"), "are"),
        };
        for policy in &prepared.policies {
            if let Some(uncovered) = policy.judge().uncovered() {
                notes.push(format!(
                    "{}: {count} a job {charged} charged, and more may occur: {uncovered}.",
                    policy.label()
                ));
            }
        }
        notes
    }

    /// What of the profile is charged, in sentences.
    fn overheads(&self, prepared: &Prepared) -> Vec<String> {
        let Some(profile) = &self.charged.profile else {
            return Vec::new();
        };
        let (name, accounting) = (&profile.platform, self.charged.accounting());
        if self.charged.overheads().is_none() {
            let why = match profile.overheads.is_empty() {
                true => "it has no others than cache delays, and D stands for these".to_owned(),
                false => format!("the accounting `{accounting}` knows D alone"),
            };
            return vec![format!(
                "No overhead of the profile `{name}` is charged: {why}."
            )];
        }
        let lacking = OverheadKind::ALL
            .into_iter()
            // The paper knows no watch.
            .filter(|kind| *kind != OverheadKind::Watch)
            .filter(|kind| profile.overheads.iter().all(|curve| curve.kind != *kind));
        let lacking: Vec<&str> = lacking.map(OverheadKind::name).collect();
        let mut notes = vec![format!(
            "The overheads of the profile `{name}` are charged by the number of tasks of each set, beyond the numbers that were \
             measured by extrapolation{}; D stands for its cache delays.",
            match lacking.is_empty() {
                true => String::new(),
                false => format!("; it has none of these kinds: {}", lacking.join(", ")),
            }
        )];
        let tests = prepared
            .policies
            .iter()
            .filter(|p| p.judge().charges_every_job());
        let tests: Vec<&str> = tests.map(Candidate::label).collect();
        if !tests.is_empty() {
            notes.push(format!("{}: tests are charged D alone.", tests.join(", ")));
        }
        notes
    }

    /// What the results leave out that the figure of the paper charges, where the study is named
    /// after one.
    fn left_out(&self) -> Option<String> {
        let paper = self.source.split_once(' ')?.0;
        if !["000", "002"].contains(&paper) {
            return None;
        }
        let instead = match (self.charged.overheads(), self.overhead.is_zero()) {
            (Some(profile), _) => format!("are those of the profile `{}` here", profile.platform),
            (None, true) => "are left out here".to_owned(),
            (None, false) => format!(
                "are {} a job here, the same under every policy",
                self.overhead
            ),
        };
        Some(format!(
            "Not the figure itself: {} charges the kernel's overheads as measured, which {instead}. Curves lie elsewhere, and \
             policies may come in another order.",
            self.source
        ))
    }

    /// The number of a set under the seed: its cap and its place. So a cap has the same sets in
    /// every grid, and the first hundred are the same whether a hundred are drawn or a thousand.
    pub fn set_number(cap: Cap, index: u32) -> u64 {
        u64::from(cap.thousandths()) << 32 | u64::from(index)
    }

    /// How many questions the study asks at most: sets × policies × delays.
    pub fn judgments(&self) -> u64 {
        let points = self.caps.values().len() * self.delays.values().len() * self.policies.len();
        points as u64 * u64::from(self.sets)
    }
}
