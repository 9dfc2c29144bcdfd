//! Assignments in files: one as the head of a trace has it, or an answer of
//! `warmset check --format json`.
//!
//! An answer holds an assignment for each policy that was judged, and the tasks that it was judged
//! for. It is taken for the same tasks and the same policy only: an assignment of other tasks would
//! run, and not as it was judged. A plan of `warmset advise` is an answer for one policy; where it
//! has priorities, the set is given these.

use crate::assignment::Assignment;
use crate::colors::Colors;
use crate::error::{Error, Result};
use crate::files;
use crate::task::{TaskId, TaskSet};
use crate::time::Duration;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A task as an answer was given for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JudgedTask {
    /// Its name.
    #[serde(rename = "task")]
    pub name: String,
    /// Its WCET without overheads.
    #[serde(rename = "wcet_ns", with = "crate::time::ns")]
    pub wcet: Duration,
    /// Its period.
    #[serde(rename = "period_ns", with = "crate::time::ns")]
    pub period: Duration,
    /// Its deadline, after the release.
    #[serde(rename = "deadline_ns", with = "crate::time::ns")]
    pub deadline: Duration,
}

impl JudgedTask {
    /// Every task of a set, in order.
    pub fn all(set: &TaskSet) -> Vec<Self> {
        let of = |id: TaskId| {
            let t = set.timings()[id.index()];
            JudgedTask {
                name: set.name(id),
                wcet: t.wcet,
                period: t.period,
                deadline: t.deadline,
            }
        };
        set.ids().map(of).collect()
    }

    fn times(&self) -> String {
        let JudgedTask {
            wcet,
            period,
            deadline,
            ..
        } = self;
        format!("{wcet} every {period}, due within {deadline}")
    }
}

/// What is read of an answer.
#[derive(Deserialize)]
struct Answer {
    /// Absent in answers of earlier versions.
    #[serde(default)]
    #[serde(rename = "tasks")]
    set: Option<Vec<JudgedTask>>,
    #[serde(default)]
    guarantee: Option<String>,
    policies: Vec<Verdict>,
}

#[derive(Deserialize)]
struct Verdict {
    policy: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    assignment: Option<Assignment>,
    /// By task, where they are not those of the set.
    #[serde(default)]
    priorities: Option<Vec<u32>>,
    /// By task, where WCETs depend on them.
    #[serde(default)]
    colors: Option<Vec<Option<Colors>>>,
}

/// What a file says about who runs where.
pub struct AssignmentFile {
    place: String,
    holds: Holds,
}

enum Holds {
    One(Box<Assignment>),
    Answer(Answer),
}

