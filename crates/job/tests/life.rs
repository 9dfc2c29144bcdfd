//! Properties of the life of jobs, by engines as small as they can be: one in virtual time, which
//! looks at jobs exactly when it is told to, and one whose timers come late.

use job::{Begin, Limits, Reached, State};
use model::{Duration, Enforcement, Instant, TaskId};
use proptest::collection::vec;
use proptest::prelude::*;

const fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}
const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// Processors are plain numbers here.
type Life = job::Life<u32>;
type Handed = job::Handed<u32>;

/// A job as it is given to an engine.
#[derive(Clone, Debug)]
struct Given {
    gap: u64,
    demand: u64,
    /// How long its parts may execute; empty: it is not split.
    slices: Vec<u64>,
}

fn given() -> impl Strategy<Value = Given> {
    (0..40u64, 1..60u64, vec(1..20u64, 0..4)).prop_map(|(gap, demand, slices)| Given {
        gap,
        demand,
        slices,
    })
}

fn enforcements() -> impl Strategy<Value = Enforcement> {
    prop_oneof![
        Just(Enforcement::Off),
        Just(Enforcement::PerQuantum),
        Just(Enforcement::Exact)
    ]
}

const BUDGET: u64 = 25;
const QUANTUM: u64 = 8;

/// What came of one job.
#[derive(Clone, Debug)]
struct Ended {
    number: u64,
    release: u64,
    began: u64,
    ended: u64,
    executed: u64,
    parts: u32,
    cut: bool,
}

/// An engine for one task on one processor, which is now and then taken by somebody else: for
/// `away` after each stretch of `here`. Its timers come `late`.
struct Engine<'a> {
    life: Life,
    limits: Limits,
    enforcement: Enforcement,
    jobs: &'a [Given],
    turns: std::iter::Cycle<std::slice::Iter<'a, (u64, u64)>>,
    late: u64,
    now: u64,
    ended: Vec<Ended>,
}

impl<'a> Engine<'a> {
    fn new(
        jobs: &'a [Given],
        turns: &'a [(u64, u64)],
        enforcement: Enforcement,
        late: u64,
    ) -> Self {
        Engine {
            life: Life::new(),
            limits: Limits::new(true, enforcement, ns(QUANTUM)),
            enforcement,
            jobs,
            turns: turns.iter().cycle(),
            late,
            now: 0,
            ended: Vec::new(),
        }
    }

    /// The releases of all jobs.
    fn releases(&self) -> Vec<u64> {
        let sum = |at: &mut u64, job: &Given| {
            *at += job.gap;
            Some(*at)
        };
        self.jobs.iter().scan(0, sum).collect()
    }

    /// Executes all jobs, each as soon as it is released and its predecessor is over.
    fn run(mut self) -> Vec<Ended> {
        let releases = self.releases();
        for _ in self.jobs {
            let next = self.life.number() as usize;
            self.now = self.now.max(releases[next]);
            let released = releases.iter().filter(|at| **at <= self.now).count() as u64;
            assert!(self.life.awaits(released));
            self.life.begin(Begin {
                release: at(releases[next]),
                deadline: at(releases[next] + 50),
                demand: Some(ns(self.jobs[next].demand)),
                budget: (self.enforcement != Enforcement::Off).then_some(ns(BUDGET)),
            });
            // Whatever is released now waits.
            assert!(!self.life.awaits(released) && !self.life.awaits(u64::MAX));
            self.execute(next);
        }
        self.ended
    }

