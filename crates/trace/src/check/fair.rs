//! Who runs in a quantum under PD² (002 §2.2.2 and reference [7] there), from the definition.
//!
//! Subtask i (from 1) of a job of e quanta in p may run in [⌊(i − 1) p / e⌋, ⌈i p / e⌉) after the
//! release. Of the subtasks whose window is open those with the earliest end run; of equal ones
//! those that overlap the next window (b-bit), then those with the later group deadline; then, as
//! the policy promises, the lower task index. A job that needs more than e quanta, as decisions
//! take time of them, goes on with windows of the same formula.
//!
//! Assumes periods of whole quanta, as the policy does; WCETs are rounded up to quanta.

use crate::check::quanta::{Choice, Law, Slot};
use crate::state::{Fault, State, Status, nth};
use model::{Duration, Instant, Ratio, TaskId, Timing};
use std::cmp::Reverse;

/// PD².
pub struct Fair {
    /// Per task, e and p in quanta.
    weights: Vec<(u64, u64)>,
    /// Per task, how many quanta its job was chosen for.
    had: Vec<u64>,
    /// Per task, the last window of the chain that it is in, and where the chain ends, in quanta
    /// after the release.
    chain: Vec<(u64, u128)>,
    quantum: u64,
    processors: usize,
    /// Do all weights fit on the processors, and did no job want more, so that every window is
    /// kept?
    feasible: bool,
}

/// The less, the higher: the end of the window, no overlap with the next, later group deadline,
/// task.
type Priority = (u128, bool, Reverse<u128>, usize);

/// Windows of one chain that are walked; where it is longer, the formula of the literature says
/// where it ends.
const LONGEST_WALK: u64 = 1 << 12;

impl Fair {
    /// Of tasks whose WCETs, or what is reserved for them, are rounded up to quanta.
    pub fn new(timings: &[Timing], quantum: Duration, processors: usize) -> Self {
        let q = quantum.nanos().max(1);
        let weights: Vec<(u64, u64)> = timings
            .iter()
            .map(|t| (t.wcet.nanos().div_ceil(q), (t.period.nanos() / q).max(1)))
            .collect();
        let all = weights.iter().filter_map(|(e, p)| Ratio::new(*e, *p));
        Fair {
            had: vec![0; weights.len()],
            chain: vec![(0, 0); weights.len()],
            feasible: model::exact::cmp_sum(all, Ratio::whole(processors as u64)).is_le(),
            weights,
            quantum: q,
            processors,
        }
    }

    /// When the window of subtask `i` opens and closes, in quanta after the release.
    fn bounds(&self, task: usize, i: u64) -> (u128, u128) {
        let (e, p) = (
            u128::from(self.weights[task].0),
            u128::from(self.weights[task].1),
        );
        let i = u128::from(i);
        ((i - 1) * p / e, (i * p).div_ceil(e))
    }

    /// The end of the chain of windows of which each must follow at once when the one before runs
    /// in its last quantum, in quanta after the release; straight from the definition, window by
    /// window. Zero for light tasks.
    fn group(&mut self, task: usize, i: u64) -> u128 {
        let (e, p) = self.weights[task];
        if u128::from(e) * 2 < u128::from(p) || e >= p {
            return 0;
        }
        if i > self.chain[task].0 {
            self.chain[task] = self.walk(task, i);
        }
        self.chain[task].1
    }

    /// The last window of the chain of window `i`, and where the chain ends.
    fn walk(&self, task: usize, i: u64) -> (u64, u128) {
        for i in i..i.saturating_add(LONGEST_WALK) {
            let (_, end) = self.bounds(task, i);
            let (next, next_end) = self.bounds(task, i + 1);
            // It ends where the windows do not overlap, or where the next one has room.
            if next >= end {
                return (i, end);
            }
            if next_end - next > 2 {
                return (i, next_end - 1);
            }
        }
        let (e, p) = (
            u128::from(self.weights[task].0),
            u128::from(self.weights[task].1),
        );
        let (_, end) = self.bounds(task, i);
        (i, ((end * (p - e)).div_ceil(p) * p).div_ceil(p - e))
    }

    fn priority(&mut self, task: usize, base: u64) -> Priority {
        let i = self.had[task] + 1;
        let (_, end) = self.bounds(task, i);
        let (next, _) = self.bounds(task, i + 1);
        let base = u128::from(base);
        // Group deadlines decide among windows that overlap the next only.
        let group = match self.group(task, i) {
            group if group > 0 && next < end => base + group,
            _ => 0,
        };
        (base + end, next >= end, Reverse(group), task)
    }

    /// The first quantum that counts for a job.
    fn base(&self, release: Instant) -> u64 {
        release.nanos().div_ceil(self.quantum)
    }
}

impl Law for Fair {
    fn choose(&mut self, slot: Slot, state: &State) -> Choice {
        let mut open: Vec<Priority> = Vec::new();
        for (task, now) in state.tasks.iter().enumerate() {
            let ready = now.is_waiting() || matches!(now.status, Status::Running(_));
            let Some(job) = now.head().filter(|_| ready) else {
                continue;
            };
            let base = self.base(job.release);
            let (opens, _) = self.bounds(task, self.had[task] + 1);
            if u128::from(base) + opens <= u128::from(slot.number) {
                open.push(self.priority(task, base));
            }
        }
        open.sort_unstable();
        open.truncate(self.processors);
        let tasks: Vec<usize> = open.into_iter().map(|(.., task)| task).collect();
        for task in &tasks {
            self.had[*task] += 1;
            // One that overruns takes what others are promised.
            self.feasible &= self.had[*task] <= self.weights[*task].0;
        }
        Choice { tasks, idle: 0 }
    }

    fn done(&mut self, task: TaskId) {
        self.had[task.index()] = 0;
        self.chain[task.index()] = (0, 0);
    }

    fn objection(&self, slot: Slot, task: usize, state: &State) -> Option<Fault> {
        let job = state.tasks[task].head()?;
        let i = self.had[task] + 1;
        let opens = u128::from(self.base(job.release)) + self.bounds(task, i).0;
        (opens > u128::from(slot.number)).then(|| Fault {
            rule: "window",
            text: format!(
                "quantum {i} of job {} of task {} runs in slot {}, before its window opens",
                nth(job.number),
                task + 1,
                slot.number
            ),
        })
    }

    fn lateness(&self, slot: Slot, task: usize, state: &State) -> Option<Fault> {
        let job = state.tasks[task].head()?;
        let i = self.had[task];
        let closes = u128::from(self.base(job.release)) + self.bounds(task, i.max(1)).1;
        (self.feasible && u128::from(slot.number) >= closes).then(|| Fault {
            rule: "window",
            text: format!(
                "quantum {i} of job {} of task {} runs in slot {}, after its window",
                nth(job.number),
                task + 1,
                slot.number
            ),
        })
    }
}
