//! What the keeper of programs needs of the run that they belong to, whichever engine carries it
//! out.

use crate::backend::Host;
use crate::programs::pages::SentinelBells;
use crate::programs::program::Program;
use crate::threads::host::ThreadTeam;
use crate::watchdog::BoardRef;
use model::{CpuId, Error, Instant, TaskId};
use std::sync::Mutex;

/// A run that has programs.
pub(crate) trait Run {
    /// The watchdog's, who knows their processes.
    fn board(&self) -> &BoardRef;
    /// Where a program that has done a job rings.
    fn bells(&self) -> &SentinelBells;
    /// Rings all of them: somebody has gone who would have.
    fn ring_all(&self);
    /// The first processes of best-effort programs, which others wait for. Locked while one is
    /// started.
    fn hired(&self) -> &Mutex<Vec<i32>>;
    /// The name of a task.
    fn name(&self, task: TaskId) -> &str;
    /// The program that does the jobs of a task, if one does and is there.
    fn program(&self, task: TaskId) -> Option<&Program>;
    /// From now on this program does the jobs of a task.
    fn perform(&self, task: TaskId, program: Program);
    /// The processor on which programs are before the run; `None`: wherever the kernel puts them.
    fn first_cpu(&self) -> Option<CpuId>;
    /// The time of the run; zero before it has begun.
    fn now(&self) -> Instant;
    /// Somebody was born into the program of a task.
    fn tidy(&self, task: TaskId);
    /// The run cannot go on.
    fn fail(&self, error: Error);
    /// Why it cannot, if so.
    fn fault(&self) -> Option<&Error>;
}

impl Run for ThreadTeam {
    fn board(&self) -> &BoardRef {
        &self.host.board
    }
    fn bells(&self) -> &SentinelBells {
        &self.host.sentinel_bells
    }
    fn ring_all(&self) {
        self.host.wake_all();
    }
    fn hired(&self) -> &Mutex<Vec<i32>> {
        &self.host.hired
    }
    fn name(&self, task: TaskId) -> &str {
        ThreadTeam::name(self, task)
    }
    fn program(&self, task: TaskId) -> Option<&Program> {
        self.host.worker(task).program()
    }
    fn perform(&self, task: TaskId, program: Program) {
        self.host.worker(task).perform(program);
    }
    fn first_cpu(&self) -> Option<CpuId> {
        self.posts.first().map(|post| post.cpu)
    }
    fn now(&self) -> Instant {
        ThreadTeam::now(self)
    }
    fn tidy(&self, task: TaskId) {
        ThreadTeam::tidy(self, task);
    }
    fn fail(&self, error: Error) {
        ThreadTeam::fail(self, error);
    }
    fn fault(&self) -> Option<&Error> {
        ThreadTeam::fault(self)
    }
}
