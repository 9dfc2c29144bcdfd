//! Tasks and task sets: the sporadic task model (000 §2; 002 §2.1.1), with working sets and
//! workloads.
//!
//! What the tests need (WCET, period, deadline) lies together in [`Timing`]; what only people and
//! engines need lies apart in [`Details`], so that a million task sets can be judged without
//! touching a name.

use crate::colors::Colors;
use crate::cpus::CpuSet;
use crate::error::{Error, Result};
use crate::exact::{self, Ratio};
use crate::size::Bytes;
use crate::time::Duration;
use crate::wcets::Wcets;
use crate::workload::{Trigger, Workload};
use serde::Serialize;
use std::cmp::Ordering;

/// The place of a task in its set, from 0. The field's T1 is index 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct TaskId(pub u32);

impl TaskId {
    /// Stands for no task where an option would take more room.
    pub const NONE: TaskId = TaskId(u32::MAX);

    /// For indexing.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The timing parameters of a task, e, p and D in the papers.
///
/// In a [`TaskSet`] all are positive and `wcet <= deadline`. A set inflated by overheads, or made
/// by a machine to be judged ([`TaskSet::to_judge`]), may break the latter: tests must answer "not
/// schedulable" then, not panic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Timing {
    /// Worst-case execution time, e.
    pub wcet: Duration,
    /// Period or minimum inter-arrival time, p.
    pub period: Duration,
    /// Relative deadline, D; may be longer than the period.
    pub deadline: Duration,
}

impl Timing {
    /// A task with an implicit deadline, D = p.
    pub const fn implicit(wcet: Duration, period: Duration) -> Self {
        Timing {
            wcet,
            period,
            deadline: period,
        }
    }
    /// Utilization, u = e / p.
    pub fn utilization(&self) -> Ratio {
        ratio(self.wcet, self.period)
    }
    /// Density, e / min(D, p).
    pub fn density(&self) -> Ratio {
        ratio(self.wcet, self.deadline.min(self.period))
    }
    /// D = p?
    pub fn has_implicit_deadline(&self) -> bool {
        self.deadline == self.period
    }
    /// D ≤ p?
    pub fn has_constrained_deadline(&self) -> bool {
        self.deadline <= self.period
    }
    /// The same task with a WCET longer by `extra`; saturates.
    #[must_use]
    pub fn inflated(self, extra: Duration) -> Self {
        Timing {
            wcet: self.wcet.saturating_add(extra),
            ..self
        }
    }
}

/// What delays the jobs of a task besides other jobs' execution. Kept apart from [`Timing`]: most
/// sets have none, and tests over millions of sets do not look at it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Extras {
    /// The longest time for which sections of less urgent jobs (locks, code that cannot be
    /// preempted) keep a job from the processor, B. Those sections are part of the WCETs of their
    /// own tasks.
    pub blocking: Duration,
    /// The longest time from the arrival of a job to its release, J. The period separates arrivals,
    /// and the deadline counts from the arrival.
    pub jitter: Duration,
}

impl Extras {
    /// No delay of either kind.
    pub const NONE: Extras = Extras {
        blocking: Duration::ZERO,
        jitter: Duration::ZERO,
    };

    /// Tests whether both delays are zero.
    pub fn is_none(&self) -> bool {
        *self == Extras::NONE
    }
}

/// Both are positive in any task; a zero denominator counts as the smallest positive one.
fn ratio(num: Duration, den: Duration) -> Ratio {
    Ratio::new(num.nanos(), den.nanos().max(1)).unwrap_or(Ratio::ZERO)
}

/// What a task has besides its timing.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Details {
    /// Unique in its set.
    pub name: String,
    /// Working set size of a job, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wss: Option<Bytes>,
    /// Tasks of one group form a multithreaded task (003 §2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Release of the first job after the start.
    pub phase: Duration,
    /// May it be tardy? A soft task needs bounded tardiness only (002 §2.1.2).
    pub soft: bool,
    /// What its jobs do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// The page colors that its working set lies in (001 §3, 004 §II-A), where they are not left to
    /// the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<Colors>,
    /// Its WCETs by the number of its colors, where they are known. The WCET in its timing is the
    /// one with the colors that it has.
    #[serde(skip)]
    pub wcets: Option<Wcets>,
    /// What releases its jobs in a real run, where they do not come one period apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// The processors that it may run on; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// Its priority for the policies that take priorities as given; the larger, the more urgent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Blocking and release jitter.
    #[serde(skip_serializing_if = "Extras::is_none")]
    pub extras: Extras,
}

