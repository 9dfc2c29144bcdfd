//! Who decides a task set in a study: a policy with its packing and tests, or one test of the registry.
//!
//! 000 §5 and 002 §6.3: P-EDF and C-EDF pack by worst-fit decreasing; hard clusters pass any of five major tests for G-EDF;
//! soft ones must not be over-utilized. Under P-EDF soft is hard: bounded tardiness on one processor is none.

use crate::brute_force::BruteForce;
use analyze::clustered::Scratch;
use analyze::partition::{Fit, Order as Placement, Scratch as PackScratch};
use analyze::policies::{self, Accounting, Costs};
use analyze::registry::{self, TestInfo};
use analyze::uniprocessor::edf;
use analyze::{Guarantee, NotApplicable};
use model::error::nearest;
use model::{Called, ClusterSpec, Duration, Error, Platform, Result, TaskSet, Timing};
use policy::Spec;
use policy::catalog::{self, Info, Needs, Order, Tests};

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

/// What a study compares: a policy of the catalog or a test by its name, and who decides.
pub struct Candidate {
    name: String,
    label: String,
    judge: Box<dyn Judge>,
}

impl Candidate {
    /// A policy of one's own.
    pub fn new(name: impl Into<String>, label: impl Into<String>, judge: Box<dyn Judge>) -> Self {
        Candidate {
            name: name.into(),
            label: label.into(),
            judge,
        }
    }

    /// The policy of a name on a platform: any of the catalog, such as `p-edf`, `c-edf:l2` or `p-fp:dm`, with a heuristic behind where it
    /// packs by EDF (`p-edf:ffd`, `c-edf:l2,bfd`); or a test of the registry such as `GFB`, which is then run on all
    /// processors. A policy that is named as its only test is that test. `brute-force:g-edf` simulates.
    ///
    /// # Errors
    /// No such policy (suggests the nearest), no such cache, a size that does not divide the processors.
    pub fn find(
        name: &str,
        platform: &Platform,
        guarantee: Guarantee,
        accounting: Accounting,
    ) -> Result<Self> {
        let name = name.trim();
        if let Some(simulated) = name.strip_prefix("brute-force:") {
            return Ok(Candidate {
                name: name.to_owned(),
                label: format!("{}-BF", simulated.to_uppercase().replace([':', ',', '='], "-")),
                judge: Box::new(BruteForce::new(simulated, platform)?),
            });
        }
        let called: Called = name.parse()?;
        let Some(info) = catalog::find(called.name()) else {
            return Self::of_test(name, platform, guarantee);
        };
        let (spec, fit) = with_heuristic(&called, info)?;
        let tests = match guarantee {
            Guarantee::Hard => info.hard,
            Guarantee::Soft => info.soft,
        };
        let clusters = match (tests, spec.needs()?) {
            (Tests::None, _) => {
                return Err(
                    Error::new(format!("no test for `{called}` shows a {guarantee} guarantee"))
                        .remedy("choose another policy or guarantee"),
                );
            }
            // The way of 000 §5 and 002 §6.3 is for earliest deadline first.
            (_, Needs::Nothing) if spec.order()? == Order::Deadlines && !info.quantum_driven => {
                ClusterSpec::Global
            }
            (_, Needs::Clusters(clusters)) if spec.order()? == Order::Deadlines => clusters,
            // The registered test for as many processors.
            (Tests::Named(test), _)
                if called.to_string() == info.name && accounting == Accounting::OneDelay =>
            {
                return Self::of_test(test, platform, guarantee);
            }
            _ => return Self::of_catalog(&called, &spec, platform, guarantee, accounting),
        };
        if accounting != Accounting::OneDelay {
            return Self::of_catalog(&called, &spec, platform, guarantee, accounting);
        }
        let clusters = platform
            .clusters(clusters)
            .map_err(|e| e.at(format!("policy `{called}`")))?;
        let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
        let judge: Box<dyn Judge> = if guarantee == Guarantee::Hard && sizes.iter().any(|s| *s > 1) {
            Box::new(HardClusters::new(sizes, fit)?)
        } else {
            Box::new(Clustered {
                sizes,
                fit,
                guarantee,
            })
        };
        Ok(Candidate::new(called.to_string(), label(&called), judge))
    }

    /// As `check` judges it: every packing and every test of its row.
    fn of_catalog(
        called: &Called,
        spec: &Spec,
        platform: &Platform,
        guarantee: Guarantee,
        accounting: Accounting,
    ) -> Result<Self> {
        if let Some(key) = spec.unjudged() {
            return Err(spec
                .error(format!("no test takes `{key}` into account"))
                .remedy("leave it out"));
        }
        if let Needs::Clusters(clusters) = spec.needs()? {
            platform
                .clusters(clusters)
                .map_err(|e| e.at(format!("policy `{called}`")))?;
        }
        let judge = Catalogued {
            spec: spec.clone(),
            platform: platform.clone(),
            guarantee,
            accounting,
        };
        Ok(Candidate::new(called.to_string(), label(called), Box::new(judge)))
    }

