//! Quantum-driven policies: PD² (002 §2.2.2) and the cache-aware scheduler (003 §3.1), judged at every quantum boundary.
//!
//! At a boundary the state is complete: everything of that instant has happened. Between boundaries nobody starts. Both rules
//! are exact for simulated traces without overheads; where decisions take time only the windows of PD² are checked, with
//! the tolerance, and the report says so.

use crate::check::{Found, Rule};
use crate::event::{Event, EventKind};
use crate::state::{Fault, State, Status, nth};
use model::{Duration, Instant, Ratio, TaskId, TaskSet};

/// More quanta without an event than any schedule has.
const MOST_QUANTA: u64 = 10_000_000;

/// What is judged at a boundary.
pub enum Law {
    /// PD².
    Fair(Fair),
    /// The cache-aware scheduler.
    CacheAware(CacheAware),
}

/// The rule of a quantum-driven policy.
pub struct Quanta {
    law: Law,
    quantum: u64,
    tolerance: Duration,
    overheads: bool,
    noted: bool,
}

impl Quanta {
    /// With quanta of this length, which is not zero.
    pub fn new(law: Law, quantum: Duration, tolerance: Duration) -> Self {
        Quanta {
            law,
            quantum: quantum.nanos().max(1),
            tolerance,
            overheads: false,
            noted: false,
        }
    }
}

impl Rule for Quanta {
    fn begin(&mut self, _: &State) {}

    fn event(&mut self, event: &Event, state: &State, found: &mut Found) {
        self.overheads |= event.kind == EventKind::OverheadBegin;
        let exact = state.is_simulated() && !self.overheads;
        if !exact && !self.noted {
            self.noted = true;
            found.notes.push(
                "decisions take time in this trace: who is chosen at a quantum boundary was not checked, only that \
                 nothing runs before its window"
                    .to_owned(),
            );
        }
        if exact && event.kind.puts_on() && !event.time.nanos().is_multiple_of(self.quantum) {
            found.faults.push(Fault {
                rule: "quantum",
                text: format!("task {} is put on within a quantum", event.task.0 + 1),
            });
        }
        match (&mut self.law, event.kind) {
            (Law::Fair(fair), EventKind::Completion) => fair.done(event.task),
            (Law::CacheAware(aware), EventKind::Completion) => aware.done(event.task),
            (Law::Fair(fair), kind) if kind.puts_on() && !exact => {
                fair.window(event, self.quantum, self.tolerance, state, found);
            }
            _ => {}
        }
    }

    fn hold(&mut self, from: Instant, to: Instant, state: &State, found: &mut Found) {
        if self.overheads || !state.is_simulated() {
            return;
        }
        let mut slot = from.nanos().div_ceil(self.quantum);
        // Between two events of a schedule that goes on lie no more quanta than a period has; a damaged time must not take years.
        if (to.nanos() / self.quantum).saturating_sub(slot) > MOST_QUANTA
            && state.tasks.iter().any(|t| t.status != Status::Nothing)
        {
            found.faults.push(Fault {
                rule: "quantum",
                text: format!("nothing happens from {from} to {to} although jobs are pending"),
            });
            return;
        }
        while slot.checked_mul(self.quantum).is_some_and(|at| at < to.nanos()) {
            if state.tasks.iter().all(|t| t.status == Status::Nothing) {
                return;
            }
            match &mut self.law {
                Law::Fair(fair) => fair.judge(slot, self.quantum, state, found),
                Law::CacheAware(aware) => aware.judge(slot, self.quantum, state, found),
            }
            slot += 1;
        }
    }
}

/// PD²: subtask i (from 1) of a job of e quanta in p runs in [⌊(i − 1) p / e⌋, ⌈i p / e⌉) after the release; of those whose
/// window is open the ones with the earliest end run, ties by overlap with the next window, then by the later group deadline.
pub struct Fair {
    /// Per task, e and p in quanta.
    weights: Vec<(u64, u64)>,
    /// Per task, how many quanta its job has had.
    had: Vec<u64>,
    /// Do all weights fit on the processors, so that every window is kept?
    feasible: bool,
    processors: usize,
}

