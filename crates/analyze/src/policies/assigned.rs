//! Policies with an assignment of their own, judged: partitioned fixed priorities, EDF-fm, EDF-WM, NPS-F, C-NPS-F, PD2.
//!
//! Each is asked about e′ = e + D as the others (000 §2). That covers what a policy does to caches where a job delays at most one other,
//! by its release; a job cut into slices (EDF-WM), slots (NPS-F) or quanta (PD2) is delayed more often, and the verdict says so
//! (`cpmd_covered`). Delays are those of any migration that the policy allows, also for tasks that happen not to migrate.
//!
//! Partitions are packed in decreasing utilization by worst, first, best and next fit with exact response times per placement.

use super::{Charge, Cluster, Costs, Family, NOT_JUDGED, Placed, Policy, PolicyVerdict};
use super::{margin, place_by, utilization};
use crate::partition::{self, Acceptance, Fit, Order};
use crate::pd2;
use crate::semi::{edf_fm, edf_wm, nps_f};
use crate::uniprocessor::fixed_priority::Priority;
use crate::verdict::{Guarantee, NotApplicable, implicit_deadlines};
use model::assignment::{Clustered, Slices, Slots, Turns};
use model::{Assignment, CpuId, CpuSet, Platform, Result, TaskId, TaskSet, Timing};
use std::collections::BTreeMap;

/// The most tasks of which every placement is decided by the exact test of a processor.
const PLACED: NotApplicable =
    NotApplicable::Limit("200 tasks, each placed by the exact test of a processor, many times over");
const MOST_PLACED: usize = 200;
/// The most tasks of which some are cut into slices, and the work of one assignment of them.
const SPLIT: NotApplicable =
    NotApplicable::Limit("1000 tasks, placed or cut by exact demand many times over");
const MOST_SPLIT: usize = 1_000;
const SPLIT_WORK: u64 = 1 << 24;
/// The most tasks that are put into shares or servers.
const SHARED: NotApplicable = NotApplicable::Limit("2000 tasks, put into shares or servers many times over");
const MOST_SHARED: usize = 2_000;

/// An assignment with what is to be said of it.
struct Found {
    assignment: Assignment,
    heuristic: Option<Fit>,
    /// What one delay a job does not cover.
    uncovered: Option<String>,
}

/// Judges a set under a policy that is not one of clustered EDF.
///
/// # Errors
/// A policy that the platform has no clusters for; a delay that the profile lacks; a task's missing working set size.
pub(super) fn judge(
    set: &TaskSet,
    platform: &Platform,
    policy: Policy,
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> Result<PolicyVerdict> {
    let clusters = platform
        .clusters(policy.clusters)
        .map_err(|e| e.at(format!("policy `{policy}`")))?;
    let charge = costs.charge(set, platform, &clusters, guarantee)?;
    let inflated: Vec<Timing> = set
        .timings()
        .iter()
        .zip(&charge.delays)
        .map(|(t, d)| t.inflated(*d))
        .collect();
    let asked = Asked {
        set,
        cpus: platform.in_cache_order(),
        clusters,
        family: policy.family,
    };
    let mut verdict = PolicyVerdict {
        policy: policy.to_string(),
        schedulable: false,
        decided_by: NOT_JUDGED,
        heuristic: None,
        reason: String::new(),
        utilization: utilization(set.timings()),
        inflated_utilization: utilization(&inflated),
        charged: charge.delays.iter().copied().max().unwrap_or_default(),
        largest_cpmd: None,
        cpmd_covered: matches!(policy.family, Family::FixedPriority(_) | Family::EdfFm),
        notes: charge.notes.clone(),
        clusters: Vec::new(),
        assignment: None,
    };
    if let Some(why) = asked.precondition(guarantee) {
        verdict.reason = format!("{}: {why}", NOT_JUDGED);
        return Ok(verdict);
    }
    verdict.decided_by = asked.decided_by();
    verdict.largest_cpmd = margin::largest_assigned(set.timings(), asked.is_slow(), |tasks| {
        asked.assign(tasks).is_ok()
    });
    match asked.assign(&inflated) {
        Err(why) => verdict.reason = why,
        Ok(found) => {
            verdict.schedulable = true;
            verdict.heuristic = found.heuristic.map(|f| f.to_string());
            verdict.cpmd_covered = found.uncovered.is_none();
            verdict.reason = asked.praise(&inflated, &found);
            verdict.clusters = asked.draw(&inflated, &found.assignment, &charge, verdict.decided_by);
            verdict.assignment = Some(found.assignment);
        }
    }
    Ok(verdict)
}

/// What does not change while delays are tried.
struct Asked<'a> {
    set: &'a TaskSet,
    cpus: Vec<CpuId>,
    clusters: Vec<CpuSet>,
    family: Family,
}

