//! A study that was found sound: its sets, and its scenes, within which policies stay the same.
//!
//! Along delays and working sets there is one scene of all points; with each factor on overheads
//! and each number of processors policies cost or are something else, and there is a scene for each.

use crate::axis::{Axis, Quantity};
use crate::charged::{Caches, Charged};
use crate::definition::{Cache, MAX_COUNTS, MAX_SETS, Study};
use crate::grid::{Cap, Factor};
use crate::judge::Candidate;
use crate::stages::stages;
use analyze::policies::Accounting;
use generate::Generator;
use model::{
    Bytes, Duration, Error, Load, Overhead, Overheads, Platform, Ratio, Result, Resumption,
};

/// A study that was found sound.
pub(crate) struct Prepared {
    pub caps: Vec<Cap>,
    /// What sets are drawn by: a row for each way to draw them, an entry for each cap.
    pub sets: Vec<Vec<Draw>>,
    pub scenes: Vec<Scene>,
    /// After how many sets of a cap it is looked whether they are enough; the last is enough.
    pub stages: Vec<u32>,
    /// How wide an interval may be for that.
    pub until_ci: Option<f64>,
    /// What every WCET grows by without a delay.
    pub overhead: Duration,
    /// Those of the platform, as the study names it.
    pub processors: u32,
}

/// What the sets of a cap are drawn by.
pub(crate) struct Draw {
    /// The cap on the total utilization, which numbers the sets.
    pub cap: Cap,
    pub generator: Generator,
}

/// Points of the axis between which policies stay the same, and D never falls.
pub(crate) struct Scene {
    /// Which sets are judged.
    pub sets: usize,
    /// The place of its first point on the axis.
    pub place: usize,
    pub points: Vec<Point>,
    pub processors: u32,
    pub policies: Vec<Candidate>,
}

/// What caches cost at a point of the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// What one job is charged; for a working set the longest delay on the platform.
    pub delay: Duration,
    /// The working set size of every task, where it is not 0.
    pub wss: Option<Bytes>,
}

impl Prepared {
    /// How many policies and points of the axis.
    pub fn size(&self) -> (usize, usize) {
        let points = self.scenes.iter().map(|scene| scene.points.len()).sum();
        (self.policies().len(), points)
    }

    /// The policies, as they are in the first scene: names and labels are the same in all.
    pub fn policies(&self) -> &[Candidate] {
        self.scenes.first().map_or(&[], |scene| &scene.policies)
    }

    /// Does anything about caches cost anything?
    pub fn has_delays(&self) -> bool {
        let mut points = self.scenes.iter().flat_map(|scene| &scene.points);
        points.any(|point| !point.delay.is_zero() || point.wss.is_some())
    }
}

impl Study {
    /// Checks the study and finds its policies.
    pub(crate) fn prepare(&self) -> Result<Prepared> {
        if self.sets == 0 || self.sets > MAX_SETS {
            return Err(Error::new(format!("{} sets for each cap", self.sets))
                .at("sets")
                .remedy(format!("give 1 to {MAX_SETS}")));
        }
        let processors = self.platform.usable().len() as u32;
        let caps = self.caps.values();
        self.check_caps(&caps, processors)?;
        self.check_counts(caps.len(), self.axis.numbers().len())?;
        self.check_caches()?;
        let stages = stages(self.sets, self.until_ci)?;
        self.check_weights(&caps, &stages)?;
        let (sets, scenes) = self.scenes(&caps, processors)?;
        Ok(Prepared {
            caps,
            sets,
            scenes,
            stages,
            until_ci: self.until_ci,
            overhead: self.overhead,
            processors,
        })
    }

    fn check_caps(&self, caps: &[Cap], processors: u32) -> Result<()> {
        let highest = caps.last().map_or(Ratio::ZERO, |c| c.ratio());
        if self.caps_are_shares() {
            return match highest > Ratio::ONE {
                true => Err(Error::new(format!(
                    "the cap {} is above 1, and where `processors` are swept caps are shares of them",
                    highest.to_f64()
                ))
                .at("caps")
                .remedy("end at 1")),
                false => Ok(()),
            };
        }
        match highest > Ratio::whole(u64::from(processors)) {
            true => Err(Error::new(format!(
                "the cap {} is above the {processors} processors of `{}`",
                highest.to_f64(),
                self.platform.name
            ))
            .at("caps")
            .remedy(format!(
                "end at {processors}: nothing above can be scheduled"
            ))),
            false => Ok(()),
        }
    }

    /// Is W a ratio of 64-bit numbers, whatever number of sets each cap gets?
    fn check_weights(&self, caps: &[Cap], stages: &[u32]) -> Result<()> {
        let weights = caps
            .iter()
            .map(|cap| u128::from(cap.thousandths()))
            .sum::<u128>();
        if weights * u128::from(common(stages)) <= u128::from(u64::MAX) {
            return Ok(());
        }
        Err(Error::new(format!(
            "{} caps with up to {} sets each are too many for exact weights",
            caps.len(),
            self.sets
        ))
        .at("sets")
        .remedy("give fewer, or fewer caps"))
    }

