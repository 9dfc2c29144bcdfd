//! A sentinel: the thread of a processor that finds out when a program does not want it any more.
//!
//! It has the priority right below that of chosen jobs and may run on its processor only. Where a
//! program was chosen it is woken and then waits for its turn: when that comes, no thread of the
//! program can run, for all of them may run on this processor only. Then the job is over, if the
//! program knows nothing of jobs or has said so; if it has not, it waits for something within its
//! job, and those who were preempted by it are kept from taking its place. Where no program is
//! chosen the sentinel sleeps until its bell rings.

use crate::ids::PostId;
use crate::kernel::{self, Thread};
use crate::programs::watched::Seen;
use crate::remedies::MORE_THREADS;
use crate::threads::host::ThreadTeam;
use model::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use warmset_task::shared::futex_wait;

/// Starts the sentinel of a post for a stage.
pub(crate) fn start(team: &Arc<ThreadTeam>, stage: u32, post: PostId) -> Result<JoinHandle<()>> {
    let team = Arc::clone(team);
    let cpu = team.posts[post.index()].cpu;
    std::thread::Builder::new()
        .name(format!("sentinel {cpu}").chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || stand(&team, stage, post))
        .map_err(|e| {
            Error::new(format!("cannot start the sentinel of processor {cpu}: {e}"))
                .remedy(MORE_THREADS)
        })
}

fn stand(team: &ThreadTeam, stage: u32, post: PostId) {
    let (of_post, words) = (&team.posts[post.index()], team.host.post(post));
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    if let Err(e) = thread
        .pin(of_post.cpu)
        .and_then(|()| thread.raise(kernel::SENTINEL))
    {
        team.fail(Error::new(format!(
            "cannot stand sentinel on processor {}: {e}",
            of_post.cpu
        )));
        return;
    }
    words.guarded.store(true, Ordering::Release);
    let Some(bell) = team.host.sentinel_bells.page.bell(of_post.slot) else {
        team.fail(Error::new(
            "there are more processors than sentinels can be called on",
        ));
        return;
    };
    let watched = &words.watched;
    loop {
        let seen = bell.load(Ordering::Acquire);
        // When its stage has ended, nobody is chosen here by it any more.
        if team.ending.load(Ordering::Acquire) || team.ruling() > stage {
            break;
        }
        let mut done = 0;
        let taken = watched.take(|task| {
            let worker = &team.host.worker(task);
            done = worker.done();
            worker.is_over()
        });
        match taken {
            Seen::Over(task) => {
                team.host.worker(task).count_done_behind(done);
                team.tell_finished(task);
            }
            // The processor stays free for it.
            Seen::Still => words.call(),
            Seen::Nobody => {}
        }
        futex_wait(bell, seen);
    }
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}
