//! A panic of a job or of a policy: the run ends at once, and what the thread says of itself it
//! says as an ordinary one.
//!
//! To say it takes long, with a backtrace above all, and cold files are read for it: not in the
//! place of everything else on the processor.

use crate::kernel::Thread;
use crate::threads::host::ThreadTeam;
use model::{Error, TaskId};
use std::cell::RefCell;
use std::sync::{Arc, Once};

/// Who may panic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// The worker of this task.
    Worker(TaskId),
    /// The dispatcher with this slot of the watchdog's board.
    Dispatcher(u32),
}

thread_local! {
    /// The run that this thread works for, and as whom.
    static WORKS_FOR: RefCell<Option<(Arc<ThreadTeam>, Who)>> = const { RefCell::new(None) };
}

/// From now on the calling thread becomes an ordinary one, and ends its run, before it says
/// anything of a panic.
pub(crate) fn lower_on_panic(team: &Arc<ThreadTeam>, who: Who) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            WORKS_FOR.with_borrow(|works_for| {
                if let Some((team, who)) = works_for {
                    // Where that is refused, the watchdog ends the run.
                    let _ = Thread::current().lower();
                    if let Who::Dispatcher(slot) = who {
                        // Nobody decides in its place: all are ordinary threads from here on, so
                        // that it gets to let go of its domain. The watchdog does not miss it.
                        team.host.board.rest(*slot as usize);
                        team.host.board.lower_all();
                    }
                    team.fail(told(team, *who));
                }
            });
            say(panic);
        }));
    });
    WORKS_FOR.set(Some((Arc::clone(team), who)));
}

/// What a panic is told as.
fn told(team: &ThreadTeam, who: Who) -> Error {
    match who {
        Who::Worker(task) => of_job(team, task),
        Who::Dispatcher(_) => {
            Error::new("the policy panicked").remedy("report it, with the task set")
        }
    }
}

/// What a panic of a worker's job is told as.
pub(crate) fn of_job(team: &ThreadTeam, task: TaskId) -> Error {
    let number = u64::from(team.host.worker(task).done()) + 1;
    Error::new(format!("job {number} panicked"))
        .at(format!("task {}", team.name(task)))
        .remedy("correct its workload")
}