impl Details {
    /// Details of a task of which only the timing is known.
    pub fn named(name: impl Into<String>) -> Self {
        Details {
            name: name.into(),
            wss: None,
            group: None,
            phase: Duration::ZERO,
            soft: false,
            workload: None,
            colors: None,
            wcets: None,
            trigger: None,
            cpus: None,
            priority: None,
            extras: Extras::NONE,
        }
    }
}

/// Work without deadlines, which fills the time that tasks leave.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BestEffort {
    /// Unique among those of its set, tasks included.
    pub name: String,
    /// Its working set size, if it walks one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wss: Option<Bytes>,
    /// What it does, again and again.
    pub workload: Workload,
}

/// A set of tasks, checked: positive times, WCET within the deadline (but see
/// [`TaskSet::to_judge`]), at least one task.
///
/// Invariant: `details` is empty (a set made by a machine: no names) or as long as `timings`;
/// `extras` is empty where no task has any, else as long as `timings`.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskSet {
    timings: Vec<Timing>,
    extras: Vec<Extras>,
    details: Vec<Details>,
    best_effort: Vec<BestEffort>,
}

impl TaskSet {
    /// The most tasks that a set may have.
    pub const MAX_TASKS: usize = 1_000_000;

    /// A set of which only the timing is known.
    ///
    /// # Errors
    /// No tasks, too many, a zero time, a WCET above its deadline: names the task by its number,
    /// from 1.
    pub fn from_timings(timings: Vec<Timing>) -> Result<Self> {
        Self::checked(timings, check_timing)
    }

    /// A set to be judged, not to be run: made by a machine, it may hold a task whose WCET is above
    /// its deadline. Every test answers that such a set is not schedulable.
    ///
    /// # Errors
    /// As [`TaskSet::from_timings`], but for a WCET above its deadline.
    pub fn to_judge(timings: Vec<Timing>) -> Result<Self> {
        Self::checked(timings, check_positive)
    }

    fn checked(timings: Vec<Timing>, check: fn(&Timing) -> Result<()>) -> Result<Self> {
        check_count(timings.len())?;
        for (index, timing) in timings.iter().enumerate() {
            check(timing).map_err(|e| e.at(format!("task {}", index + 1)))?;
        }
        Ok(TaskSet {
            timings,
            extras: Vec::new(),
            details: Vec::new(),
            best_effort: Vec::new(),
        })
    }

    /// A set of tasks with names.
    ///
    /// # Errors
    /// As [`TaskSet::from_timings`]; two tasks of one name.
    pub fn new(tasks: Vec<(Timing, Details)>) -> Result<Self> {
        let (timings, details): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        Self::from_timings(timings)?.with_details(details)
    }

    /// The same tasks with names and more, one for each.
    ///
    /// # Errors
    /// Two tasks of one name; fewer or more than there are tasks.
    pub fn with_details(mut self, details: Vec<Details>) -> Result<Self> {
        if details.len() != self.timings.len() {
            return Err(Error::new(format!(
                "details of {} tasks for a set of {}",
                details.len(),
                self.timings.len()
            ))
            .remedy("give one for each task"));
        }
        let mut seen = std::collections::HashMap::with_capacity(details.len());
        for (index, d) in details.iter().enumerate() {
            if let Some(first) = seen.insert(d.name.as_str(), index) {
                return Err(Error::new(format!(
                    "task {} has the name `{}`, which task {} has already",
                    index + 1,
                    d.name,
                    first + 1
                ))
                .remedy("give each task its own name"));
            }
        }
        self.extras = match details.iter().all(|d| d.extras.is_none()) {
            true => Vec::new(),
            false => details.iter().map(|d| d.extras).collect(),
        };
        self.details = details;
        Ok(self)
    }