    fn of_test(name: &str, platform: &Platform, guarantee: Guarantee) -> Result<Self> {
        let Ok(test) = registry::find(name) else {
            let policies = catalog::all().iter().map(|info| info.name);
            let known = policies.chain(registry::ALL.iter().map(|t| t.name));
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
        Ok(Candidate {
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

/// As it is named in figures.
fn label(called: &Called) -> String {
    called.to_string().to_uppercase().replace([':', ',', '='], "-")
}

/// The policy, and the heuristic that stands among its parameters, where tasks are packed.
fn with_heuristic(called: &Called, info: &Info) -> Result<(Spec, Fit)> {
    let fits = ["wfd", "ffd", "bfd", "nfd"];
    let bare = info.name.parse::<Spec>()?;
    // Clusters that have to be named are an error of the bare name.
    let is_packed = !matches!(bare.needs(), Ok(needs) if !matches!(needs, Needs::Clusters(_)));
    let takes_fit = is_packed && (info.hard, info.soft) == (Tests::Deadlines, Tests::Utilization);
    let words: Vec<&str> = match takes_fit {
        true => info.words.iter().copied().chain(fits).collect(),
        false => info.words.to_vec(),
    };
    let keys: Vec<&str> = info
        .keys
        .iter()
        .copied()
        .filter(|key| !info.unjudged.contains(key))
        .collect();
    let known = match (takes_fit, words.len() + keys.len() > fits.len()) {
        (true, true) => "`c-edf:l3` or `c-edf:size=4`, and a heuristic such as `wfd` behind a comma",
        (true, false) => "a heuristic: `wfd`, `ffd`, `bfd` or `nfd`",
        (false, _) if words.is_empty() && keys.is_empty() => "",
        (false, _) => info.parameters,
    };
    called.only(&words, &keys, known)?;
    let mut chosen = called.words().filter(|w| fits.contains(w));
    let fit = chosen.next().map(str::parse::<Fit>).transpose()?;
    if chosen.next().is_some() {
        return Err(called
            .error("two heuristics are given")
            .remedy("write one of them"));
    }
    let (name, parameters) = match called.to_string().split_once(':') {
        Some((name, parameters)) => (name.to_owned(), parameters.to_owned()),
        None => (called.to_string(), String::new()),
    };
    let rest: Vec<&str> = parameters
        .split(',')
        .filter(|w| !w.is_empty() && !fits.contains(w))
        .collect();
    let spec = match rest.is_empty() {
        true => name.parse()?,
        false => format!("{name}:{}", rest.join(",")).parse()?,
    };
    Ok((spec, fit.unwrap_or_default()))
}

/// A policy of the catalog, judged as `check` does.
struct Catalogued {
    spec: Spec,
    platform: Platform,
    guarantee: Guarantee,
    accounting: Accounting,
}

impl Catalogued {
    fn decide(&self, tasks: &[Timing], costs: &Costs<'_>) -> Result<Option<bool>> {
        let set = TaskSet::to_judge(tasks.to_vec())?;
        policies::decide(&set, &self.platform, &self.spec, self.guarantee, costs)
    }
}

impl Judge for Catalogued {
    fn accepts(&self, tasks: &[Timing], _: &mut Scratch) -> Result<bool, NotApplicable> {
        let judged = self.decide(tasks, &Costs::NONE).ok().flatten();
        judged.ok_or(NotApplicable::Precondition(
            "a test of the policy applies to the set",
        ))
    }

    /// One delay a job is in the WCETs; any other accounting has to know the delay by itself.
    fn charges_delays(&self) -> bool {
        self.accounting != Accounting::OneDelay
    }

    fn survives(&self, tasks: &[Timing], delay: Duration) -> model::Result<bool> {
        let costs = Costs {
            cpmd: Some(delay),
            accounting: Some(self.accounting),
            ..Costs::NONE
        };
        let judged = self.decide(tasks, &costs)?;
        judged.ok_or_else(|| {
            Error::new("no test of the policy applies to the set")
                .remedy("choose other policies, or other deadlines")
        })
    }

    fn uncovered(&self) -> Option<&'static str> {
        match self.accounting {
            Accounting::OneDelay => uncovered(self.spec.info()),
            Accounting::Paper | Accounting::Warmset => None,
        }
    }
}

/// What a policy does to caches that one delay a job does not cover, in a clause.
fn uncovered(info: &Info) -> Option<&'static str> {
    let needs = info.name.parse::<Spec>().and_then(|spec| spec.needs()).ok()?;
    match needs {
        Needs::Slices => Some("tasks may be cut into slices on several processors"),
        Needs::Slots { .. } => Some("servers take turns in every slot"),
        _ if info.quantum_driven => Some("a job may be preempted at the end of every quantum"),
        _ => None,
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
            Placement::DecreasingUtilization,
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
        let Ok(cluster_of) = packing.pack(tasks, &self.sizes, Placement::DecreasingUtilization, self.fit)
        else {
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
        uncovered(catalog::find(self.test.policy)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(name: &str) -> Result<String> {
        let platform = Platform::builtin("xeon-l7455")?;
        Candidate::find(name, &platform, Guarantee::Soft, Accounting::OneDelay).map(|p| p.label().to_owned())
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