    /// Refuses more counts than [`MAX_COUNTS`], by how many caps and points there are.
    fn check_counts(&self, caps: usize, points: usize) -> Result<()> {
        let counts = caps.saturating_mul(points);
        let counts = counts.saturating_mul(self.policies.len().max(1));
        if counts > MAX_COUNTS {
            return Err(Error::new(format!(
                "{} caps, {} {} and {} policies are {counts} counts",
                caps,
                points,
                self.axis.quantity().key().replace('_', " "),
                self.policies.len()
            ))
            .remedy(format!(
                "at most {MAX_COUNTS}: widen the steps, or split the study"
            )));
        }
        Ok(())
    }

    /// Is there what the axis reads, and nothing that it does not?
    fn check_caches(&self) -> Result<()> {
        let quantity = self.axis.quantity();
        let sweeps_caches = matches!(quantity, Quantity::Delay | Quantity::WorkingSet);
        if sweeps_caches && self.cache != Cache::NOTHING {
            let key = self.cache.key();
            return Err(Error::new(format!(
                "`{key}` holds one value, and `{}` sweeps what caches cost",
                quantity.key()
            ))
            .at(key)
            .remedy(format!("leave `{key}` out")));
        }
        if quantity == Quantity::OverheadFactor && self.overhead_factor != Factor::ONE {
            return Err(Error::new(
                "`overhead_factors` sweeps the factor that `overhead_factor` sets",
            )
            .at("overhead_factor")
            .remedy("leave `overhead_factor` out"));
        }
        let accounting = self.charged.accounting();
        if self.charge != 1 && (accounting != Accounting::OneDelay || self.has_working_sets()) {
            let counts = match self.has_working_sets() {
                true => "working sets are charged by what a policy does".to_owned(),
                false => format!("the accounting `{accounting}` counts delays itself"),
            };
            return Err(Error::new(format!(
                "{counts}, and `charge` asks for {} delays a job",
                self.charge
            ))
            .at("charge")
            .remedy("leave out `charge`, or sweep `delays` with `accounting = \"one-delay\"`"));
        }
        if self.has_working_sets() {
            self.check_profile_of_caches()?;
        }
        let scales = quantity == Quantity::OverheadFactor || self.overhead_factor != Factor::ONE;
        if self.factor_on != Overheads::ALL && !scales {
            return Err(
                Error::new("it says which overheads a factor is on, and there is none")
                    .at("factor_on")
                    .remedy(
                        "leave `factor_on` out, or add `overhead_factor` or `overhead_factors`",
                    ),
            );
        }
        let on_caches = self.has_working_sets() && self.factor_on.has(Overhead::Cpmd);
        let charged = self
            .charged
            .overheads()
            .map(|profile| &profile.overheads[..]);
        let mut kinds = charged.unwrap_or_default().iter().map(|curve| curve.kind);
        if scales && !on_caches && charged.is_some() && !kinds.any(|k| self.factor_on.has_kind(k)) {
            return Err(Error::new(format!(
                "a factor on {}, and the profile has no overhead of that kind",
                self.factor_on
            ))
            .at("factor_on")
            .remedy("name overheads that the profile has, or leave `factor_on` out"));
        }
        if scales && !on_caches && charged.is_none() {
            return Err(Error::new(format!(
                "a factor on overheads, and none are charged: the study has {}",
                match &self.charged.profile {
                    None => "no profile".to_owned(),
                    Some(profile) => format!(
                        "the accounting `{accounting}` and the profile `{}` without working sets",
                        profile.platform
                    ),
                }
            ))
            .at(quantity.key())
            .remedy("add `profile = …` that has overheads and `accounting = \"paper\"`, or `working_set = …`"));
        }
        Ok(())
    }

    /// Does the profile say what a preemption costs?
    fn check_profile_of_caches(&self) -> Result<()> {
        let Some(profile) = &self.charged.profile else {
            return Err(Error::new(
                "the cost of a working set stands in a profile, and the study has none",
            )
            .at("profile")
            .remedy("add `profile = …`, or give `--profile`"));
        };
        let statistic = self
            .charged
            .costs(Duration::ZERO)
            .statistic_for(self.guarantee);
        let one = Bytes::new(1);
        profile
            .worst_cpmd(&[Resumption::Preemption], self.charged.load, one, statistic)
            .map(drop)
            .map_err(|e| e.at("profile"))
    }