impl AssignmentFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or holds neither an assignment nor an answer.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_json(&files::read_text(path)?, &path.display().to_string())
    }

    /// Reads the text of a file; `place` names it in errors.
    ///
    /// # Errors
    /// It holds neither an assignment nor an answer.
    pub fn from_json(text: &str, place: &str) -> Result<Self> {
        let refuse = |e: serde_json::Error| {
            Error::new(format!("this is no assignment: {e}"))
                .at(place)
                .remedy(
                    "give an answer of `warmset check --format json`, or one assignment, such as \
                 {\"kind\":\"clustered\",\"clusters\":[\"0\",\"1\"],\"cluster_of\":[0,1]}",
                )
        };
        let value: serde_json::Value = serde_json::from_str(text).map_err(refuse)?;
        let holds = match value.get("policies") {
            Some(_) => Holds::Answer(serde_json::from_value(value).map_err(refuse)?),
            None => Holds::One(serde_json::from_value(value).map_err(refuse)?),
        };
        Ok(AssignmentFile {
            place: place.to_owned(),
            holds,
        })
    }

    /// Does it hold an assignment for each policy that was judged?
    pub fn is_answer(&self) -> bool {
        matches!(self.holds, Holds::Answer(_))
    }

    /// The assignment for a policy and a set. An assignment that stands alone is taken as it is:
    /// the policy checks it. `read` makes of the name of a policy what is the same wherever
    /// assignments are the same (`policy::Spec::for_assignment`).
    ///
    /// # Errors
    /// The answer is for other tasks, does not have the policy, or found no assignment for it;
    /// those of `read` for `policy`.
    pub fn assignment<P: PartialEq>(
        &self,
        policy: &str,
        set: &TaskSet,
        read: impl Fn(&str) -> Result<P>,
    ) -> Result<Assignment> {
        match &self.holds {
            Holds::One(assignment) => Ok(assignment.as_ref().clone()),
            Holds::Answer(answer) => answer
                .assignment(policy, set, read)
                .map_err(|e| e.at(&self.place)),
        }
    }

    /// The policy that a plan is for.
    ///
    /// # Errors
    /// The file is no plan: one assignment, or an answer for several policies.
    pub fn planned_policy(&self) -> Result<&str> {
        match &self.holds {
            Holds::Answer(answer) => {
                Ok(&answer.only_policy().map_err(|e| e.at(&self.place))?.policy)
            }
            Holds::One(_) => Err(
                Error::new("an assignment does not say for which policy it is")
                    .at(&self.place)
                    .remedy(
                        "give what `warmset advise -o` has written, or give this by `--assignment` \
                     and its policy by `--policy`",
                    ),
            ),
        }
    }

    /// What was asked when the answer was given: `hard` or `soft`; `None`: it does not say.
    pub fn guarantee(&self) -> Option<&str> {
        match &self.holds {
            Holds::Answer(answer) => answer.guarantee.as_deref(),
            Holds::One(_) => None,
        }
    }

    /// The set with the colors and the priorities of the plan, where it has some, and the WCETs
    /// that tasks have with these colors.
    ///
    /// # Errors
    /// As [`AssignmentFile::planned_policy`]; a plan for other tasks.
    pub fn planned_set(&self, set: TaskSet) -> Result<TaskSet> {
        self.planned_policy()?;
        let Holds::Answer(answer) = &self.holds else {
            return Ok(set);
        };
        let planned = || {
            let plan = answer.only_policy()?;
            let set = match &plan.colors {
                Some(colors) => set.with_colors(colors)?,
                None => set.clone(),
            };
            answer.fits(&set)?;
            match &plan.priorities {
                Some(priorities) => set.with_priorities(priorities),
                None => Ok(set),
            }
        };
        planned().map_err(|e| e.at(&self.place))
    }
}

impl Answer {
    /// The policy of a plan: it has one alone.
    fn only_policy(&self) -> Result<&Verdict> {
        match self.policies.as_slice() {
            [only] => Ok(only),
            all => Err(Error::new(format!(
                "a plan is for one policy, and the file has {}",
                all.len()
            ))
            .remedy(
                "give what `warmset advise -o` has written, or name the policy by `--policy` and \
                 the file by `--assignment`",
            )),
        }
    }

    /// Would the assignment run with other priorities than it was made for?
    fn has_priorities_of(verdict: &Verdict, set: &TaskSet) -> Result<()> {
        let Some(priorities) = &verdict.priorities else {
            return Ok(());
        };
        let own = set.ids().map(|id| set.details(id).and_then(|d| d.priority));
        match own.eq(priorities.iter().map(|p| Some(*p))) {
            true => Ok(()),
            false => Err(Error::new(
                "the file has priorities of its own, and the tasks have others",
            )
            .remedy("give the file by `--plan`, which gives the tasks its priorities")),
        }
    }

    fn assignment<P: PartialEq>(
        &self,
        policy: &str,
        set: &TaskSet,
        read: impl Fn(&str) -> Result<P>,
    ) -> Result<Assignment> {
        self.fits(set)?;
        let wanted = read(policy)?;
        // A policy of another version cannot be read, and is not the one that is asked for.
        let same = |v: &&Verdict| read(&v.policy).is_ok_and(|found| found == wanted);
        let Some(verdict) = self.policies.iter().find(same) else {
            let judged: Vec<&str> = self.policies.iter().map(|v| v.policy.as_str()).collect();
            return Err(Error::new(format!(
                "the answer has nothing of `{policy}`, only of {}",
                judged.join(", ")
            ))
            .remedy(format!("ask `warmset check` with `--policy {policy}`")));
        };
        Self::has_priorities_of(verdict, set)?;
        verdict.assignment.clone().ok_or_else(|| {
            let why = match verdict.reason.as_str() {
                "" => String::new(),
                reason => format!(": {reason}"),
            };
            Error::new(format!("the answer has no assignment for `{policy}`{why}"))
                .remedy("choose a policy that holds, or give an assignment of your own")
        })
    }

