//! What all threads of a run share: workers, the dispatchers' posts, the domains' inboxes, and how it all ends.
//!
//! Nothing here is locked but the mail between domains, which dispatchers alone touch: a job that is preempted at any moment
//! never keeps a dispatcher waiting.

use crate::clock::Timeline;
use crate::kernel;
use crate::programs::pages::Belfry;
use crate::programs::sentinel::Watched;
use crate::threads::worker::Worker;
use crate::trigger::{Releaser, Triggered};
use crate::watchdog::BoardRef;
use model::{CpuId, Error, Instant, TaskId};
use policy::NONE;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What to do where the system gives no thread.
pub(crate) const MORE_THREADS: &str =
    "give fewer tasks, or allow more threads and memory (`ulimit -u`, `ulimit -v`, pids.max)";

/// Where a dispatcher sleeps and is woken. On lines of its own: processors of different domains share none.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Post {
    pub cpu: CpuId,
    pub domain: u32,
    /// Of which set of posts it is: stages take turns with the sets ([`Team::set_of`]).
    pub set: u32,
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
    pub fn new(cpu: CpuId, domain: u32, set: u32, beat: u32) -> Self {
        Post {
            cpu,
            domain,
            set,
            beat,
            calls: AtomicU32::new(0),
            taken: AtomicBool::new(false),
            guarded: AtomicBool::new(false),
            watched: Watched::default(),
            latest: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
        }
    }

    /// Whoever was here has gone; another stage comes.
    pub fn clear(&self) {
        self.watched.clear();
        self.guarded.store(false, Ordering::Relaxed);
        self.taken.store(false, Ordering::Release);
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
#[repr(align(64))]
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

    /// Another stage comes: what the one before has not looked at, it has no more to look at.
    pub fn clear(&self) {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.has_mail.store(false, Ordering::Relaxed);
        self.untidy.store(false, Ordering::Relaxed);
        self.triggered.store(false, Ordering::Release);
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
    /// Has anybody put itself on the list of a domain whose task it is no more?
    strays: AtomicBool,
    /// How many sets of posts there are.
    sets: u32,
    /// The stage that rules.
    stage: AtomicU32,
    /// When it ends, in nanoseconds of the run, once the next one is ready.
    pub stage_end: AtomicU64,
    /// How many of its dispatchers have come to its end.
    left: AtomicU32,
    /// How the next one is to rule.
    succession: Mutex<Succession>,
    /// What calls the sentinels.
    pub belfry: Belfry,
    /// The first processes of best-effort programs, which are waited for by the threads that
    /// started them. Locked while one is started.
    pub hired: Mutex<Vec<i32>>,
}

/// What is to follow the stage that rules.
#[derive(Default)]
struct Succession {
    handover: Option<Handover>,
    /// All dispatchers of the last stage have left it, and nothing follows.
    is_over: bool,
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
            sets: posts.iter().map(|p| p.set + 1).max().unwrap_or(1),
            strays: AtomicBool::new(false),
            hired: Mutex::default(),
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
            succession: Mutex::default(),
        }
    }

    /// The stage that rules.
    pub fn ruling(&self) -> u32 {
        self.stage.load(Ordering::Acquire)
    }

    /// The set of posts that a stage has.
    pub fn set_of(&self, stage: u32) -> u32 {
        stage % self.sets
    }

    /// The posts of a stage.
    pub fn posts_of(&self, stage: u32) -> impl Iterator<Item = &Post> {
        let set = self.set_of(stage);
        self.posts.iter().filter(move |p| p.set == set)
    }

    fn succession(&self) -> MutexGuard<'_, Succession> {
        self.succession.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stage that rules ends at this time of the run. False: all of its dispatchers have left
    /// before, so that nobody would hand over.
    #[must_use]
    pub fn end_stage(&self, at: Instant, handover: Handover) -> bool {
        let mut succession = self.succession();
        if succession.is_over {
            return false;
        }
        succession.handover = Some(handover);
        // Within the lock: a handover that follows at once resets it.
        self.stage_end.store(at.nanos(), Ordering::Release);
        drop(succession);
        for post in &self.posts {
            post.call();
        }
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

    /// A dispatcher has come to the end of its stage. The last one lets the next stage rule, if there is one.
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
        for post in self.posts_of(stage) {
            self.pass_on(post.domain);
        }
        self.left.store(0, Ordering::Relaxed);
        self.stage_end.store(u64::MAX, Ordering::Release);
        self.await_leaders(stage + 1, kernel::monotonic());
        self.stage.store(stage + 1, Ordering::Release);
        for post in self.posts_of(stage + 1) {
            post.call();
        }
        self.ring_all();
    }

    /// From this reading of the clock on, the watchdog expects decisions of the leaders of a
    /// stage, and of nobody else. The stage does not rule yet, and none before does any more.
    pub fn await_leaders(&self, stage: u32, from: u64) {
        for post in &self.posts {
            self.board.due(post.beat as usize, None);
        }
        let set = self.set_of(stage);
        for inbox in &self.inboxes {
            let leader = &self.posts[inbox.leader as usize];
            if leader.set == set {
                self.board.due(leader.beat as usize, Some(from));
            }
        }
    }

    /// Wakes all sentinels. Processors are the same in every stage.
    fn ring_all(&self) {
        for post in self.posts_of(0) {
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
        let Some(inbox) = self.inboxes.get(releaser.domain() as usize) else {
            // Whose duty it will be looks when it is.
            return;
        };
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

    /// Tells the domain of a worker that it has finished. Called by the worker itself, or in its name.
    pub fn tell_finished(&self, task: u32) {
        self.enlist(task);
        let post = self.workers[task as usize].post.load(Ordering::Relaxed);
        self.posts[post as usize].call();
    }

    /// Puts a worker on the list of those that its domain looks at, if it is on none.
    fn enlist(&self, task: u32) {
        let worker = &self.workers[task as usize];
        let domain = worker.domain.load(Ordering::Acquire);
        // Who is on the list already will be looked at after this moment.
        if !worker.listed.swap(true, Ordering::AcqRel) {
            let finished = &self.inboxes[domain as usize].finished;
            let mut first = finished.load(Ordering::Relaxed);
            loop {
                worker.next.store(first, Ordering::Relaxed);
                match finished.compare_exchange_weak(first, task, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => break,
                    Err(now) => first = now,
                }
            }
        }
        // Another stage may have taken the task over in between, and the one before have looked for the last time. A dispatcher
        // goes after it: a worker could be stopped at any moment, with the list in its hands.
        fence(Ordering::SeqCst);
        let own = worker.domain.load(Ordering::Relaxed);
        if own != domain {
            self.strays.store(true, Ordering::Release);
            self.call_leader(own);
        }
    }

    fn call_leader(&self, domain: u32) {
        self.posts[self.inboxes[domain as usize].leader as usize].call();
    }

    /// Takes all workers off the list of a domain, and puts each on that of the domain that is its own now. Called by dispatchers.
    fn pass_on(&self, domain: u32) {
        let mut task = self.inboxes[domain as usize]
            .finished
            .swap(NONE, Ordering::Acquire);
        while task != NONE {
            let worker = &self.workers[task as usize];
            let next = worker.next.load(Ordering::Relaxed);
            worker.listed.swap(false, Ordering::AcqRel);
            self.enlist(task);
            self.call_leader(worker.domain.load(Ordering::Acquire));
            task = next;
        }
    }

    /// Takes all workers off the list of a domain; those that finish from now on are on it again.
    pub fn take_finished(&self, domain: u32, into: &mut Vec<u32>) {
        if self.strays.load(Ordering::Relaxed) && self.strays.swap(false, Ordering::AcqRel) {
            for other in (0..self.inboxes.len() as u32).filter(|d| *d != domain) {
                self.pass_on(other);
            }
        }
        let finished = &self.inboxes[domain as usize].finished;
        // Most steps find nothing, and leave the line to those that read it.
        let mut task = match finished.load(Ordering::Relaxed) {
            NONE => NONE,
            _ => finished.swap(NONE, Ordering::Acquire),
        };
        while task != NONE {
            let worker = &self.workers[task as usize];
            let next = worker.next.load(Ordering::Relaxed);
            // Either the worker finds itself off the list, or what it has done by now is seen here: an exchange orders both.
            worker.listed.swap(false, Ordering::AcqRel);
            into.push(task);
            task = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Two stages of one domain each, on one processor, which take turns with two sets of posts; so many tasks.
    fn team(tasks: usize) -> Team {
        let workers = (0..tasks).map(|n| Worker::new(format!("T{n}"))).collect();
        let posts = (0..2).map(|set| Post::new(CpuId(0), set, set, 0)).collect();
        let inboxes = (0..2).map(|leader| Inbox::new(leader, 4)).collect();
        let (board, belfry) = (BoardRef::alone(), Belfry::new().unwrap());
        Team::new(workers, posts, inboxes, board, belfry, vec![false; tasks])
    }

    fn finished(team: &Team, domain: u32) -> Vec<u32> {
        let mut all = Vec::new();
        team.take_finished(domain, &mut all);
        all.sort_unstable();
        all
    }

    #[test]
    fn who_has_finished_while_another_stage_took_over_is_on_its_list() {
        let team = team(3);
        team.tell_finished(0);
        team.tell_finished(2);
        team.workers[0].domain.store(1, Ordering::Release);
        team.pass_on(0);
        assert_eq!((finished(&team, 0), finished(&team, 1)), (vec![2], vec![0]));
        // From now on they are found where they are.
        for task in 0..3 {
            team.tell_finished(task);
            team.tell_finished(task);
        }
        assert_eq!((finished(&team, 0), finished(&team, 1)), (vec![1, 2], vec![0]));
    }

    /// A worker that finishes after the last look of a stage and before the next one has its task.
    #[test]
    fn who_finishes_within_a_handover_is_seen_ever_after() {
        let team = team(1);
        let finish = |team: &Team| {
            let worker = &team.workers[0];
            worker.has_finished(worker.done());
            team.tell_finished(0);
        };
        let handover = move |team: &Team| {
            finish(team);
            team.workers[0].domain.store(1, Ordering::Release);
        };
        assert!(team.end_stage(model::Instant::ZERO, Box::new(handover)));
        team.leave_stage(0);
        assert_eq!((team.ruling(), team.is_over()), (1, false));
        assert_eq!(finished(&team, 1), [0]);
        finish(&team);
        assert_eq!(finished(&team, 1), [0]);
    }

    /// The supervisor was late: nobody is left to hand over, and it learns of that.
    #[test]
    fn no_stage_follows_one_that_all_have_left() {
        let team = team(1);
        team.leave_stage(0);
        assert!(team.is_over());
        let handover = |_: &Team| unreachable!("nobody hands over");
        assert!(!team.end_stage(model::Instant::ZERO, Box::new(handover)));
        assert_eq!((team.ruling(), team.is_ending_stage()), (0, false));
    }

    /// Workers finish as fast as they are seen to, while two stages take over from each other again and again: when that is over
    /// nobody is overlooked.
    #[test]
    fn nobody_is_overlooked_whoever_takes_over() {
        const TASKS: usize = 3;
        const ROUNDS: u32 = 150;
        let team = &team(TASKS);
        let seen: &[AtomicU32] = &[const { AtomicU32::new(0) }; TASKS];
        let over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (task, seen) in seen.iter().enumerate() {
                scope.spawn(move || {
                    let mut job = 0;
                    while !over.load(Ordering::Relaxed) {
                        if seen.load(Ordering::Acquire) == job {
                            team.workers[task].has_finished(job);
                            fence(Ordering::SeqCst);
                            team.tell_finished(task as u32);
                            job += 1;
                        }
                    }
                });
            }
            let look = |task: u32| {
                let done = team.workers[task as usize].done();
                seen[task as usize].store(done, Ordering::Release);
            };
            let (mut domain, mut overlooked) = (0, None);
            for round in 0..ROUNDS {
                for _ in 0..50 {
                    finished(team, domain).into_iter().for_each(look);
                    for task in 0..TASKS as u32 {
                        team.workers[task as usize]
                            .domain
                            .store(1 - domain, Ordering::Relaxed);
                        fence(Ordering::SeqCst);
                        look(task);
                    }
                    team.pass_on(domain);
                    domain = 1 - domain;
                }
                // From here on nobody looks but at the list.
                let until = Instant::now() + Duration::from_secs(10);
                let goals = [0, 1, 2].map(|task: usize| seen[task].load(Ordering::Relaxed) + 3);
                let reached = |task: usize| seen[task].load(Ordering::Relaxed) >= goals[task];
                while !(0..TASKS).all(reached) && overlooked.is_none() {
                    finished(team, domain).into_iter().for_each(look);
                    overlooked = (Instant::now() > until).then_some(round);
                    std::thread::yield_now();
                }
                if overlooked.is_some() {
                    break;
                }
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(overlooked, None, "in this round");
        });
    }
}
