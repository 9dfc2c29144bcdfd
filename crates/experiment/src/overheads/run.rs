//! One run of a task set, and what it cost, sample by sample.

use super::plan::Engine;
use execute::{Ending, Outcome, Performer, Settings};
use machine::tracefs::{Recorded, Recording, Tracepoint};
use measure::overheads::in_kernel;
use measure::overheads::marks::{self, TRACEPOINTS, Threads};
use measure::overheads::tiles::{Mark, Tile, Tiler};
use model::watch::Watch;
use model::{CpuId, Duration, Error, Overhead, Result, TaskSet};
use policy::AnyPlan;
use std::collections::BTreeMap;
use std::path::Path;
use trace::{Event, EventKind, Sink};
use workload::walk::Walk;
use workload::{Calibration, Repeated, calibrate};

use super::sets;

/// The part of its WCET that a job takes in the median.
const PART: f64 = 0.9;

/// What can be seen of the kernel here.
#[derive(Clone, PartialEq, Debug)]
pub struct Looks {
    /// What is recorded.
    pub points: &'static [Tracepoint],
    /// Why nothing of the kernel's part can be recorded, as a clause; `None`: it can.
    pub blind: Option<String>,
    /// The address of the kernel's tick, if it may be known.
    tick: Option<i64>,
    /// That of the function by which the kernel calls timers of the engine in the kernel.
    callback: Option<i64>,
}

impl Looks {
    /// What can be seen of what this engine does.
    ///
    /// # Errors
    /// The kernel does not show what the engine in it does: all of that is the kernel's own code.
    pub fn here(engine: Engine) -> Result<Self> {
        let symbols = std::fs::read_to_string(Path::new("/proc/kallsyms")).unwrap_or_default();
        let (points, missing): (&[Tracepoint], _) = match engine {
            Engine::User => (&TRACEPOINTS, marks::missing()),
            Engine::Kernel => (&in_kernel::TRACEPOINTS, in_kernel::missing()),
        };
        let looks = Looks {
            points,
            blind: missing.map(|point| {
                format!(
                    "the kernel's tracepoint `{point}` is not to be had: mount tracefs as root, on \
                     a kernel that traces events"
                )
            }),
            tick: marks::tick_of(&symbols),
            callback: in_kernel::callback_of(&symbols),
        };
        let unseen = |cause: String, remedy: &str| {
            Err(Error::new(cause).at("--engine kernel").remedy(remedy))
        };
        match (engine, &looks.blind, missing) {
            (Engine::User, ..) => Ok(looks),
            (Engine::Kernel, Some(_), point) => unseen(
                format!(
                    "the kernel does not show its tracepoint `{}`, and all that this engine takes \
                     is the kernel's own code",
                    point.unwrap_or_default()
                ),
                "as root, `mount -t tracefs nodev /sys/kernel/tracing`",
            ),
            (Engine::Kernel, None, _) if looks.callback.is_none() => unseen(
                "/proc/kallsyms hides the address of `bpf_timer_cb`, by which the engine's timers \
                 are told from others"
                    .to_owned(),
                "run it as root, with `sysctl kernel.kptr_restrict=1` or 0",
            ),
            _ => Ok(looks),
        }
    }

    /// Where all can be seen.
    #[cfg(test)]
    pub(super) fn seeing() -> Self {
        Looks {
            points: &TRACEPOINTS,
            blind: None,
            tick: Some(0),
            callback: Some(0),
        }
    }

    /// Can ticks be told from other interrupts of the timer?
    pub fn knows_ticks(&self) -> bool {
        self.blind.is_none() && self.tick.is_some()
    }
}

/// What a run cost.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seen {
    /// By processor, in the order in which they ended.
    pub tiles: BTreeMap<CpuId, Vec<Tile>>,
    /// When the kernel recorded events on each processor, in the order of time.
    pub events: BTreeMap<CpuId, Vec<u64>>,
    /// From telling a thread on another processor to begin to its first instruction, in
    /// nanoseconds.
    pub calls: Vec<u32>,
    /// Marks that made no sense where they came. Where there are any, some were lost.
    pub senseless: u64,
    /// Comings of dispatchers that the kernel did not record.
    pub unseen: u64,
    /// Events that the engine or the kernel had no room for.
    pub lost: u64,
    /// Was the kernel's record cut off, as there was too much of it?
    pub cut: bool,
}

