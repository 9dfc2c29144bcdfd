//! Who decides a task set in a study: a policy with its packing and tests, or one test of the registry.
//!
//! 000 §5 and 002 §6.3: P-EDF and C-EDF pack by worst-fit decreasing; hard clusters pass any of five major tests for G-EDF;
//! soft ones must not be over-utilized. Under P-EDF soft is hard: bounded tardiness on one processor is none.

use crate::brute_force::BruteForce;
use analyze::clustered::Scratch;
use analyze::partition::{Fit, Order, Scratch as PackScratch};
use analyze::registry::{self, TestInfo};
use analyze::uniprocessor::edf;
use analyze::{Guarantee, NotApplicable};
use model::error::nearest;
use model::{Called, ClusterSpec, Duration, Error, Platform, Result, Timing};

/// Decides task sets.
pub trait Judge: Send + Sync {
    /// Is the guarantee shown for this set, which overheads may have inflated?
    ///
    /// # Errors
    /// The test does not apply to such sets.
    fn accepts(&self, tasks: &[Timing], scratch: &mut Scratch) -> Result<bool, NotApplicable>;

    /// Does it charge delays itself, where they occur? Then it is asked [`Judge::survives`] instead, at every delay.
    fn charges_delays(&self) -> bool {
        false
    }

    /// Is the guarantee shown for a set as it was drawn, with this delay? For those that charge it themselves.
    ///
    /// # Errors
    /// The set cannot be judged.
    fn survives(&self, _tasks: &[Timing], _delay: Duration) -> model::Result<bool> {
        Ok(false)
    }

    /// Does longer execution never turn a no into a yes? Then the largest delay is found by bisection; else every delay
    /// is asked. Say yes only with a proof: packing heuristics have anomalies.
    fn is_monotone(&self) -> bool {
        false
    }

    /// What the policy does to caches that one delay a job does not cover, in a clause.
    fn uncovered(&self) -> Option<&'static str> {
        None
    }
}

/// A policy by its name.
pub struct Policy {
    name: String,
    label: String,
    judge: Box<dyn Judge>,
}

impl Policy {
    /// A policy of one's own.
    pub fn new(name: impl Into<String>, label: impl Into<String>, judge: Box<dyn Judge>) -> Self {
        Policy {
            name: name.into(),
            label: label.into(),
            judge,
        }
    }

    /// The policy of a name on a platform: `p-edf`, `p-edf:ffd`, `g-edf`, `c-edf:l2`, `c-edf:size=4`, `c-edf:l2,bfd`, or
    /// a test of the registry such as `GFB`, which is then run on all processors; `brute-force:g-edf` simulates.
    ///
    /// # Errors
    /// No such policy (suggests the nearest), no such cache, a size that does not divide the processors.
    pub fn find(name: &str, platform: &Platform, guarantee: Guarantee) -> Result<Self> {
        let name = name.trim();
        if let Some(simulated) = name.strip_prefix("brute-force:") {
            return Ok(Policy {
                name: name.to_owned(),
                label: format!("{}-BF", simulated.to_uppercase().replace([':', ',', '='], "-")),
                judge: Box::new(BruteForce::new(simulated, platform)?),
            });
        }
        let called: Called = name.parse()?;
        let fits = ["wfd", "ffd", "bfd", "nfd"];
        let fit_words = "a heuristic: `wfd`, `ffd`, `bfd` or `nfd`";
        let spec = match called.name() {
            "p-edf" => {
                called.only(&fits, &[], fit_words)?;
                ClusterSpec::Partitioned
            }
            "g-edf" => {
                called.only(&[], &[], "")?;
                ClusterSpec::Global
            }
            "c-edf" => {
                let words: Vec<&str> = fits.into_iter().chain(["l#"]).collect();
                let known = "`c-edf:l3` or `c-edf:size=4`, and a heuristic such as `wfd` behind a comma";
                called.only(&words, &["size"], known)?;
                called.needed_clusters()?
            }
            _ => return Self::of_test(name, platform, guarantee),
        };
        let mut chosen = called.words().filter(|w| fits.contains(w));
        let fit = chosen.next().map(str::parse::<Fit>).transpose()?;
        if chosen.next().is_some() {
            return Err(called
                .error("two heuristics are given")
                .remedy("write one of them"));
        }
        let clusters = platform
            .clusters(spec)
            .map_err(|e| e.at(format!("policy `{called}`")))?;
        let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
        let fit = fit.unwrap_or_default();
        Ok(Policy {
            name: called.to_string(),
            label: called.to_string().to_uppercase().replace([':', ',', '='], "-"),
            judge: if guarantee == Guarantee::Hard && sizes.iter().any(|s| *s > 1) {
                Box::new(HardClusters::new(sizes, fit)?)
            } else {
                Box::new(Clustered {
                    sizes,
                    fit,
                    guarantee,
                })
            },
        })
    }

    fn of_test(name: &str, platform: &Platform, guarantee: Guarantee) -> Result<Self> {
        let Ok(test) = registry::find(name) else {
            let policies = ["p-edf", "g-edf", "c-edf:l2", "c-edf:l3"];
            let known = policies
                .iter()
                .copied()
                .chain(registry::ALL.iter().map(|t| t.name));
            return Err(
                Error::new(format!("unknown policy `{name}`")).remedy(match nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "write `p-edf`, `g-edf`, `c-edf:l3`, or a test such as `GFB`".to_owned(),
                }),
            );
        };
        if guarantee == Guarantee::Hard && test.guarantee == Guarantee::Soft {
            return Err(
                Error::new(format!("the test {} shows bounded tardiness only", test.name))
                    .remedy("set `guarantee = \"soft\"`, or choose another test"),
            );
        }
        Ok(Policy {
            name: test.name.to_owned(),
            label: test.name.to_owned(),
            judge: Box::new(Registered {
                test,
                m: platform.usable().len() as u32,
            }),
        })
    }

    /// As it is written in a study.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// As it is named in figures: `P-EDF`, `C-EDF-L2`.
    pub fn label(&self) -> &str {
        &self.label
    }
    /// Who decides.
    pub fn judge(&self) -> &dyn Judge {
        &*self.judge
    }
}

