//! Policies with an assignment of their own: EDF-fm, EDF-WM, NPS-F, C-NPS-F; and those in quanta: PD2, the cache-aware scheduler.
//!
//! By 000's rule each is asked about e′ = e + D as the others. That covers what a policy does to caches where a job delays at most one
//! other, by its release; a job cut into slices (EDF-WM) or slots (NPS-F) is delayed more often, and the verdict says so. A job
//! in quanta (PD2, ca-edf) is charged a delay in each quantum by each rule, and the assignment has what is to be reserved for
//! it. The other rules charge what each assignment really causes.

use super::Family;
use super::costs::Rule;
use super::place::Found;
use super::question::{Case, Question};
use crate::overheads;
use crate::pd2;
use crate::semi::{edf_fm, edf_wm, nps_f};
use crate::tardiness::cache_aware;
use model::assignment::Quanta;
use model::{Assignment, CpuId, CpuSet, Duration, TaskId, Timing};

/// The work of one assignment in slices.
const SPLIT_WORK: u64 = 1 << 24;

/// The assignment, or why there is none, in a clause.
pub(super) fn assign(question: &Question<'_>, case: &Case) -> Result<Found, String> {
    match question.policy.family {
        Family::EdfFm => turns(question, case),
        Family::EdfWm => slices(question, case),
        Family::NpsF { delta } => slots(question, case, delta),
        family => quanta(question, case, family.quantum().unwrap_or(pd2::QUANTUM)),
    }
}

/// `index` of a task with what it needs, and what becomes of it.
fn refuse(question: &Question<'_>, tasks: &[Timing], index: u32, what: &str) -> String {
    let t = &tasks[index as usize];
    let name = question.set.name(TaskId(index));
    let within = t.deadline.min(t.period).rounded();
    if t.wcet == Duration::MAX {
        return format!("`{name}`, for which overheads leave no time within {within}, {what}");
    }
    format!(
        "`{name}`, which needs {} within {within}, {what}",
        t.wcet.rounded()
    )
}

fn found(assignment: Assignment, uncovered: Option<String>) -> Found {
    Found {
        assignment,
        packing: None,
        uncovered,
    }
}

/// What one delay a job does not cover in an assignment.
pub(super) fn uncovered(question: &Question<'_>, assignment: &Assignment) -> Option<String> {
    if question.bill.rule != Rule::OneDelay {
        return None;
    }
    match assignment {
        Assignment::Slices(slices) => {
            let split = slices.tasks.iter().filter(|s| s.len() > 1).count();
            let most = slices.tasks.iter().map(Vec::len).max().unwrap_or(1);
            (split > 0).then(|| {
                format!(
                    "{} cut into slices, of at most {most} processors a job",
                    tasks_are(split)
                )
            })
        }
        Assignment::Slots(slots) => Some(format!(
            "servers take turns in every slot of {}",
            slots.slot.rounded()
        )),
        _ => None,
    }
}

/// What refusals show: with one delay a job, or as they are where overheads depend on the place.
fn shown(question: &Question<'_>, case: &Case) -> Vec<Timing> {
    match question.bill.rule {
        Rule::OneDelay => question.inflated(case),
        Rule::ByPiece | Rule::AllOverheads => case.tasks.clone(),
    }
}

