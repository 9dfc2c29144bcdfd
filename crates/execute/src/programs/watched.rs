//! The program that a sentinel watches, shared with the dispatchers that choose it.

use model::TaskId;
use std::sync::atomic::{AtomicU64, Ordering};

const NOBODY: u32 = u32::MAX;

/// What a sentinel sees when its turn comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// Nobody is chosen here any more.
    Nobody,
    /// This task's job is over.
    Over(TaskId),
    /// The job waits for something.
    Still,
}

/// Whom a sentinel watches.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The number of the choice, then the task: a task that was taken off and chosen again is
    /// another choice.
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
        self.word
            .swap(choice << 32 | u64::from(task), Ordering::AcqRel) as u32
    }

    /// The program of this task was chosen here, and all of its threads are here. The sentinel is
    /// to be called then.
    pub fn watch(&self, task: TaskId) {
        self.replace(task.0);
    }

    /// Who was chosen here is not any more. True: its sentinel has taken it before.
    pub fn forget(&self) -> bool {
        self.replace(NOBODY) == NOBODY
    }

    /// Nobody is chosen here.
    pub fn clear(&self) {
        self.replace(NOBODY);
    }

    /// Does the watched task wait for something within its job? Answers yes once for each time.
    pub fn take_still(&self) -> bool {
        let nobody = u64::from(NOBODY);
        self.still.load(Ordering::Relaxed) != nobody
            && self.still.swap(nobody, Ordering::AcqRel) == self.word.load(Ordering::Relaxed)
    }

    /// If `is_over` of the watched task: it is watched no more, and named.
    pub fn take(&self, is_over: impl FnOnce(TaskId) -> bool) -> Seen {
        let word = self.word.load(Ordering::Acquire);
        let task = word as u32;
        if task == NOBODY {
            return Seen::Nobody;
        }
        if !is_over(TaskId(task)) {
            self.still.store(word, Ordering::Release);
            return Seen::Still;
        }
        let nobody = word | u64::from(NOBODY);
        match self
            .word
            .compare_exchange(word, nobody, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => Seen::Over(TaskId(task)),
            Err(_) => Seen::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_taken_once_and_only_as_long_as_it_is_chosen() {
        let watched = Watched::default();
        assert_eq!(watched.take(|_| true), Seen::Nobody);
        watched.watch(TaskId(3));
        assert_eq!(
            watched.take(|task| task == TaskId(3)),
            Seen::Over(TaskId(3))
        );
        assert_eq!(watched.take(|_| true), Seen::Nobody);
        assert!(watched.forget(), "it was taken before");
        watched.watch(TaskId(3));
        assert!(!watched.forget(), "it was still watched");
        assert_eq!(watched.take(|_| true), Seen::Nobody);
        // Taken off and chosen again while the sentinel was looking.
        watched.watch(TaskId(3));
        let took = watched.take(|_| {
            watched.forget();
            watched.watch(TaskId(3));
            true
        });
        assert_eq!(took, Seen::Nobody);
        assert_eq!(watched.take(|_| true), Seen::Over(TaskId(3)));
    }

    #[test]
    fn that_a_job_waits_is_told_once_and_of_that_choice_alone() {
        let watched = Watched::default();
        assert!(!watched.take_still());
        watched.watch(TaskId(3));
        assert_eq!(watched.take(|_| false), Seen::Still);
        assert!(watched.take_still() && !watched.take_still());
        assert_eq!(watched.take(|_| false), Seen::Still);
        watched.forget();
        watched.watch(TaskId(3));
        assert!(!watched.take_still(), "another choice");
    }
}