impl Fair {
    /// Of a set whose WCETs are rounded up to quanta.
    pub fn new(set: &TaskSet, quantum: Duration, processors: usize) -> Self {
        let q = quantum.nanos().max(1);
        let weights: Vec<(u64, u64)> = set
            .timings()
            .iter()
            .map(|t| (t.wcet.nanos().div_ceil(q), (t.period.nanos() / q).max(1)))
            .collect();
        let all = weights.iter().filter_map(|(e, p)| Ratio::new(*e, *p));
        Fair {
            had: vec![0; weights.len()],
            feasible: model::exact::cmp_sum(all, Ratio::whole(processors as u64)).is_le(),
            weights,
            processors,
        }
    }

    fn done(&mut self, task: TaskId) {
        self.had[task.index()] = 0;
    }

    /// When the window of subtask `i` opens and closes, in quanta after the release.
    fn bounds(&self, task: usize, i: u64) -> (u128, u128) {
        let (e, p) = (u128::from(self.weights[task].0), u128::from(self.weights[task].1));
        let i = u128::from(i);
        ((i - 1) * p / e, (i * p).div_ceil(e))
    }

    /// The end of the chain of windows of which each must follow at once when the one before runs in its last quantum, in
    /// quanta after the release; straight from the definition, window by window. Zero for light tasks.
    fn group(&self, task: usize, i: u64) -> u128 {
        let (e, p) = self.weights[task];
        if u128::from(e) * 2 < u128::from(p) || e >= p {
            return 0;
        }
        let mut i = i;
        loop {
            let (_, end) = self.bounds(task, i);
            let (next, next_end) = self.bounds(task, i + 1);
            // It ends where the windows do not overlap, or where the next one has room.
            if next >= end {
                return end;
            }
            if next_end - next > 2 {
                return next_end - 1;
            }
            i += 1;
        }
    }

    /// The less, the higher.
    fn priority(&self, task: usize, base: u64) -> (u128, bool, std::cmp::Reverse<u128>) {
        let i = self.had[task] + 1;
        let (_, end) = self.bounds(task, i);
        let (next, _) = self.bounds(task, i + 1);
        let base = u128::from(base);
        // Group deadlines decide among windows that overlap the next only.
        let group = match self.group(task, i) {
            group if group > 0 && next < end => base + group,
            _ => 0,
        };
        (base + end, next >= end, std::cmp::Reverse(group))
    }

    /// The first quantum that counts for a job.
    fn base(release: Instant, quantum: u64) -> u64 {
        release.nanos().div_ceil(quantum)
    }

    fn judge(&mut self, slot: u64, quantum: u64, state: &State, found: &mut Found) {
        let (mut worst, mut best, mut running) = (None, None, 0);
        for (index, task) in state.tasks.iter().enumerate() {
            let Some(job) = task.head() else { continue };
            let base = Self::base(job.release, quantum);
            let (opens, closes) = self.bounds(index, self.had[index] + 1);
            let is_open = u128::from(base) + opens <= u128::from(slot);
            let runs = matches!(task.status, Status::Running(_));
            let who = || {
                format!(
                    "quantum {} of job {} of task {}",
                    self.had[index] + 1,
                    nth(job.number),
                    index + 1
                )
            };
            if runs && !is_open {
                found.faults.push(Fault {
                    rule: "window",
                    text: format!("{} runs in slot {slot}, before its window opens", who()),
                });
            }
            if runs && self.feasible && u128::from(slot) >= u128::from(base) + closes {
                found.faults.push(Fault {
                    rule: "window",
                    text: format!("{} runs in slot {slot}, after its window", who()),
                });
            }
            if !is_open {
                continue;
            }
            let priority = self.priority(index, base);
            if runs {
                running += 1;
                if worst.is_none_or(|(w, _)| priority > w) {
                    worst = Some((priority, index));
                }
            } else if task.is_waiting() && best.is_none_or(|(b, _)| priority < b) {
                best = Some((priority, index));
            }
        }
        if let Some((priority, waits)) = best {
            if running < self.processors {
                found.faults.push(Fault {
                    rule: "work-conserving",
                    text: format!(
                        "task {} waits in slot {slot} while a processor has no job",
                        waits + 1
                    ),
                });
            } else if let Some((w, runs)) = worst
                && priority < w
            {
                found.faults.push(Fault {
                    rule: "priority",
                    text: format!(
                        "task {} waits in slot {slot} while task {} runs",
                        waits + 1,
                        runs + 1
                    ),
                });
            }
        }
        for (index, task) in state.tasks.iter().enumerate() {
            if matches!(task.status, Status::Running(_)) {
                self.had[index] += 1;
            }
        }
    }