    /// The same tasks with work that fills the time that they leave.
    ///
    /// # Errors
    /// Two of one name.
    pub fn with_best_effort(mut self, best_effort: Vec<BestEffort>) -> Result<Self> {
        let mut seen: std::collections::HashSet<String> =
            self.ids().map(|id| self.name(id)).collect();
        for work in &best_effort {
            if !seen.insert(work.name.clone()) {
                return Err(
                    Error::new(format!("the name `{}` is given twice", work.name))
                        .remedy("give each its own name"),
                );
            }
        }
        self.best_effort = best_effort;
        Ok(self)
    }

    /// What fills the time that the tasks leave, in a real run.
    pub fn best_effort(&self) -> &[BestEffort] {
        &self.best_effort
    }

    /// The timing of every task, in the order of the set.
    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }
    /// Blocking and jitter of every task, in the order of the set; empty where no task has any.
    pub fn extras(&self) -> &[Extras] {
        &self.extras
    }
    /// The tasks by their given priorities, the most urgent first: the larger number comes first,
    /// tasks without one come last, and ties keep the order of the set.
    pub fn by_priority(&self) -> Vec<TaskId> {
        let mut order: Vec<TaskId> = self.ids().collect();
        order.sort_by_key(|id| std::cmp::Reverse(self.details(*id).and_then(|d| d.priority)));
        order
    }
    /// By task, its place in [`TaskSet::by_priority`]: 0 is the most urgent.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.len()];
        for (rank, id) in self.by_priority().into_iter().enumerate() {
            // At most MAX_TASKS of them.
            ranks[id.index()] = rank as u32;
        }
        ranks
    }
    /// Tests whether some task has a priority of its own.
    pub fn has_priorities(&self) -> bool {
        self.details.iter().any(|d| d.priority.is_some())
    }
    /// Tests whether the WCET of some task depends on its colors.
    pub fn depends_on_colors(&self) -> bool {
        self.details.iter().any(|d| d.wcets.is_some())
    }
    /// The same tasks with these colors, in the order of the set, and the WCETs that they have with
    /// them. A task without colors in the list has none.
    ///
    /// # Errors
    /// Fewer or more than there are tasks; a task has fewer colors than its WCET is known with.
    pub fn with_colors(&self, colors: &[Option<Colors>]) -> Result<Self> {
        if colors.len() != self.len() {
            return Err(Error::new(format!(
                "colors of {} tasks for a set of {} tasks",
                colors.len(),
                self.len()
            ))
            .remedy("give colors, or none, for each task"));
        }
        let mut timings = self.timings.clone();
        let mut details = Vec::with_capacity(self.len());
        for (id, colors) in self.ids().zip(colors) {
            let own = self.details(id).cloned();
            let own = own.unwrap_or_else(|| Details::named(self.name(id)));
            if let Some(wcets) = &own.wcets {
                let wcet = wcets.of(colors.as_ref());
                timings[id.index()].wcet = wcet.map_err(|e| e.at(format!("task {}", own.name)))?;
            }
            details.push(Details {
                colors: colors.clone(),
                ..own
            });
        }
        let set = Self::to_judge(timings)?.with_details(details)?;
        set.with_best_effort(self.best_effort.clone())
    }
    /// The same tasks with these priorities, the larger the more urgent, in the order of the set.
    ///
    /// # Errors
    /// Fewer or more than there are tasks.
    pub fn with_priorities(&self, priorities: &[u32]) -> Result<Self> {
        if priorities.len() != self.len() {
            return Err(Error::new(format!(
                "{} priorities for a set of {} tasks",
                priorities.len(),
                self.len()
            ))
            .remedy("give one for each task"));
        }
        let mut set = self.clone();
        if set.details.is_empty() {
            set.details = set.ids().map(|id| Details::named(self.name(id))).collect();
        }
        for (details, priority) in set.details.iter_mut().zip(priorities) {
            details.priority = Some(*priority);
        }
        Ok(set)
    }
    /// The tasks in this order, which names each of them once, without best-effort work.
    ///
    /// # Errors
    /// A task is named twice, or not at all.
    pub fn reordered(&self, order: &[TaskId]) -> Result<Self> {
        let is_task = |id: &&TaskId| id.index() < self.len();
        let mut known: Vec<TaskId> = order.iter().filter(is_task).copied().collect();
        known.sort_unstable();
        known.dedup();
        if known.len() != self.len() || order.len() != self.len() {
            return Err(Error::new("an order of tasks does not name each task once")
                .remedy("name each task of the set once"));
        }
        let timings = order.iter().map(|id| self.timings[id.index()]).collect();
        let set = TaskSet::checked(timings, check_positive)?;
        let details = |id: &TaskId| match self.details(*id) {
            Some(details) => details.clone(),
            None => Details::named(self.name(*id)),
        };
        set.with_details(order.iter().map(details).collect())
    }
    /// The processors that a task may run on; `None`: all.
    pub fn cpus(&self, task: TaskId) -> Option<&CpuSet> {
        self.details(task)?.cpus.as_ref()
    }
    /// Tests whether some task is kept to some processors.
    pub fn has_affinities(&self) -> bool {
        self.details.iter().any(|d| d.cpus.is_some())
    }
    /// How many tasks.
    pub fn len(&self) -> usize {
        self.timings.len()
    }
    /// Never true; here because a length calls for it.
    pub fn is_empty(&self) -> bool {
        self.timings.is_empty()
    }
    /// The name of a task; `T1`, `T2`, … where none was given.
    pub fn name(&self, task: TaskId) -> String {
        match self.details.get(task.index()) {
            Some(d) => d.name.clone(),
            None => format!("T{}", task.0 + 1),
        }
    }
    /// What a task has besides its timing, if it was given.
    pub fn details(&self, task: TaskId) -> Option<&Details> {
        self.details.get(task.index())
    }
    /// The working set size of a task, if it was given.
    pub fn wss(&self, task: TaskId) -> Option<Bytes> {
        self.details(task).and_then(|d| d.wss)
    }
    /// Every task's number, in the order of the set.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = TaskId> + use<> {
        (0..self.timings.len() as u32).map(TaskId)
    }
    /// Compares the total utilization U with `bound`, exactly.
    pub fn cmp_utilization(&self, bound: Ratio) -> Ordering {
        exact::cmp_sum(self.timings.iter().map(Timing::utilization), bound)
    }
    /// The total utilization U, for people and plots; decisions use [`TaskSet::cmp_utilization`].
    pub fn utilization_f64(&self) -> f64 {
        self.timings.iter().map(|t| t.utilization().to_f64()).sum()
    }
}

