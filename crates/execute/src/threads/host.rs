//! What the threads of a run share beside the books: workers, words of posts, the watchdog's board,
//! the clock.

use crate::backend::Host;
use crate::clock::Timeline;
use crate::ids::PostId;
use crate::kernel;
use crate::programs::pages::SentinelBells;
use crate::team::Team;
use crate::threads::post::PostWords;
use crate::threads::task::ThreadTask;
use crate::threads::worker::Worker;
use crate::watchdog::BoardRef;
use model::{CpuId, Instant, TaskId};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};

/// A run that threads carry out.
pub(crate) type ThreadTeam = Team<Threads>;

/// What the threads of a run share.
pub(crate) struct Threads {
    /// By task.
    pub workers: Vec<Worker>,
    /// By post.
    pub posts: Vec<PostWords>,
    /// By post, the slot of its processor: [`crate::team::Post::slot`].
    slots: Vec<u32>,
    /// Is the listener at its place?
    pub listens: AtomicBool,
    /// Jobs come back early from now on.
    pub stop: AtomicBool,
    /// Known once everybody is ready.
    timeline: OnceLock<Timeline>,
    pub board: BoardRef,
    /// What calls the sentinels.
    pub sentinel_bells: SentinelBells,
    /// The first processes of best-effort programs, which are waited for by the threads that
    /// started them. Locked while one is started.
    pub hired: Mutex<Vec<i32>>,
    /// The threads that watch for standstills, as the kernel numbers them.
    pub watches: Mutex<Vec<(CpuId, i32)>>,
}

impl Threads {
    /// `slots`: by post.
    pub fn new(
        workers: Vec<Worker>,
        slots: Vec<u32>,
        board: BoardRef,
        sentinel_bells: SentinelBells,
    ) -> Self {
        Threads {
            workers,
            posts: slots.iter().map(|_| PostWords::default()).collect(),
            slots,
            listens: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            timeline: OnceLock::new(),
            board,
            sentinel_bells,
            hired: Mutex::default(),
            watches: Mutex::default(),
        }
    }

    /// The worker of a task.
    pub fn worker(&self, task: TaskId) -> &Worker {
        &self.workers[task.index()]
    }

    /// The words of a post.
    pub fn post(&self, post: PostId) -> &PostWords {
        &self.posts[post.index()]
    }

    /// Sets the moment of the first release.
    pub fn begin(&self, timeline: Timeline) {
        // Set once, by the one who starts the run.
        let _ = self.timeline.set(timeline);
    }

    /// The time of the run, once that has begun.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.get()
    }

    /// From this reading of the clock on, the watchdog expects decisions of these leaders, and of
    /// no other dispatcher.
    pub fn expect_decisions_from(&self, leaders: impl Iterator<Item = PostId>, from: u64) {
        for slot in &self.slots {
            self.board.due(*slot as usize, None);
        }
        for leader in leaders {
            self.board
                .due(self.slots[leader.index()] as usize, Some(from));
        }
    }
}

impl Host for Threads {
    type Task = ThreadTask;

    #[inline]
    fn now(&self) -> Instant {
        self.timeline.get().map_or(Instant::ZERO, Timeline::now)
    }

    fn now_after(&self, before: Instant) -> Instant {
        loop {
            let now = self.now();
            if now > before {
                return now;
            }
        }
    }

    fn call(&self, post: PostId) {
        self.posts[post.index()].call();
    }

    fn expect_decisions(&self, leaders: impl Iterator<Item = PostId>) {
        self.expect_decisions_from(leaders, kernel::monotonic());
    }

    /// Wakes all sentinels.
    fn wake_all(&self) {
        // Every set of posts has the same processors.
        for slot in 0..self.slots.iter().max().map_or(0, |last| last + 1) {
            self.sentinel_bells.page.ring(slot);
        }
    }
}

impl Team<Threads> {
    /// Has the program of a task looked after by its domain: somebody was born into it.
    pub fn tidy(&self, task: TaskId) {
        let leader = self.inboxes[self.reports[task.index()].domain().index()].leader;
        self.host.post(leader).set_untidy();
        self.host.post(leader).call();
    }

    /// Tells the watchdog to expect a first decision when the run begins.
    pub fn await_first_decisions(&self, origin: u64) {
        self.host.expect_decisions_from(self.leaders_of(0), origin);
    }

    pub fn timeline(&self) -> Option<&Timeline> {
        self.host.timeline()
    }
}
