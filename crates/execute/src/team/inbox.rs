//! What a domain has to look at: mail from other domains, finished tasks, triggers.

use crate::ids::{InboxId, PostId};
use crate::task_state::Moving;
use model::{Instant, TaskId};
use policy::NONE;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// From one domain to another. `T`: what the backend knows of a task.
#[derive(Debug)]
pub(crate) enum Mail<T> {
    /// The task is yours from now on; its job, or a part of it, becomes ready at `at`.
    Task {
        task: TaskId,
        state: Moving,
        known: T,
        at: Instant,
    },
    /// Release job `number` of the task.
    Release { task: TaskId, number: u64 },
}

/// What a domain has to look at. Its mail alone is locked, and only dispatchers take that lock.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Inbox<T> {
    /// The dispatcher that looks after timers: that of the domain's first place.
    pub leader: PostId,
    mail: Mutex<Vec<Mail<T>>>,
    has_mail: AtomicBool,
    /// Is a release asked for that may be this domain's duty?
    pub(super) triggered: AtomicBool,
    /// The first of a list of tasks that have finished, linked by [`Report::next`]; [`NONE`]: it is
    /// empty.
    pub(super) finished: AtomicU32,
}

impl<T> Inbox<T> {
    /// With room for so many letters at once.
    pub fn new(leader: PostId, capacity: usize) -> Self {
        Inbox {
            leader,
            mail: Mutex::new(Vec::with_capacity(capacity)),
            has_mail: AtomicBool::new(false),
            triggered: AtomicBool::new(false),
            finished: AtomicU32::new(NONE),
        }
    }

    /// Was a release asked for since this was last called? Called under the domain's lock.
    pub fn take_triggered(&self) -> bool {
        self.triggered.load(Ordering::Relaxed) && self.triggered.swap(false, Ordering::AcqRel)
    }

    /// Is there any mail?
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Another stage comes: what the one before has not looked at, it has no more to look at.
    pub fn clear(&self) {
        self.mail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.has_mail.store(false, Ordering::Relaxed);
        self.triggered.store(false, Ordering::Release);
    }

    /// Puts a letter behind the others.
    pub(super) fn put(&self, letter: Mail<T>) {
        self.mail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(letter);
        self.has_mail.store(true, Ordering::Release);
    }

    /// Moves all mail to the end of `into`.
    pub fn take_mail(&self, into: &mut Vec<Mail<T>>) {
        if self.has_mail.load(Ordering::Acquire) && self.has_mail.swap(false, Ordering::AcqRel) {
            into.append(&mut self.mail.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// To which domain and dispatcher a task reports that it has finished. On a line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Report {
    /// A [`InboxId`].
    pub(super) domain: AtomicU32,
    /// A [`PostId`].
    pub(super) post: AtomicU32,
    /// Is it in a list of finished tasks?
    pub(super) listed: AtomicBool,
    /// The next one in that list.
    pub(super) next: AtomicU32,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            domain: AtomicU32::new(0),
            post: AtomicU32::new(0),
            listed: AtomicBool::new(false),
            next: AtomicU32::new(NONE),
        }
    }
}

impl Report {
    /// The domain that learns of it.
    pub fn domain(&self) -> InboxId {
        InboxId(self.domain.load(Ordering::Acquire))
    }
}
