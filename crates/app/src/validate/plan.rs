//! Which sets are run: for each policy and guarantee sets that it holds by a small margin, and sets
//! that it clearly does not hold; sets under the plans that `advise` finds for them; or the one set
//! of a plan in a file.

use crate::Tasks;
use crate::check::guarantee_of;
use crate::planned::PlanFile;
use ::advise::{Asked, Pace};
use analyze::Guarantee;
use analyze::policies::{self, Costs, Growth, PolicyVerdict};
use generate::{Amount, Deadlines, Recipe, Utilizations};
use model::assignmentfile::JudgedTask;
use model::watch::Silent;
use model::{
    Assignment, Bytes, Details, Duration, Error, Pattern, Platform, Profile, Result, Statistic,
    TaskSet, Timing, Workload, document, files,
};
use policy::Spec;
use policy::catalog::Tests;
use serde::{Deserialize, Serialize};

/// What the verdict of a set is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// Yes, by a small margin.
    Accepted,
    /// No, and not by little.
    Refused,
}

/// What a cell of the plan is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Its place in the plan.
    pub number: u32,
    /// The policy.
    pub policy: Spec,
    /// What is asked of it.
    pub guarantee: Guarantee,
    /// What the verdict is to be.
    pub wanted: Wanted,
}

/// Parts of the largest WCETs that pass, from the edge on: what the machine can be asked for
/// decides which of them is taken.
const BELOW: [f64; 6] = [0.98, 0.96, 0.94, 0.92, 0.88, 0.84];
/// The same for what is to be refused.
const ABOVE: [f64; 4] = [1.15, 1.1, 1.25, 1.4];
/// So many tasks a processor.
const TASKS: [u32; 3] = [2, 3, 4];
/// The working set of each.
const WSS: Bytes = Bytes::from_kib(64);
const WRITES: f64 = 0.25;

/// All cells: policies take turns; three of four sets are accepted. A policy that promises nothing
/// hard is asked for bounded tardiness alone.
pub fn cells(policies: &[Spec], sets: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut round = 0_u32;
    while (cells.len() as u32) < sets {
        for (place, policy) in (0_u32..).zip(policies) {
            if cells.len() as u32 == sets {
                break;
            }
            cells.push(Cell {
                number: cells.len() as u32,
                policy: policy.clone(),
                // Four rounds have each verdict of a policy; the next four ask the other way.
                guarantee: match (round + round / 4).is_multiple_of(2) && !is_soft(policy) {
                    true => Guarantee::Hard,
                    false => Guarantee::Soft,
                },
                wanted: match (round + place) % 4 == 3 {
                    true => Wanted::Refused,
                    false => Wanted::Accepted,
                },
            });
        }
        round += 1;
    }
    cells
}

/// Does it promise nothing hard?
fn is_soft(policy: &Spec) -> bool {
    matches!(policy.info().hard, Tests::None)
}

/// The policies of 002, as far as the platform has clusters for them. EDF-fm fills processors
/// evenly: one that is full cannot be run.
///
/// # Errors
/// None is expected: the names are the catalog's.
pub fn default_policies(platform: &Platform) -> Result<Vec<Spec>> {
    let names = [
        "p-edf",
        "g-edf",
        "p-rm",
        "edf-fm:fill=spread",
        "edf-wm",
        "nps-f",
    ];
    let mut specs: Vec<Spec> = names
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_>>()?;
    if let Some(level) = experiment::overheads::plan::cluster_level(platform) {
        specs.insert(2, format!("c-edf:l{level}").parse()?);
    }
    Ok(specs)
}

/// The cells of plans: policies take turns, and nothing but hard guarantees is asked for.
///
/// # Errors
/// A policy promises nothing hard.
pub fn planned_cells(policies: &[Spec], sets: u32) -> Result<Vec<Cell>> {
    if let Some(soft) = policies.iter().find(|policy| is_soft(policy)) {
        return Err(Error::new(format!(
            "`{soft}` promises no deadline, and plans are asked for them"
        ))
        .at("--policy")
        .remedy("leave it out"));
    }
    let turns = (0..sets).zip(policies.iter().cycle());
    Ok(turns
        .map(|(number, policy)| Cell {
            number,
            policy: policy.clone(),
            guarantee: Guarantee::Hard,
            wanted: Wanted::Accepted,
        })
        .collect())
}

