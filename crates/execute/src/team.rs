//! What all threads of a run share: workers, the dispatchers' posts, the domains' inboxes, and how it all ends.
//!
//! Nothing here is locked but the mail between domains, which dispatchers alone touch: a job that is preempted at any moment
//! never keeps a dispatcher waiting.

use crate::clock::Timeline;
use crate::kernel;
use crate::pages::Belfry;
use crate::sentinel::Watched;
use crate::trigger::{Releaser, Triggered};
use crate::watchdog::BoardRef;
use crate::worker::Worker;
use model::{CpuId, Error, Instant, TaskId};
use policy::NONE;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where a dispatcher sleeps and is woken.
#[derive(Debug)]
pub(crate) struct Post {
    pub cpu: CpuId,
    pub domain: u32,
    /// In which stage of the run.
    pub stage: u32,
    /// Where its heartbeat is on the watchdog's board.
    pub beat: u32,
    /// Counts calls.
    calls: AtomicU32,
    /// Is its dispatcher there, on its processor and above all jobs?
    pub taken: AtomicBool,
    /// Is its sentinel there, on its processor? Only where programs are run.
    pub guarded: AtomicBool,
    /// The program that was chosen for its processor.
    pub watched: Watched,
    /// By how much it woke up too late at most, in nanoseconds.
    latest: AtomicU64,
    /// How often by more than [`Post::GAP`].
    gaps: AtomicU64,
}

impl Post {
    pub fn new(cpu: CpuId, domain: u32, stage: u32, beat: u32) -> Self {
        Post {
            cpu,
            domain,
            stage,
            beat,
            calls: AtomicU32::new(0),
            taken: AtomicBool::new(false),
            guarded: AtomicBool::new(false),
            watched: Watched::default(),
            latest: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
        }
    }

    /// Something other than this program had the processor for so long.
    pub const GAP: u64 = 5_000_000;

