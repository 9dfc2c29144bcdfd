//! What the threads of a run share: the posts of dispatchers, the domains' inboxes, how stages
//! follow, and how it all ends.
//!
//! Nothing here makes a system call but by way of its [`Host`]. Nothing here is locked but the mail
//! between domains and what follows a stage, which dispatchers alone touch: a job that is preempted
//! at any moment never keeps a dispatcher waiting.

mod finished;
mod inbox;
#[cfg(test)]
mod tests;

pub(crate) use inbox::{Inbox, Mail, Report};

use crate::backend::Host;
use crate::ids::{InboxId, PostId};
use crate::trigger::releaser::{Releaser, Triggered};
use model::{CpuId, Error, Instant, TaskId};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A processor of a domain, in one set of posts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    pub cpu: CpuId,
    pub domain: InboxId,
    /// Index of its set; consecutive stages use different sets ([`Team::set_of`]).
    pub set: u32,
    /// Index of its processor among those of the run, which is the same in every set. The
    /// watchdog's board and the bells of sentinels have one slot for each.
    pub slot: u32,
}

/// The posts and inboxes of a run, for the domains of its plans. Stages take turns with them: what
/// a stage leaves is there again when its plan's next turn comes. `cpus`: by plan, the processors
/// of its domains; every plan has the same processors. `turns`: how many stages the run has.
pub(crate) fn lay_out<T>(
    cpus: &[Vec<Vec<CpuId>>],
    turns: u32,
    tasks: usize,
) -> (Vec<Post>, Vec<Inbox<T>>) {
    let slots: Vec<CpuId> = cpus[0].iter().flatten().copied().collect();
    let sets = (cpus.len().max(2) as u32).min(turns);
    let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
    for set in 0..sets {
        for domain in &cpus[set as usize % cpus.len()] {
            let index = InboxId(inboxes.len() as u32);
            inboxes.push(Inbox::new(PostId(posts.len() as u32), 2 * tasks));
            posts.extend(domain.iter().map(|cpu| Post {
                cpu: *cpu,
                domain: index,
                set,
                slot: slots.iter().position(|c| c == cpu).unwrap_or(0) as u32,
            }));
        }
    }
    (posts, inboxes)
}

/// All who take part in a run.
pub(crate) struct Team<H: Host> {
    /// What the backends of all domains share.
    pub host: H,
    /// By task, its name for messages.
    names: Vec<String>,
    /// By task, to whom it reports.
    pub reports: Vec<Report>,
    pub posts: Vec<Post>,
    pub inboxes: Vec<Inbox<H::Task>>,
    /// By task: what releases its jobs, where that is not the time alone.
    pub releasers: Vec<Option<Releaser>>,
    /// Dispatchers end from now on.
    pub ending: AtomicBool,
    /// Why the run could not go on.
    fault: OnceLock<Error>,
    /// Set when a task enlists with a domain that it does not report to any more.
    strays: AtomicBool,
    /// How many sets of posts there are.
    sets: u32,
    /// The stage that rules.
    stage: AtomicU32,
    /// When it ends, in nanoseconds of the run; `u64::MAX` until the next stage is ready.
    pub stage_end: AtomicU64,
    /// How many of its dispatchers have come to its end.
    left: AtomicU32,
    /// How the next one is to rule.
    succession: Mutex<Succession<H>>,
}

/// What is to follow the stage that rules.
struct Succession<H: Host> {
    handover: Option<Handover<H>>,
    /// All dispatchers of the last stage have left it, and nothing follows.
    is_over: bool,
}

/// Ends a stage and begins the next one; run by the dispatcher that is the last to come to the end.
pub(crate) type Handover<H> = Box<dyn FnOnce(&Team<H>) + Send>;

impl<H: Host> Team<H> {
    /// `triggered`: by task, is it released by something other than the time?
    pub fn new(
        host: H,
        names: Vec<String>,
        posts: Vec<Post>,
        inboxes: Vec<Inbox<H::Task>>,
        triggered: impl IntoIterator<Item = bool>,
    ) -> Self {
        Team {
            host,
            reports: names.iter().map(|_| Report::default()).collect(),
            names,
            sets: posts.iter().map(|p| p.set + 1).max().unwrap_or(1),
            posts,
            inboxes,
            releasers: triggered
                .into_iter()
                .map(|is| is.then(Releaser::default))
                .collect(),
            ending: AtomicBool::new(false),
            fault: OnceLock::new(),
            strays: AtomicBool::new(false),
            stage: AtomicU32::new(0),
            stage_end: AtomicU64::new(u64::MAX),
            left: AtomicU32::new(0),
            succession: Mutex::new(Succession {
                handover: None,
                is_over: false,
            }),
        }
    }

    /// A task's name.
    pub fn name(&self, task: TaskId) -> &str {
        &self.names[task.index()]
    }

    /// The time of the run; zero before it has begun.
    #[inline]
    pub fn now(&self) -> Instant {
        self.host.now()
    }

