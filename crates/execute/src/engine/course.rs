//! The course of a run: its threads and stages made, watched and put away.

mod ending;
mod supervision;

use super::{Maker, Settings};
use crate::clock::Timeline;
use crate::colored;
use crate::domain::Fixed;
use crate::domain::SAMPLES;
use crate::effort::Efforting;
use crate::kernel::Thread;
use crate::programs::keeper::Keeper;
use crate::programs::launch::{Launch, Manner, Performer};
use crate::programs::pages::Belfry;
use crate::programs::sentinel;
use crate::stage::{Common, Site, Stage, Tally};
use crate::team::{Inbox, Post, Team};
use crate::threads::listener::Listener;
use crate::threads::slack;
use crate::threads::standstill;
use crate::threads::worker::{self, Worker};
use crate::watchdog::Watchdog;
use model::{Beyond, CpuId, Duration, Error, Instant, Result, TaskId, TaskSet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use trace::recorder::{self, Collector, Producer};

/// All threads of a run and what they work on.
pub(super) struct Engine<M> {
    common: Common,
    make: M,
    /// By plan, its domains.
    cpus: Vec<Vec<Vec<CpuId>>>,
    /// How many stages there are, and how long one lasts.
    turns: (u32, Duration),
    /// Those that are not over, or were a moment ago: the one that rules, and the next one.
    stages: VecDeque<(u32, Arc<dyn Stage>)>,
    /// How many were made so far.
    made: u32,
    /// What came of those that are over.
    past: Tally,
    team: Arc<Team>,
    /// With their stages.
    dispatchers: Vec<(u32, JoinHandle<()>)>,
    /// One a processor, where there are programs.
    sentinels: Vec<JoinHandle<()>>,
    /// One a processor, where it is noted when one stands still.
    standstills: Vec<JoinHandle<()>>,
    /// One a processor, which tells what real-time work leaves of it.
    slack: Vec<JoinHandle<()>>,
    /// Over how long that is added up; zero: it is not watched.
    slack_window: Duration,
    /// By task; none where a program does its jobs.
    workers: Vec<Option<JoinHandle<()>>>,
    keeper: Keeper,
    /// Where there are triggers.
    listener: Option<Listener>,
    efforts: Efforting,
    collector: Option<Collector>,
}

/// The next stage is made ready so long before the one that rules is to end.
const AHEAD: Duration = Duration::from_millis(400);
/// How long threads have to be at their places.
const READY: std::time::Duration = std::time::Duration::from_secs(10);

impl<M: Maker> Engine<M> {
    #[allow(clippy::too_many_arguments, reason = "what a run takes, and its stages")]
    pub(super) fn build(
        cpus: Vec<Vec<Vec<CpuId>>>,
        make: M,
        turns: (u32, Duration),
        set: &TaskSet,
        works: Vec<Performer>,
        settings: &Settings,
        watchdog: &Watchdog,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let is_program = |id: TaskId| works[id.index()].is_program();
        let is_unmodified = |id: TaskId| works[id.index()].is_unmodified();
        let fixed: Arc<[Fixed]> = set
            .ids()
            .map(|id| {
                let phase = set.details(id).map_or(Duration::ZERO, |d| d.phase);
                let triggered = set.details(id).is_some_and(|d| d.trigger.is_some());
                Fixed::new(&set.timings()[id.index()], phase, is_unmodified(id), triggered)
            })
            .collect();
        let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
        let beats: Vec<CpuId> = cpus[0].iter().flatten().copied().collect();
        // Stages take turns with them: what a stage leaves is there again when its plan's next turn comes.
        let sets = (cpus.len().max(2) as u32).min(turns.0);
        for set_of_posts in 0..sets {
            for domain in &cpus[set_of_posts as usize % cpus.len()] {
                let index = inboxes.len() as u32;
                inboxes.push(Inbox::new(posts.len() as u32, 2 * set.len()));
                posts.extend(domain.iter().map(|cpu| {
                    let beat = beats.iter().position(|c| c == cpu).unwrap_or(0);
                    Post::new(*cpu, index, set_of_posts, beat as u32)
                }));
            }
        }
        let workers = set.ids().map(|id| Worker::new(set.name(id))).collect();
        let team = Arc::new(Team::new(
            workers,
            posts,
            inboxes,
            watchdog.board(),
            Belfry::new()?,
            fixed.iter().map(|f| f.triggered).collect(),
        ));
        // A producer a domain, as many as any stage has.
        let most = cpus.iter().map(Vec::len).max().unwrap_or(0);
        let noted: &[CpuId] = if settings.standstills { &beats } else { &[] };
        let writers = beats.iter().take(most).chain(noted).copied();
        let (mut producers, collector) = recorder::rings(writers, settings.events);
        let notes = producers.split_off(most);
        let mut engine = Engine {
            common: Common {
                team: Arc::clone(&team),
                fixed,
                settings: settings.clone(),
            },
            make,
            cpus,
            turns,
            stages: VecDeque::new(),
            made: 0,
            past: Tally::default(),
            team,
            dispatchers: Vec::new(),
            sentinels: Vec::new(),
            standstills: Vec::new(),
            slack: Vec::new(),
            slack_window: match takes_all(&beats) {
                true => slack::window(set.timings(), beats.len(), settings.patience.ordinary),
                false => Duration::ZERO,
            },
            workers: Vec::new(),
            keeper: Keeper::new(
                match set.ids().any(is_program) || settings.best_effort.has_programs() {
                    true => watchdog.board().mark(),
                    false => String::new(),
                },
            ),
            listener: None,
            efforts: Efforting::default(),
            collector: Some(collector),
        };
        let begun = engine.start(works, producers, stopped).and_then(|()| {
            let horizon = Instant::ZERO + settings.horizon;
            let watched: &[CpuId] = if engine.slack_window.is_zero() {
                &[]
            } else {
                &beats
            };
            for (place, cpu) in watched.iter().enumerate() {
                engine.slack.push(slack::start(&engine.team, *cpu, place)?);
            }
            for (cpu, producer) in beats.iter().zip(notes) {
                let thread = standstill::start(&engine.team, *cpu, producer, horizon)?;
                engine.standstills.push(thread);
            }
            let mark = match settings.best_effort.has_programs() {
                true => {
                    engine.keeper.take_orphans();
                    format!("{}best-effort", watchdog.board().mark())
                }
                false => String::new(),
            };
            let cpus: Vec<CpuId> = engine.cpus[0].iter().flatten().copied().collect();
            engine.efforts = Efforting::start(&engine.team, &settings.best_effort, &cpus, horizon, &mark)?;
            Ok(())
        });
        match begun {
            Ok(()) => Ok(engine),
            Err(e) => {
                engine.dismiss();
                Err(e)
            }
        }
    }

    fn start(
        &mut self,
        works: Vec<Performer>,
        producers: Vec<Producer>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut outside = Vec::new();
        for (task, work) in works.into_iter().enumerate() {
            let task = task as u32;
            self.workers.push(match work {
                Performer::Work(work) => Some(worker::start(
                    &self.team,
                    task,
                    work,
                    self.common.settings.provider.clone(),
                )?),
                Performer::Program(launch) => {
                    let longest = self.longest(task, &launch);
                    self.keeper.launch(&self.team, task, launch, longest)?;
                    None
                }
                Performer::Outside(door) => {
                    outside.push((task, door));
                    None
                }
            });
        }
        self.keeper.gather(&self.team, &outside, stopped)?;
        self.add_stage(producers)?;
        let periods = self.common.fixed.iter().map(|f| f.period).collect();
        self.listener = Listener::start(&self.team, &self.common.settings.triggers, periods)?;
        self.wait_for_places(|| self.listener.is_none() || self.team.listens.load(Ordering::Acquire))
    }

    /// Waits until threads that were started are at their places.
    fn wait_for_places(&self, are_there: impl Fn() -> bool) -> Result<()> {
        let until = std::time::Instant::now() + READY;
        while !are_there() {
            if let Some(e) = self.team.fault() {
                return Err(e.clone());
            }
            if let Some(trip) = self.team.board.tripped() {
                return Err(self.tripped(trip));
            }
            if std::time::Instant::now() > until {
                return Err(Error::new(format!(
                    "threads of the run were not at their places within {} s",
                    READY.as_secs()
                ))
                .remedy("try again on a machine with less to do"));
            }
            if self.team.timeline().is_some() {
                self.team.board.ordinary();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    }

    /// For how long a program may run at real-time priority without ever sleeping, as long as the
    /// run goes well: one that is held when its budget is used up sleeps then. With much to spare:
    /// who goes on beyond that is killed by the kernel.
    fn longest(&self, task: u32, launch: &Launch) -> Duration {
        let whole = self
            .common
            .settings
            .horizon
            .saturating_add(Duration::from_secs(10));
        match launch.manner {
            Manner::Unmodified(Beyond::Hold) => {
                let budget = self.common.fixed[task as usize].wcet;
                let twice = budget.saturating_add(budget);
                whole.min(twice.saturating_add(Duration::from_secs(2)))
            }
            Manner::Unmodified(Beyond::BestEffort) | Manner::Written => whole,
        }
    }

    /// Makes the next stage and waits until all of its dispatchers are at their places.
    fn add_stage(&mut self, producers: Vec<Producer>) -> Result<()> {
        let number = self.made;
        let set = self.team.set_of(number);
        let posts = self.team.posts.iter().enumerate().filter(|(_, p)| p.set == set);
        let posts: Vec<u32> = posts.map(|(index, _)| index as u32).collect();
        let first = posts.first().copied().unwrap_or(0);
        let site = Site {
            stage: number,
            domain: self.team.posts[first as usize].domain,
            post: first,
        };
        for post in self.team.posts_of(number) {
            post.clear();
            self.team.inboxes[post.domain as usize].clear();
        }
        let stage = (self.make)(number as usize % self.cpus.len(), &self.common, site, producers);
        let started = stage.start(&self.team)?;
        self.dispatchers.extend(started.into_iter().map(|d| (number, d)));
        self.stages.push_back((number, stage));
        self.made += 1;
        self.sentinels.retain(|s| !s.is_finished());
        let guarded = self.workers.iter().any(Option::is_none);
        for post in posts.into_iter().filter(|_| guarded) {
            self.sentinels.push(sentinel::start(&self.team, number, post)?);
        }
        // Everybody is at his place before anything begins.
        let ready = |team: &Team| {
            let at_post =
                |p: &Post| p.taken.load(Ordering::Acquire) && (!guarded || p.guarded.load(Ordering::Acquire));
            team.workers.iter().all(Worker::is_ready) && team.posts_of(number).all(at_post)
        };
        self.wait_for_places(|| ready(&self.team))?;
        match &self.common.settings.provider {
            Some(provider) if number == 0 => {
                provider.ready(&colored::numbers(self.team.workers.iter().map(Worker::thread)))
            }
            _ => Ok(()),
        }
    }

    /// Shortly before the stage that rules is to end, makes the next one ready to take over.
    fn look_ahead(&mut self, timeline: Timeline) -> Result<()> {
        self.put_away();
        let made = self.made;
        let end = Instant::ZERO + Duration::from_nanos(self.turns.1.nanos().saturating_mul(u64::from(made)));
        let rules = self.team.ruling() + 1 == made;
        let due = timeline.now() + AHEAD >= end && rules;
        // Where this comes late, the run may be over already: nobody would hand over.
        let horizon = Instant::ZERO + self.common.settings.horizon;
        if timeline.now() >= horizon {
            return Ok(());
        }
        // The one before has been put away: its posts are free.
        if made >= self.turns.0 || !due || self.team.is_ending_stage() || self.stages.len() > 1 {
            return Ok(());
        }
        // Until it rules nothing is written in its name.
        let domains = self.cpus[made as usize % self.cpus.len()].len();
        let (nobody, _) = recorder::rings(vec![CpuId(0); domains], 2);
        self.add_stage(nobody)?;
        let number = made % self.cpus.len() as u32;
        let [old, new] = [0, 1].map(|at| Arc::clone(&self.stages[at].1));
        let handover = move |team: &Team| {
            let carried = old.leave(team, &timeline);
            new.take_over(&timeline, carried, number);
        };
        // Where all have left meanwhile, the run is over, and this stage ends before it has ruled.
        let _ = self.team.end_stage(end, Box::new(handover));
        Ok(())
    }

    /// Keeps of stages that are over what came of them.
    fn put_away(&mut self) {
        let ruling = self.team.ruling();
        while self.stages.front().is_some_and(|(number, _)| *number < ruling) {
            let is_at_work = |(stage, d): &(u32, JoinHandle<()>)| *stage < ruling && !d.is_finished();
            if self.dispatchers.iter().any(is_at_work) {
                return;
            }
            self.dispatchers.retain(|(stage, _)| *stage >= ruling);
            if let Some((_, stage)) = self.stages.pop_front() {
                self.past.add(stage.tally(), self.kept());
            }
        }
    }

    /// How many samples of each kind are kept.
    fn kept(&self) -> usize {
        SAMPLES * self.cpus.iter().map(Vec::len).max().unwrap_or(1)
    }
}

/// Are these all of the processors that the calling thread may use? Only then can their jobs take
/// all time from ordinary programs.
fn takes_all(cpus: &[CpuId]) -> bool {
    let Ok(may_use) = Thread::current().processors() else {
        // A machine with more processors than can be asked for is not taken as a whole.
        return false;
    };
    (0..may_use.len() as u32 * 64)
        .filter(|cpu| may_use[*cpu as usize / 64] >> (cpu % 64) & 1 == 1)
        .all(|cpu| cpus.contains(&CpuId(cpu)))
}
