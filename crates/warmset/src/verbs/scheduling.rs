//! What `warmset simulate` and `warmset run` both ask: which policy, who runs where, quanta, and what happens to overruns.

use analyze::partition::{Fit, affinity};
use analyze::semi::{edf_fm, edf_wm, nps_f};
use model::assignment::Clustered;
use model::assignmentfile::AssignmentFile;
use model::{Assignment, ClusterSpec, CpuId, CpuSet, Duration, Error, Platform, Provenance, Result, TaskSet};
use policy::registry::Needs;
use policy::{Setup, Spec};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use trace::Stage;

/// The options that both have.
#[derive(clap::Args, Debug)]
pub struct Scheduling {
    /// The policy, such as `g-edf`, `c-edf:l3` or `p-rm`; in a real run several that take turns: `g-edf,c-edf:l3`
    #[arg(long, value_name = "POLICY", default_value = "g-edf")]
    policy: Policies,
    /// Who runs where, instead of what the tool would assign: an answer of `warmset check --format json`, or one assignment as
    /// JSON
    #[arg(long, value_name = "FILE")]
    pub assignment: Option<PathBuf>,
    /// How tasks are partitioned, where the policy needs it: `wfd`, `ffd`, `bfd`, `nfd`
    #[arg(long, value_name = "FIT", default_value = "wfd")]
    pub fit: Fit,
    /// What happens to jobs that execute for longer than their WCET
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Enforce::Off)]
    pub enforcement: Enforce,
    /// Length of a quantum, where something happens at quanta
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1ms")]
    pub quantum: Duration,
}

/// One policy, or several that take turns.
///
/// Invariant: there is a first one.
#[derive(Clone, Debug)]
struct Policies(Vec<Spec>);

impl FromStr for Policies {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Spec::list(text).map(Policies)
    }
}

/// What happens to overruns, on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Enforce {
    /// They go on
    Off,
    /// They are cut short at the end of a quantum, the rest is done by the next job
    Quantum,
    /// They are cut short at once, the rest is done by the next job
    Exact,
}

impl From<Enforce> for simulate::Enforcement {
    fn from(how: Enforce) -> Self {
        match how {
            Enforce::Off => Self::Off,
            Enforce::Quantum => Self::PerQuantum,
            Enforce::Exact => Self::Exact,
        }
    }
}

impl From<Enforce> for execute::Enforcement {
    fn from(how: Enforce) -> Self {
        match how {
            Enforce::Off => Self::Off,
            Enforce::Quantum => Self::PerQuantum,
            Enforce::Exact => Self::Exact,
        }
    }
}

/// The policies, for `--help`.
pub fn policies() -> String {
    let mut policies = String::from("Policies, with parameters after a colon:\n");
    for info in policy::registry::all() {
        policies.push_str(&format!("    {:10} {}\n", info.name, info.summary));
    }
    policies
}

impl Scheduling {
    /// These policies, and all else as it is by default.
    #[cfg(test)]
    pub fn of(policies: &str) -> Self {
        Scheduling {
            policy: policies.parse().unwrap(),
            assignment: None,
            fit: Fit::Worst,
            enforcement: Enforce::Off,
            quantum: Duration::from_millis(1),
        }
    }

    /// The policy, the first one where several take turns.
    pub fn policy(&self) -> &Spec {
        &self.policy.0[0]
    }

    /// Those that take over after the first one, in turn.
    pub fn then(&self) -> &[Spec] {
        &self.policy.0[1..]
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Spec> {
        self.policy.0.iter()
    }

    /// All of them, as written.
    pub fn policies(&self) -> String {
        let names: Vec<String> = self.policy.0.iter().map(ToString::to_string).collect();
        names.join(",")
    }

    /// Where there is one policy alone.
    ///
    /// # Errors
    /// Several are given.
    pub fn only_one(&self) -> Result<()> {
        match self.then() {
            [] => Ok(()),
            _ => Err(Error::new(format!(
                "`{}` are several policies: only a real run changes them",
                self.policies()
            ))
            .at("--policy")
            .remedy("give one; `warmset run` takes several, with `--switch-every`")),
        }
    }

    /// Who runs where under the policy at this place of the list, as a file says; `None`: no file, or a file with one
    /// assignment, which is for the first policy.
    ///
    /// # Errors
    /// A file that holds no assignment for the policy and the set.
    pub fn given(&self, place: usize, policy: &Spec, set: &TaskSet) -> Result<Option<Assignment>> {
        let Some(path) = &self.assignment else {
            return Ok(None);
        };
        let file = AssignmentFile::read(path)?;
        match place == 0 || file.is_answer() {
            true => file.assignment(&policy.to_string(), set).map(Some),
            false => Ok(None),
        }
    }

    /// Who runs where under the policy at this place of the list: as a file says, or as the tool assigns the tasks of `path`.
    ///
    /// # Errors
    /// A file that holds no assignment for the policy and the set; a set that cannot be assigned.
    pub fn assignment(
        &self,
        place: usize,
        policy: &Spec,
        set: &TaskSet,
        platform: &Platform,
        path: &Path,
    ) -> Result<Option<Assignment>> {
        if let Some(given) = self.given(place, policy, set)? {
            return Ok(Some(given));
        }
        assignment_for(policy, set, platform, self.fit)?.map_err(|why| match self.then() {
            [] => Error::new(why)
                .at(path.display())
                .remedy("choose another --fit, more processors, or a global policy"),
            _ => Error::new(why)
                .at(format!("{}, policy `{policy}`", path.display()))
                .remedy("choose another policy, another --fit or more processors"),
        })
    }

    /// What the policy is built from.
    pub fn setup<'a>(
        &self,
        set: &'a TaskSet,
        platform: &'a Platform,
        assignment: Option<&'a Assignment>,
    ) -> Setup<'a> {
        Setup {
            set,
            platform,
            assignment,
            quantum: self.quantum,
        }
    }

    /// What the head of a trace says of one of its policies.
    ///
    /// # Errors
    /// A quantum in the policy that is none.
    pub fn stage(&self, policy: &Spec, assignment: Option<Assignment>) -> Result<Stage> {
        Ok(Stage {
            policy: policy.to_string(),
            assignment,
            quantum: policy.quantum(self.quantum)?,
        })
    }
}