    /// Executes the current job until it is over, part by part.
    fn execute(&mut self, index: usize) {
        let (began, mut part, mut left) = (self.now, 0, None);
        let slice = |slices: &[u64], part: u32| slices.get(part as usize).map(|slice| ns(*slice));
        self.life.ready(slice(&self.jobs[index].slices, part));
        loop {
            let (here, away) = *self.turns.next().expect("an endless list");
            let start = self.life.start(0, at(self.now));
            assert_eq!(
                (start.before.is_some(), start.moves),
                (left.is_some(), left == Some(self.now))
            );
            let look = self.life.look_at(at(self.now), &self.limits).nanos();
            let until = look.saturating_add(self.late).min(self.now + here);
            let time = (until - self.now).min(self.life.remaining().nanos());
            let budget = BUDGET.saturating_sub(self.life.executed().nanos());
            let last_look = (self.now + budget).next_multiple_of(QUANTUM);
            self.life.execute(ns(time));
            self.now += time;
            if self.enforcement == Enforcement::PerQuantum && self.late == 0 {
                assert!(
                    self.now <= last_look,
                    "without budget beyond the end of a quantum"
                );
            }
            let reached = match self.now >= look {
                true => self.life.reached(&self.limits),
                false => Reached::Nothing,
            };
            match reached {
                Reached::Complete => return self.end(began, part, false),
                Reached::Budget => return self.end(began, part, true),
                Reached::Slice => {
                    self.life.exhaust(at(self.now));
                    part += 1;
                    self.life.push(part);
                    assert_eq!(self.life.job(TaskId(0)).part, part);
                    self.life.ready(slice(&self.jobs[index].slices, part));
                }
                Reached::Nothing => self.life.stop(at(self.now)),
            }
            left = Some(self.now);
            self.now += away;
        }
    }

    fn end(&mut self, began: u64, parts: u32, cut: bool) {
        let number = self.life.number();
        self.ended.push(Ended {
            number,
            release: self.life.release().nanos(),
            began,
            ended: self.now,
            executed: self.life.executed().nanos(),
            parts,
            cut,
        });
        match cut {
            true => self.life.cut(),
            false => self.life.complete(),
        }
        assert_eq!(
            (self.life.state(), self.life.number()),
            (State::Waiting, number + 1)
        );
    }
}

fn turns() -> impl Strategy<Value = Vec<(u64, u64)>> {
    vec((1..30u64, 0..20u64), 1..5)
}

proptest! {
    /// Each job completes exactly once, in the order of arrival, none before its release or before
    /// its predecessor is over.
    #[test]
    fn jobs_end_once_each_in_order_behind_tardy_predecessors(
        jobs in vec(given(), 1..12),
        turns in turns(),
        enforcement in enforcements(),
        late in 0..9u64,
    ) {
        let ended = Engine::new(&jobs, &turns, enforcement, late).run();
        prop_assert_eq!(ended.len(), jobs.len());
        let mut free = 0;
        for (number, job) in ended.iter().enumerate() {
            prop_assert_eq!(job.number, number as u64);
            prop_assert_eq!(job.began, job.release.max(free));
            free = job.ended;
        }
    }

    /// Looked at in time, no job executes for longer than its budget; by quanta, beyond the end of
    /// a quantum without one (the engine above sees to that). Each slice ends a part, and is used
    /// up exactly.
    #[test]
    fn a_job_that_is_looked_at_in_time_keeps_to_its_limits(
        jobs in vec(given(), 1..12),
        turns in turns(),
        enforcement in enforcements(),
    ) {
        for job in Engine::new(&jobs, &turns, enforcement, 0).run() {
            let slices = &jobs[job.number as usize].slices;
            match enforcement {
                Enforcement::Off => prop_assert!(!job.cut),
                Enforcement::Exact => {
                    prop_assert!(job.executed <= BUDGET);
                    prop_assert!(!job.cut || job.executed == BUDGET);
                }
                Enforcement::PerQuantum => {
                    prop_assert!(!job.cut || job.executed >= BUDGET);
                    prop_assert!(!job.cut || !slices.is_empty() || job.ended % QUANTUM == 0);
                }
            }
            let used: u64 = slices[..job.parts as usize].iter().sum();
            let room = slices
                .get(job.parts as usize)
                .map_or(u64::MAX, |last| used + last);
            prop_assert!(used <= job.executed && job.executed <= room);
        }
    }

    /// What jobs that are cut short leave is done by later ones: nothing is lost, nothing is done
    /// twice, however late a limit is looked at.
    #[test]
    fn all_that_is_demanded_is_executed_or_left_to_the_next_job(
        jobs in vec(given(), 1..12),
        turns in turns(),
        enforcement in enforcements(),
        late in 0..9u64,
    ) {
        let mut owed = 0;
        for (job, given) in Engine::new(&jobs, &turns, enforcement, late)
            .run()
            .iter()
            .zip(&jobs)
        {
            owed += given.demand;
            prop_assert!(job.executed <= owed);
            owed -= job.executed;
            prop_assert!(job.cut || owed == 0);
            prop_assert!(!job.cut || owed > 0);
        }
    }

    /// Where only the worker knows the demand, no time completes a job, and each job that was cut
    /// short leaves one piece of work that completes no later job.
    #[test]
    fn pieces_of_work_that_are_left_over_complete_no_job(ends in vec(any::<bool>(), 1..40)) {
        let mut life = Life::new();
        let limits = Limits::new(true, Enforcement::Exact, ns(1)).timers(ns(10), ns(3));
        let mut behind = 0;
        for (number, cut) in ends.into_iter().enumerate() {
            prop_assert!(!life.awaits(number as u64) && life.awaits(number as u64 + 1));
            life.begin(Begin {
                release: at(0),
                deadline: at(9),
                demand: None,
                budget: Some(ns(BUDGET)),
            });
            life.ready(None);
            life.start(3, at(0));
            prop_assert_eq!(life.look_at(at(7), &limits), at(7 + BUDGET));
            life.execute(ns(BUDGET - 2));
            prop_assert_eq!(life.reached(&limits), Reached::Nothing);
            // No timer is set for less than it can keep.
            prop_assert_eq!(life.look_at(at(7), &limits), at(17));
            life.execute(ns(5));
            prop_assert_eq!(life.reached(&limits), Reached::Budget);
            life.stop(at(40));
            if cut {
                life.cut();
                behind += 1;
            } else {
                while behind > 0 {
                    prop_assert!(!life.work_done());
                    behind -= 1;
                }
                prop_assert!(life.work_done());
                life.complete();
            }
            prop_assert_eq!(life.behind(), behind);
        }
    }
}

