//! Who decides a task set in a study: a policy with its packing and tests, or one test of the
//! registry.

use crate::brute_force::BruteForce;
use crate::charged::{Caches, Charged, Judging};
use crate::judges::{Catalogued, Clustered, HardClusters, Registered};
use crate::prepared::Point;
use analyze::clustered::Scratch;
use analyze::partition::Fit;
use analyze::policies::{Accounting, Limits, MAJOR_TESTS, Manner, Rule};
use analyze::{Guarantee, registry};
use model::error::nearest;
use model::{
    Bytes, Called, ClusterSpec, Details, Duration, Error, Load, Platform, Result, TaskSet, Timing,
};
use policy::Spec;
use policy::catalog::{self, Info, Needs, Order, Tests};

/// The most tasks of a set that a policy is asked about which places them one by one: those of 128
/// processors full of light tasks are 2,500. One question of `check` has lower limits.
const MOST_TASKS: usize = 5_000;

/// A task set that a judge is asked about, with a delay D or a working set size ξ.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The tasks as they were drawn, with the study's overhead.
    pub drawn: &'a [Timing],
    /// D; for a working set size the longest delay on the platform.
    pub delay: Duration,
    /// ξ, the working set size of every task. `None`: D stands for what caches cost, also where ξ
    /// is 0.
    pub wss: Option<Bytes>,
    /// The same tasks with D in every WCET (000 §2), for tests that know no overheads.
    pub inflated: &'a [Timing],
}

impl Asked<'_> {
    /// The tasks as `check` is asked about them.
    ///
    /// # Errors
    /// As [`TaskSet::to_judge`].
    pub fn tasks(&self) -> Result<TaskSet> {
        let tasks = TaskSet::to_judge(self.drawn.to_vec())?;
        let Some(wss) = self.wss else {
            return Ok(tasks);
        };
        let details = (1..=self.drawn.len()).map(|number| Details {
            wss: Some(wss),
            ..Details::named(number.to_string())
        });
        tasks.with_details(details.collect())
    }
}

