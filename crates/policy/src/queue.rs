//! The ready queue: jobs by key, of which it gives the first, and finds and removes the job of a
//! given task.
//!
//! A key is one `u128`: priority, ties and, in its lowest 32 bits, the task ([`key`]); so keys are
//! unique and a comparison is one instruction pair. Jobs meet in a tournament ([`Tree`]) that is as
//! wide as the queue ever was long: costs are logarithmic in the jobs that are ready, not in the
//! tasks of the set.

use crate::NONE;
use crate::tournament::Tree;
use model::TaskId;

/// A key: smaller `priority` first, then smaller `tie`, then the lower task.
#[inline]
pub const fn key(priority: u64, tie: u32, task: TaskId) -> u128 {
    (priority as u128) << 64 | (tie as u128) << 32 | task.0 as u128
}

/// The task of a key.
#[inline]
pub const fn task_of(key: u128) -> TaskId {
    TaskId(key as u32)
}

/// Is it the key of no job ([`Tree::NEVER`])?
///
/// By its task alone: the compiler would read a whole key at once, and the processor wait until
/// both halves that were written last have arrived in memory.
#[inline(always)]
pub const fn is_nobody(key: u128) -> bool {
    task_of(key).0 == NONE
}

/// Jobs by key, at most one a task. Never allocates after it is made.
#[derive(Clone, Debug)]
pub struct Queue {
    tree: Tree,
    /// Entries of the tree that hold no job.
    free: Vec<u32>,
    /// Which entry of the tree holds the job of each task, or [`NONE`].
    entry_of: Vec<u32>,
}

impl Queue {
    /// An empty queue for this many tasks.
    pub fn new(tasks: usize) -> Self {
        let tree = Tree::with_room(2, tasks);
        let mut free = Vec::with_capacity(tasks.next_multiple_of(4).max(4));
        free.extend((0..tree.width() as u32).rev());
        Queue {
            tree,
            free,
            entry_of: vec![NONE; tasks],
        }
    }

    /// How many jobs.
    #[inline]
    pub fn len(&self) -> usize {
        self.tree.width() - self.free.len()
    }

    /// Are there none?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        is_nobody(self.tree.best())
    }

    /// The smallest key.
    #[inline(always)]
    pub fn peek(&self) -> Option<u128> {
        let best = self.tree.best();
        (!is_nobody(best)).then_some(best)
    }

    /// Is the job of this task in here?
    #[inline]
    pub fn contains(&self, task: TaskId) -> bool {
        self.entry_of[task.index()] != NONE
    }

    /// Puts a job in; the task of the key has none in here yet.
    #[inline]
    pub fn push(&mut self, key: u128) {
        debug_assert!(
            !self.contains(task_of(key)),
            "a task has one ready job at a time"
        );
        let entry = match self.free.pop() {
            Some(entry) => entry,
            None => self.grow(),
        };
        self.tree.set(entry as usize, key);
        self.entry_of[task_of(key).index()] = entry;
    }

    /// Makes room; gives a free entry.
    #[cold]
    fn grow(&mut self) -> u32 {
        let width = self.tree.width() as u32;
        self.tree.grow();
        self.free
            .extend((width + 1..self.tree.width() as u32).rev());
        width
    }

    /// Takes the smallest key out.
    #[inline]
    pub fn pop(&mut self) -> Option<u128> {
        let best = self.peek()?;
        self.remove(task_of(best));
        Some(best)
    }

    /// Takes the smallest key out and puts another one in, whose task has none in here; the queue
    /// is not empty.
    #[inline]
    pub fn replace_first(&mut self, key: u128) {
        let first = task_of(self.tree.best()).index();
        if let Some(entry) = self.entry_of.get_mut(first) {
            let entry = std::mem::replace(entry, NONE);
            self.tree.set(entry as usize, key);
            self.entry_of[task_of(key).index()] = entry;
        }
    }

    /// Takes the job of a task out, if it is in here.
    #[inline]
    pub fn remove(&mut self, task: TaskId) -> bool {
        let entry = std::mem::replace(&mut self.entry_of[task.index()], NONE);
        if entry == NONE {
            return false;
        }
        self.tree.set(entry as usize, Tree::NEVER);
        self.free.push(entry);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_set(
            steps in prop::collection::vec((0u32..30, 0u64..6, 0u8..4), 1..200),
        ) {
            let mut queue = Queue::new(30);
            let mut sorted = BTreeSet::new();
            for (task, priority, what) in steps {
                match what {
                    0 => prop_assert_eq!(queue.pop(), sorted.pop_first()),
                    1 => {
                        let there = sorted.iter().find(|k| task_of(**k).0 == task).copied();
                        if let Some(key) = there {
                            sorted.remove(&key);
                        }
                        prop_assert_eq!(queue.remove(TaskId(task)), there.is_some());
                    }
                    _ if !queue.contains(TaskId(task)) => {
                        let key = key(priority, 7, TaskId(task));
                        queue.push(key);
                        sorted.insert(key);
                    }
                    _ => {}
                }
                prop_assert_eq!(queue.peek(), sorted.first().copied());
                prop_assert_eq!(queue.len(), sorted.len());
            }
        }
    }
}