    /// Where decisions take time: no job is put on before the window of the quantum that it has reached.
    fn window(&mut self, event: &Event, quantum: u64, tolerance: Duration, state: &State, found: &mut Found) {
        let task = &state.tasks[event.task.index()];
        let Some(job) = task.head() else { return };
        let i = task.executed.nanos() / quantum + 1;
        let (opens, _) = self.bounds(event.task.index(), i.min(self.weights[event.task.index()].0));
        let opens = (u128::from(Self::base(job.release, quantum)) + opens) * u128::from(quantum);
        if u128::from(event.time.nanos()) + u128::from(tolerance.nanos()) < opens {
            found.faults.push(Fault {
                rule: "window",
                text: format!(
                    "task {} runs before the window of its quantum {i}",
                    event.task.0 + 1
                ),
            });
        }
    }
}

/// The cache-aware scheduler: tardy jobs first by deadline; then jobs promoted before, in that order; then the smallest working
/// set. A processor may be left idle, on purpose, only if the next job would push the working sets of the quantum beyond
/// the cache, and no more often than the spare utilization allows.
pub struct CacheAware {
    cache: u64,
    /// Per task, its multithreaded task; per multithreaded task, its working set size.
    group_of: Vec<usize>,
    wss: Vec<u64>,
    /// Per task, the slot in which its job was promoted.
    promoted: Vec<Option<u64>>,
    processors: u64,
    /// Total utilization, as total execution over `hyper`, rounded down: per task e / p in units of 2^-40.
    spare: u128,
    longest: u64,
    /// Processors left idle so far, in quanta.
    idled: u64,
}

/// In which order jobs are chosen; ties are anybody's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// By deadline; ties as everywhere.
    Tardy(Instant, Instant, usize),
    /// By the slot of the promotion.
    Promoted(u64),
    /// By working set size.
    Size(u64),
}

/// A ready job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: Rank,
    /// It does not run.
    waits: bool,
    task: usize,
}

impl Candidate {
    fn is_tardy(&self) -> bool {
        matches!(self.rank, Rank::Tardy(..))
    }
}