/// Decides task sets.
pub trait Judge: Send + Sync {
    /// Is the guarantee shown for this set with this delay?
    ///
    /// # Errors
    /// The set cannot be judged.
    fn accepts(&self, set: &Asked<'_>, scratch: &mut Scratch) -> Result<bool>;

    /// The same at each of these points, of which the set is as it was drawn: for judges that have
    /// more to gain than by one question after the other. `None`: [`Judge::accepts`] is asked.
    ///
    /// # Errors
    /// The set cannot be judged.
    fn accepts_each(&self, _drawn: &[Timing], _points: &[Point]) -> Result<Option<Vec<bool>>> {
        Ok(None)
    }

    /// Does every job pay the whole delay? Then no set is accepted that is over-utilized with the
    /// delay, and a study does not ask about it.
    fn charges_every_job(&self) -> bool {
        true
    }

    /// Does longer execution never turn a no into a yes? Then the largest delay is found by
    /// bisection; else every delay is asked. Say yes only with a proof: packing heuristics have
    /// anomalies.
    fn is_monotone(&self) -> bool {
        false
    }

    /// Which test decides, for tables; empty where nobody says so.
    fn tests(&self) -> String {
        String::new()
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
    /// Of the cache delays, where the name says which: `edf-wm@idle`.
    load: Option<Load>,
    judge: Box<dyn Judge>,
}

impl Candidate {
    /// A policy of one's own.
    pub fn new(name: impl Into<String>, label: impl Into<String>, judge: Box<dyn Judge>) -> Self {
        Candidate {
            name: name.into(),
            label: label.into(),
            load: None,
            judge,
        }
    }

    /// The policy of a name on a platform: any of the catalog, such as `p-edf`, `c-edf:l2` or
    /// `p-fp:dm`, with a heuristic behind where it packs by EDF (`p-edf:ffd`, `c-edf:l2,bfd`); or a
    /// test of the registry such as `GFB`, which is then run on all processors.
    /// `brute-force:g-edf` simulates.
    ///
    /// # Errors
    /// No such policy (suggests the nearest), no such cache, a size that does not divide the
    /// processors.
    pub fn find(
        name: &str,
        platform: &Platform,
        guarantee: Guarantee,
        charged: &Charged,
    ) -> Result<Self> {
        let name = name.trim();
        if let Some((policy, load)) = under_load(name) {
            return Self::under(policy, load, platform, guarantee, charged);
        }
        if let Some(simulated) = name.strip_prefix("brute-force:") {
            return Ok(Candidate {
                name: name.to_owned(),
                label: format!(
                    "{}-BF",
                    simulated.to_uppercase().replace([':', ',', '='], "-")
                ),
                load: None,
                judge: Box::new(BruteForce::new(simulated, platform, guarantee, charged)?),
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
        let is_edf = matches!(spec.needs()?, Needs::Nothing | Needs::Clusters(_))
            && spec.order()? == Order::Deadlines
            && !info.quantum_driven;
        // By the accountings of 002 §6.1 its study packs and tests as §6.3 says.
        let by_assignment = charged.costs(Duration::ZERO).rule() == Rule::Paper;
        let manner = match charged.judging() {
            Judging::Paper if is_edf && by_assignment => Manner::Study(fit.unwrap_or_default()),
            Judging::Paper => Manner::Check(Limits {
                fit: Some(fit.unwrap_or_default()),
                tests: Some(&MAJOR_TESTS),
                most_tasks: Some(MOST_TASKS),
                ..Limits::default()
            }),
            Judging::Check => Manner::Check(Limits {
                fit,
                most_tasks: Some(MOST_TASKS),
                ..Limits::default()
            }),
        };
        let by_check = || Self::of_catalog(&called, &spec, platform, guarantee, charged, manner);
        let clusters = match (tests, spec.needs()?) {
            (Tests::None, _) => {
                return Err(Error::new(format!(
                    "no test for `{called}` shows a {guarantee} guarantee"
                ))
                .remedy("choose another policy or guarantee"));
            }
            _ if charged.accounting() != Accounting::OneDelay || info.quantum_driven => {
                return by_check();
            }
            // Each policy has its own delays.
            _ if charged.caches == Caches::WorkingSet => return by_check(),
            _ if charged.judging() == Judging::Check => return by_check(),
            // The way of 000 §5 and 002 §6.3 is for earliest deadline first.
            (_, Needs::Nothing) if spec.order()? == Order::Deadlines => ClusterSpec::Global,
            (_, Needs::Clusters(clusters)) if spec.order()? == Order::Deadlines => clusters,
            // Making the assignment is the test.
            (Tests::Named(test), _) if called.to_string() == info.name => {
                return Self::of_test(test, platform, guarantee);
            }
            _ => return by_check(),
        };
        let clusters = platform
            .clusters(clusters)
            .map_err(|e| e.at(format!("policy `{called}`")))?;
        let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
        let fit = fit.unwrap_or_default();
        let judge: Box<dyn Judge> = if guarantee == Guarantee::Hard && sizes.iter().any(|s| *s > 1)
        {
            Box::new(HardClusters::new(sizes, fit)?)
        } else {
            Box::new(Clustered::new(sizes, fit, guarantee))
        };
        Ok(Candidate::new(called.to_string(), label(&called), judge))
    }

    /// The policy with the cache delays of one load, whatever that of the study is, so that a figure
    /// has both (002 §6.4).
    fn under(
        policy: &str,
        load: &str,
        platform: &Platform,
        guarantee: Guarantee,
        charged: &Charged,
    ) -> Result<Self> {
        let place = |e: Error| e.at(format!("policy `{policy}@{load}`"));
        let load: Load = load.trim().parse().map_err(place)?;
        if charged.caches == Caches::Delay {
            return Err(place(
                Error::new(format!(
                    "one delay stands for what caches cost, {load} or not"
                ))
                .remedy(format!("write `{policy}`, or sweep `working_sets`")),
            ));
        }
        let charged = Charged {
            load,
            ..charged.clone()
        };
        let found = Self::find(policy, platform, guarantee, &charged)?;
        Ok(Candidate {
            name: format!("{}@{load}", found.name),
            label: format!("{} {load}", found.label),
            load: Some(load),
            judge: found.judge,
        })
    }

    /// As `check` judges it: every packing, or the one that is named, and every test of its row.
    fn of_catalog(
        called: &Called,
        spec: &Spec,
        platform: &Platform,
        guarantee: Guarantee,
        charged: &Charged,
        manner: Manner,
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
        let judge = Catalogued::new(spec, platform, guarantee, charged, manner)?;
        Ok(Candidate::new(
            called.to_string(),
            label(called),
            Box::new(judge),
        ))
    }

    /// The names in a list such as `p-edf:ffd,c-edf:l2,bfd,GFB`, whose commas also separate
    /// parameters: a word that names no policy and no test belongs to the policy before it.
    ///
    /// # Errors
    /// None is named.
    pub fn list(text: &str) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let name = word.split([':', '@']).next().unwrap_or_default();
            let known =
                catalog::find(&name.to_lowercase()).is_some() || registry::find(name).is_ok();
            match names.last_mut() {
                // A load ends a name with its parameters.
                Some(last)
                    if last.contains(':')
                        && !last.contains('@')
                        && !known
                        && name != "brute-force" =>
                {
                    last.push(',');
                    last.push_str(word);
                }
                _ => names.push(word.to_owned()),
            }
        }
        match names.is_empty() {
            true => {
                Err(Error::new("no policy is named").remedy("give at least one, such as `g-edf`"))
            }
            false => Ok(names),
        }
    }

    fn of_test(name: &str, platform: &Platform, guarantee: Guarantee) -> Result<Self> {
        let Ok(test) = registry::find(name) else {
            let policies = catalog::all().iter().map(|info| info.name);
            let known = policies.chain(registry::ALL.iter().map(|t| t.name));
            return Err(Error::new(format!("unknown policy `{name}`")).remedy(
                match nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        "write `p-edf`, `g-edf`, `c-edf:l3`, or a test such as `GFB`".to_owned()
                    }
                },
            ));
        };
        if guarantee == Guarantee::Hard && test.guarantee == Guarantee::Soft {
            return Err(Error::new(format!(
                "the test {} shows bounded tardiness only",
                test.name
            ))
            .remedy("set `guarantee = \"soft\"`, or choose another test"));
        }
        Ok(Candidate {
            name: test.name.to_owned(),
            label: test.name.to_owned(),
            load: None,
            judge: Box::new(Registered::new(test, platform.usable().len() as u32)),
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
    /// Under which load its cache delays were measured, where its name says so.
    pub(crate) fn load(&self) -> Option<Load> {
        self.load
    }
    /// Who decides.
    pub fn judge(&self) -> &dyn Judge {
        &*self.judge
    }
}

/// A policy and the load behind it, as in `edf-wm@idle`.
fn under_load(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('@')
}

/// As it is named in figures.
fn label(called: &Called) -> String {
    called
        .to_string()
        .to_uppercase()
        .replace([':', ',', '='], "-")
}

/// The policy, and the heuristic where one stands among its parameters. Only policies whose tasks
/// are packed take one.
fn with_heuristic(called: &Called, info: &Info) -> Result<(Spec, Option<Fit>)> {
    if let Some(key) = info.unjudged.iter().find(|key| called.value(key).is_some()) {
        return Err(called
            .error(format!("no test takes `{key}` into account"))
            .remedy("leave it out to have the policy judged without it"));
    }
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
        (true, true) => {
            "`c-edf:l3` or `c-edf:size=4`, and a heuristic such as `wfd` behind a comma"
        }
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
    Ok((spec, fit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(name: &str) -> Result<String> {
        let platform = Platform::builtin("xeon-l7455")?;
        Candidate::find(name, &platform, Guarantee::Soft, &Charged::default())
            .map(|p| p.label().to_owned())
    }

    #[test]
    fn a_list_of_names_is_told_from_parameters() {
        for (text, wanted) in [
            ("p-edf,g-edf", vec!["p-edf", "g-edf"]),
            (
                "c-edf:l2,bfd, P-EDF:ffd,GFB",
                vec!["c-edf:l2,bfd", "P-EDF:ffd", "GFB"],
            ),
            (
                "brute-force:g-edf,brute-force:c-edf:l2,q-edf",
                vec!["brute-force:g-edf", "brute-force:c-edf:l2,q-edf"],
            ),
            (
                "c-edf:l3@idle,edf-wm@load,c-nps-f:l3,delta=1@idle",
                vec!["c-edf:l3@idle", "edf-wm@load", "c-nps-f:l3,delta=1@idle"],
            ),
        ] {
            assert_eq!(Candidate::list(text).unwrap(), wanted);
        }
        assert!(Candidate::list(" ,").is_err());
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
            (
                "g-fp:dm,quantum=1ms",
                "no test takes `quantum` into account",
            ),
        ] {
            let e = label(name).unwrap_err().to_string();
            assert!(e.contains(message), "{name}: {e}");
        }
    }

    #[test]
    fn a_heuristic_is_named_whatever_the_accounting() {
        let platform = Platform::builtin("xeon-l7455").unwrap();
        for accounting in Accounting::ALL {
            let charged = Charged {
                accounting: Some(accounting),
                ..Charged::default()
            };
            for guarantee in [Guarantee::Hard, Guarantee::Soft] {
                for (name, wanted) in [
                    ("p-edf", "P-EDF"),
                    ("p-edf:ffd", "P-EDF-FFD"),
                    ("c-edf:l2,bfd", "C-EDF-L2-BFD"),
                ] {
                    let found = Candidate::find(name, &platform, guarantee, &charged).unwrap();
                    assert_eq!((found.name(), found.label()), (name, wanted));
                }
            }
        }
    }

    #[test]
    fn a_policy_names_the_load_of_its_cache_delays() {
        let platform = Platform::builtin("xeon-l7455").unwrap();
        let sized = Charged {
            profile: model::Profile::builtin("xeon-l7455").ok(),
            caches: Caches::WorkingSet,
            ..Charged::default()
        };
        let find = |name, charged: &Charged| {
            let found = Candidate::find(name, &platform, Guarantee::Hard, charged);
            found.map(|found| (found.name().to_owned(), found.label().to_owned()))
        };
        let (name, label) = find("nps-f:delta=4@idle", &sized).unwrap();
        assert_eq!(
            (name.as_str(), label.as_str()),
            ("nps-f:delta=4@idle", "NPS-F-DELTA-4 idle")
        );
        let e = find("edf-wm@busy", &sized).unwrap_err().to_string();
        assert!(
            e.contains("policy `edf-wm@busy`") && e.contains("idle"),
            "{e}"
        );
        let e = find("p-edf@idle", &Charged::default())
            .unwrap_err()
            .to_string();
        assert!(e.contains("sweep `working_sets`"), "{e}");
    }
}
