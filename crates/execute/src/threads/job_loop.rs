//! The thread that does the jobs of one task.
//!
//! Between jobs it sleeps on a word that counts what it was told to do. When it has done as much,
//! it says so to its domain.

use crate::colored::{self, Provider, Who};
use crate::kernel::{self, Thread};
use crate::remedies::MORE_THREADS;
use crate::threads::host::ThreadTeam;
use crate::threads::panics;
use crate::threads::worker::UNKNOWN;
use model::{Error, TaskId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;
use workload::Work;

/// Starts the worker of a task. It is an ordinary thread at first.
pub(crate) fn start(
    team: &Arc<ThreadTeam>,
    task: TaskId,
    work: Box<dyn Work>,
    provider: Option<Arc<dyn Provider>>,
) -> Result<JoinHandle<()>, Error> {
    let team = Arc::clone(team);
    let name = team.name(task).to_owned();
    let place = format!("task {name}");
    std::thread::Builder::new()
        .name(name.chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || {
            let who = Who::Worker(task);
            colored::on_its_stack(provider.as_ref(), who, || live(&team, task, work));
        })
        .map_err(|e| {
            Error::new(format!("cannot start a thread: {e}"))
                .at(place)
                .remedy(MORE_THREADS)
        })
}

fn live(team: &Arc<ThreadTeam>, task: TaskId, mut work: Box<dyn Work>) {
    panics::lower_on_panic(team, panics::Who::Worker(task));
    let worker = &team.host.worker(task);
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let _gate = worker.gate.attach();
    let thread = Thread::current();
    worker.tid.store(thread.0, Ordering::Release);
    let mut done = 0u32;
    loop {
        while worker.told.load(Ordering::Acquire) == done {
            if team.host.stop.load(Ordering::Acquire) {
                return;
            }
            kernel::futex_wait(&worker.told, done, None);
        }
        worker.began.store(team.now().nanos(), Ordering::Relaxed);
        let number = u64::from(done);
        // What it takes to say that a job is done, and to be told of the next one, is no part of
        // either.
        let before = machine::clock::thread_time();
        if catch_unwind(AssertUnwindSafe(|| work.job(number, &team.host.stop))).is_err() {
            // What it says of itself went to standard error; its memory may be in any state, so it
            // does no more.
            team.fail(panics::of_job(team, task));
            return;
        }
        if team.host.stop.load(Ordering::Acquire) {
            return;
        }
        let after = machine::clock::thread_time();
        worker
            .used
            .store(after.saturating_sub(before).nanos(), Ordering::Relaxed);
        worker
            .misses
            .store(work.misses().unwrap_or(UNKNOWN), Ordering::Relaxed);
        done = done.wrapping_add(1);
        worker.done.store(done, Ordering::Release);
        // Whose domain it is may be changing: either that sees what is done, or this sees whom to
        // tell.
        fence(Ordering::SeqCst);
        team.tell_finished(task);
    }
}