/// What every trace says of its origin.
pub fn provenance() -> Provenance {
    Provenance {
        source: format!("warmset {}", env!("CARGO_PKG_VERSION")),
        command: command(),
        ..Provenance::default()
    }
}

/// The assignment that a policy needs; inside, why there is none.
pub fn assignment_for(
    spec: &Spec,
    set: &TaskSet,
    platform: &Platform,
    fit: Fit,
) -> Result<Result<Option<Assignment>, String>> {
    let timings = set.timings();
    let cpus = platform.in_cache_order();
    let needs = (spec.info().needs)(spec)?;
    if !matches!(needs, Needs::Clusters(_))
        && let Some(why) = affinity::refusal(set, platform)?
    {
        return Ok(Err(format!("`{spec}` cannot run this set: {why}")));
    }
    let task = |index: usize, what: &str| format!("{} fits {what}", set.name(model::TaskId(index as u32)));
    let nowhere = format!("on no processor or cluster that is left, by {fit}");
    Ok(match needs {
        Needs::Nothing => Ok(None),
        Needs::Clusters(clusters) => {
            let clusters = platform.clusters(clusters)?;
            let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
            let allowed = match affinity::allowed(set, platform, &clusters)? {
                Ok(allowed) => allowed,
                Err(why) => return Ok(Err(why)),
            };
            match affinity::pack_allowed(timings, &sizes, fit, allowed.as_ref()) {
                Ok(cluster_of) => Ok(Some(Assignment::Clustered(Clustered { clusters, cluster_of }))),
                Err(index) => Err(task(index as usize, &nowhere)),
            }
        }
        Needs::Turns => match edf_fm::assign(timings, &cpus, edf_fm::Fill::default()) {
            Ok(turns) => Ok(Some(Assignment::Turns(turns))),
            Err(edf_fm::Refusal::Task(index)) => Err(task(index, "on no two processors that are left")),
            Err(edf_fm::Refusal::Migratory(place)) => Err(format!(
                "the tasks that take turns on the {}. processor need all of it",
                place + 1
            )),
        },
        Needs::Slices => {
            let settings = edf_wm::Settings {
                fit,
                ..edf_wm::Settings::default()
            };
            match edf_wm::assign(timings, &cpus, &settings) {
                Ok(slices) => Ok(Some(Assignment::Slices(slices))),
                Err(edf_wm::Refusal::Task(index)) => Err(task(
                    index as usize,
                    "on no processors that are left, whole or in slices",
                )),
                Err(edf_wm::Refusal::Limit) => Err(edf_wm::LIMIT.to_string()),
            }
        }
        Needs::Slots { delta, clusters } => {
            let clusters = platform.clusters(clusters.unwrap_or(ClusterSpec::Global))?;
            let of = |cluster: &CpuSet| cpus.iter().copied().filter(|c| cluster.contains(*c)).collect();
            let clusters: Vec<Vec<CpuId>> = clusters.iter().map(of).collect();
            let settings = nps_f::Settings {
                delta,
                ..nps_f::Settings::default()
            };
            match nps_f::assign(timings, &clusters, &settings) {
                Ok(slots) => Ok(Some(Assignment::Slots(slots))),
                Err(nps_f::Refusal::Task(index)) => Err(task(index as usize, "in no server")),
                Err(nps_f::Refusal::Servers) => Err("the servers need more than the processors have".into()),
                Err(nps_f::Refusal::Slot) => Err("the slot is too short to be divided".into()),
            }
        }
    })
}

/// The command line without where its results go: the same input gives the same trace, byte for byte.
fn command() -> String {
    let mut words = vec!["warmset".to_owned()];
    let mut skip = false;
    for word in std::env::args().skip(1) {
        let output = ["--trace", "-o", "--output"];
        if std::mem::take(&mut skip) || output.iter().any(|o| word.starts_with(&format!("{o}="))) {
            continue;
        }
        if output.contains(&word.as_str()) {
            skip = true;
            continue;
        }
        words.push(word);
    }
    words.join(" ")
}