/// Runs a set for so long, and looks at what engine and kernel do.
///
/// # Errors
/// As [`execute::run`] and [`Recording::begin`]; the user stopped it.
pub fn run(
    plan: AnyPlan,
    set: &TaskSet,
    unit: &Calibration,
    horizon: Duration,
    looks: &Looks,
    watch: &dyn Watch,
) -> Result<Seen> {
    let works = works(set, unit).into_iter().map(Performer::from);
    let settings = Settings {
        horizon,
        standstills: true,
        // More often than other runs: what one look costs is the same, and no sample is kept that
        // a standstill disturbed.
        watch_every: Duration::from_millis(1),
        ..Settings::default()
    };
    let works: Vec<Performer> = works.collect();
    let mut own = Own::default();
    let recording = match looks.blind {
        None => Some(Recording::begin(&TRACEPOINTS)?),
        Some(_) => None,
    };
    let outcome = execute::run(plan, set, works, &settings, &watch, &mut own, |_| {})?;
    let recorded = recording.map(Recording::end).transpose()?;
    if outcome.ending == Ending::Interrupted {
        return Err(Error::new("stopped before the run was done"));
    }
    Ok(cut(own, recorded, outcome, looks.tick))
}

/// Runs a set in the kernel for so long, and looks at what the kernel does for it.
///
/// # Errors
/// As [`kernel::run`] and [`Recording::begin_to_read_afterwards`]; the user stopped it.
pub fn run_in_kernel(
    carried: kernel::Carried,
    set: &TaskSet,
    unit: &Calibration,
    looks: &Looks,
    watch: &dyn Watch,
) -> Result<Seen> {
    let timers = Timers::of(&carried.plan);
    let cpus: Vec<CpuId> = carried.plan.cpus.iter().copied().map(CpuId).collect();
    let horizon = Duration::from_nanos(carried.plan.horizon);
    let settings = kernel::Settings::default();
    let mut released = Released::default();
    // A thread that read it meanwhile would go before jobs, as all ordinary ones do.
    let recording = measure::kernel::begin_these(looks.points, &cpus, horizon)?;
    let works = works(set, unit);
    let outcome = kernel::run(
        carried,
        set,
        works,
        &settings,
        &watch,
        &mut released,
        |_| {},
    )?;
    let recorded = recording.end()?;
    if outcome.ending == Ending::Interrupted {
        return Err(Error::new("stopped before the run was done"));
    }
    Ok(cut_in_kernel(
        &released, &timers, &recorded, &outcome, looks,
    ))
}

/// By processor, the one that releases the jobs of its domain: timers stay on the first.
struct Timers(BTreeMap<CpuId, CpuId>);

impl Timers {
    fn of(plan: &kernel::intf::Plan) -> Self {
        let slots = |set: u64| (0..plan.cpus.len()).filter(move |slot| set >> slot & 1 == 1);
        let cpu = |slot: usize| CpuId(plan.cpus[slot]);
        let pairs = plan.domains.iter().flat_map(|domain| {
            let first = slots(domain.cpus).next();
            slots(domain.cpus).filter_map(move |slot| Some((cpu(slot), cpu(first?))))
        });
        Timers(pairs.collect())
    }
}

/// When a job was released, and for which processor.
#[derive(Clone, Debug, Default)]
struct Released(Vec<(u64, CpuId)>);

impl Sink for Released {
    fn record(&mut self, event: Event) {
        if let (EventKind::Release, Some(cpu)) = (event.kind, event.cpu()) {
            self.0.push((event.time.nanos(), cpu));
        }
    }
}

fn cut_in_kernel(
    released: &Released,
    timers: &Timers,
    recorded: &Recorded,
    outcome: &kernel::Outcome,
    looks: &Looks,
) -> Seen {
    let known = in_kernel::Known {
        workers: outcome.threads.iter().copied().collect(),
        callback: looks.callback.unwrap_or_default(),
        tick: looks.tick,
    };
    // Before the first release threads come in, and after the end they leave.
    let (from, to) = (outcome.origin, outcome.origin + outcome.end.nanos());
    let mut marks: Vec<(u64, CpuId, in_kernel::Mark)> = (released.0.iter())
        .filter_map(|(time, cpu)| {
            Some((from + time, *timers.0.get(cpu)?, in_kernel::Mark::Released))
        })
        .collect();
    let mut events: BTreeMap<CpuId, Vec<u64>> = BTreeMap::new();
    for record in &recorded.all {
        let times = events.entry(CpuId(record.cpu)).or_default();
        times.push(record.time);
        if let Some((cpu, mark)) = in_kernel::mark(record, &known) {
            marks.push((record.time, cpu, mark));
        }
    }
    marks.retain(|(time, ..)| (from..to).contains(time));
    marks.sort_by_key(|(time, ..)| *time);
    let tilers = in_kernel::cut(&marks);
    Seen {
        calls: tilers.values().flat_map(|t| t.calls().to_vec()).collect(),
        senseless: tilers.values().map(in_kernel::Tiler::senseless).sum(),
        tiles: tilers
            .iter()
            .map(|(cpu, t)| (*cpu, t.tiles().to_vec()))
            .collect(),
        events,
        lost: outcome.lost + recorded.lost,
        ..Seen::default()
    }
}