    /// Is it the answer for these tasks?
    fn fits(&self, set: &TaskSet) -> Result<()> {
        let remedy = "ask `warmset check` about this set";
        let Some(judged) = &self.set else {
            return Err(
                Error::new("the answer does not say for which tasks it was given").remedy(remedy),
            );
        };
        if judged.len() != set.len() {
            return Err(Error::new(format!(
                "the answer is for {} tasks, and the set has {}",
                judged.len(),
                set.len()
            ))
            .remedy(remedy));
        }
        match judged
            .iter()
            .zip(&JudgedTask::all(set))
            .find(|(a, b)| a != b)
        {
            None => Ok(()),
            Some((then, now)) if then.name != now.name => Err(Error::new(format!(
                "the answer is for another set: it has the task {} where the set has {}",
                then.name, now.name
            ))
            .remedy(remedy)),
            Some((then, now)) => Err(Error::new(format!(
                "the answer is for another set: the task {} had {}, and has {}",
                now.name,
                then.times(),
                now.times()
            ))
            .remedy(remedy)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Timing;

    fn set(wcet: u64) -> TaskSet {
        let ms = Duration::from_millis;
        TaskSet::from_timings(vec![Timing::implicit(ms(wcet), ms(10))]).unwrap()
    }

    fn answer(set: &TaskSet) -> String {
        let tasks = serde_json::to_string(&JudgedTask::all(set)).unwrap();
        format!(
            r#"{{"tasks": {tasks}, "other": 1, "policies": [
                {{"policy": "pd2", "schedulable": true, "assignment":
                    {{"kind": "quanta", "cpus": "0-1", "quantum_ns": 1000000, "reserved_ns": [4000000]}}}},
                {{"policy": "p-fp:dm", "schedulable": false, "reason": "it is too much"}}]}}"#
        )
    }

    /// As `policy::Spec::for_assignment` for the policies of these tests.
    fn read(policy: &str) -> Result<String> {
        Ok(policy.trim_end_matches(":quantum=2ms").to_owned())
    }

    #[test]
    fn an_answer_gives_each_policy_its_own() {
        let file = AssignmentFile::from_json(&answer(&set(3)), "a.json").unwrap();
        assert!(file.is_answer());
        for policy in ["pd2", "pd2:quantum=2ms"] {
            let Assignment::Quanta(quanta) = file.assignment(policy, &set(3), read).unwrap() else {
                panic!("no quanta")
            };
            assert_eq!(quanta.reserved, [Duration::from_millis(4)]);
            assert_eq!(
                quanta.timings(&set(3)).unwrap()[0].wcet,
                Duration::from_millis(4)
            );
        }
        for (policy, tasks, cause) in [
            (
                "p-fp",
                3,
                "a.json: the answer has nothing of `p-fp`, only of pd2, p-fp:dm",
            ),
            (
                "p-fp:dm",
                3,
                "a.json: the answer has no assignment for `p-fp:dm`: it is too much",
            ),
            (
                "pd2",
                2,
                "a.json: the answer is for another set: the task T1 had 3ms every 10ms",
            ),
        ] {
            let e = file
                .assignment(policy, &set(tasks), read)
                .unwrap_err()
                .to_string();
            assert!(e.starts_with(cause), "{e}");
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for (text, cause) in [
            ("{", "a.json: this is no assignment"),
            ("{}", "a.json: this is no assignment: missing field `kind`"),
            (r#"{"policies": 1}"#, "a.json: this is no assignment"),
        ] {
            let Err(e) = AssignmentFile::from_json(text, "a.json") else {
                panic!("{text} was taken")
            };
            assert!(e.to_string().starts_with(cause), "{e}");
        }
        let old = AssignmentFile::from_json(r#"{"policies": []}"#, "a.json").unwrap();
        let e = old
            .assignment("pd2", &set(3), read)
            .unwrap_err()
            .to_string();
        assert!(e.contains("does not say for which tasks"), "{e}");
    }

    #[test]
    fn reservations_that_do_not_fit_the_set_are_refused() {
        let quanta = |reserved: &[u64]| crate::assignment::Quanta {
            cpus: "0-1".parse().unwrap(),
            quantum: Duration::from_millis(1),
            reserved: reserved
                .iter()
                .map(|us| Duration::from_micros(*us))
                .collect(),
        };
        for (reserved, cause) in [
            (vec![], "for 0 tasks, and the set has 1"),
            (vec![2_000], "2ms for T1, and its WCET is 3ms"),
            (vec![11_000], "11ms for T1, and its period is 10ms"),
            (vec![3_500], "no whole number of quanta of 1ms"),
        ] {
            let e = quanta(&reserved).timings(&set(3)).unwrap_err().to_string();
            assert!(e.contains(cause), "{e}");
        }
    }
}