fn check_count(count: usize) -> Result<()> {
    match count {
        0 => Err(Error::new("there are no tasks").remedy("give at least one")),
        n if n > TaskSet::MAX_TASKS => Err(Error::new(format!(
            "{n} tasks are more than a set may have"
        ))
        .remedy(format!(
            "split it: at most {} tasks a set",
            TaskSet::MAX_TASKS
        ))),
        _ => Ok(()),
    }
}

/// What must hold of every task that comes from outside.
pub(crate) fn check_timing(t: &Timing) -> Result<()> {
    check_positive(t)?;
    if t.wcet > t.deadline {
        return Err(Error::new(format!(
            "the WCET {} is above the deadline {}",
            t.wcet, t.deadline
        ))
        .at("wcet")
        .remedy("no scheduler can meet that: shorten the WCET or lengthen the deadline"));
    }
    Ok(())
}

/// What must hold even of a task that is only judged.
fn check_positive(t: &Timing) -> Result<()> {
    for (key, value) in [
        ("wcet", t.wcet),
        ("period", t.period),
        ("deadline", t.deadline),
    ] {
        if value.is_zero() {
            return Err(Error::new(format!("the {key} is zero"))
                .at(key)
                .remedy(format!("give a positive {key}")));
        }
    }
    Ok(())
}
