//! Policies with an assignment of their own: EDF-fm, EDF-WM, NPS-F, C-NPS-F; and those in quanta:
//! PD2, the cache-aware scheduler.
//!
//! By 000's rule each is asked about e′ = e + D as the others. That covers what a policy does to
//! caches where a job delays at most one other, by its release; a job cut into slices (EDF-WM) or
//! slots (NPS-F) is delayed more often, and the verdict says so. A job in quanta (PD2, ca-edf) is
//! charged a delay in each quantum by each rule, and the assignment has what is to be reserved for
//! it. The other rules charge what each assignment really causes.

use super::charged::Case;
use super::costs::Rule;
use super::question::Question;
use super::subject::Way;
use crate::assign::{self, How, Refusal};
use crate::overheads;
use crate::partition::Fit;
use crate::semi::edf_fm::Fill;
use crate::semi::{edf_wm, nps_f};
use crate::verdict::Decision;
use model::assignment::Quanta;
use model::{Assignment, CpuSet, Duration, TaskId, Timing};

/// The work of one assignment in slices.
const SPLIT_WORK: u64 = 1 << 24;

/// The assignment, or why there is none, in a clause.
pub(super) fn assign(question: &Question<'_>, case: &Case) -> Result<Assignment, String> {
    match question.policy.way {
        // Packed by `place`.
        Way::Clusters => Err(String::new()),
        Way::Turns { spread } => turns(question, case, spread),
        Way::Slices { shortest } => slices(question, case, shortest),
        Way::Slots { delta } => slots(question, case, delta),
        Way::Quanta(quantum) => quanta(question, case, quantum),
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

/// What follows a refusal where overheads are not in the numbers.
fn besides(question: &Question<'_>) -> &'static str {
    match question.bill.rule {
        Rule::OneDelay => "",
        Rule::ByPiece => " with the cache delays there",
        Rule::AllOverheads | Rule::Paper => " with the overheads there",
    }
}

fn turns(question: &Question<'_>, case: &Case, spread: bool) -> Result<Assignment, String> {
    let (tasks, system) = question.books(case);
    let mut first = None;
    let fills: &[Fill] = match spread {
        true => &[Fill::Spread],
        false => &[Fill::Full, Fill::Spread],
    };
    for &fill in fills {
        let how = How {
            fill,
            ..How::default()
        };
        match assign::in_turns(&tasks, &question.site, &how, &system) {
            Ok(turns) => return Ok(turns),
            Err(why) => first = first.or(Some(why)),
        }
    }
    Err(match first {
        Some(Refusal::Task(index)) => {
            let what = format!(
                "fits on no two processors that are left{}",
                besides(question)
            );
            refuse(question, &tasks, index, &what)
        }
        Some(Refusal::Migratory(place)) => format!(
            "the migrating tasks of processor {} ask for more than all of it",
            question.site.cpus.get(place).copied().unwrap_or_default().0
        ),
        _ => String::new(),
    })
}

fn slices(question: &Question<'_>, case: &Case, shortest: Duration) -> Result<Assignment, String> {
    let (tasks, system) = question.books(case);
    let how = How {
        fit: question.limits.slices.unwrap_or(Fit::First),
        work: SPLIT_WORK,
        shortest,
        ..How::default()
    };
    match assign::in_slices(&tasks, &question.site, &how, &system) {
        Ok(slices) => Ok(slices),
        Err(Refusal::Task(index)) => {
            let what = format!("fits nowhere, whole or in slices{}", besides(question));
            Err(refuse(question, &tasks, index, &what))
        }
        Err(_) => Err(format!("undecided: {}", edf_wm::LIMIT)),
    }
}

fn slots(question: &Question<'_>, case: &Case, delta: u32) -> Result<Assignment, String> {
    let (tasks, system) = question.books(case);
    match assign::in_slots(&tasks, &question.site, delta, &system) {
        Ok(slots) => Ok(slots),
        Err(Refusal::Task(index)) => {
            let what = format!("fits in no server{}", besides(question));
            Err(refuse(question, &tasks, index, &what))
        }
        Err(Refusal::Slot) => Err(format!(
            "the slot, a part of the shortest period, is shorter than the shortest reserve, {}",
            nps_f::Settings::default().shortest
        )),
        Err(_) => Err(format!(
            "the servers need more{} than the processors have",
            besides(question)
        )),
    }
}

/// What is reserved is the WCET with what every quantum loses, by each rule: a job can be
/// preempted, and reload its working set, at the end of each quantum.
fn quanta(question: &Question<'_>, case: &Case, quantum: Duration) -> Result<Assignment, String> {
    let cpus: CpuSet = question.site.cpus.iter().copied().collect();
    let (quanta, tasks) = assign::in_quanta(&case.tasks, &cpus, quantum, &question.system(case));
    let test = in_quanta(question);
    if let Some(heavy) = tasks.iter().position(|t| test(&[*t], 1) != Ok(true)) {
        let why = format!("needs more than a processor in whole quanta of {quantum}");
        return Err(refuse(question, &tasks, heavy as u32, &why));
    }
    if test(&tasks, question.site.cpus.len() as u32) != Ok(true) {
        return Err(format!(
            "in whole quanta of {quantum} the tasks ask for more than there is"
        ));
    }
    Ok(Assignment::Quanta(quanta))
}

/// The test of reservations in quanta: without one nothing holds.
fn in_quanta(question: &Question<'_>) -> impl Fn(&[Timing], u32) -> Decision {
    let test = question.policy.named_test(question.guarantee);
    move |tasks, m| test.map_or(Ok(false), |test| (test.run)(tasks, m))
}

/// Do reservations in quanta hold what the tasks need with what every quantum loses, and does the
/// test take them?
pub(super) fn quanta_hold(question: &Question<'_>, case: &Case, given: &Quanta) -> bool {
    let system = question.system(case);
    let needed =
        overheads::quanta::account(&case.tasks, &given.cpus, given.quantum, &system).inflated;
    let reserve = |(t, reserved): (&Timing, &Duration)| Timing {
        wcet: *reserved,
        ..*t
    };
    let reserved: Vec<Timing> = needed.iter().zip(&given.reserved).map(reserve).collect();
    let test = in_quanta(question);
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
