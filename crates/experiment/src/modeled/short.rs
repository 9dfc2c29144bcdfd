//! Short tasks of 001 in a model of a platform's caches: what a run of the filter (§5.2, Fig. 4) or
//! of a transform (§5.3, Fig. 5) loses where a flooder ran before, with and without a partition of
//! its own.
//!
//! A run computes for a given time where nothing misses, and waits for its misses as the platform's
//! prices say. Before it, either the same task ran (c_min), or a flooder that reads and changes as
//! many lines as the colored cache has, of all colors, of those that the task has not, or of all
//! with those of the task only read (c_max).

use super::lab::{Flooded, Flooder, Lab, Placed};
use super::rates::{self, Rated};
use cache::{Kind, Timed};
use model::strategy::Price;
use model::{Duration, Error, Result};
use serde::Serialize;
use workload::memory::Recorder;
use workload::{cosine, filter, fourier};

pub use crate::task::Task;

/// How it is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The task.
    pub task: Task,
    /// Numbers of coefficients or points. Empty: [`Task::sizes`].
    pub sizes: Vec<u32>,
    /// What a coefficient of the filter, or an access of a transform, takes where nothing misses.
    pub step: Duration,
    /// Words of code, which each run executes.
    pub code: u32,
    /// Activations a second, with the flooder as a task of low priority in between. Empty: none.
    pub rates: Vec<f64>,
}

impl Task {
    /// The numbers of coefficients of 001 Fig. 4; of points for transforms, as far as the cache of
    /// a machine of 001 holds them beside others.
    pub const fn sizes(self) -> &'static [u32] {
        match self {
            Task::Filter => &[4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192],
            Task::Cosine | Task::Fourier => &[16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
        }
    }

    /// What a step takes on the Pentium of 90 MHz: a coefficient as 001 §4.1 has it, and an access
    /// half as much.
    pub const fn usual_step(self) -> Duration {
        match self {
            Task::Filter => Duration::from_nanos(150),
            Task::Cosine | Task::Fourier => Duration::from_nanos(75),
        }
    }

    /// A step is this many accesses; the filter's sample that comes in is none of them.
    const fn accesses(self) -> u64 {
        match self {
            Task::Filter => 2,
            Task::Cosine | Task::Fourier => 1,
        }
    }

    /// What run `number` of the task touches.
    fn touch(self, size: usize, number: usize, touch: impl FnMut(workload::Touch)) {
        let mut recorder = Recorder::new(self.word(), touch);
        match self {
            Task::Filter => {
                // The newest sample lies one lower each time.
                let newest = (size - number % size) % size;
                filter::step(&mut recorder, size, newest, 0.0)
            }
            Task::Cosine => cosine::step(&mut recorder, size, 0.0),
            Task::Fourier => fourier::step(&mut recorder, size, 0.0),
        };
    }
}

/// Runs with one number of coefficients or points.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Coefficients or points.
    pub size: u32,
    /// Where the task ran before: c_min.
    pub alone: Price,
    /// Where the flooder ran over all colors.
    pub unpartitioned: Price,
    /// Where it ran over those that the task has not.
    pub partitioned: Price,
    /// Where it ran over all, and only read those of the task (001 §5.3).
    pub single_writer: Price,
    /// c_max / c_min of the latter three, in the best case and in the worst.
    pub unpredictability: Unpredictability,
    /// Activations at each rate that was asked for.
    pub rates: Vec<Rated>,
}

/// c_max / c_min (001 §2.1), each with the optimistic prices and with the pessimistic ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Unpredictability {
    /// Without a partition.
    pub unpartitioned: [f64; 2],
    /// With a partition.
    pub partitioned: [f64; 2],
    /// With one that others may read.
    pub single_writer: [f64; 2],
}

/// Runs the task with each size.
///
/// # Errors
/// A size of zero, or steps of no time; a rate that is none ([`rates`]); a transform of points that
/// are no power of two; the platform has no `fill` for a cache; data that does not fit into the
/// colored cache beside a flooder.
pub fn run(lab: &Lab, plan: &Plan) -> Result<Vec<Row>> {
    let sizes = match plan.sizes.is_empty() {
        true => plan.task.sizes(),
        false => &plan.sizes,
    };
    let refuse = |cause: &str, remedy: &str| {
        Err(Error::new(cause.to_owned())
            .at("--sizes")
            .remedy(remedy.to_owned()))
    };
    if sizes.contains(&0) || plan.step.is_zero() {
        return refuse(
            "a task has coefficients or points, and its steps take time",
            "give numbers above zero",
        );
    }
    if plan.task != Task::Filter && !sizes.iter().all(|size| size.is_power_of_two()) {
        return refuse(
            "a transform halves its points until one is left",
            "give powers of two",
        );
    }
    let runs = Runs { lab, plan };
    sizes.iter().map(|size| runs.row(*size)).collect()
}

