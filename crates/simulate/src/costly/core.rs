//! What the engine with overheads keeps.

use super::With;
use super::path::Path;
use crate::costs::Costs;
use crate::course::{Dirty, Processor, Processors};
use crate::jobs::Jobs;
use crate::kernel::Cpu;
use crate::observe::Observer;
use crate::scenario::Scenario;
use crate::show::Show;
use model::{CpuId, Error, Result, TaskId, TaskSet};
use policy::tournament::Tournament;
use policy::{Domain, DomainId, Policy, Route};
use trace::Overhead;

pub(super) struct Core<'a, O, F: Path> {
    pub(super) jobs: Jobs<'a>,
    pub(super) scenario: &'a Scenario,
    pub(super) costs: &'a Costs,
    pub(super) route: Route,
    pub(super) show: Show<O>,
    pub(super) now: u64,
    pub(super) horizon: u64,
    pub(super) processors: Processors,
    /// By dense processor.
    pub(super) cpus: Vec<Cpu<F::Local>>,
    /// When a processor's kernel work ends, or its job has to be looked at.
    pub(super) ends: Tournament,
    /// When an inter-processor interrupt reaches a processor.
    pub(super) calls: Tournament,
    pub(super) releases: Tournament,
    pub(super) timers: Tournament,
    pub(super) arrivals: Tournament,
    /// By pushed task: where to, and whether an inter-processor interrupt carries it.
    pub(super) pushed: Vec<(DomainId, bool)>,
    /// By task, the processor whose timer releases its jobs, where the scenario says so; else
    /// [`Processor::NONE`]. Empty: nowhere.
    pub(super) released_on: Vec<Processor>,
    pub(super) next_tick: u64,
    pub(super) tick_period: u64,
    /// How kernel work goes by.
    pub(super) path: F,
    /// By task: the processor on which the policy wants its job, and the one that has it loaded or
    /// has begun to choose it, or [`Processor::NONE`].
    pub(super) wanted_at: Vec<Processor>,
    pub(super) loaded_at: Vec<Processor>,
    /// By task, how long the reload takes in whole that its job has begun, unless it was finished.
    pub(super) reloads: Vec<u64>,
    pub(super) dirty: Dirty,
    /// By domain in which something happened: the processor that decides, or [`Processor::NONE`]:
    /// each for itself.
    pub(super) deciding: Vec<Processor>,
    /// Processors that may have something to do after the decisions.
    pub(super) attend: Vec<Processor>,
    /// Timers that completions of this instant ask for, by processor and task: served when all
    /// completions are taken in.
    pub(super) transfers: Vec<(Processor, TaskId)>,
    /// By task, then for no task: time lost.
    pub(super) lost: Vec<[u64; Overhead::ALL.len()]>,
    pub(super) decisions: u64,
}

impl<'a, O: Observer, F: Path> Core<'a, O, F> {
    pub(super) fn new<P: Policy>(
        domains: &[Domain<P>],
        route: Route,
        (set, platform, scenario, costs): With<'a>,
        observer: O,
    ) -> Result<Self> {
        let processors = Processors::of(domains);
        let (m, n) = (processors.ids.len(), set.len());
        let released_on = released_on(set, &scenario.release_on, &processors, &route)?;
        let jobs = Jobs::new(set, scenario, platform, &processors.ids, P::SLICES)?;
        let last = scenario.horizon.nanos();
        let tick_period = costs.ticks_apart(scenario.quantum);
        let mut releases = Tournament::until(n, last);
        for (task, row) in jobs.rows.iter().enumerate() {
            releases.set(task, row.next_release);
        }
        Ok(Core {
            scenario,
            costs,
            route,
            // A processor counts as idle from the start.
            show: Show::new(observer, &processors.ids, true),
            now: 0,
            horizon: scenario.horizon.nanos(),
            processors,
            cpus: vec![Cpu::idle(); m],
            // Of kernel work that begins before the horizon the end is asked for.
            ends: Tournament::until(m, last.saturating_add(costs.longest())),
            calls: Tournament::until(m, last),
            releases,
            timers: Tournament::until(domains.len(), last),
            arrivals: Tournament::until(if P::SLICES { n } else { 1 }, last),
            pushed: vec![(DomainId(0), false); n],
            released_on,
            next_tick: match costs.tick {
                0 => u64::MAX,
                _ => tick_period,
            },
            tick_period,
            path: F::new(costs.tick < tick_period && !jobs.limits.any(), m),
            wanted_at: vec![Processor::NONE; n],
            loaded_at: vec![Processor::NONE; n],
            reloads: vec![0; costs.cpmd.len()],
            dirty: Dirty::all(domains.len()),
            deciding: vec![Processor::NONE; domains.len()],
            attend: Processor::all(m).collect(),
            transfers: Vec::with_capacity(m),
            lost: vec![[0; Overhead::ALL.len()]; n + 1],
            jobs,
            decisions: 0,
        })
    }
}

/// By task, the processor that the scenario has release its jobs.
///
/// # Errors A processor that no task runs on; a migratory task of EDF-fm, whose jobs are released
/// where they run (002 §4.1).
fn released_on(
    set: &TaskSet,
    wanted: &[Option<CpuId>],
    processors: &Processors,
    route: &Route,
) -> Result<Vec<Processor>> {
    let place = |(task, wanted): (usize, &Option<CpuId>)| {
        let Some(cpu) = wanted else {
            return Ok(Processor::NONE);
        };
        let name = set.name(TaskId(task as u32));
        let refuse =
            |cause: String| Err(Error::new(cause).remedy("name another processor, or none"));
        if let Route::Alternating(turns) = route
            && turns[task].first != turns[task].second
        {
            return refuse(format!(
                "jobs of {name} take turns on two processors, and are released there"
            ));
        }
        match processors.ids.iter().position(|id| id == cpu) {
            Some(place) => Ok(Processor(place as u32)),
            None => refuse(format!(
                "the policy does not use processor {cpu}, which is to release jobs of {name}"
            )),
        }
    };
    wanted.iter().enumerate().map(place).collect()
}
