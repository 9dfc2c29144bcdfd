//! Domains: processors that choose together, by priority, among the jobs that wait for them.
//!
//! The rule that most policies share: in every domain the jobs of highest priority run, and no
//! processor of it idles while a job waits. It is looked at between instants, after everything of
//! an instant has happened. While a decision is being carried out (an overhead is open, an
//! interrupt under way) it may be broken, and on a real machine for as long as the tolerance says;
//! how long it was broken is kept, so that a report can state which tolerance would do.

use crate::state::{Fault, State, Status, nth};
use model::{CpuId, Duration, Instant, TaskId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The priority of a job; the least is the highest. Ties as in DESIGN: the earlier release, then
/// the lower task index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// A class above all deadlines: a static priority.
    pub class: u64,
    /// The absolute deadline that counts.
    pub deadline: Instant,
    /// The release.
    pub release: Instant,
    /// The task.
    pub task: TaskId,
}

/// A job that waits although it should run.
#[derive(Clone, Copy, Debug)]
struct Wronged {
    task: TaskId,
    job: u64,
    since: Instant,
    reported: bool,
}

#[derive(Clone, Debug)]
struct Domain {
    cpus: Vec<CpuId>,
    waiting: BinaryHeap<Reverse<(Key, u32)>>,
    wronged: Option<Wronged>,
    dirty: bool,
    /// A job of it is still on a processor that is not its own any more.
    leaving: bool,
}

/// All domains of a schedule.
#[derive(Clone, Debug)]
pub struct Domains {
    domains: Vec<Domain>,
    /// Per processor, its domain.
    domain_of: Vec<Option<u32>>,
    /// Per processor, the priority of what runs.
    running: Vec<Option<Key>>,
    /// Per task, the number of its latest entry in a queue; older entries are void. Even: it waits;
    /// odd: it does not.
    entry: Vec<u32>,
    dirty: Vec<u32>,
    tolerance: Duration,
    quantum: Option<Duration>,
}

impl Domains {
    /// Domains of these processors, which are disjoint.
    ///
    /// With a quantum, decisions are made at its multiples only, and so is judged.
    pub fn new(
        cpus: Vec<Vec<CpuId>>,
        state: &State,
        tolerance: Duration,
        quantum: Option<Duration>,
    ) -> Self {
        let mut domain_of = vec![None; state.processors.len()];
        for (domain, cpus) in cpus.iter().enumerate() {
            for cpu in cpus {
                if let Some(place) = domain_of.get_mut(cpu.index()) {
                    *place = Some(domain as u32);
                }
            }
        }
        Domains {
            domains: cpus
                .into_iter()
                .map(|cpus| Domain {
                    cpus,
                    waiting: BinaryHeap::new(),
                    wronged: None,
                    dirty: false,
                    leaving: false,
                })
                .collect(),
            domain_of,
            running: vec![None; state.processors.len()],
            entry: vec![1; state.tasks.len()],
            dirty: Vec::new(),
            tolerance,
            quantum: quantum.filter(|q| !q.is_zero()),
        }
    }

    /// The domain of a processor.
    pub fn domain_of(&self, cpu: CpuId) -> Option<u32> {
        self.domain_of.get(cpu.index()).copied().flatten()
    }

    /// Gives the domain other processors: a server that is served elsewhere, or nowhere.
    pub fn move_to(&mut self, domain: u32, cpus: &[CpuId]) {
        let Some(d) = self.domains.get_mut(domain as usize) else {
            return;
        };
        for cpu in std::mem::take(&mut d.cpus) {
            // Another domain may have taken it over already.
            if self.domain_of[cpu.index()] == Some(domain) {
                self.domain_of[cpu.index()] = None;
            }
        }
        for cpu in cpus {
            self.domain_of[cpu.index()] = Some(domain);
        }
        d.cpus.extend_from_slice(cpus);
        self.touch(domain);
    }

    /// Until the next look, a job of this domain is still on a processor that is not its own any
    /// more.
    pub fn leave_behind(&mut self, domain: u32) {
        if let Some(d) = self.domains.get_mut(domain as usize) {
            d.leaving = true;
        }
        self.touch(domain);
    }

    /// Something changed in this domain: look at it at the end of the instant.
    pub fn touch(&mut self, domain: u32) {
        let d = &mut self.domains[domain as usize];
        if !d.dirty {
            d.dirty = true;
            self.dirty.push(domain);
        }
    }

    /// Something changed on this processor that may end a decision.
    pub fn touch_cpu(&mut self, cpu: CpuId) {
        if let Some(domain) = self.domain_of(cpu) {
            self.touch(domain);
        }
    }

    /// A job waits in a domain from now on.
    pub fn wait(&mut self, domain: u32, key: Key) {
        let entry = &mut self.entry[key.task.index()];
        *entry = (*entry | 1).wrapping_add(1);
        let queue = &mut self.domains[domain as usize].waiting;
        if queue.len() > 2 * self.entry.len() + 64 {
            let entries = &self.entry;
            queue.retain(|Reverse((key, entry))| entries[key.task.index()] == *entry);
        }
        queue.push(Reverse((key, self.entry[key.task.index()])));
        self.touch(domain);
    }

    /// The job of this task does not wait any more.
    pub fn leave(&mut self, task: TaskId) {
        let entry = &mut self.entry[task.index()];
        *entry |= 1;
    }