/// A task on a machine.
pub(super) struct Runs<'a> {
    pub(super) lab: &'a Lab,
    pub(super) plan: &'a Plan,
}

/// A task and a flooder that share a machine.
pub(super) struct Scene {
    pub(super) machine: Timed,
    placed: Placed,
    code: Placed,
    pub(super) flooder: Option<Flooder>,
}

impl Runs<'_> {
    fn row(&self, size: u32) -> Result<Row> {
        let alone = self.last_run(size, None)?;
        let after = |what: Flooded| self.last_run(size, Some(what));
        let unpartitioned = after(Flooded::Written)?;
        let partitioned = after(Flooded::Spared)?;
        let single_writer = after(Flooded::Read)?;
        let over = |most: Price| super::ratios(most, alone);
        Ok(Row {
            size,
            alone,
            unpartitioned,
            partitioned,
            single_writer,
            unpredictability: Unpredictability {
                unpartitioned: over(unpartitioned),
                partitioned: over(partitioned),
                single_writer: over(single_writer),
            },
            rates: rates::run(self, size, alone, [unpartitioned, partitioned])?,
        })
    }

    /// What the fourth run takes; `flood`: what a flooder does with the task's colors before it.
    ///
    /// The task has as few colors as hold its data and its code.
    fn last_run(&self, size: u32, flood: Option<Flooded>) -> Result<Price> {
        const RUNS: usize = 4;
        let mut scene = self.scene(size, flood)?;
        for number in 0..RUNS - 1 {
            self.one(&mut scene, size, number)?;
        }
        if let Some(flooder) = &scene.flooder {
            self.lab.flood(&mut scene.machine, flooder)?;
        }
        let before = scene.machine.clone();
        self.one(&mut scene, size, RUNS - 1)?;
        Ok(super::between(&before, &scene.machine))
    }

    /// The task and the flooder in memory, with empty caches.
    pub(super) fn scene(&self, size: u32, flood: Option<Flooded>) -> Result<Scene> {
        let lab = self.lab;
        let task = self.plan.task;
        let bytes = u64::from(task.word()) * task.words(size as usize) as u64;
        let pages = bytes.div_ceil(lab.page) + 1;
        let own = pages.div_ceil(lab.ways);
        if own >= lab.colors {
            let what = format!("{size} coefficients or points leave no color to others");
            return Err(Error::new(what).at("--sizes").remedy(format!(
                "give fewer: the cache has {} pages",
                lab.colors * lab.ways
            )));
        }
        let mut memory = lab.memory(pages)?;
        let placed = lab.place(&mut memory, (0..pages - 1).map(|n| n % own))?;
        let code = lab.place(&mut memory, [(pages - 1) % own])?;
        let flooder = flood.map(|what| {
            lab.flooder(&mut memory, |color| match color < own {
                true => what,
                false => Flooded::Written,
            })
        });
        Ok(Scene {
            machine: lab.machine()?,
            placed,
            code,
            flooder: flooder.transpose()?,
        })
    }

    /// One run: its code, and its data.
    pub(super) fn one(&self, scene: &mut Scene, size: u32, number: usize) -> Result<()> {
        let task = self.plan.task;
        let Scene {
            machine,
            placed,
            code,
            ..
        } = scene;
        self.lab.execute(machine, code, self.plan.code)?;
        let mut done = Ok(());
        task.touch(size as usize, number, |touch| {
            let kind = if touch.write { Kind::Write } else { Kind::Read };
            // The sample that comes in is no step of the filter.
            if task != Task::Filter || !touch.write {
                machine.compute(self.plan.step, task.accesses());
            }
            // The first error ends the run.
            if done.is_ok() {
                done = machine.access(kind, placed.address(touch.offset), touch.bytes);
            }
        });
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Platform;

    fn rows(task: Task, platform: &str, step: u64, sizes: &[u32]) -> Result<Vec<Row>> {
        let lab = Lab::of(Platform::builtin(platform)?, None)?;
        let plan = Plan {
            task,
            sizes: sizes.to_vec(),
            step: Duration::from_nanos(step),
            code: 100,
            rates: Vec::new(),
        };
        run(&lab, &plan)
    }

    fn seen(sizes: &[u32]) -> Vec<Row> {
        let lab = Lab::of(Platform::builtin("pentium-90").unwrap(), None).unwrap();
        assert!(lab.unpriced().is_empty(), "nothing is written back");
        rows(Task::Filter, "pentium-90", 150, sizes).unwrap()
    }

    /// By hand, for 256 coefficients of 4 bytes in lines of 8 words: 64 lines of data and 13 of
    /// code; alone nothing misses, with a partition the L1 misses all, without both do.
    #[test]
    fn each_line_is_missed_once_after_a_flood() {
        let row = &seen(&[256])[0];
        let lines = 64 + 13;
        let steps = 256 * 150;
        assert_eq!(row.alone.optimistic.nanos(), steps);
        assert_eq!(row.partitioned.optimistic.nanos(), steps + lines * 64);
        assert_eq!(row.partitioned.pessimistic.nanos(), steps + lines * 160);
        assert_eq!(row.unpartitioned.optimistic.nanos(), steps + lines * 200);
        assert_eq!(row.unpartitioned.pessimistic.nanos(), steps + lines * 336);
    }

    /// 001 §5.2: about 35 % unpartitioned where the filter fills the first level, small problems
    /// suffer more, and beyond 1024 coefficients the first level misses anyway.
    #[test]
    fn the_shape_of_figure_4() {
        let rows = seen(&[]);
        let at = |size| rows.iter().find(|row| row.size == size).unwrap();
        let least = |size: u32| at(size).unpredictability.unpartitioned[0];
        assert!((least(1024) - 1.35).abs() < 0.01, "{}", least(1024));
        for pair in rows.windows(2) {
            let [small, large] = [&pair[0], &pair[1]].map(|row| row.unpredictability);
            assert!(small.unpartitioned[0] > large.unpartitioned[0]);
            assert!(large.partitioned[0] < large.unpartitioned[0]);
        }
        let large = at(8192);
        assert!(large.alone.optimistic.nanos() > 8192 * 150);
        assert!(large.unpredictability.partitioned[0] < 1.001);
    }
    /// 001 §5.2 and §5.3: the Pentium Pro loses clearly more than the Pentium, since lines have to
    /// be written back before they are filled, and a single writer takes most of that away.
    #[test]
    fn caches_that_write_back_lose_more() {
        let pro = rows(Task::Filter, "pentium-pro", 100, &[1024, 8192]).unwrap();
        for (row, pentium) in pro.iter().zip(seen(&[1024, 8192])) {
            let (own, other) = (row.unpredictability, pentium.unpredictability);
            assert!(
                own.unpartitioned[0] > other.unpartitioned[0] + 0.5,
                "{own:?}"
            );
            assert!(own.single_writer[0] < own.unpartitioned[0] - 0.5, "{own:?}");
            assert!(own.partitioned[0] < own.single_writer[0], "{own:?}");
        }
    }

    /// 001 §5.3: transforms compute more for each line that they touch, and lose less.
    #[test]
    fn transforms_lose_less_than_the_filter() {
        let at = |task, step| {
            let rows = rows(task, "pentium-pro", step, &[64, 1024]).unwrap();
            rows.into_iter().map(|row| row.unpredictability)
        };
        let filter: Vec<_> = at(Task::Filter, 100).collect();
        for task in [Task::Cosine, Task::Fourier] {
            for (transform, filter) in at(task, 50).zip(&filter) {
                assert!(transform.unpartitioned[0] < filter.unpartitioned[0]);
                assert!(transform.partitioned[0] <= transform.unpartitioned[0]);
            }
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for (task, sizes) in [
            (Task::Cosine, &[3][..]),
            (Task::Fourier, &[0]),
            (Task::Filter, &[1 << 20]),
            (Task::Cosine, &[8192]),
        ] {
            let e = rows(task, "pentium-pro", 50, sizes).unwrap_err();
            assert!(e.to_string().contains("--sizes"), "{e}");
        }
    }
}