    /// The stage that rules, from 0.
    pub fn ruling(&self) -> u32 {
        self.stage.load(Ordering::Acquire)
    }

    /// The set of posts that a stage has.
    pub fn set_of(&self, stage: u32) -> u32 {
        stage % self.sets
    }

    /// The posts of a stage, ascending.
    pub fn posts_of(&self, stage: u32) -> impl Iterator<Item = (PostId, &Post)> {
        let set = self.set_of(stage);
        let all = (0..).map(PostId).zip(&self.posts);
        all.filter(move |(_, post)| post.set == set)
    }

    /// The posts that lead the domains of a stage.
    pub fn leaders_of(&self, stage: u32) -> impl Iterator<Item = PostId> {
        let set = self.set_of(stage);
        let leaders = self.inboxes.iter().map(|inbox| inbox.leader);
        leaders.filter(move |leader| self.posts[leader.index()].set == set)
    }

    fn call_all(&self) {
        for post in (0..self.posts.len() as u32).map(PostId) {
            self.host.call(post);
        }
    }

    fn succession(&self) -> MutexGuard<'_, Succession<H>> {
        self.succession
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The stage that rules ends at this time of the run. False: all of its dispatchers have left
    /// before, so that nobody would hand over.
    #[must_use]
    pub fn end_stage(&self, at: Instant, handover: Handover<H>) -> bool {
        let mut succession = self.succession();
        if succession.is_over {
            return false;
        }
        succession.handover = Some(handover);
        // Within the lock: a handover that follows at once resets it.
        self.stage_end.store(at.nanos(), Ordering::Release);
        drop(succession);
        self.call_all();
        true
    }

    /// Have all dispatchers left the last stage, and does no other follow?
    pub fn is_over(&self) -> bool {
        self.succession().is_over
    }

    /// Has the stage that rules been told when it ends?
    pub fn is_ending_stage(&self) -> bool {
        self.stage_end.load(Ordering::Acquire) != u64::MAX
    }

    /// Is it time for the stage that rules to end?
    pub fn is_stage_over(&self, now: Instant) -> bool {
        now.nanos() >= self.stage_end.load(Ordering::Acquire)
    }

    /// A dispatcher has come to the end of its stage. The last one lets the next stage rule, if
    /// there is one. Called once by each dispatcher of the stage that rules, without its domain's
    /// lock.
    pub fn leave_stage(&self, stage: u32) {
        let all = self.posts_of(stage).count();
        if self.left.fetch_add(1, Ordering::AcqRel) + 1 < all as u32 {
            return;
        }
        let mut succession = self.succession();
        let handover = succession.handover.take();
        let Some(handover) = handover.filter(|_| !self.ending.load(Ordering::Acquire)) else {
            succession.is_over = true;
            return;
        };
        drop(succession);
        handover(self);
        // Whoever finished while tasks changed hands told a domain that looks no more.
        for (_, post) in self.posts_of(stage) {
            self.pass_on(post.domain);
        }
        self.left.store(0, Ordering::Relaxed);
        self.stage_end.store(u64::MAX, Ordering::Release);
        self.host.expect_decisions(self.leaders_of(stage + 1));
        self.stage.store(stage + 1, Ordering::Release);
        for (post, _) in self.posts_of(stage + 1) {
            self.host.call(post);
        }
        self.host.wake_all();
    }

    /// Something went wrong that ends the run; the first of several is told.
    #[cold]
    pub fn fail(&self, error: Error) {
        let _ = self.fault.set(error);
        self.end();
    }

    /// What went wrong, if anything did.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }

    /// Lets all dispatchers end, and all who wait for the end of the stage or the run.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
        self.call_all();
        self.host.wake_all();
    }

    /// So many releases of a task are asked for now. Called by the listener.
    pub fn trigger(&self, task: TaskId, count: u64) {
        let Some(releaser) = &self.releasers[task.index()] else {
            return;
        };
        releaser.ask(count, self.now());
        let Some(domain) = releaser.domain() else {
            // No domain owns this release yet; the next owner looks for it.
            return;
        };
        let inbox = &self.inboxes[domain.index()];
        inbox.triggered.store(true, Ordering::Release);
        self.host.call(inbox.leader);
    }

    /// Nothing will ask for releases of a task any more. Called by the listener.
    pub fn trigger_ended(&self, task: TaskId) {
        if let Some(releaser) = &self.releasers[task.index()] {
            releaser.end();
        }
    }

    /// What came of the triggers.
    pub fn triggered(&self) -> Vec<Triggered> {
        let all = (0..).map(TaskId).zip(&self.releasers);
        all.filter_map(|(task, releaser)| Some(releaser.as_ref()?.triggered(task)))
            .collect()
    }

    /// Sends a letter to a domain. Called by dispatchers.
    pub fn send(&self, domain: InboxId, letter: Mail<H::Task>) {
        let inbox = &self.inboxes[domain.index()];
        inbox.put(letter);
        self.host.call(inbox.leader);
    }
}