#[test]
fn a_slice_of_which_next_to_nothing_is_left_is_used_up() {
    let limits = Limits::new(true, Enforcement::Off, ns(1)).timers(ns(10), ns(3));
    let mut life = Life::new();
    life.begin(Begin {
        release: at(0),
        deadline: at(100),
        demand: None,
        budget: None,
    });
    life.ready(Some(ns(20)));
    life.start(0, at(5));
    life.execute(ns(16));
    assert_eq!(life.reached(&limits), Reached::Nothing);
    life.execute(ns(1));
    assert_eq!(life.reached(&limits), Reached::Slice);
    // The next slice is counted from what the job has executed by then.
    life.exhaust(at(22));
    life.push(1);
    life.ready(Some(ns(20)));
    assert_eq!(life.look_at(at(30), &limits), at(50));
}

/// Several domains of one processor each, that share nothing but letters which arrive late.
struct World {
    domains: Vec<Vec<Life>>,
    letters: Vec<(usize, usize, Handed)>,
    /// By task: which job began last.
    begun: Vec<Option<u64>>,
    completed: Vec<u64>,
}

impl World {
    fn new(domains: usize, tasks: usize) -> Self {
        let of = |domain: usize| {
            let life = |task: usize| match task % domains == domain {
                true => Life::new(),
                false => Life::away(),
            };
            (0..tasks).map(life).collect()
        };
        World {
            domains: (0..domains).map(of).collect(),
            letters: Vec::new(),
            begun: vec![None; tasks],
            completed: vec![0; tasks],
        }
    }

    /// Does one thing in a domain, if it can be done there.
    fn act(&mut self, domain: usize, task: usize, what: u8, now: u64) {
        let to = what as usize % self.domains.len();
        let life = &mut self.domains[domain][task];
        match (life.state(), what % 5) {
            (State::Waiting, 0) => {
                // In order, whichever domain it begins in.
                assert_eq!(life.number(), self.begun[task].map_or(0, |last| last + 1));
                assert_eq!(life.number(), self.completed[task]);
                self.begun[task] = Some(life.number());
                life.begin(Begin {
                    release: at(now),
                    deadline: at(now + 10),
                    demand: Some(ns(1000)),
                    budget: Some(ns(500)),
                });
            }
            (State::Held, 0 | 1) => life.ready((what > 100).then_some(ns(7))),
            (State::Ready, 0 | 1) => {
                life.start(domain as u32, at(now));
            }
            (State::Running, 0) => {
                life.execute(ns(1));
                life.stop(at(now));
            }
            (State::Running, 1) => {
                life.execute(ns(7));
                life.exhaust(at(now));
                life.push(1);
            }
            (State::Running | State::Ready, 2) => {
                life.complete();
                self.completed[task] += 1;
            }
            (State::Waiting | State::Held | State::Ready, 3 | 4) => {
                let before = life.clone();
                let letter = life.hand_over();
                assert_eq!(
                    (letter.number(), letter.is_current()),
                    (before.number(), before.is_current())
                );
                assert_eq!(life.state(), State::Away);
                // What arrives is what was given away.
                let mut there = Life::away();
                there.receive(letter);
                assert_eq!(there, before);
                self.letters.push((to, task, there.hand_over()));
            }
            _ => {}
        }
    }