/// The default policies that promise deadlines.
///
/// # Errors
/// As [`default_policies`].
pub fn hard_policies(platform: &Platform) -> Result<Vec<Spec>> {
    let mut policies = default_policies(platform)?;
    policies.retain(|policy| !is_soft(policy));
    Ok(policies)
}

/// A set of a cell, and what is said of it.
#[derive(Debug)]
pub struct Candidate {
    /// The set.
    pub set: TaskSet,
    /// The policy under which it runs.
    pub policy: Spec,
    /// The WCETs in parts of the largest that pass.
    pub part: f64,
    /// The verdict.
    pub verdict: PolicyVerdict,
    /// The file that says who runs where; `None`: the policy needs none.
    pub placed: Option<String>,
}

/// A set with a plan for it, from files.
pub struct Given {
    set: TaskSet,
    policy: Spec,
    guarantee: Guarantee,
    assignment: Assignment,
    text: String,
}

impl Given {
    /// Reads the plan of these tasks.
    ///
    /// # Errors
    /// The file is no plan, or one for other tasks or another guarantee than the tasks ask for.
    pub fn read(tasks: &Tasks, plan: &std::path::Path) -> Result<Self> {
        let file = PlanFile::read(plan)?;
        let set = file.tasks(tasks.clone())?.set;
        let policy: Spec = file.policy()?.parse()?;
        Ok(Given {
            guarantee: file.guarantee().unwrap_or_else(|| guarantee_of(&set)),
            assignment: file.assignment(&set)?,
            text: files::read_text(plan)?,
            set,
            policy,
        })
    }

    /// Its only cell.
    pub fn cell(&self) -> Cell {
        Cell {
            number: 0,
            policy: self.policy.clone(),
            guarantee: self.guarantee,
            wanted: Wanted::Accepted,
        }
    }

    /// Its only candidate.
    ///
    /// # Errors
    /// With the costs of this machine `check` refuses the plan.
    pub fn candidate(&self, drawer: Drawer<'_>) -> Result<Candidate> {
        let verdict = drawer.judge_plan(&self.set, &self.cell(), &self.assignment)?;
        if !verdict.schedulable {
            return Err(Error::new(format!(
                "with the costs of this machine ({}) `check` refuses the plan: {}",
                drawer
                    .statistic_of(self.guarantee)
                    .unwrap_or(Statistic::Average),
                verdict.reason
            ))
            .at("--plan")
            .remedy(
                "have the plan made with these costs: `warmset advise` with the same `--profile` \
                 and `--statistic`",
            ));
        }
        let factor = verdict.growth.map_or(1.0, Growth::factor);
        Ok(Candidate {
            set: self.set.clone(),
            policy: self.policy.clone(),
            part: 1.0 / factor,
            verdict,
            placed: Some(self.text.clone()),
        })
    }
}

/// Draws sets for cells, and scales their WCETs to where the verdict is as it is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Drawer<'a> {
    /// The platform.
    pub platform: &'a Platform,
    /// What it costs.
    pub profile: &'a Profile,
    /// What hard sets are charged of each cost; soft ones the average (002 §6.3).
    pub statistic: Statistic,
    /// The seed of all sets.
    pub seed: u64,
}