    /// By how much its dispatcher woke up too late at most, in nanoseconds; how often by more than [`Post::GAP`].
    pub fn lateness(&self) -> (u64, u64) {
        (
            self.latest.load(Ordering::Relaxed),
            self.gaps.load(Ordering::Relaxed),
        )
    }
    /// How often its dispatcher was called so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Acquire)
    }
    /// Calls it.
    pub fn call(&self) {
        self.calls.fetch_add(1, Ordering::Release);
        kernel::futex_wake(&self.calls);
    }
    /// Lets it look at the domain, if it is awake.
    pub fn nudge(&self) {
        self.calls.fetch_add(1, Ordering::Release);
    }
    /// Sleeps until a call after the `seen` ones, or a reading of the clock.
    pub fn sleep(&self, seen: u32, until: u64) {
        kernel::futex_wait(&self.calls, seen, Some(until));
        let late = kernel::monotonic().saturating_sub(until);
        if late > self.latest.load(Ordering::Relaxed) {
            self.latest.store(late, Ordering::Relaxed);
        }
        if late > Self::GAP {
            self.gaps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// From one domain to another.
#[derive(Debug)]
pub(crate) enum Mail {
    /// The task is yours from now on; its job, or a part of it, becomes ready at `at`.
    Task {
        task: u32,
        row: crate::domain::Row,
        at: Instant,
    },
    /// Release job `number` of the task.
    Release { task: u32, number: u64 },
}

/// What a domain has to look at.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The dispatcher that looks after timers.
    pub leader: u32,
    mail: Mutex<Vec<Mail>>,
    has_mail: AtomicBool,
    /// Is somebody to be looked after who was born into a program meanwhile?
    untidy: AtomicBool,
    /// Is a release asked for that may be this domain's duty?
    triggered: AtomicBool,
    /// The first of a list of workers that have finished; linked by [`Worker::next`].
    finished: AtomicU32,
}

impl Inbox {
    /// With room for so many letters at once.
    pub fn new(leader: u32, capacity: usize) -> Self {
        Inbox {
            leader,
            mail: Mutex::new(Vec::with_capacity(capacity)),
            has_mail: AtomicBool::new(false),
            untidy: AtomicBool::new(false),
            triggered: AtomicBool::new(false),
            finished: AtomicU32::new(NONE),
        }
    }

    /// Is somebody to be looked after? Asked once for every time.
    pub fn is_untidy(&self) -> bool {
        self.untidy.load(Ordering::Relaxed) && self.untidy.swap(false, Ordering::AcqRel)
    }

    /// Is a release asked for? Asked once for every time.
    pub fn is_triggered(&self) -> bool {
        self.triggered.load(Ordering::Relaxed) && self.triggered.swap(false, Ordering::AcqRel)
    }

    /// Is there any mail?
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Moves all mail to the end of `into`.
    pub fn take_mail(&self, into: &mut Vec<Mail>) {
        if self.has_mail.load(Ordering::Acquire) && self.has_mail.swap(false, Ordering::AcqRel) {
            into.append(&mut self.mail.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// All who take part in a run.
pub(crate) struct Team {
    pub workers: Vec<Worker>,
    pub posts: Vec<Post>,
    pub inboxes: Vec<Inbox>,
    /// By task: what releases its jobs, where that is not the time alone.
    pub releasers: Vec<Option<Releaser>>,
    /// Is the listener at its place?
    pub listens: AtomicBool,
    /// Known once everybody is ready.
    timeline: OnceLock<Timeline>,
    /// Jobs come back early from now on.
    pub stop: AtomicBool,
    /// Dispatchers end from now on.
    pub ending: AtomicBool,
    /// Why the run could not go on.
    fault: OnceLock<Error>,
    pub board: BoardRef,
    /// The stage that rules.
    stage: AtomicU32,
    /// When it ends, in nanoseconds of the run, once the next one is ready.
    pub stage_end: AtomicU64,
    /// How many of its dispatchers have come to its end.
    left: AtomicU32,
    /// Lets the next one rule.
    handover: Mutex<Option<Handover>>,
    /// What calls the sentinels.
    pub belfry: Belfry,
}

/// Ends a stage and begins the next one; run by the dispatcher that is the last to come to the end.
pub(crate) type Handover = Box<dyn FnOnce(&Team) + Send>;

impl Team {
    pub fn new(
        workers: Vec<Worker>,
        posts: Vec<Post>,
        inboxes: Vec<Inbox>,
        board: BoardRef,
        belfry: Belfry,
        triggered: Vec<bool>,
    ) -> Self {
        Team {
            belfry,
            workers,
            posts,
            inboxes,
            releasers: triggered
                .into_iter()
                .map(|is| is.then(Releaser::default))
                .collect(),
            listens: AtomicBool::new(false),
            timeline: OnceLock::new(),
            stop: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            fault: OnceLock::new(),
            board,
            stage: AtomicU32::new(0),
            stage_end: AtomicU64::new(u64::MAX),
            left: AtomicU32::new(0),
            handover: Mutex::new(None),
        }
    }

    /// The stage that rules.
    pub fn ruling(&self) -> u32 {
        self.stage.load(Ordering::Acquire)
    }

    /// Does the stage of this post rule?
    pub fn rules(&self, post: &Post) -> bool {
        self.stage.load(Ordering::Acquire) >= post.stage
    }

    /// The stage that rules ends at this time of the run.
    pub fn end_stage(&self, at: Instant, handover: Handover) {
        *self.handover.lock().unwrap_or_else(PoisonError::into_inner) = Some(handover);
        self.stage_end.store(at.nanos(), Ordering::Release);
        for post in &self.posts {
            post.call();
        }
    }

    /// Has the stage that rules been told when it ends?
    pub fn is_ending_stage(&self) -> bool {
        self.stage_end.load(Ordering::Acquire) != u64::MAX
    }

    /// A dispatcher has come to the end of the stage of its post. The last one lets the next stage rule, if there is one.
    pub fn leave_stage(&self, post: &Post) {
        let all = self.posts.iter().filter(|p| p.stage == post.stage).count();
        if self.left.fetch_add(1, Ordering::AcqRel) + 1 < all as u32 {
            return;
        }
        let handover = self
            .handover
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(handover) = handover.filter(|_| !self.ending.load(Ordering::Acquire)) else {
            return;
        };
        handover(self);
        self.left.store(0, Ordering::Relaxed);
        self.stage_end.store(u64::MAX, Ordering::Release);
        self.stage.store(post.stage + 1, Ordering::Release);
        for post in &self.posts {
            post.call();
        }
        self.ring_all();
    }

    /// Wakes all sentinels. Processors are the same in every stage.
    fn ring_all(&self) {
        for post in self.posts.iter().filter(|p| p.stage == 0) {
            self.belfry.bells.ring(post.beat);
        }
    }

    /// Sets the moment of the first release.
    pub fn begin(&self, timeline: Timeline) {
        // Set once, by the one who starts the run.
        let _ = self.timeline.set(timeline);
    }

    /// The time of the run; zero before it has begun.
    #[inline]
    pub fn now(&self) -> Instant {
        self.timeline.get().map_or(Instant::ZERO, Timeline::now)
    }

    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.get()
    }

    /// Something went wrong that ends the run; the first of several is told.
    #[cold]
    pub fn fail(&self, error: Error) {
        let _ = self.fault.set(error);
        self.end();
    }

    pub fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }

    /// Lets all dispatchers and sentinels end.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
        for post in &self.posts {
            post.call();
        }
        self.ring_all();
    }

    /// Has the program of a task looked after by its domain: somebody was born into it.
    pub fn tidy(&self, task: u32) {
        let domain = self.workers[task as usize].domain.load(Ordering::Acquire);
        let inbox = &self.inboxes[domain as usize];
        inbox.untidy.store(true, Ordering::Release);
        self.posts[inbox.leader as usize].call();
    }

    /// So many releases of a task are asked for now. Called by the listener.
    pub fn trigger(&self, task: TaskId, count: u64) {
        let Some(releaser) = &self.releasers[task.index()] else {
            return;
        };
        releaser.ask(count, self.now());
        let inbox = &self.inboxes[releaser.domain.load(Ordering::SeqCst) as usize];
        inbox.triggered.store(true, Ordering::Release);
        self.posts[inbox.leader as usize].call();
    }

    /// Nothing will ask for releases of a task any more.
    pub fn trigger_ended(&self, task: TaskId) {
        if let Some(releaser) = &self.releasers[task.index()] {
            releaser.end();
        }
    }

    /// What came of the triggers.
    pub fn triggered(&self) -> Vec<Triggered> {
        let with_number = self.releasers.iter().enumerate();
        let of = |(task, r): (usize, &Option<Releaser>)| Some(r.as_ref()?.triggered(TaskId(task as u32)));
        with_number.filter_map(of).collect()
    }

    /// Sends a letter to a domain.
    pub fn send(&self, domain: u32, mail: Mail) {
        let inbox = &self.inboxes[domain as usize];
        inbox
            .mail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(mail);
        inbox.has_mail.store(true, Ordering::Release);
        self.posts[inbox.leader as usize].call();
    }

    /// Tells the domain of a worker that it has finished. Called by the worker itself.
    pub fn tell_finished(&self, task: u32) {
        let worker = &self.workers[task as usize];
        let inbox = &self.inboxes[worker.domain.load(Ordering::Acquire) as usize];
        // Who is in the list already will be looked at after this moment.
        if !worker.listed.swap(true, Ordering::AcqRel) {
            let mut first = inbox.finished.load(Ordering::Relaxed);
            loop {
                worker.next.store(first, Ordering::Relaxed);
                match inbox
                    .finished
                    .compare_exchange_weak(first, task, Ordering::Release, Ordering::Relaxed)
                {
                    Ok(_) => break,
                    Err(now) => first = now,
                }
            }
        }
        self.posts[worker.post.load(Ordering::Relaxed) as usize].call();
    }

    /// Takes all workers off the list of a domain; those that finish from now on are on it again.
    pub fn take_finished(&self, domain: u32, into: &mut Vec<u32>) {
        let finished = &self.inboxes[domain as usize].finished;
        // Most steps find nothing, and leave the line to those that read it.
        let mut task = match finished.load(Ordering::Relaxed) {
            NONE => NONE,
            _ => finished.swap(NONE, Ordering::Acquire),
        };
        while task != NONE {
            let worker = &self.workers[task as usize];
            let next = worker.next.load(Ordering::Relaxed);
            worker.listed.store(false, Ordering::Release);
            into.push(task);
            task = next;
        }
    }
}
