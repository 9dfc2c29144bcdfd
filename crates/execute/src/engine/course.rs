//! The course of a run: its threads and stages made, watched and put away.

mod building;
mod ending;
mod supervision;

use super::{Maker, Settings};
use crate::clock::Timeline;
use crate::colored;
use crate::domain::samples::SAMPLES;
use crate::effort::RunningEfforts;
use crate::ids::PostId;
use crate::programs::keeper::Keeper;
use crate::programs::sentinel;
use crate::stage::{Common, Site, Tally};
use crate::threads::dispatcher::ThreadStage;
use crate::threads::host::{ThreadTeam, Threads};
use crate::threads::listener::Listener;
use crate::threads::worker::Worker;
use model::{CpuId, Duration, Error, Instant, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use trace::recorder::{self, Collector, Producer};

/// All threads of a run and what they work on.
pub(super) struct Engine<M> {
    settings: Settings,
    common: Common<Threads>,
    make: M,
    /// By plan, its domains.
    cpus: Vec<Vec<Vec<CpuId>>>,
    /// How many stages there are, and how long one lasts.
    turns: (u32, Duration),
    /// Those that are not over, or were a moment ago: the one that rules, and the next one.
    stages: VecDeque<(u32, Arc<dyn ThreadStage>)>,
    /// How many were made so far.
    made: u32,
    /// What came of those that are over.
    past: Tally,
    team: Arc<ThreadTeam>,
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
    efforts: RunningEfforts,
    collector: Option<Collector>,
}

/// The next stage is made ready so long before the one that rules is to end.
const AHEAD: Duration = Duration::from_millis(400);
/// How long threads have to be at their places.
const READY: std::time::Duration = std::time::Duration::from_secs(10);

impl<M: Maker> Engine<M> {
    /// Waits until threads that were started are at their places.
    fn wait_for_places(&self, are_there: impl Fn() -> bool) -> Result<()> {
        let until = std::time::Instant::now() + READY;
        while !are_there() {
            if let Some(e) = self.team.fault() {
                return Err(e.clone());
            }
            if let Some(trip) = self.team.host.board.tripped() {
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
                self.team.host.board.ordinary();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    }

    /// Makes the next stage and waits until all of its dispatchers are at their places.
    fn add_stage(&mut self, producers: Vec<Producer>) -> Result<()> {
        let number = self.made;
        let posts: Vec<PostId> = self.team.posts_of(number).map(|(id, _)| id).collect();
        let first = posts.first().copied().unwrap_or(PostId(0));
        let site = Site {
            stage: number,
            domain: self.team.posts[first.index()].domain,
            post: first,
        };
        for (id, post) in self.team.posts_of(number) {
            self.team.host.post(id).clear();
            self.team.inboxes[post.domain.index()].clear();
        }
        let stage = (self.make)(
            number as usize % self.cpus.len(),
            &self.common,
            site,
            producers,
        );
        let provider = self.settings.provider.as_ref();
        let started = stage.start(&self.team, provider)?;
        self.dispatchers
            .extend(started.into_iter().map(|d| (number, d)));
        self.stages.push_back((number, stage));
        self.made += 1;
        self.sentinels.retain(|s| !s.is_finished());
        let guarded = self.workers.iter().any(Option::is_none);
        for post in posts.into_iter().filter(|_| guarded) {
            self.sentinels
                .push(sentinel::start(&self.team, number, post)?);
        }
        // Everybody is at his place before anything begins.
        let ready = |team: &ThreadTeam| {
            let at_post = |post: PostId| {
                let words = team.host.post(post);
                words.taken.load(Ordering::Acquire)
                    && (!guarded || words.guarded.load(Ordering::Acquire))
            };
            team.host.workers.iter().all(Worker::is_ready)
                && team.posts_of(number).all(|(post, _)| at_post(post))
        };
        self.wait_for_places(|| ready(&self.team))?;
        match &self.settings.provider {
            Some(provider) if number == 0 => {
                let threads = self.team.host.workers.iter().map(Worker::thread);
                provider.ready(&colored::numbers(threads))
            }
            _ => Ok(()),
        }
    }

    /// Shortly before the stage that rules is to end, makes the next one ready to take over.
    fn look_ahead(&mut self, timeline: Timeline) -> Result<()> {
        self.put_away();
        let made = self.made;
        let end = Instant::ZERO
            + Duration::from_nanos(self.turns.1.nanos().saturating_mul(u64::from(made)));
        let rules = self.team.ruling() + 1 == made;
        let due = timeline.now() + AHEAD >= end && rules;
        // Where this comes late, the run may be over already: nobody would hand over.
        if timeline.now() >= self.common.horizon {
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
        let handover = move |team: &ThreadTeam| {
            let carried = old.leave(team);
            new.take_over(team, carried, number);
        };
        // Where all have left meanwhile, the run is over, and this stage ends before it has ruled.
        let _ = self.team.end_stage(end, Box::new(handover));
        Ok(())
    }

    /// Keeps of stages that are over what came of them.
    fn put_away(&mut self) {
        let ruling = self.team.ruling();
        while self
            .stages
            .front()
            .is_some_and(|(number, _)| *number < ruling)
        {
            let is_at_work =
                |(stage, d): &(u32, JoinHandle<()>)| *stage < ruling && !d.is_finished();
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