impl CacheAware {
    /// Of a set whose tasks all have a working set size; tasks of one group are one multithreaded task.
    pub fn new(set: &TaskSet, cache: u64, quantum: Duration, processors: usize) -> Self {
        let mut names: Vec<String> = Vec::new();
        let (mut group_of, mut wss) = (Vec::new(), Vec::new());
        for id in set.ids() {
            // A task without a group is a group of its own; its name cannot be one of a group's.
            let name = match set.details(id).and_then(|d| d.group.clone()) {
                Some(group) => format!("group {group}"),
                None => format!("task {}", id.0),
            };
            let place = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                wss.push(set.wss(id).map_or(0, |w| w.get()));
                names.len() - 1
            });
            group_of.push(place);
        }
        // Rounded up, so that the bound is never too strict.
        let used: u128 = set
            .timings()
            .iter()
            .map(|t| (u128::from(t.wcet.nanos()) << 40) / u128::from(t.period.nanos().max(1)))
            .sum();
        let q = quantum.nanos().max(1);
        let longest = set.timings().iter().map(|t| t.period.nanos().div_ceil(q)).max();
        CacheAware {
            cache,
            promoted: vec![None; group_of.len()],
            group_of,
            wss,
            processors: processors as u64,
            spare: ((processors as u128) << 40).saturating_sub(used),
            longest: longest.unwrap_or(1),
            idled: 0,
        }
    }

    fn done(&mut self, task: TaskId) {
        self.promoted[task.index()] = None;
    }

    fn judge(&mut self, slot: u64, quantum: u64, state: &State, found: &mut Found) {
        let now = Instant::from_nanos(slot.saturating_mul(quantum));
        // Ready jobs in the order in which they are to be chosen.
        let mut ready: Vec<Candidate> = state
            .tasks
            .iter()
            .enumerate()
            .filter_map(|(task, t)| {
                let job = t.head()?;
                let runs = matches!(t.status, Status::Running(_));
                if !runs && !t.is_waiting() {
                    return None;
                }
                let rank = match (job.deadline <= now, self.promoted[task]) {
                    (true, _) => Rank::Tardy(job.deadline, job.release, task),
                    (false, Some(slot)) => Rank::Promoted(slot),
                    (false, None) => Rank::Size(self.wss[self.group_of[task]]),
                };
                Some(Candidate {
                    rank,
                    waits: !runs,
                    task,
                })
            })
            .collect();
        ready.sort_unstable();
        let chosen = ready.iter().filter(|r| !r.waits).count();
        // Those that run are the first in that order.
        if let Some(skipped) = ready[..chosen].iter().find(|r| r.waits)
            && let Some(instead) = ready[chosen..].iter().find(|r| !r.waits)
        {
            found.faults.push(Fault {
                rule: "priority",
                text: format!(
                    "task {} waits in slot {slot} while task {}, which comes after it, runs",
                    skipped.task + 1,
                    instead.task + 1
                ),
            });
        }
        let mut utilized: Vec<usize> = ready[..chosen].iter().map(|r| self.group_of[r.task]).collect();
        utilized.sort_unstable();
        utilized.dedup();
        let total = |groups: &[usize]| {
            groups
                .iter()
                .fold(0_u64, |sum, g| sum.saturating_add(self.wss[*g]))
        };
        let idle = self.processors.saturating_sub(chosen as u64);
        let waiting = ready.get(chosen).filter(|r| r.waits);
        let declared = |state: &State| {
            let idle = state.processors.iter().filter_map(|p| p.idle);
            idle.filter(|f| f.has(crate::Flags::DELIBERATE)).count() as u64
        };
        if let (Some(next), true) = (waiting, idle > 0) {
            // Of several that could be next, one that does not fit is reason enough.
            let too_much = ready[chosen..].iter().any(|r| {
                let group = self.group_of[r.task];
                let more = if utilized.contains(&group) {
                    0
                } else {
                    self.wss[group]
                };
                r.rank == next.rank && total(&utilized).saturating_add(more) > self.cache
            });
            if next.is_tardy() || !too_much {
                found.faults.push(Fault {
                    rule: "work-conserving",
                    text: format!(
                        "task {} waits in slot {slot} while a processor idles, although the cache has room for it",
                        next.task + 1
                    ),
                });
            }
            if declared(state) < idle {
                found.faults.push(Fault {
                    rule: "idle",
                    text: format!("a processor idles in slot {slot} with jobs ready, and does not say that it does so on purpose"),
                });
            }
            self.idled += idle;
            // A phantom task of utilization u idles at most u · (t + one period) in t.
            let time = u128::from(slot) + 1 + u128::from(self.longest);
            if u128::from(self.idled) << 40 > self.spare.saturating_add(state.tasks.len() as u128) * time {
                found.faults.push(Fault {
                    rule: "phantom",
                    text: format!(
                        "processors were left idle for {} quanta by slot {slot}, more than the spare utilization allows",
                        self.idled
                    ),
                });
            }
        }
        // Beyond the cache only if no processor could be left idle for it: never while a whole one is to spare.
        let spare = (self.spare >> 40) as u64;
        let non_tardy = ready[..chosen].iter().any(|r| !r.is_tardy());
        if total(&utilized) > self.cache && non_tardy && idle < spare && self.fits_alone(&ready[..chosen]) {
            found.faults.push(Fault {
                rule: "cache",
                text: format!(
                    "the working sets of slot {slot} exceed the cache, although {spare} processors are to spare"
                ),
            });
        }
        for candidate in ready.into_iter().take(chosen) {
            if !candidate.is_tardy() && !candidate.waits {
                self.promoted[candidate.task].get_or_insert(slot);
            }
        }
    }

    /// Did the last job, which was not tardy, break the limit that the others kept?
    fn fits_alone(&self, chosen: &[Candidate]) -> bool {
        let mut groups: Vec<usize> = chosen
            .iter()
            .rev()
            .skip(1)
            .map(|r| self.group_of[r.task])
            .collect();
        groups.sort_unstable();
        groups.dedup();
        let before = groups
            .iter()
            .fold(0_u64, |sum, g| sum.saturating_add(self.wss[*g]));
        before <= self.cache
    }
}