impl Asked<'_> {
    /// Why the policy cannot be asked, as a clause.
    fn precondition(&self, guarantee: Guarantee) -> Option<String> {
        let tasks = self.set.timings();
        let (implicit, most, limit) = match self.family {
            Family::EdfWm => (false, MOST_SPLIT, SPLIT),
            Family::Edf | Family::FixedPriority(_) => (false, MOST_PLACED, PLACED),
            Family::EdfFm | Family::NpsF { .. } => (true, MOST_SHARED, SHARED),
            Family::Pd2 => (true, usize::MAX, SHARED),
        };
        if matches!(self.family, Family::FixedPriority(_)) && self.clusters.len() < self.cpus.len() {
            return Some("no test of global fixed priorities is registered".into());
        }
        if self.family == Family::EdfFm && guarantee == Guarantee::Hard {
            return Some("EDF-fm bounds tardiness, but does not promise that no deadline is missed; ask for soft real time".into());
        }
        if let (true, Err(NotApplicable::ImplicitDeadlines(task))) = (implicit, implicit_deadlines(tasks)) {
            return Some(format!(
                "it needs deadlines equal to periods, and `{}` has another",
                self.set.name(TaskId(task as u32))
            ));
        }
        (tasks.len() > most).then(|| limit.to_string())
    }

    /// Does finding an assignment take so long that only few delays are tried?
    fn is_slow(&self) -> bool {
        match self.family {
            Family::EdfWm => true,
            Family::FixedPriority(_) => self.set.len() > 50,
            _ => false,
        }
    }

    fn decided_by(&self) -> &'static str {
        match self.family {
            Family::Edf => crate::clustered::BY_EXACT_EDF,
            Family::FixedPriority(_) => "exact response times",
            Family::EdfFm => edf_fm::INFO.name,
            Family::EdfWm => edf_wm::INFO.name,
            Family::NpsF { .. } if self.clusters.len() > 1 => nps_f::CLUSTERED.name,
            Family::NpsF { .. } => nps_f::INFO.name,
            Family::Pd2 => pd2::INFO.name,
        }
    }

    /// `index` of a task with what it needs, for sentences.
    fn task(&self, tasks: &[Timing], index: u32) -> String {
        let t = &tasks[index as usize];
        let name = self.set.name(TaskId(index));
        let (within, per) = (t.deadline.min(t.period).rounded(), t.wcet.rounded());
        format!("`{name}`, which needs {per} within {within},")
    }

    /// The assignment, or why there is none.
    fn assign(&self, tasks: &[Timing]) -> Result<Found, String> {
        let refuse = |index: u32, what: &str| format!("{} {what}", self.task(tasks, index));
        let (cpus, m) = (&self.cpus, self.cpus.len() as u32);
        match self.family {
            Family::Edf => self.partition(tasks, Acceptance::Edf),
            Family::FixedPriority(priority) => self.partition(tasks, Acceptance::FixedPriority(priority)),
            Family::EdfFm => {
                let mut first = None;
                for fill in [edf_fm::Fill::Full, edf_fm::Fill::Spread] {
                    match edf_fm::assign(tasks, cpus, fill) {
                        Ok(turns) => return Ok(found(Assignment::Turns(turns), None)),
                        Err(why) => first = first.or(Some(why)),
                    }
                }
                Err(match first {
                    Some(edf_fm::Refusal::Task(index)) => {
                        refuse(index as u32, "fits on no two processors that are left")
                    }
                    Some(edf_fm::Refusal::Migratory(place)) => format!(
                        "the migrating tasks of processor {} ask for more than all of it",
                        cpus.get(place).copied().unwrap_or_default().0
                    ),
                    None => String::new(),
                })
            }
            Family::EdfWm => match edf_wm::assign(
                tasks,
                cpus,
                &edf_wm::Settings {
                    work: SPLIT_WORK,
                    ..edf_wm::Settings::default()
                },
            ) {
                Ok(slices) => {
                    let split = slices.tasks.iter().filter(|s| s.len() > 1).count();
                    let most = slices.tasks.iter().map(Vec::len).max().unwrap_or(1);
                    let uncovered = (split > 0).then(|| {
                        format!(
                            "{} cut into slices, of at most {most} processors a job",
                            tasks_are(split)
                        )
                    });
                    Ok(Found {
                        assignment: Assignment::Slices(slices),
                        heuristic: (m > 1).then_some(Fit::First),
                        uncovered,
                    })
                }
                Err(edf_wm::Refusal::Task(index)) => Err(refuse(index, "fits nowhere, whole or in slices")),
                Err(edf_wm::Refusal::Limit) => Err(format!("undecided: {}", edf_wm::LIMIT)),
            },
            Family::NpsF { delta } => {
                let of = |c: &CpuSet| cpus.iter().copied().filter(|cpu| c.contains(*cpu)).collect();
                let clusters: Vec<Vec<CpuId>> = self.clusters.iter().map(of).collect();
                let settings = nps_f::Settings {
                    delta,
                    ..nps_f::Settings::default()
                };
                match nps_f::assign(tasks, &clusters, &settings) {
                    Ok(slots) => {
                        let uncovered = format!("servers take turns in every slot of {}", slots.slot);
                        Ok(found(Assignment::Slots(slots), Some(uncovered)))
                    }
                    Err(nps_f::Refusal::Task(index)) => Err(refuse(index, "fits in no server")),
                    Err(nps_f::Refusal::Servers) => {
                        Err("the servers need more than the processors have".into())
                    }
                    Err(nps_f::Refusal::Slot) => Err(format!(
                        "the slot, a part of the shortest period, is shorter than the shortest reserve, {}",
                        settings.shortest
                    )),
                }
            }
            Family::Pd2 => {
                if let Some(heavy) = tasks
                    .iter()
                    .position(|t| pd2::is_schedulable(&[*t], 1) != Ok(true))
                {
                    let why = format!("needs more than a processor in whole quanta of {}", pd2::QUANTUM);
                    return Err(refuse(heavy as u32, &why));
                }
                if pd2::is_schedulable(tasks, m) != Ok(true) {
                    return Err(format!(
                        "in whole quanta of {} the tasks ask for more than there is",
                        pd2::QUANTUM
                    ));
                }
                let all = Clustered {
                    clusters: self.clusters.clone(),
                    cluster_of: vec![0; tasks.len()],
                };
                let uncovered = format!(
                    "a job may be preempted at the end of every quantum of {}",
                    pd2::QUANTUM
                );
                Ok(found(Assignment::Clustered(all), Some(uncovered)))
            }
        }
    }

    fn partition(&self, tasks: &[Timing], acceptance: Acceptance) -> Result<Found, String> {
        let m = self.cpus.len();
        let fits = if m > 1 { &Fit::ALL[..] } else { &Fit::ALL[..1] };
        let mut refused = None;
        for fit in fits {
            match partition::partition(tasks, m as u32, Order::DecreasingUtilization, *fit, acceptance) {
                Ok(cluster_of) => {
                    let clusters = self.clusters.clone();
                    return Ok(Found {
                        assignment: Assignment::Clustered(Clustered { clusters, cluster_of }),
                        heuristic: (m > 1).then_some(*fit),
                        uncovered: None,
                    });
                }
                Err(index) => refused = refused.or(Some(index)),
            }
        }
        let why = if m > 1 {
            "finds no processor whose response times all stay within deadlines, by any of the heuristics"
        } else {
            "makes a response time too long on the only processor"
        };
        Err(refused.map_or_else(String::new, |index| format!("{} {why}", self.task(tasks, index))))
    }

    /// Why the guarantee is shown.
    fn praise(&self, tasks: &[Timing], found: &Found) -> String {
        let mut text = match (self.family, &found.assignment) {
            (Family::FixedPriority(priority), _) => format!(
                "every deadline is met: response times on each processor are exact, with {}",
                match priority {
                    Priority::RateMonotonic => "shorter periods first",
                    Priority::DeadlineMonotonic => "shorter deadlines first",
                    Priority::Given => "priorities in the order of the set",
                }
            ),
            (_, Assignment::Turns(turns)) => {
                let late = edf_fm::tardiness_bounds(tasks, turns);
                let migratory = turns.tasks.iter().filter(|t| t.is_migratory()).count();
                format!(
                    "tardiness is at most {}; {} spread over two processors each, job by job",
                    late.into_iter().max().unwrap_or_default().rounded(),
                    tasks_are(migratory)
                )
            }
            (Family::Pd2, _) => format!(
                "every deadline is met if releases wait for the start of a quantum of {}",
                pd2::QUANTUM
            ),
            _ => format!("every deadline is met: shown by {}", self.decided_by()),
        };
        if let Some(uncovered) = &found.uncovered {
            text += &format!("; one delay a job is charged, and more may occur: {uncovered}");
        }
        text
    }

    /// What every processor gives to whom.
    fn draw(
        &self,
        inflated: &[Timing],
        assignment: &Assignment,
        charge: &Charge,
        by: &'static str,
    ) -> Vec<Cluster> {
        match assignment {
            Assignment::Clustered(c) => {
                let accepted_by = vec![Some(by); c.clusters.len()];
                let mut drawn = place_by(self.set, &c.clusters, &c.cluster_of, &accepted_by, charge);
                if self.family == Family::Pd2 {
                    for placed in drawn.iter_mut().flat_map(|c| &mut c.tasks) {
                        let weight = pd2::weight(&inflated[placed.task.index()], pd2::QUANTUM);
                        placed.overhead = weight.map_or(0.0, |w| w.to_f64()) - placed.utilization;
                    }
                }
                drawn
            }
            Assignment::Turns(turns) => self.on_processors(by, shares_of_turns(inflated, turns)),
            Assignment::Slices(slices) => self.on_processors(by, shares_of_slices(inflated, slices)),
            Assignment::Slots(slots) => self.on_processors(by, shares_of_slots(inflated, slots)),
        }
    }

    /// A cluster a processor, in the order of the shares: task, processor, what it takes of it, and how much of its own
    /// utilization runs there.
    fn on_processors(&self, by: &'static str, shares: Vec<Share>) -> Vec<Cluster> {
        let mut tasks_of: BTreeMap<CpuId, Vec<Placed>> = BTreeMap::new();
        for share in shares {
            let task = TaskId(share.task as u32);
            let own = self.set.timings()[share.task].utilization().to_f64() * share.part;
            tasks_of.entry(share.cpu).or_default().push(Placed {
                task,
                name: self.set.name(task),
                utilization: own,
                overhead: (share.taken - own).max(0.0),
            });
        }
        self.cpus
            .iter()
            .map(|cpu| Cluster {
                processors: std::iter::once(*cpu).collect(),
                accepted_by: Some(by),
                tasks: tasks_of.remove(cpu).unwrap_or_default(),
            })
            .collect()
    }
}