impl Drawer<'_> {
    /// Candidates of one draw, in the order in which they are tried; none where the drawn set has
    /// no edge.
    ///
    /// # Errors
    /// A delay that the profile does not have; also of each candidate.
    pub fn candidates(
        self,
        cell: &Cell,
        attempt: u32,
    ) -> Result<impl Iterator<Item = Result<Candidate>>> {
        let base = self.draw(cell, attempt)?;
        let edge = self.judge(&base, cell)?.growth.map(Growth::factor);
        let parts: &'static [f64] = match cell.wanted {
            Wanted::Accepted => &BELOW,
            Wanted::Refused => &ABOVE,
        };
        let parts = edge
            .into_iter()
            .flat_map(|edge| parts.iter().map(move |part| (edge, *part)));
        Ok(parts.filter_map(move |(edge, part)| {
            let set = scaled(&base, edge * part)?;
            let verdict = match self.judge(&set, cell) {
                Ok(verdict) => verdict,
                Err(e) => return Some(Err(e)),
            };
            let is_wanted = verdict.schedulable == (cell.wanted == Wanted::Accepted);
            is_wanted.then(|| {
                let placed = verdict.assignment.as_ref().map(document::pretty);
                Ok(Candidate {
                    set,
                    policy: cell.policy.clone(),
                    part,
                    placed: placed.transpose()?,
                    verdict,
                })
            })
        }))
    }

    /// The same with plans that `advise` finds under the policy of the cell, each for WCETs in so
    /// many parts of the largest that this plan bears.
    ///
    /// # Errors
    /// As [`Drawer::candidates`].
    pub fn advised(
        self,
        cell: &Cell,
        attempt: u32,
    ) -> Result<impl Iterator<Item = Result<Candidate>>> {
        let base = self.draw(cell, attempt)?;
        let edge = self.judge(&base, cell)?.growth.map(Growth::factor);
        let parts = edge
            .into_iter()
            .flat_map(|edge| BELOW.iter().map(move |part| (edge, *part)));
        Ok(parts.filter_map(move |(edge, part)| {
            self.plan(scaled(&base, edge * part)?, cell, part)
                .transpose()
        }))
    }

    /// The plan of `advise` for a set that its policy holds at this part of its edge, with WCETs as
    /// long as the plan bears them, but for the same part; `None`: it finds none.
    fn plan(&self, set: TaskSet, cell: &Cell, part: f64) -> Result<Option<Candidate>> {
        let asked = Asked {
            set: &set,
            platform: self.platform,
            guarantee: cell.guarantee,
            costs: self.costs(cell.guarantee),
        };
        let options = ::advise::Options {
            policies: Some(cell.policy.to_string()),
            ..::advise::Options::default()
        };
        let advice = ::advise::advise(&asked, &options, &Pace::new(&Silent, &|| false))?;
        let (Some(found), Some(mut plan)) = (&advice.recommendation, advice.plan()) else {
            return Ok(None);
        };
        let Some(assignment) = &found.verdict.assignment else {
            return Ok(None);
        };
        let with_priorities = |set: TaskSet| match &found.priorities {
            Some(priorities) => set.with_priorities(priorities),
            None => Ok(set),
        };
        let bears = found.verdict.growth.map_or(1.0, Growth::factor) * part;
        let (set, part, verdict) = match scaled(&set, bears.max(1.0)) {
            Some(longer) if bears > 1.0 => {
                let longer = with_priorities(longer)?;
                let verdict = self.judge_plan(&longer, cell, assignment)?;
                if !verdict.schedulable {
                    return Ok(None);
                }
                (longer, part, verdict)
            }
            _ => (with_priorities(set)?, part / bears, found.verdict.clone()),
        };
        plan.tasks = JudgedTask::all(&set);
        for planned in &mut plan.policies {
            planned.reason = format!("{:.0} % of the WCETs that the plan bears", part * 100.0);
        }
        Ok(Some(Candidate {
            policy: found.policy.parse()?,
            part,
            verdict,
            placed: Some(document::pretty(&plan)?),
            set,
        }))
    }

    /// What is charged of each cost.
    fn statistic_of(&self, guarantee: Guarantee) -> Option<Statistic> {
        match guarantee {
            Guarantee::Hard => Some(self.statistic),
            Guarantee::Soft => None,
        }
    }

    fn costs(&self, guarantee: Guarantee) -> Costs<'_> {
        Costs {
            cpmd: None,
            profile: Some(self.profile),
            load: model::Load::Load,
            statistic: self.statistic_of(guarantee),
            accounting: None,
        }
    }

    /// What `check` says of an assignment of this set.
    fn judge_plan(
        &self,
        set: &TaskSet,
        cell: &Cell,
        assignment: &Assignment,
    ) -> Result<PolicyVerdict> {
        let judged = policies::judge_assigned(
            set,
            self.platform,
            &cell.policy,
            assignment,
            cell.guarantee,
            &self.costs(cell.guarantee),
            &Silent,
        )?;
        only(judged.policies, &cell.policy)
    }

    fn draw(&self, cell: &Cell, attempt: u32) -> Result<TaskSet> {
        let utilizations: Utilizations = "uniform-medium".parse()?;
        let processors = self.platform.usable().len() as u32;
        let recipe = Recipe {
            amount: Amount::Tasks {
                utilizations,
                tasks: TASKS[cell.number as usize % TASKS.len()] * processors,
            },
            periods: "moderate".parse()?,
            deadlines: Deadlines::Implicit,
        };
        let number = (u64::from(cell.number) << 32) | u64::from(attempt);
        let drawn = recipe.prepare()?.draw(self.seed, number)?;
        // Half of the processors: whatever the policy, its edge is above or near.
        let factor = 0.5 * f64::from(processors) / drawn.utilization_f64();
        scaled(&drawn, factor).ok_or_else(|| Error::new("a set cannot be scaled"))
    }

    fn judge(&self, set: &TaskSet, cell: &Cell) -> Result<PolicyVerdict> {
        let judged = policies::judge(
            set,
            self.platform,
            std::slice::from_ref(&cell.policy),
            cell.guarantee,
            &self.costs(cell.guarantee),
            &Silent,
        )?;
        only(judged.policies, &cell.policy)
    }
}

