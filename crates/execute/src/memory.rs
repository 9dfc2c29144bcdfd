//! A backend in memory with a virtual clock, for tests: deterministic, without rights and without
//! time.
//!
//! A task executes where it was run, at the speed of the clock, and the clock moves when the
//! [`driver`] says so. What a backend must never be told (a task on two processors, two on one, one
//! that another domain owns) is noted as a breach of the contract. Failures of a real machine can
//! be asked for: [`Failure`].

pub(crate) mod driver;
mod machine;
mod tests;

pub(crate) use machine::{Execution, Failure, Machine, Operation};

use crate::backend::{Backend, Choice, Done, Host, Then};
use crate::ids::PostId;
use crate::stage::{DomainSite, ForDomain};
use crate::team::Team;
use model::{CpuId, Duration, Instant, Result, TaskId};
use policy::Place;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the domains of a run in memory share. One thread drives all of them; the lock is never
/// waited for.
pub(crate) struct Virtual(Mutex<Machine>);

impl Virtual {
    pub fn new(machine: Machine) -> Self {
        Virtual(Mutex::new(machine))
    }

    pub fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the backend knows of a task; moves with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryTask {
    owned: bool,
    /// How many pieces of work were told of.
    done: u32,
    /// Is it within a piece of work?
    working: bool,
    called: Option<Instant>,
}

impl Host for Virtual {
    type Task = MemoryTask;

    fn now(&self) -> Instant {
        self.machine().now()
    }

    /// Moves the clock, by the least time that there is.
    fn now_after(&self, before: Instant) -> Instant {
        self.machine().pass_after(before)
    }

    fn call(&self, post: PostId) {
        self.machine().called.insert(post);
    }

    fn expect_decisions(&self, leaders: impl Iterator<Item = PostId>) {
        self.machine().leaders = leaders.collect();
    }

    fn wake_all(&self) {}
}

/// One domain of a run in memory.
pub(crate) struct MemoryBackend {
    team: Arc<Team<Virtual>>,
    /// By place.
    cpus: Vec<CpuId>,
    /// By task.
    tasks: Vec<MemoryTask>,
    here: Place,
}

impl ForDomain for MemoryBackend {
    fn for_domain(site: &DomainSite<'_, Virtual>) -> Self {
        let task = |task: u32| MemoryTask {
            owned: (site.owned)(TaskId(task)),
            done: 0,
            working: false,
            called: None,
        };
        MemoryBackend {
            team: Arc::clone(site.team),
            cpus: site.cpus.to_vec(),
            tasks: (0..site.team.reports.len() as u32).map(task).collect(),
            here: Place(0),
        }
    }
}

impl MemoryBackend {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.team.host.machine()
    }

    /// Notes a breach of the contract if the domain does not own the task.
    fn check_owned(&self, task: TaskId, doing: &str) {
        if !self.tasks[task.index()].owned {
            self.machine()
                .note(format!("{doing} T{} of another domain", task.0 + 1));
        }
    }
}

impl Backend for MemoryBackend {
    type Host = Virtual;

    fn begin_step(&mut self, here: Place) {
        self.here = here;
    }

    fn now(&self) -> Instant {
        self.machine().now()
    }

    fn tend(&mut self) -> Result<()> {
        self.machine().may_fail(Operation::Tend)
    }

    fn run(&mut self, task: TaskId, place: Place, choice: &Choice) -> Result<()> {
        self.check_owned(task, "run");
        let cpu = self.cpus[place.index()];
        let mut machine = self.machine();
        if choice.now > machine.now() {
            machine.note(format!("a choice of T{} in the future", task.0 + 1));
        }
        machine.run(task, cpu);
        machine.may_fail(Operation::Run)
    }

    fn begin_work(&mut self, task: TaskId, place: Place) {
        self.check_owned(task, "begin work of");
        let now = self.now();
        let known = &mut self.tasks[task.index()];
        if std::mem::replace(&mut known.working, true) {
            return;
        }
        if place != self.here {
            known.called = Some(now);
        }
        self.machine().begin_piece(task);
    }

    fn preempt(&mut self, task: TaskId, place: Place, _: Then, _: Instant) -> Result<()> {
        self.check_owned(task, "preempt");
        let mut machine = self.machine();
        machine.preempt(task, self.cpus[place.index()]);
        machine.may_fail(Operation::Preempt)
    }

    fn stop(&mut self, task: TaskId) -> Result<()> {
        self.check_owned(task, "stop");
        let mut machine = self.machine();
        machine.stop(task);
        machine.may_fail(Operation::Stop)
    }

    fn leave_idle(&mut self, place: Place) -> Result<()> {
        let mut machine = self.machine();
        machine.leave_idle(self.cpus[place.index()]);
        machine.may_fail(Operation::LeaveIdle)
    }

    fn executed(&mut self, task: TaskId) -> u64 {
        self.machine().executed(task)
    }

    fn has_done(&self, task: TaskId) -> bool {
        self.machine().done(task) != self.tasks[task.index()].done
    }

    fn take_done(&mut self, task: TaskId, _: Instant) -> Done {
        self.check_owned(task, "take work of");
        let (began, used) = self.machine().latest(task);
        let known = &mut self.tasks[task.index()];
        known.done += 1;
        known.working = false;
        Done {
            began: Some(began),
            called: known.called.take(),
            used: Some(Duration::from_nanos(used)),
        }
    }

    fn retire(&mut self, task: TaskId) -> Result<()> {
        self.check_owned(task, "retire");
        let mut machine = self.machine();
        machine.retire(task);
        machine.may_fail(Operation::Retire)
    }

    fn give(&mut self, task: TaskId) -> MemoryTask {
        self.check_owned(task, "give");
        let mut machine = self.machine();
        if let Some(cpu) = machine.runs_on(task) {
            machine.note(format!("T{} is given away and runs on {cpu}", task.0 + 1));
        }
        drop(machine);
        let known = &mut self.tasks[task.index()];
        known.owned = false;
        *known
    }

    fn take(&mut self, task: TaskId, known: MemoryTask) -> Result<()> {
        if self.tasks[task.index()].owned {
            self.machine()
                .note(format!("T{} is taken twice", task.0 + 1));
        }
        self.tasks[task.index()] = MemoryTask {
            owned: true,
            called: None,
            ..known
        };
        let mut machine = self.machine();
        machine.take(task, &self.cpus);
        machine.may_fail(Operation::Take)
    }
}