/// A part of a task on a processor.
struct Share {
    task: usize,
    cpu: CpuId,
    /// Which part of the task's execution, at most 1.
    part: f64,
    /// How much of the processor, with all overheads.
    taken: f64,
}

fn found(assignment: Assignment, uncovered: Option<String>) -> Found {
    Found {
        assignment,
        heuristic: None,
        uncovered,
    }
}

fn tasks_are(count: usize) -> String {
    match count {
        0 => "no task is".to_owned(),
        1 => "1 task is".to_owned(),
        n => format!("{n} tasks are"),
    }
}

fn shares_of_turns(inflated: &[Timing], turns: &Turns) -> Vec<Share> {
    let mut shares = Vec::new();
    for (task, (t, turn)) in inflated.iter().zip(&turns.tasks).enumerate() {
        let first = turn.part as f64 / turn.whole.max(1) as f64;
        let mut share = |cpu, part| {
            let taken = t.utilization().to_f64() * part;
            shares.push(Share {
                task,
                cpu,
                part,
                taken,
            });
        };
        share(turn.first, first);
        if turn.is_migratory() {
            share(turn.second, 1.0 - first);
        }
    }
    shares
}

fn shares_of_slices(inflated: &[Timing], slices: &Slices) -> Vec<Share> {
    let mut shares = Vec::new();
    for (task, (t, parts)) in inflated.iter().zip(&slices.tasks).enumerate() {
        let all: f64 = parts.iter().map(|s| s.budget.nanos() as f64).sum();
        for slice in parts {
            let budget = slice.budget.nanos() as f64;
            shares.push(Share {
                task,
                cpu: slice.cpu,
                part: budget / all.max(1.0),
                taken: budget / t.period.nanos() as f64,
            });
        }
    }
    shares
}