    /// A job runs from now on.
    pub fn run(&mut self, cpu: CpuId, key: Key) {
        self.leave(key.task);
        self.running[cpu.index()] = Some(key);
        self.touch_cpu(cpu);
    }

    /// A processor has no job from now on.
    pub fn stop(&mut self, cpu: CpuId) {
        self.running[cpu.index()] = None;
        self.touch_cpu(cpu);
    }

    /// The job of highest priority that waits in a domain.
    pub fn first_waiting(&mut self, domain: u32) -> Option<Key> {
        let queue = &mut self.domains[domain as usize].waiting;
        while let Some(Reverse((key, entry))) = queue.peek() {
            if self.entry[key.task.index()] == *entry {
                return Some(*key);
            }
            queue.pop();
        }
        None
    }

    /// Everything held still from `from` to `to`: was the rule kept? Breaches longer than the
    /// tolerance go to `faults`, the length of every breach that is over to `lengths`.
    pub fn hold(
        &mut self,
        from: Instant,
        to: Instant,
        state: &State,
        faults: &mut Vec<Fault>,
        lengths: &mut impl FnMut(Duration),
    ) {
        let mut at = 0;
        while at < self.dirty.len() {
            let domain = self.dirty[at];
            if self.judge(domain, from, to, state, faults, lengths) {
                at += 1;
            } else {
                self.domains[domain as usize].dirty = false;
                self.dirty.swap_remove(at);
            }
        }
    }

    /// The processor that should run this waiting job, with what it runs: an empty one, or the one
    /// with the lowest priority. `None`: all run what precedes the job.
    fn worst_of(&self, number: u32, first: Key) -> Option<(CpuId, Option<Key>)> {
        let mut worst: Option<(Key, CpuId)> = None;
        for cpu in &self.domains[number as usize].cpus {
            match self.running[cpu.index()] {
                None => return Some((*cpu, None)),
                Some(key) if worst.is_none_or(|(w, _)| key > w) => worst = Some((key, *cpu)),
                Some(_) => {}
            }
        }
        worst
            .filter(|(key, _)| *key > first)
            .map(|(key, cpu)| (cpu, Some(key)))
    }

    /// Judges one domain; is it to be looked at again although nothing changes?
    fn judge(
        &mut self,
        number: u32,
        from: Instant,
        to: Instant,
        state: &State,
        faults: &mut Vec<Fault>,
        lengths: &mut impl FnMut(Duration),
    ) -> bool {
        let first = self.first_waiting(number);
        let worst = first.and_then(|first| Some((first, self.worst_of(number, first)?)));
        let domain = &mut self.domains[number as usize];
        let Some((first, (cpu, instead))) = worst else {
            if let Some(wronged) = domain.wronged.take() {
                lengths(state.awake(wronged.since, from, domain.cpus.first().copied()));
            }
            return false;
        };
        if std::mem::take(&mut domain.leaving) || is_deciding(domain, first.task, state) {
            // A decision is being carried out; the clock starts when it is over.
            domain.wronged = None;
            return true;
        }
        // The first moment at which it was to be decided.
        let from = match self.quantum {
            Some(quantum) => from
                .nanos()
                .checked_next_multiple_of(quantum.nanos())
                .map_or(to, Instant::from_nanos),
            None => from,
        };
        if from >= to {
            return true;
        }
        let job = state.tasks[first.task.index()]
            .head()
            .map_or(0, |j| j.number);
        let wronged = match &mut domain.wronged {
            Some(w) if (w.task, w.job) == (first.task, job) => w,
            other => {
                if let Some(old) = other.take() {
                    lengths(state.awake(old.since, from, Some(cpu)));
                }
                other.insert(Wronged {
                    task: first.task,
                    job,
                    since: from,
                    reported: false,
                })
            }
        };
        if wronged.reported || to.since(wronged.since) <= self.tolerance {
            return true;
        }
        if state.awake(wronged.since, to, Some(cpu)) > self.tolerance {
            wronged.reported = true;
            let since = wronged.since;
            let who = format!("job {} of task {}", nth(job), first.task.0 + 1);
            faults.push(match instead {
                None => Fault {
                    rule: "work-conserving",
                    text: format!("{who} waits from {since} to {to} while {cpu:?} has no job"),
                },
                Some(key) => Fault {
                    rule: "priority",
                    text: format!(
                        "{who}{} waits from {since} to {to} while {cpu:?} runs task {}{}",
                        by(&first),
                        key.task.0 + 1,
                        by(&key)
                    ),
                },
            });
        }
        true
    }
}

/// Is a decision about this task, or on any processor of its domain, being carried out?
fn is_deciding(domain: &Domain, task: TaskId, state: &State) -> bool {
    let settles = |cpu: CpuId| {
        state
            .processors
            .get(cpu.index())
            .is_some_and(|p| p.is_settling())
    };
    // Where the job comes from: it may still be loaded there, or its release is being handled
    // there.
    let comes_from = match state.tasks[task.index()].status {
        Status::Preempted(cpu) | Status::Suspended(cpu) | Status::Running(cpu) => Some(cpu),
        Status::Fresh => state.tasks[task.index()].head().map(|job| job.cpu),
        Status::Nothing => None,
    };
    comes_from.is_some_and(settles) || domain.cpus.iter().any(|c| settles(*c))
}

/// The deadline that made the priority, if one did.
fn by(key: &Key) -> String {
    match key.deadline {
        Instant::ZERO => String::new(),
        deadline => format!(" (deadline {deadline})"),
    }
}
