//! Measuring activations: what is activated, what happens before, and which activations count.

use super::{CALM, HELD, Plan, Seen, Task, WATCHED, row_of};
use crate::flood::{self, Flood, SCENARIOS, Scenario, Steps};
use crate::prepared::{self, Prepared, Sample, Sentinel};
use machine::clock::{Calibration, Clock};
use machine::interrupts::Witness;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Result};
use partition::frame::Page;
use partition::geometry::PAGE;
use partition::{Colors, View};
use std::hint::black_box;
use std::time::Instant;
use workload::{cosine::Cosine, filter::Filter, fourier::Fourier};

/// Words of the filter (001 §5.2).
type Word = f32;

/// The task in its memory.
enum Active<'a> {
    Filter(Filter<'a, Word>),
    Cosine(Cosine<'a>),
    Fourier(Fourier<'a>),
}

impl<'a> Active<'a> {
    pub(super) fn new(task: Task, memory: &'a mut View, size: usize) -> Result<Self> {
        let memory = memory.bytes();
        Ok(match task {
            Task::Filter => Active::Filter(Filter::new(bytemuck::cast_slice_mut(memory), size)?),
            Task::Cosine => Active::Cosine(Cosine::new(bytemuck::cast_slice_mut(memory), size)?),
            Task::Fourier => Active::Fourier(Fourier::new(bytemuck::cast_slice_mut(memory), size)?),
        })
    }

    #[inline(always)]
    pub(super) fn step(&mut self, sample: f64) -> f64 {
        match self {
            Active::Filter(filter) => filter.step(sample),
            Active::Cosine(transform) => transform.step(sample),
            Active::Fourier(transform) => transform.step(sample),
        }
    }
}

/// An activation and how long it took, in ticks.
#[inline(never)]
fn activate<C: Clock>(clock: C, active: &mut Active<'_>, sample: f64) -> u64 {
    let start = clock.stamp();
    black_box(active.step(sample));
    clock.stamp().saturating_sub(start)
}

/// What happens before activations.
struct Before<'a> {
    flood: Flood<'a>,
    /// As much as twice the lowest level, of others' colors.
    small: View,
    /// Many small pages of others' colors.
    translations: View,
    /// How long a flood lasts.
    lasts: std::time::Duration,
}

impl Before<'_> {
    /// Does it; gives the longest step of it, in ticks.
    pub(super) fn run<C: Clock>(&mut self, clock: C, scenario: Scenario) -> u64 {
        let mut steps = Steps::begin(clock);
        match scenario {
            Scenario::FirstLevel => flood::write_all(&mut self.small, || steps.step()),
            Scenario::Translations => flood::touch(&mut self.translations, || steps.step()),
            Scenario::Waiting => {
                let until = Instant::now() + self.lasts;
                while Instant::now() < until {
                    std::hint::spin_loop();
                    steps.step();
                }
            }
            other => self.flood.run(other, || steps.step()),
        }
        steps.longest()
    }
}

/// Half of all colors are for the flood.
fn check_colors(colors: u16, number: u16) -> Result<()> {
    if colors == 0 || colors > number / 2 {
        return Err(
            Error::new(format!("{colors} of {number} colors cannot be the task's"))
                .remedy(format!("choose between 1 and {}", number / 2)),
        );
    }
    Ok(())
}