/// What the jobs of each task do.
fn works(set: &TaskSet, unit: &Calibration) -> Vec<Box<dyn workload::Work>> {
    let work = |task: model::TaskId| -> Box<dyn workload::Work> {
        let wcet = set.timings()[task.index()].wcet.nanos() as f64;
        let length = Duration::from_nanos((wcet * PART) as u64);
        let units = unit.units_within(length);
        Box::new(Repeated::new(walk(u64::from(task.0) + 1), units))
    };
    set.ids().map(work).collect()
}

/// The working set of a task, which it walks through.
fn walk(seed: u64) -> Walk {
    Walk::new(sets::WSS, sets::WRITES, model::Pattern::Random, seed)
}

/// How long a step of such a walk takes here.
pub fn calibrate_walk() -> Calibration {
    calibrate::calibrate(&mut walk(0))
}

/// The engine's own brackets, and when the machine stood still.
#[derive(Clone, Debug, Default)]
struct Own(Vec<(u64, CpuId, Mark)>);

impl Sink for Own {
    fn record(&mut self, event: Event) {
        let Some(cpu) = event.cpu() else { return };
        let mark = match (event.kind, event.overhead_kind()) {
            (EventKind::OverheadBegin, Some(overhead)) if is_bracketed(overhead) => {
                Mark::Own(overhead)
            }
            (EventKind::OverheadEnd, Some(overhead)) if is_bracketed(overhead) => {
                Mark::OwnEnd(overhead)
            }
            (EventKind::Standstill, _) => Mark::StoodStill(event.length().nanos()),
            _ => return,
        };
        self.0.push((event.time.nanos(), cpu, mark));
    }
}

fn is_bracketed(overhead: Overhead) -> bool {
    matches!(
        overhead,
        Overhead::Release | Overhead::Scheduling | Overhead::ContextSwitch
    )
}

/// Puts the marks of engine and kernel together, and cuts them.
fn cut(own: Own, recorded: Option<Recorded>, outcome: Outcome, tick: Option<i64>) -> Seen {
    let threads = Threads {
        dispatchers: outcome.dispatchers.iter().copied().collect(),
        watches: outcome.watches.iter().copied().collect(),
        workers: outcome.threads.iter().copied().collect(),
    };
    let mut all = own.0;
    for (time, ..) in &mut all {
        *time += outcome.origin;
    }
    let new = match recorded {
        Some(_) => Tiler::default,
        None => Tiler::own_only,
    };
    let recorded = recorded.unwrap_or_default();
    let end = match recorded.cut {
        true => recorded.all.last().map_or(0, |record| record.time),
        false => u64::MAX,
    };
    // Threads are ordinary ones again when the run is over, and their switches are not recorded.
    let end = end.min(outcome.origin + outcome.end.nanos());
    let mut events: BTreeMap<CpuId, Vec<u64>> = BTreeMap::new();
    for record in &recorded.all {
        events
            .entry(CpuId(record.cpu))
            .or_default()
            .push(record.time);
    }
    all.extend(recorded.all.iter().filter_map(|record| {
        let (cpu, mark) = marks::mark(record, &threads, tick)?;
        Some((record.time, cpu, mark))
    }));
    all.retain(|(time, ..)| *time <= end);
    all.sort_by_key(|(time, ..)| *time);
    let mut tilers: BTreeMap<CpuId, Tiler> = threads
        .dispatchers
        .keys()
        .map(|cpu| (*cpu, new()))
        .collect();
    for (time, cpu, mark) in all {
        if let Some(tiler) = tilers.get_mut(&cpu) {
            tiler.add(time, mark);
        }
    }
    Seen {
        senseless: tilers.values().map(Tiler::senseless).sum(),
        unseen: tilers.values().map(Tiler::unseen).sum(),
        tiles: tilers
            .into_iter()
            .map(|(cpu, t)| (cpu, t.tiles().to_vec()))
            .collect(),
        events,
        calls: outcome.calls,
        lost: outcome.lost + recorded.lost,
        cut: recorded.cut,
    }
}