    /// The letter that lies deepest, or lowest, arrives.
    fn deliver(&mut self, which: u8, anew: bool) {
        if self.letters.is_empty() {
            return;
        }
        let (to, task, letter) = self
            .letters
            .swap_remove(usize::from(which) % self.letters.len());
        let life = &mut self.domains[to][task];
        let was_current = letter.is_current();
        match anew {
            true => life.receive_anew(letter),
            false => life.receive(letter),
        }
        assert_eq!(life.is_current(), was_current);
    }
}

proptest! {
    /// Whatever domains do and however letters overtake each other, a task is in one domain or in
    /// one letter, runs in one place at most, and none of its jobs is lost or done twice.
    #[test]
    fn a_task_is_in_one_domain_and_hand_over_loses_nothing(
        steps in vec((0..3usize, 0..4usize, any::<u8>(), any::<bool>()), 1..400),
    ) {
        let mut world = World::new(3, 4);
        for (now, (domain, task, what, deliver)) in steps.into_iter().enumerate() {
            match deliver {
                true => world.deliver(what, what > 200),
                false => world.act(domain, task, what, now as u64),
            }
            for task in 0..4 {
                let lives = || world.domains.iter().map(|domain| &domain[task]);
                let here = lives().filter(|life| life.state() != State::Away).count();
                let under_way = world
                    .letters
                    .iter()
                    .filter(|letter| letter.1 == task)
                    .count();
                prop_assert_eq!(here + under_way, 1);
                prop_assert!(
                    lives()
                        .filter(|life| life.state() == State::Running)
                        .count()
                        <= 1
                );
                let of_letters = world
                    .letters
                    .iter()
                    .filter(|l| l.1 == task)
                    .map(|l| l.2.number());
                let of_domains = lives()
                    .filter(|l| l.state() != State::Away)
                    .map(Life::number);
                prop_assert_eq!(
                    of_domains.chain(of_letters).next(),
                    Some(world.completed[task])
                );
            }
        }
    }
}

/// Wrong transitions are found where debug assertions are on, as in all tests of the engines.
#[cfg(debug_assertions)]
mod refused {
    use super::*;

    fn started() -> Life {
        let mut life = Life::new();
        let (demand, budget) = (Some(ns(5)), None);
        life.begin(Begin {
            release: at(0),
            deadline: at(9),
            demand,
            budget,
        });
        life.ready(None);
        life.start(0, at(0));
        life
    }

    #[test]
    #[should_panic(expected = "a part starts that is not ready")]
    fn to_run_in_two_places() {
        started().start(1, at(1));
    }

    #[test]
    #[should_panic(expected = "a job completes that is not current")]
    fn to_complete_twice() {
        let mut life = started();
        life.complete();
        life.complete();
    }

    #[test]
    #[should_panic(expected = "a job begins before its predecessor ends")]
    fn to_overtake_a_predecessor() {
        let (demand, budget) = (None, None);
        started().begin(Begin {
            release: at(5),
            deadline: at(9),
            demand,
            budget,
        });
    }

    #[test]
    #[should_panic(expected = "a part is handed over that runs")]
    fn to_hand_over_what_runs() {
        let letter = started().hand_over();
        assert!(letter.is_current());
    }

    #[test]
    #[should_panic(expected = "a task comes that is here already")]
    fn to_take_over_twice() {
        let mut life = Life::new();
        let letter = life.hand_over();
        Life::new().receive(letter);
    }
}
