//! The ready queue: a binary heap of jobs by key that also finds and removes the job of a given task.
//!
//! A key is one `u128`: priority, ties and, in its lowest 32 bits, the task ([`key`]); so keys are unique and a comparison
//! is one instruction pair. Costs are logarithmic in the jobs that are in the heap, not in the tasks of the set.

use crate::NONE;
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

/// Jobs by key, at most one a task. Never allocates after it is made.
#[derive(Clone, Debug)]
pub struct Heap {
    keys: Vec<u128>,
    /// Where the job of each task is in `keys`, or [`NONE`].
    position: Vec<u32>,
}

impl Heap {
    /// An empty heap for this many tasks.
    pub fn new(tasks: usize) -> Self {
        Heap {
            keys: Vec::with_capacity(tasks),
            position: vec![NONE; tasks],
        }
    }

    /// How many jobs.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Are there none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The smallest key.
    #[inline]
    pub fn peek(&self) -> Option<u128> {
        self.keys.first().copied()
    }

    /// Is the job of this task in here?
    #[inline]
    pub fn contains(&self, task: TaskId) -> bool {
        self.position[task.index()] != NONE
    }

    /// Puts a job in; the task of the key has none in here yet.
    #[inline]
    pub fn push(&mut self, key: u128) {
        debug_assert!(!self.contains(task_of(key)), "a task has one ready job at a time");
        let hole = self.keys.len();
        self.keys.push(key);
        self.rise(hole, key);
    }

    /// Takes the smallest key out.
    #[inline]
    pub fn pop(&mut self) -> Option<u128> {
        let top = self.peek()?;
        self.take_at(0);
        Some(top)
    }

    /// Takes the job of a task out, if it is in here.
    pub fn remove(&mut self, task: TaskId) -> Option<u128> {
        let at = self.position[task.index()];
        if at == NONE {
            return None;
        }
        let key = self.keys[at as usize];
        self.take_at(at as usize);
        Some(key)
    }

    #[inline]
    fn take_at(&mut self, hole: usize) {
        self.position[task_of(self.keys[hole]).index()] = NONE;
        let Some(last) = self.keys.pop() else { return };
        if hole == self.keys.len() {
            return;
        }
        // The last job fills the hole, then moves to where it belongs, up or down.
        if hole > 0 && last < self.keys[(hole - 1) / 2] {
            self.rise(hole, last);
        } else {
            self.sink(hole, last);
        }
    }

    #[inline]
    fn rise(&mut self, mut hole: usize, key: u128) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            let other = self.keys[parent];
            if other < key {
                break;
            }
            self.put(hole, other);
            hole = parent;
        }
        self.put(hole, key);
    }

    #[inline]
    fn sink(&mut self, mut hole: usize, key: u128) {
        let len = self.keys.len();
        loop {
            let mut child = 2 * hole + 1;
            if child >= len {
                break;
            }
            if child + 1 < len && self.keys[child + 1] < self.keys[child] {
                child += 1;
            }
            let other = self.keys[child];
            if key < other {
                break;
            }
            self.put(hole, other);
            hole = child;
        }
        self.put(hole, key);
    }

    #[inline]
    fn put(&mut self, at: usize, key: u128) {
        self.keys[at] = key;
        self.position[task_of(key).index()] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_set(steps in prop::collection::vec((0u32..30, 0u64..6, 0u8..4), 1..200)) {
            let mut heap = Heap::new(30);
            let mut sorted = BTreeSet::new();
            for (task, priority, what) in steps {
                match what {
                    0 => prop_assert_eq!(heap.pop(), sorted.pop_first()),
                    1 => {
                        let there = sorted.iter().find(|k| task_of(**k).0 == task).copied();
                        if let Some(key) = there {
                            sorted.remove(&key);
                        }
                        prop_assert_eq!(heap.remove(TaskId(task)), there);
                    }
                    _ if !heap.contains(TaskId(task)) => {
                        let key = key(priority, 7, TaskId(task));
                        heap.push(key);
                        sorted.insert(key);
                    }
                    _ => {}
                }
                prop_assert_eq!(heap.peek(), sorted.first().copied());
                prop_assert_eq!(heap.len(), sorted.len());
            }
        }
    }
}