/// Soft EDF in clusters, and hard P-EDF: P-EDF with clusters of one, G-EDF with one cluster.
struct Clustered {
    sizes: Vec<u32>,
    fit: Fit,
    guarantee: Guarantee,
}

impl Judge for Clustered {
    fn accepts(&self, tasks: &[Timing], scratch: &mut Scratch) -> Result<bool, NotApplicable> {
        Ok(scratch.is_schedulable(
            tasks,
            &self.sizes,
            Order::DecreasingUtilization,
            self.fit,
            self.guarantee,
        ))
    }
    /// One cluster, soft: every u ≤ 1 and U ≤ m, both of which only grow with execution times.
    fn is_monotone(&self) -> bool {
        self.sizes.len() == 1 && self.guarantee == Guarantee::Soft
    }
}

/// The five major sufficient tests for G-EDF that 002 §6.3 accepts a hard cluster by, cheapest first. Later tests accept
/// more, and response-time analysis takes seconds a cluster at nanosecond resolution.
pub const MAJOR_TESTS: [&str; 5] = ["GFB", "BCL", "BAK", "BCLI", "BAR"];

/// Hard C-EDF and G-EDF in clusters of several processors: packed, then any major test for each cluster.
struct HardClusters {
    sizes: Vec<u32>,
    fit: Fit,
    tests: Vec<&'static TestInfo>,
}

impl HardClusters {
    fn new(sizes: Vec<u32>, fit: Fit) -> Result<Self> {
        let tests = MAJOR_TESTS
            .map(registry::find)
            .into_iter()
            .collect::<Result<_>>()?;
        Ok(HardClusters { sizes, fit, tests })
    }

    fn accepts_cluster(&self, tasks: &[Timing], size: u32) -> Result<bool, NotApplicable> {
        if tasks.is_empty() {
            return Ok(true);
        }
        if size == 1 {
            return edf::decide(tasks);
        }
        // A test that does not apply accepts nothing; if none applies, that is the answer.
        let mut refusal = None;
        let mut applied = false;
        for test in &self.tests {
            match test.decide_inflated(tasks, size) {
                Ok(true) => return Ok(true),
                Ok(false) => applied = true,
                Err(why) => refusal = Some(why),
            }
        }
        match refusal {
            Some(why) if !applied => Err(why),
            _ => Ok(false),
        }
    }
}

impl Judge for HardClusters {
    fn accepts(&self, tasks: &[Timing], _: &mut Scratch) -> Result<bool, NotApplicable> {
        let mut packing = PackScratch::new();
        let Ok(cluster_of) = packing.pack(tasks, &self.sizes, Order::DecreasingUtilization, self.fit) else {
            return Ok(false);
        };
        let mut cluster = Vec::with_capacity(tasks.len());
        for (at, size) in self.sizes.iter().enumerate() {
            cluster.clear();
            let mine = cluster_of.iter().zip(tasks).filter(|(c, _)| **c as usize == at);
            cluster.extend(mine.map(|(_, t)| *t));
            if !self.accepts_cluster(&cluster, *size)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// One test on all processors.
struct Registered {
    test: &'static TestInfo,
    m: u32,
}

impl Judge for Registered {
    fn accepts(&self, tasks: &[Timing], _: &mut Scratch) -> Result<bool, NotApplicable> {
        self.test.decide_inflated(tasks, self.m)
    }

    fn uncovered(&self) -> Option<&'static str> {
        match self.test.policy {
            "edf-wm" => Some("tasks may be cut into slices on several processors"),
            "nps-f" | "c-nps-f" => Some("servers take turns in every slot"),
            "pd2" | "ca-edf" => Some("a job may be preempted at the end of every quantum"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(name: &str) -> Result<String> {
        let platform = Platform::builtin("xeon-l7455")?;
        Policy::find(name, &platform, Guarantee::Soft).map(|p| p.label().to_owned())
    }

    #[test]
    fn policies_are_found_by_name() {
        for (name, wanted) in [
            ("p-edf", "P-EDF"),
            ("g-edf", "G-EDF"),
            ("c-edf:l2", "C-EDF-L2"),
            ("c-edf:l3", "C-EDF-L3"),
            ("c-edf:size=4", "C-EDF-SIZE-4"),
            ("p-edf:ffd", "P-EDF-FFD"),
            ("c-edf:l2,bfd", "C-EDF-L2-BFD"),
            ("gfb", "GFB"),
        ] {
            assert_eq!(label(name).unwrap(), wanted);
        }
        for (name, message) in [
            ("p-edg", "did you mean `p-edf`?"),
            ("c-edf", "does not say which clusters"),
            ("c-edf:l4", "no level-4 cache"),
            ("c-edf:size=5", "choose a divisor of 24"),
            ("c-edf:l2,l3", "the clusters are not clear"),
            ("c-edf:l2,wfd,ffd", "two heuristics"),
            ("p-edf:l2", "write a heuristic"),
            ("g-edf:wfd", "has none"),
        ] {
            let e = label(name).unwrap_err().to_string();
            assert!(e.contains(message), "{name}: {e}");
        }
    }
}
