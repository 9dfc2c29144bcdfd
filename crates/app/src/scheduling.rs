//! What a simulated and a real run both ask: which policy, who runs where, quanta, and what happens
//! to overruns.

use analyze::assign::{self, How, Refusal};
use analyze::partition::Fit;
use analyze::semi::edf_wm;
use model::assignmentfile::AssignmentFile;
use model::{Assignment, Duration, Enforcement, Error, Platform, Result, TaskSet};
use policy::catalog::Needs;
use policy::{Setup, Spec};
use std::path::PathBuf;
use std::str::FromStr;
use trace::Stage;

/// The options that both have. By default `g-edf`, worst fit, quanta of 1 ms, overruns go on.
#[derive(Clone, Debug)]
pub struct Scheduling {
    /// The policy; in a real run several that take turns.
    pub policies: Policies,
    /// Who runs where, instead of what the tool would assign: an answer of `check` as JSON, or one
    /// assignment as JSON.
    pub assignment: Option<PathBuf>,
    /// How tasks are partitioned, where the policy needs it.
    pub fit: Fit,
    /// What happens to jobs that execute for longer than their WCET.
    pub enforcement: Enforcement,
    /// Length of a quantum, where something happens at quanta.
    pub quantum: Duration,
}

impl Default for Scheduling {
    fn default() -> Self {
        Scheduling {
            policies: Policies::default(),
            assignment: None,
            fit: Fit::Worst,
            enforcement: Enforcement::Off,
            quantum: Duration::from_millis(1),
        }
    }
}

/// One policy, or several that take turns.
///
/// Invariant: there is a first one.
#[derive(Clone, Debug)]
pub struct Policies(Vec<Spec>);

impl Default for Policies {
    /// `g-edf`.
    fn default() -> Self {
        Policies("g-edf".parse().into_iter().collect())
    }
}

impl FromStr for Policies {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Spec::list(text).map(Policies)
    }
}

impl Scheduling {
    /// These policies, and all else as it is by default.
    ///
    /// # Errors
    /// No such policy.
    pub fn of(policies: &str) -> Result<Self> {
        Ok(Scheduling {
            policies: policies.parse()?,
            ..Scheduling::default()
        })
    }

    /// The policy, the first one where several take turns.
    pub fn policy(&self) -> &Spec {
        &self.policies.0[0]
    }

    /// Those that take over after the first one, in turn.
    pub fn then(&self) -> &[Spec] {
        &self.policies.0[1..]
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Spec> {
        self.policies.0.iter()
    }

    /// All of them, as written.
    pub fn written(&self) -> String {
        let names: Vec<String> = self.policies.0.iter().map(ToString::to_string).collect();
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
                self.written()
            ))
            .at("--policy")
            .remedy("give one; `warmset run` takes several, with `--switch-every`")),
        }
    }

    /// Who runs where under the policy at this place of the list, as a file says; `None`: no file,
    /// or a file with one assignment, which is for the first policy.
    ///
    /// # Errors
    /// A file that holds no assignment for the policy and the set.
    pub fn given(&self, place: usize, policy: &Spec, set: &TaskSet) -> Result<Option<Assignment>> {
        let Some(path) = &self.assignment else {
            return Ok(None);
        };
        let file = AssignmentFile::read(path)?;
        match place == 0 || file.is_answer() {
            true => {
                let found = file.assignment(&policy.to_string(), set, Spec::for_assignment);
                found.map(Some)
            }
            false => Ok(None),
        }
    }

    /// Who runs where under the policy at this turn of the list: as a file says, or as the tool
    /// assigns the tasks that errors call `place`.
    ///
    /// # Errors
    /// A file that holds no assignment for the policy and the set; a set that cannot be assigned.
    pub fn assignment(
        &self,
        turn: usize,
        policy: &Spec,
        set: &TaskSet,
        platform: &Platform,
        place: &str,
    ) -> Result<Option<Assignment>> {
        if let Some(given) = self.given(turn, policy, set)? {
            return Ok(Some(given));
        }
        assignment_for(policy, set, platform, self.fit)?.map_err(|why| match self.then() {
            [] => Error::new(why)
                .at(place)
                .remedy("choose another --fit, more processors, or a global policy"),
            _ => Error::new(why)
                .at(format!("{place}, policy `{policy}`"))
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

/// The assignment that a policy needs; inside, why there is none.
pub fn assignment_for(
    spec: &Spec,
    set: &TaskSet,
    platform: &Platform,
    fit: Fit,
) -> Result<Result<Option<Assignment>, String>> {
    let how = How {
        fit,
        ..How::default()
    };
    let made = assign::assign(spec, set, platform, &how)?;
    let needs = spec.needs()?;
    Ok(made.map_err(|why| refused(why, needs, set, fit)))
}

/// Why there is no assignment, in a clause.
fn refused(why: Refusal, needs: Needs, set: &TaskSet, fit: Fit) -> String {
    match why {
        Refusal::KeptApart(why) => why,
        Refusal::Task(index) => {
            let nowhere = match needs {
                Needs::Turns { .. } => "on no two processors that are left".to_owned(),
                Needs::Slices { .. } => {
                    "on no processors that are left, whole or in slices".to_owned()
                }
                Needs::Slots { .. } => "in no server".to_owned(),
                Needs::Nothing | Needs::Clusters(_) => {
                    format!("on no processor or cluster that is left, by {fit}")
                }
            };
            format!("{} fits {nowhere}", set.name(model::TaskId(index)))
        }
        Refusal::Migratory(place) => format!(
            "the tasks that take turns on the {}. processor need all of it",
            place + 1
        ),
        Refusal::Servers => "the servers need more than the processors have".to_owned(),
        Refusal::Slot => "the slot is too short to be divided".to_owned(),
        Refusal::Limit => edf_wm::LIMIT.to_string(),
    }
}
