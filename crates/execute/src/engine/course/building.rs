//! The beginning of a run: what all threads share is made, then the threads, which wait for the
//! first release.

use super::Engine;
use crate::effort::RunningEfforts;
use crate::engine::{AFTER, Maker, Settings};
use crate::kernel::Thread;
use crate::programs::keeper::Keeper;
use crate::programs::launch::{Launch, Manner, Performer};
use crate::programs::pages::{Notice, SentinelBells};
use crate::stage::{Common, Tally};
use crate::task_state::Parameters;
use crate::team::{self, Team};
use crate::threads::host::{ThreadTeam, Threads};
use crate::threads::listener::Listener;
use crate::threads::worker::Worker;
use crate::threads::{job_loop, slack, standstill};
use crate::watchdog::Watchdog;
use model::{Beyond, CpuId, Duration, Instant, Result, TaskId, TaskSet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trace::recorder::{self, Producer};

/// The parameters of the tasks of a set, whose jobs these do.
fn parameters(set: &TaskSet, works: &[Performer]) -> Arc<[Parameters]> {
    let of = |task: TaskId| {
        let work = &works[task.index()];
        let phase = set.details(task).map_or(Duration::ZERO, |d| d.phase);
        Parameters {
            budgeted: work.is_unmodified(),
            stops_beyond_budget: work.stops_beyond_budget(),
            triggered: set.details(task).is_some_and(|d| d.trigger.is_some()),
            ..Parameters::new(&set.timings()[task.index()], phase)
        }
    };
    set.ids().map(of).collect()
}

impl<M: Maker> Engine<M> {
    /// Makes everything and starts all threads, which wait for the run to begin.
    ///
    /// # Errors
    /// A thread or program cannot be had; then everything is put away again.
    #[allow(
        clippy::too_many_arguments,
        reason = "what a run takes, and its stages"
    )]
    pub(in crate::engine) fn build(
        cpus: Vec<Vec<Vec<CpuId>>>,
        make: M,
        turns: (u32, Duration),
        set: &TaskSet,
        works: Vec<Performer>,
        settings: &Settings,
        watchdog: &Watchdog,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let parameters = parameters(set, &works);
        let has_programs = works.iter().any(Performer::is_program);
        let (posts, inboxes) = team::lay_out(&cpus, turns.0, set.len());
        let slots: Vec<u32> = posts.iter().map(|post| post.slot).collect();
        let workers = set.ids().map(|_| Worker::new()).collect();
        let host = Threads::new(workers, slots, watchdog.board(), SentinelBells::new()?);
        let names = set.ids().map(|id| set.name(id)).collect();
        let triggered = parameters.iter().map(|p| p.triggered);
        let team: Arc<ThreadTeam> = Arc::new(Team::new(host, names, posts, inboxes, triggered));
        let processors: Vec<CpuId> = cpus[0].iter().flatten().copied().collect();
        // A producer a domain, as many as any stage has.
        let most = cpus.iter().map(Vec::len).max().unwrap_or(0);
        let noted: &[CpuId] = if settings.standstills {
            &processors
        } else {
            &[]
        };
        let writers = processors.iter().take(most).chain(noted).copied();
        let (mut producers, collector) = recorder::rings(writers, settings.events);
        let notes = producers.split_off(most);
        let mut engine = Engine {
            settings: settings.clone(),
            common: Common {
                team: Arc::clone(&team),
                parameters,
                horizon: Instant::ZERO + settings.horizon,
                enforcement: settings.enforcement,
                quantum: settings.quantum,
                early: settings.early,
                limited: has_programs,
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
            slack_window: match takes_all(&processors) {
                true => slack::window(set.timings(), processors.len(), settings.patience.ordinary),
                false => Duration::ZERO,
            },
            workers: Vec::new(),
            keeper: Keeper::new(match has_programs || settings.best_effort.has_programs() {
                true => watchdog.board().mark(),
                false => String::new(),
            }),
            listener: None,
            efforts: RunningEfforts::default(),
            collector: Some(collector),
        };
        let begun = engine
            .start(works, producers, stopped)
            .and_then(|()| engine.start_observers(&processors, notes))
            .and_then(|()| engine.start_efforts(&processors));
        if let Err(e) = begun {
            engine.dismiss();
            return Err(e);
        }
        Ok(engine)
    }

    /// Starts workers, programs, the first stage and the listener.
    fn start(
        &mut self,
        works: Vec<Performer>,
        producers: Vec<Producer>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut outside = Vec::new();
        for (task, work) in (0..).map(TaskId).zip(works) {
            self.workers.push(match work {
                Performer::Work(work) => {
                    if let Some(page) = self.settings.pages.get(task.index()) {
                        let notice = Notice::on(Arc::clone(page));
                        self.team.host.worker(task).tell_on(notice);
                    }
                    let provider = self.settings.provider.clone();
                    Some(job_loop::start(&self.team, task, work, provider)?)
                }
                Performer::Program(launch) => {
                    let longest = self.longest(task, &launch);
                    self.keeper.launch(&*self.team, task, launch, longest)?;
                    None
                }
                Performer::Outside(socket) => {
                    outside.push((task, socket));
                    None
                }
            });
        }
        self.keeper.gather(&*self.team, &outside, stopped)?;
        self.add_stage(producers)?;
        let periods = self.common.parameters.iter().map(|p| p.period).collect();
        self.listener = Listener::start(&self.team, &self.settings.triggers, periods)?;
        self.wait_for_places(|| {
            self.listener.is_none() || self.team.host.listens.load(Ordering::Acquire)
        })
    }

    /// Starts the threads that tell slack and note standstills. `notes`: one for each processor
    /// whose standstills are noted.
    fn start_observers(&mut self, processors: &[CpuId], notes: Vec<Producer>) -> Result<()> {
        if !self.slack_window.is_zero() {
            for (slot, cpu) in processors.iter().enumerate() {
                self.slack.push(slack::start(&self.team, *cpu, slot)?);
            }
        }
        for (cpu, producer) in processors.iter().zip(notes) {
            let every = self.settings.watch_every;
            let horizon = self.common.horizon;
            let thread = standstill::start(&self.team, *cpu, producer, every, horizon)?;
            self.standstills.push(thread);
        }
        Ok(())
    }

    /// Starts best-effort work, which waits for the first release. All pages that the forks of
    /// programs have to be written to anew are so when memory is locked after this.
    fn start_efforts(&mut self, processors: &[CpuId]) -> Result<()> {
        let efforts = &self.settings.best_effort;
        let mut mark = String::new();
        if efforts.has_programs() {
            self.keeper.take_orphans();
            mark = format!("{}best-effort", self.team.host.board.mark());
        }
        let horizon = self.common.horizon;
        (self.efforts).start(&self.team, efforts, processors, horizon, &mark)
    }

    /// For how long a program may run at real-time priority without ever sleeping, as long as the
    /// run goes well: one that is held when its budget is used up sleeps then. With much to spare:
    /// who goes on beyond that is killed by the kernel.
    fn longest(&self, task: TaskId, launch: &Launch) -> Duration {
        let whole = self.settings.horizon.saturating_add(AFTER);
        match launch.manner {
            Manner::Unmodified(Beyond::Hold) => {
                let budget = self.common.parameters[task.index()].wcet;
                let twice = budget.saturating_add(budget);
                whole.min(twice.saturating_add(Duration::from_secs(2)))
            }
            Manner::Unmodified(Beyond::BestEffort) | Manner::Written => whole,
        }
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