    /// The ways to draw sets, and the scenes that judge them.
    fn scenes(&self, caps: &[Cap], processors: u32) -> Result<(Vec<Vec<Draw>>, Vec<Scene>)> {
        let charged = self.charging_caches(self.overhead_factor);
        let whole = |points| -> Result<(Vec<Vec<Draw>>, Vec<Scene>)> {
            let scene = Scene {
                sets: 0,
                place: 0,
                points,
                processors,
                policies: self.candidates(&self.platform, &charged)?,
            };
            Ok((vec![self.draws(caps)?], vec![scene]))
        };
        match &self.axis {
            Axis::Delays(delays) => {
                let points = delays.values().into_iter().map(|d| self.delayed(d));
                whole(points.collect())
            }
            Axis::WorkingSets(sizes) => {
                let sizes = sizes.values().into_iter();
                let points = sizes.map(|wss| self.sized(wss, &charged, &self.platform));
                whole(points.collect::<Result<_>>()?)
            }
            Axis::OverheadFactors(factors) => {
                let factors = factors.values().into_iter().enumerate();
                let scene = |(place, factor)| {
                    let charged = self.charging_caches(factor);
                    self.scene(place, 0, &self.platform, &charged)
                };
                let scenes = factors.map(scene).collect::<Result<_>>()?;
                Ok((vec![self.draws(caps)?], scenes))
            }
            Axis::Processors(counts) => {
                let (mut sets, mut scenes) = (Vec::new(), Vec::new());
                for (place, m) in counts.values().into_iter().enumerate() {
                    let platform = self.platform.scaled(m).map_err(|e| e.at("processors"))?;
                    let caps: Vec<Cap> = caps.iter().map(|share| of(*share, m)).collect();
                    sets.push(self.draws(&caps)?);
                    scenes.push(self.scene(place, place, &platform, &charged)?);
                }
                Ok((sets, scenes))
            }
        }
    }

    /// A scene of one point, with the cache cost that the axis does not sweep.
    fn scene(
        &self,
        place: usize,
        sets: usize,
        platform: &Platform,
        charged: &Charged,
    ) -> Result<Scene> {
        let point = match self.cache {
            Cache::Delay(delay) => self.delayed(delay),
            Cache::WorkingSet(wss) => self.sized(wss, charged, platform)?,
        };
        Ok(Scene {
            sets,
            place,
            points: vec![point],
            processors: platform.usable().len() as u32,
            policies: self.candidates(platform, charged)?,
        })
    }

    /// What is charged, with the overheads of the profile that a factor is on times that.
    fn charging_caches(&self, factor: Factor) -> Charged {
        let mut charged = self.charged.clone();
        if factor != Factor::ONE {
            charged.profile = charged
                .profile
                .map(|p| p.scaled(factor.ratio(), self.factor_on));
        }
        charged.caches = match self.has_working_sets() {
            true => Caches::WorkingSet,
            false => Caches::Delay,
        };
        charged
    }

    fn delayed(&self, delay: Duration) -> Point {
        let nanos = delay.nanos().saturating_mul(u64::from(self.charge));
        Point {
            delay: Duration::from_nanos(nanos),
            wss: None,
        }
    }

    fn sized(&self, wss: Bytes, charged: &Charged, platform: &Platform) -> Result<Point> {
        let longest = charged.longest_delay(wss, platform, self.guarantee);
        Ok(Point {
            delay: longest.map_err(|e| e.at("profile"))?,
            wss: (wss.get() > 0).then_some(wss),
        })
    }

    /// The longest cache delay of a job at each point of the axis, in nanoseconds, if caches cost
    /// what they do under this load.
    pub(crate) fn costs_under(&self, load: Load) -> Result<Vec<u64>> {
        let study = Study {
            // Any policy: points do not depend on it.
            policies: vec!["g-edf".to_owned()],
            charged: Charged {
                load,
                ..self.charged.clone()
            },
            ..self.clone()
        };
        let scenes = study.prepare()?.scenes;
        let points = scenes.iter().flat_map(|scene| &scene.points);
        Ok(points.map(|point| point.delay.nanos()).collect())
    }

    fn draws(&self, caps: &[Cap]) -> Result<Vec<Draw>> {
        let draw = |cap: &Cap| {
            let generator = self.recipe(*cap).prepare().map_err(|e| e.at("caps"))?;
            Ok(Draw {
                cap: *cap,
                generator,
            })
        };
        caps.iter().map(draw).collect()
    }

    /// The policies on a platform, each once.
    fn candidates(&self, platform: &Platform, charged: &Charged) -> Result<Vec<Candidate>> {
        if self.policies.is_empty() {
            return Err(Error::new("no policy is named")
                .at("policies")
                .remedy("give at least one, such as `g-edf`"));
        }
        let candidates: Vec<Candidate> = self
            .policies
            .iter()
            .map(|name| {
                Candidate::find(name, platform, self.guarantee, charged)
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
}

/// The least common multiple of these numbers of sets.
pub(crate) fn common(sets: &[u32]) -> u64 {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let all = sets.iter().map(|n| u64::from(*n).max(1));
    all.fold(1, |common, n| (common / gcd(common, n)).saturating_mul(n))
}

/// A share of `m` processors, as a cap on the total utilization. Shares are at most 1.
fn of(share: Cap, m: u32) -> Cap {
    Cap::from_thousandths(share.thousandths().saturating_mul(m))
}