/// The verdict of the one policy that was asked.
fn only(verdicts: Vec<PolicyVerdict>, policy: &Spec) -> Result<PolicyVerdict> {
    let first = verdicts.into_iter().next();
    first.ok_or_else(|| Error::new(format!("there is no verdict for `{policy}`")))
}

/// The set with WCETs in so many parts; `None` where one exceeds its deadline.
fn scaled(set: &TaskSet, factor: f64) -> Option<TaskSet> {
    let task = |(index, timing): (usize, &Timing)| {
        let wcet = Duration::from_nanos((timing.wcet.nanos() as f64 * factor) as u64);
        let details = Details {
            wss: Some(WSS),
            workload: Some(Workload::Walk {
                write_ratio: WRITES,
                pattern: Pattern::Random,
            }),
            ..Details::named(format!("t{index}"))
        };
        (Timing { wcet, ..*timing }, details)
    };
    let tasks: Vec<_> = set.timings().iter().enumerate().map(task).collect();
    let is_possible = |t: &Timing| !t.wcet.is_zero() && t.wcet <= t.deadline.min(t.period);
    match tasks.iter().all(|(timing, _)| is_possible(timing)) {
        true => TaskSet::new(tasks).ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_policy_gets_every_kind_of_set() {
        let policies = Spec::list("p-edf,g-edf").unwrap();
        let cells = cells(&policies, 16);
        assert_eq!(cells.len(), 16);
        let kinds: BTreeSet<String> = cells
            .iter()
            .map(|c| format!("{} {:?} {:?}", c.policy, c.guarantee, c.wanted))
            .collect();
        assert_eq!(kinds.len(), 8, "{kinds:?}");
        let refused = cells.iter().filter(|c| c.wanted == Wanted::Refused).count();
        assert_eq!(refused, 4);
        assert_eq!(super::cells(&policies, 5).len(), 5);
    }

    #[test]
    fn candidates_have_the_verdict_that_is_wanted() {
        let platform = Platform::symmetric(2);
        // The delays of a platform without caches are those through memory.
        let profile = Profile::builtin("xeon-l7455").unwrap();
        let drawer = Drawer {
            platform: &platform,
            profile: &profile,
            statistic: Statistic::Untrimmed,
            seed: 3,
        };
        let policies = default_policies(&platform).unwrap();
        for cell in cells(&policies, 8 * policies.len() as u32) {
            let mut found = Vec::new();
            for attempt in 0..5 {
                let candidates = drawer.candidates(&cell, attempt).unwrap();
                found = candidates.map(|c| c.unwrap()).collect::<Vec<_>>();
                if !found.is_empty() {
                    break;
                }
            }
            if cell.wanted == Wanted::Accepted {
                assert!(!found.is_empty(), "{cell:?}");
            }
            for candidate in found {
                let is_accepted = candidate.verdict.schedulable;
                assert_eq!(is_accepted, cell.wanted == Wanted::Accepted, "{cell:?}");
                assert_eq!(candidate.part < 1.0, is_accepted);
            }
        }
    }
}