/// Where the activation's code lies.
fn code_of<C: Clock>(task: Task) -> Vec<Page<'static>> {
    prepared::code(&[
        activate::<C> as fn(C, &mut Active<'static>, f64) -> u64 as usize,
        match task {
            Task::Filter => Filter::step as fn(&mut Filter<'static, Word>, f64) -> f64 as usize,
            Task::Cosine => Cosine::step as fn(&mut Cosine<'static>, f64) -> f64 as usize,
            Task::Fourier => Fourier::step as fn(&mut Fourier<'static>, f64) -> f64 as usize,
        },
    ])
}

/// What activations are measured with.
struct Rig<'a, C> {
    clock: C,
    calibration: Calibration,
    witness: Witness,
    sentinel: Sentinel,
    before: Before<'a>,
}

/// One activation, with what tells later whether it counts, in ticks.
struct Activation {
    sample: Sample,
    /// The slower one of two activations with a warm cache, before and after.
    guard: u64,
    /// The longest step of what came before.
    step: u64,
    /// How long the sentinel took.
    whole: u64,
}

impl<C: Clock> Rig<'_, C> {
    fn nanos(&self, ticks: u64) -> f64 {
        self.calibration.duration(ticks).nanos() as f64
    }

    pub(super) fn activation(
        &mut self,
        active: &mut Active<'_>,
        size: usize,
        scenario: usize,
        run: usize,
    ) -> Activation {
        let clock = self.clock;
        self.sentinel.read();
        self.sentinel.read();
        // What is in the partition at first, as it would be after the last activation.
        activate(clock, active, 1.0);
        let warm = activate(clock, active, 1.0);
        let step = self.before.run(clock, SCENARIOS[scenario]);
        self.witness.arm();
        let took = activate(clock, active, run as f64);
        let interrupted = self.witness.interrupted();
        let whole = self.sentinel.time(clock);
        activate(clock, active, 1.0);
        let after = activate(clock, active, 1.0);
        let sample = Sample {
            size,
            scenario,
            run,
            ns: self.nanos(took),
            step_ns: self.nanos(step),
            sentinel_ns: self.nanos(whole),
            interrupted,
            disturbed: false,
            held: false,
            emptied: false,
        };
        Activation {
            sample,
            guard: warm.max(after),
            step,
            whole,
        }
    }

    /// The shortest activation of as many as one scenario has, with nothing between: in
    /// nanoseconds.
    pub(super) fn least(&self, active: &mut Active<'_>, plan: &Plan<'_>) -> f64 {
        activate(self.clock, active, 1.0);
        let times = (0..plan.runs * plan.activations).map(|_| activate(self.clock, active, 1.0));
        times.min().map_or(f64::NAN, |ticks| self.nanos(ticks))
    }

    /// All runs of one size. `None`: the user stopped it.
    pub(super) fn runs(
        &mut self,
        active: &mut Active<'_>,
        size: usize,
        plan: &Plan<'_>,
        watch: &dyn Watch,
    ) -> Option<Vec<Sample>> {
        let mut samples: Vec<Sample> = Vec::new();
        let (mut kept, mut longest) = (Vec::new(), Vec::new());
        for run in 0..plan.runs {
            let mut guards = Vec::new();
            for activation in 0..plan.activations * SCENARIOS.len() {
                if watch.stopped() {
                    return None;
                }
                // In turn, so that what the machine does otherwise meets all alike.
                let scenario = activation % SCENARIOS.len();
                let done = self.activation(active, size, scenario, run);
                longest.push(done.step);
                kept.push(done.whole);
                guards.push(done.guard);
                samples.push(done.sample);
            }
            let most = prepared::calm(&guards, CALM, self.calibration.step);
            let begun = samples.len() - guards.len();
            for (sample, guard) in samples[begun..].iter_mut().zip(guards) {
                sample.disturbed = guard > most;
            }
            self.witness.disarm();
            watch.advance(1);
        }
        self.leave_out(&mut samples, &kept, CALM, |s| &mut s.emptied);
        self.leave_out(&mut samples, &longest, HELD, |s| &mut s.held);
        Some(samples)
    }

    /// Flags the samples whose ticks are more than `factor` times the usual of their scenario: a
    /// flood of another kind leaves prefetchers and translations in another state, so that each
    /// has its own measure.
    fn leave_out(
        &self,
        samples: &mut [Sample],
        ticks: &[u64],
        factor: f64,
        flag: fn(&mut Sample) -> &mut bool,
    ) {
        for scenario in 0..SCENARIOS.len() {
            let of = |sample: &Sample| sample.scenario == scenario;
            let own = samples.iter().zip(ticks).filter(|(s, _)| of(s));
            let own: Vec<u64> = own.map(|(_, ticks)| *ticks).collect();
            let most = prepared::calm(&own, factor, self.calibration.step);
            for (sample, ticks) in samples.iter_mut().zip(ticks).filter(|(s, _)| of(s)) {
                *flag(sample) = *ticks > most;
            }
        }
    }
}

/// The colors of the sentinel, of those beyond data, code and stack: the last, and more than the
/// task's `data` colors, so that it loses lines sooner, but not more than half of what is left to
/// the flood.
fn watched_colors(others: &Colors, data: usize) -> Colors {
    others
        .iter()
        .rev()
        .take((WATCHED * data).min(others.len() / 2))
        .collect()
}

pub(super) fn measure<C: Clock>(
    clock: C,
    prepared: &mut Prepared<'_>,
    plan: &Plan<'_>,
    watch: &dyn Watch,
) -> Result<Seen> {
    let calibration = Calibration::of(clock, Duration::from_millis(20))?;
    let witness = Witness::new();
    check_colors(plan.colors, prepared.palette.colors())?;
    // Notes of an activation on the stack lie next to this.
    let mut below = 0_u64;
    black_box(&mut below);
    let mut own = code_of::<C>(plan.task);
    own.push(Page::under(&below));
    let rest = prepared.colors_of(&own, watch)?;
    drop(own);
    let data = prepared.first_beside(&rest, plan.colors)?;
    let ways = prepared.palette.cache.ways as usize;
    let largest = plan.sizes.iter().map(|size| plan.task.wss(*size)).max();
    let pages = largest.map_or(0, |wss| wss.get().div_ceil(PAGE as u64) as usize);
    let mut memory = prepared.pool.take(&data, pages.max(ways * data.len()))?;
    let both = data.union(&rest);
    let watched = watched_colors(&prepared.others(&both), data.len());
    let sentinel = Sentinel::new(prepared.pool.take(&watched, ways * watched.len() / 2)?);
    let free = prepared.others(&both.union(&watched));
    let small = prepared.pool.take(&free, 2 * free.len())?;
    let mut spread = prepared.pool.take(&free, pages.max(1))?;
    let translations = prepared.pool.take_all(&free, usize::MAX)?;
    let palette = prepared.palette;
    let mut before = Before {
        flood: Flood::new(prepared, &data, &rest, &watched)?,
        small,
        translations,
        lasts: std::time::Duration::ZERO,
    };
    let begun = Instant::now();
    before.run(clock, Scenario::Partitioned);
    before.lasts = begun.elapsed();
    let mut seen = Seen {
        task: plan.task,
        partition: Bytes::new(palette.cache.of_one_color().get() * u64::from(plan.colors)),
        data,
        rest,
        runs: plan.runs,
        activations: plan.activations,
        flood_lasts: Duration::from_nanos(before.lasts.as_nanos() as u64),
        flood_large: before.flood.large(),
        witnessed: witness.works(),
        rows: Vec::new(),
        samples: Vec::new(),
    };
    let mut rig = Rig {
        clock,
        calibration,
        witness,
        sentinel,
        before,
    };
    watch.begin(
        "short tasks beside the flooder",
        (plan.sizes.len() * plan.runs) as u64,
    );
    for size in plan.sizes.iter().copied() {
        let whole_ns = rig.least(&mut Active::new(plan.task, &mut spread, size)?, plan);
        let mut active = Active::new(plan.task, &mut memory, size)?;
        let Some(samples) = rig.runs(&mut active, size, plan, watch) else {
            if seen.rows.is_empty() {
                return Err(Error::new("stopped before the first size was done"));
            }
            break;
        };
        seen.rows
            .push(row_of(plan.task, size, plan.runs, whole_ns, &samples)?);
        seen.samples.extend(samples);
    }
    Ok(seen)
}