/// What a server has reserved counts for its tasks in proportion to their utilization.
fn shares_of_slots(inflated: &[Timing], slots: &Slots) -> Vec<Share> {
    let servers = slots.server_of.iter().max().map_or(0, |s| *s as usize + 1);
    let mut members: Vec<Vec<(usize, f64)>> = vec![Vec::new(); servers];
    for (task, server) in slots.server_of.iter().enumerate() {
        members[*server as usize].push((task, inflated[task].utilization().to_f64()));
    }
    let mut reserved = vec![0.0; servers];
    let turns = || {
        let one = |t: &'_ model::assignment::Timetable| {
            let cpu = t.cpu;
            t.turns.clone().into_iter().map(move |turn| (cpu, turn))
        };
        slots.timetables.iter().flat_map(one)
    };
    let length = |s: &model::assignment::Serve| s.end.saturating_sub(s.start).nanos() as f64;
    for (_, turn) in turns() {
        reserved[turn.server as usize] += length(&turn);
    }
    let mut shares = Vec::new();
    for (cpu, turn) in turns() {
        let server = turn.server as usize;
        let all: f64 = members[server].iter().map(|(_, u)| u).sum();
        for (task, u) in &members[server] {
            shares.push(Share {
                task: *task,
                cpu,
                part: length(&turn) / reserved[server],
                taken: length(&turn) / slots.slot.nanos() as f64 * u / all,
            });
        }
    }
    shares
}
