//! A sentinel: the thread of a processor that finds out when a program does not want it any more.
//!
//! It has the priority right below that of chosen jobs and may run on its processor only. Where a program was chosen it is woken
//! and then waits for its turn: when that comes, no thread of the program can run, for all of them may run on this
//! processor only. Then the job is over, if the program knows nothing of jobs or has said so. Where no program is chosen it
//! sleeps until its bell rings.

use crate::kernel::{self, Thread};
use crate::team::Team;
use model::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use warmset_task::shared::futex_wait;

const NOBODY: u32 = u32::MAX;

/// Whom a sentinel watches.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The number of the choice, then the task: a task that was taken off and chosen again is another choice.
    word: AtomicU64,
}

impl Default for Watched {
    fn default() -> Self {
        Watched {
            word: AtomicU64::new(u64::from(NOBODY)),
        }
    }
}

impl Watched {
    fn replace(&self, task: u32) {
        // Whoever has the domain's lock does this; sentinels only take the task out.
        let choice = (self.word.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        self.word.store(choice << 32 | u64::from(task), Ordering::Release);
    }

    /// The program of this task was chosen here, and all of its threads are here. The sentinel is to be called then.
    pub fn watch(&self, task: u32) {
        self.replace(task);
    }

    /// Nobody is chosen here any more.
    pub fn forget(&self) {
        self.replace(NOBODY);
    }

    /// If `is_over` of the watched task: it is watched no more, and named.
    fn take(&self, is_over: impl FnOnce(u32) -> bool) -> Option<u32> {
        let word = self.word.load(Ordering::Acquire);
        let task = word as u32;
        if task == NOBODY || !is_over(task) {
            return None;
        }
        let nobody = word | u64::from(NOBODY);
        self.word
            .compare_exchange(word, nobody, Ordering::AcqRel, Ordering::Relaxed)
            .ok()
            .map(|_| task)
    }
}

/// Starts the sentinel of a post.
pub(crate) fn start(team: &Arc<Team>, place: u32) -> Result<JoinHandle<()>> {
    let team = Arc::clone(team);
    let cpu = team.posts[place as usize].cpu;
    std::thread::Builder::new()
        .name(format!("sentinel {cpu}").chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || stand(&team, place))
        .map_err(|e| Error::new(format!("cannot start the sentinel of processor {cpu}: {e}")))
}

fn stand(team: &Team, place: u32) {
    let post = &team.posts[place as usize];
    let Ok(_entry) = team.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    if let Err(e) = thread.pin(post.cpu).and_then(|()| thread.raise(kernel::SENTINEL)) {
        team.fail(Error::new(format!(
            "cannot stand sentinel on processor {}: {e}",
            post.cpu
        )));
        return;
    }
    post.guarded.store(true, Ordering::Release);
    let Some(bell) = team.belfry.bells.bell(post.beat) else {
        team.fail(Error::new(
            "there are more processors than sentinels can be called on",
        ));
        return;
    };
    let watched = &post.watched;
    loop {
        let seen = bell.load(Ordering::Acquire);
        // When its stage has ended, nobody is chosen here by it any more.
        if team.ending.load(Ordering::Acquire) || team.ruling() > post.stage {
            break;
        }
        if let Some(task) = watched.take(|task| team.workers[task as usize].is_over()) {
            team.workers[task as usize].has_finished();
            team.tell_finished(task);
        }
        futex_wait(bell, seen);
    }
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_taken_once_and_only_as_long_as_it_is_chosen() {
        let watched = Watched::default();
        assert_eq!(watched.take(|_| true), None);
        watched.watch(3);
        assert_eq!(watched.take(|task| task != 3), None, "it is not over");
        assert_eq!(watched.take(|task| task == 3), Some(3));
        assert_eq!(watched.take(|_| true), None);
        watched.watch(3);
        watched.forget();
        assert_eq!(watched.take(|_| true), None);
        // Taken off and chosen again while the sentinel was looking.
        watched.watch(3);
        let took = watched.take(|_| {
            watched.forget();
            watched.watch(3);
            true
        });
        assert_eq!(took, None);
        assert_eq!(watched.take(|_| true), Some(3));
    }
}