/// What follows a refusal where overheads are not in the numbers.
fn besides(question: &Question<'_>) -> &'static str {
    match question.bill.rule {
        Rule::OneDelay => "",
        Rule::ByPiece => " with the cache delays there",
        Rule::AllOverheads => " with the overheads there",
    }
}

fn turns(question: &Question<'_>, case: &Case) -> Result<Found, String> {
    let tasks = shown(question, case);
    let mut first = None;
    for fill in [edf_fm::Fill::Full, edf_fm::Fill::Spread] {
        let assigned = match question.bill.rule {
            Rule::OneDelay => edf_fm::assign(&tasks, &question.cpus, fill),
            Rule::ByPiece | Rule::AllOverheads => {
                overheads::edf_fm::assign(&tasks, &question.cpus, fill, &question.system(case))
            }
        };
        match assigned {
            Ok(turns) => return Ok(found(Assignment::Turns(turns), None)),
            Err(why) => first = first.or(Some(why)),
        }
    }
    Err(match first {
        Some(edf_fm::Refusal::Task(index)) => refuse(
            question,
            &tasks,
            index as u32,
            &format!("fits on no two processors that are left{}", besides(question)),
        ),
        Some(edf_fm::Refusal::Migratory(place)) => format!(
            "the migrating tasks of processor {} ask for more than all of it",
            question.cpus.get(place).copied().unwrap_or_default().0
        ),
        None => String::new(),
    })
}

fn slices(question: &Question<'_>, case: &Case) -> Result<Found, String> {
    let tasks = shown(question, case);
    let settings = edf_wm::Settings {
        work: SPLIT_WORK,
        ..edf_wm::Settings::default()
    };
    let is_free = question.bill.rule == Rule::OneDelay;
    let assigned = match is_free {
        true => edf_wm::assign(&tasks, &question.cpus, &settings),
        false => overheads::edf_wm::assign(&tasks, &question.cpus, &settings, &question.system(case)),
    };
    match assigned {
        Ok(slices) => {
            let slices = Assignment::Slices(slices);
            let uncovered = uncovered(question, &slices);
            Ok(found(slices, uncovered))
        }
        Err(edf_wm::Refusal::Task(index)) => Err(refuse(
            question,
            &tasks,
            index,
            &format!("fits nowhere, whole or in slices{}", besides(question)),
        )),
        Err(edf_wm::Refusal::Limit) => Err(format!("undecided: {}", edf_wm::LIMIT)),
    }
}

fn slots(question: &Question<'_>, case: &Case, delta: u32) -> Result<Found, String> {
    let tasks = shown(question, case);
    let of = |c: &CpuSet| {
        let cpus = question.cpus.iter().copied();
        cpus.filter(|cpu| c.contains(*cpu)).collect()
    };
    let clusters: Vec<Vec<CpuId>> = question.clusters.iter().map(of).collect();
    let settings = nps_f::Settings {
        delta,
        ..nps_f::Settings::default()
    };
    let is_free = question.bill.rule == Rule::OneDelay;
    let assigned = match is_free {
        true => nps_f::assign(&tasks, &clusters, &settings),
        false => overheads::nps_f::assign(&tasks, &clusters, &settings, &question.system(case)),
    };
    match assigned {
        Ok(slots) => {
            let slots = Assignment::Slots(slots);
            let uncovered = uncovered(question, &slots);
            Ok(found(slots, uncovered))
        }
        Err(nps_f::Refusal::Task(index)) => {
            let what = format!("fits in no server{}", besides(question));
            Err(refuse(question, &tasks, index, &what))
        }
        Err(nps_f::Refusal::Servers) => Err(format!(
            "the servers need more{} than the processors have",
            besides(question)
        )),
        Err(nps_f::Refusal::Slot) => Err(format!(
            "the slot, a part of the shortest period, is shorter than the shortest reserve, {}",
            settings.shortest
        )),
    }
}

/// What is reserved is the WCET with what every quantum loses, by each rule: a job can be preempted, and reload its working
/// set, at the end of each quantum.
fn quanta(question: &Question<'_>, case: &Case, quantum: Duration) -> Result<Found, String> {
    let cpus: CpuSet = question.cpus.iter().copied().collect();
    let tasks = overheads::quanta::account(&case.tasks, &cpus, quantum, &question.system(case)).inflated;
    let test = match question.policy.family {
        Family::CaEdf => cache_aware::is_schedulable,
        _ => pd2::is_schedulable,
    };
    if let Some(heavy) = tasks.iter().position(|t| test(&[*t], 1) != Ok(true)) {
        let why = format!("needs more than a processor in whole quanta of {quantum}");
        return Err(refuse(question, &tasks, heavy as u32, &why));
    }
    if test(&tasks, question.cpus.len() as u32) != Ok(true) {
        return Err(format!(
            "in whole quanta of {quantum} the tasks ask for more than there is"
        ));
    }
    let whole = |t: &Timing| {
        let quanta = t.wcet.nanos().div_ceil(quantum.nanos().max(1));
        Duration::from_nanos(quanta.saturating_mul(quantum.nanos()))
    };
    let reserved = tasks.iter().map(whole).collect();
    let assignment = Assignment::Quanta(Quanta {
        cpus,
        quantum,
        reserved,
    });
    Ok(found(assignment, None))
}

/// Do reservations in quanta hold what the tasks need with what every quantum loses, and does the test take them?
pub(super) fn quanta_hold(question: &Question<'_>, case: &Case, given: &Quanta) -> bool {
    let system = question.system(case);
    let needed = overheads::quanta::account(&case.tasks, &given.cpus, given.quantum, &system).inflated;
    let reserve = |(t, reserved): (&Timing, &Duration)| Timing {
        wcet: *reserved,
        ..*t
    };
    let reserved: Vec<Timing> = needed.iter().zip(&given.reserved).map(reserve).collect();
    let test = match question.policy.family {
        Family::CaEdf => cache_aware::is_schedulable,
        _ => pd2::is_schedulable,
    };
    needed.iter().zip(&reserved).all(|(n, r)| n.wcet <= r.wcet)
        && test(&reserved, given.cpus.len() as u32) == Ok(true)
}

/// So many tasks, as a subject.
pub(super) fn tasks_are(count: usize) -> String {
    match count {
        0 => "no task is".to_owned(),
        1 => "1 task is".to_owned(),
        n => format!("{n} tasks are"),
    }
}
