//! A sentinel: the thread of a processor that finds out when a program does not want it any more.
//!
//! It has the priority right below that of chosen jobs and may run on its processor only. Where a program was chosen it is woken
//! and then waits for its turn: when that comes, no thread of the program can run, for all of them may run on this
//! processor only. Then the job is over, if the program knows nothing of jobs or has said so; if it has not, it waits for something
//! within its job, and those who were preempted by it are kept from taking its place. Where no program is chosen the sentinel sleeps
//! until its bell rings.

use crate::kernel::{self, Thread};
use crate::team::{MORE_THREADS, Team};
use model::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use warmset_task::shared::futex_wait;

const NOBODY: u32 = u32::MAX;

/// What a sentinel sees when its turn comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    /// Nobody is chosen here any more.
    Nobody,
    /// This task's job is over.
    Over(u32),
    /// The job waits for something.
    Still,
}

/// Whom a sentinel watches.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The number of the choice, then the task: a task that was taken off and chosen again is another choice.
    word: AtomicU64,
    /// The choice whose task waits for something within its job, until that is known.
    still: AtomicU64,
}

impl Default for Watched {
    fn default() -> Self {
        Watched {
            word: AtomicU64::new(u64::from(NOBODY)),
            still: AtomicU64::new(u64::from(NOBODY)),
        }
    }
}

impl Watched {
    /// Returns the task that was there.
    fn replace(&self, task: u32) -> u32 {
        // Whoever has the domain's lock does this; sentinels only take the task out.
        let choice = (self.word.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        self.word.swap(choice << 32 | u64::from(task), Ordering::AcqRel) as u32
    }

    /// The program of this task was chosen here, and all of its threads are here. The sentinel is to be called then.
    pub fn watch(&self, task: u32) {
        self.replace(task);
    }

    /// Who was chosen here is not any more. True: its sentinel has taken it before.
    pub fn forget(&self) -> bool {
        self.replace(NOBODY) == NOBODY
    }

    /// Nobody is chosen here.
    pub fn clear(&self) {
        self.replace(NOBODY);
    }

    /// Does the watched task wait for something within its job? Asked once for every time.
    pub fn is_still(&self) -> bool {
        let nobody = u64::from(NOBODY);
        self.still.load(Ordering::Relaxed) != nobody
            && self.still.swap(nobody, Ordering::AcqRel) == self.word.load(Ordering::Relaxed)
    }

    /// If `is_over` of the watched task: it is watched no more, and named.
    fn take(&self, is_over: impl FnOnce(u32) -> bool) -> Seen {
        let word = self.word.load(Ordering::Acquire);
        let task = word as u32;
        if task == NOBODY {
            return Seen::Nobody;
        }
        if !is_over(task) {
            self.still.store(word, Ordering::Release);
            return Seen::Still;
        }
        let nobody = word | u64::from(NOBODY);
        match self
            .word
            .compare_exchange(word, nobody, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => Seen::Over(task),
            Err(_) => Seen::Nobody,
        }
    }
}

/// Starts the sentinel of a post for a stage.
pub(crate) fn start(team: &Arc<Team>, stage: u32, place: u32) -> Result<JoinHandle<()>> {
    let team = Arc::clone(team);
    let cpu = team.posts[place as usize].cpu;
    std::thread::Builder::new()
        .name(format!("sentinel {cpu}").chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || stand(&team, stage, place))
        .map_err(|e| {
            Error::new(format!("cannot start the sentinel of processor {cpu}: {e}")).remedy(MORE_THREADS)
        })
}

fn stand(team: &Team, stage: u32, place: u32) {
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
        if team.ending.load(Ordering::Acquire) || team.ruling() > stage {
            break;
        }
        let mut done = 0;
        let taken = watched.take(|task| {
            let worker = &team.workers[task as usize];
            done = worker.done();
            worker.is_over()
        });
        match taken {
            Seen::Over(task) => {
                team.workers[task as usize].has_finished(done);
                team.tell_finished(task);
            }
            // The processor stays free for it.
            Seen::Still => post.call(),
            Seen::Nobody => {}
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
        assert_eq!(watched.take(|_| true), Seen::Nobody);
        watched.watch(3);
        assert_eq!(watched.take(|task| task == 3), Seen::Over(3));
        assert_eq!(watched.take(|_| true), Seen::Nobody);
        assert!(watched.forget(), "it was taken before");
        watched.watch(3);
        assert!(!watched.forget(), "it was still watched");
        assert_eq!(watched.take(|_| true), Seen::Nobody);
        // Taken off and chosen again while the sentinel was looking.
        watched.watch(3);
        let took = watched.take(|_| {
            watched.forget();
            watched.watch(3);
            true
        });
        assert_eq!(took, Seen::Nobody);
        assert_eq!(watched.take(|_| true), Seen::Over(3));
    }

    #[test]
    fn that_a_job_waits_is_told_once_and_of_that_choice_alone() {
        let watched = Watched::default();
        assert!(!watched.is_still());
        watched.watch(3);
        assert_eq!(watched.take(|_| false), Seen::Still);
        assert!(watched.is_still() && !watched.is_still());
        assert_eq!(watched.take(|_| false), Seen::Still);
        watched.forget();
        watched.watch(3);
        assert!(!watched.is_still(), "another choice");
    }
}
