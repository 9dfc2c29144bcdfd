//! Scaling factors, misses and total times in the model, as 004 §IV-B and §IV-C define them.

use super::{Pair, Ran};
use experiment::multicore::sets::Scheduler;
use model::{Bytes, Duration, Error, Provenance, Result, time};
use report::Figure;
use report::lines::{self, Curves};
use serde::Serialize;

/// What came of all sets. JSON: as `warmset cache multicore --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// The name of the platform.
    pub platform: String,
    /// Sets for each scheduler.
    pub sets: u64,
    /// Jobs of each task.
    pub jobs: u32,
    /// Periods and WCETs are divided by this.
    pub hasten: u64,
    /// What an access takes that the first cache serves, with its computing.
    #[serde(rename = "access_ns", with = "time::ns")]
    pub access: Duration,
    /// Has each generator of random numbers a line of its own in S3?
    #[serde(rename = "generators_apart")]
    pub apart: bool,
    /// Each scheduler with each size.
    pub rows: Vec<Row>,
    /// Did the user stop it? What is told is of the sets that were done.
    pub interrupted: bool,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// All sets of a scheduler with one size of working sets. Pairs are of S1 and S3.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The policy.
    #[serde(rename = "policy")]
    pub scheduler: Scheduler,
    /// The size of working sets.
    pub wss: Bytes,
    /// Sets that were run.
    pub sets: u64,
    /// How many tasks they have.
    pub tasks: u64,
    /// Worst-case scaling factor of S3 (Fig. 10 (a)): the longest job of a task there by its longest
    /// one in S1; mean over the tasks of a set, then over sets.
    pub worst: f64,
    /// Average scaling factor of S3 (Fig. 10 (b)), likewise.
    pub average: f64,
    /// Percentage of the tasks that missed a deadline at least once (Fig. 11).
    pub missed_percent: [f64; 2],
    /// Until all jobs of a set were done: the mean over sets (Fig. 12).
    #[serde(rename = "total_ns")]
    pub total: [u64; 2],
    /// Runs that were given up before.
    pub given_up: [u64; 2],
}

impl Compared {
    /// # Errors
    /// The user stopped it: what is told is of the sets that were done.
    pub fn complete(&self) -> Result<()> {
        match self.interrupted {
            false => Ok(()),
            true => Err(Error::new("interrupted; what was done is told")
                .remedy("run the command again for all of it")),
        }
    }
}

/// Tasks that missed a deadline in 004 (§IV-C, Fig. 11), in percent: KiB, then G-EDF in S1 and S3,
/// P-EDF in S1 and S3.
const PAPER: [(f64, [f64; 4]); 4] = [
    (32.0, [0.0, 93.0, 0.0, 57.75]),
    (64.0, [0.0, 93.02, 0.0, 70.42]),
    (128.0, [18.0, 93.92, 0.0, 74.65]),
    (256.0, [92.0, 97.67, 54.93, 93.02]),
];

const LEGEND: [&str; 4] = ["G-EDF, S1", "G-EDF, S3", "P-EDF, S1", "P-EDF, S3"];

impl Compared {
    /// Factors, misses and times by working set (Figs. 10 to 12), and the paper's misses. `None`
    /// where no set was run.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Option<Figure>> {
        let kib = |row: &Row| row.wss.get() as f64 / 1024.0;
        // Where a curve is in the legend: two a scheduler.
        let place = |scheduler: Scheduler, s3: bool| {
            usize::from(s3) + 2 * usize::from(scheduler == Scheduler::PEdf)
        };
        let curve = |scheduler: Scheduler, s3: bool, of: &dyn Fn(&Row) -> f64| {
            let mine = self.rows.iter().filter(|row| row.scheduler == scheduler);
            let points: Vec<(f64, f64)> = mine.map(|row| (kib(row), of(row))).collect();
            (place(scheduler, s3), points)
        };
        let factor = |of: fn(&Row) -> f64| {
            let all = Scheduler::ALL.into_iter();
            all.map(|scheduler| curve(scheduler, true, &of))
                .collect::<Vec<_>>()
        };
        let both = |of: fn(&Row) -> [f64; 2]| {
            let all = Scheduler::ALL
                .into_iter()
                .flat_map(|s| [(s, false), (s, true)]);
            all.map(|(s, s3)| curve(s, s3, &|row| of(row)[usize::from(s3)]))
                .collect::<Vec<_>>()
        };
        let panel = |title: &str, y: &str, least, most, curves: Vec<(usize, Vec<(f64, f64)>)>| {
            let mut sizes: Vec<f64> = curves.iter().flat_map(|c| &c.1).map(|p| p.0).collect();
            sizes.sort_by(f64::total_cmp);
            sizes.dedup();
            Curves {
                title: title.to_owned(),
                description: format!("{title}, by working set and scheduler."),
                x: "working set, KiB".to_owned(),
                y: y.to_owned(),
                logarithmic: true,
                ticks: sizes.iter().map(|size| (*size, size.to_string())).collect(),
                level: None,
                least,
                most,
                curves,
            }
        };
        let paper = (0..4).map(|column| {
            let points = PAPER.iter().map(|(kib, percent)| (*kib, percent[column]));
            (column, points.collect::<Vec<_>>())
        });
        const MISSED: &str = "tasks, %";
        let mut panels = vec![
            panel(
                "Worst-case scaling factor",
                "S3 / S1",
                1.0,
                None,
                factor(|r| r.worst),
            ),
            panel(
                "Average scaling factor",
                "S3 / S1",
                1.0,
                None,
                factor(|r| r.average),
            ),
            panel(
                "Tasks that missed a deadline",
                MISSED,
                0.0,
                Some(100.0),
                both(|r| r.missed_percent),
            ),
        ];
        if self.rows.is_empty() {
            return Ok(None);
        }
        panels.push(panel(
            "The same in 004 (Fig. 11)",
            MISSED,
            0.0,
            Some(100.0),
            paper.collect(),
        ));
        panels.push(panel(
            "Total time",
            "ms",
            0.0,
            None,
            both(|r| r.total.map(|nanos| nanos as f64 / 1e6)),
        ));
        lines::figure(
            "multicore",
            "Periodic tasks with colored working sets",
            &format!(
                "In the caches of {}: {} jobs of each task, times divided by {}.",
                self.platform, self.jobs, self.hasten
            ),
            &LEGEND,
            &panels,
        )
    }
}

/// A row for each scheduler and size that there are pairs of.
pub(super) fn rows(pairs: &[Pair]) -> Vec<Row> {
    let mut rows = Vec::new();
    for scheduler in Scheduler::ALL {
        let mine = |pair: &&Pair| pair.scheduler == scheduler;
        let mut sizes: Vec<Bytes> = pairs.iter().filter(mine).map(|pair| pair.wss).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for wss in sizes {
            let of: Vec<&Pair> = pairs
                .iter()
                .filter(mine)
                .filter(|pair| pair.wss == wss)
                .collect();
            rows.push(row(scheduler, wss, &of));
        }
    }
    rows
}

fn row(scheduler: Scheduler, wss: Bytes, pairs: &[&Pair]) -> Row {
    let sides: [fn(&Pair) -> &Ran; 2] = [|pair| &pair.s1, |pair| &pair.s3];
    let tasks: u64 = pairs.iter().map(|pair| pair.s1.tasks.len() as u64).sum();
    let factor = |of: fn(&super::Seen) -> f64| {
        mean(pairs.iter().map(|pair| {
            let both = pair.s3.tasks.iter().zip(&pair.s1.tasks);
            mean(both.map(|(s3, s1)| of(s3) / of(s1)))
        }))
    };
    Row {
        scheduler,
        wss,
        sets: pairs.len() as u64,
        tasks,
        worst: factor(|seen| seen.longest.nanos() as f64),
        average: factor(|seen| seen.mean),
        missed_percent: sides.map(|side| {
            let missed = |pair: &&Pair| side(pair).tasks.iter().filter(|t| t.missed).count();
            100.0 * pairs.iter().map(missed).sum::<usize>() as f64 / tasks.max(1) as f64
        }),
        total: sides.map(|side| mean(pairs.iter().map(|p| side(p).total.nanos() as f64)) as u64),
        given_up: sides.map(|side| pairs.iter().filter(|p| side(p).given_up).count() as u64),
    }
}

/// Zero of none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), v| (sum + v, count + 1));
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::Seen;
    use super::*;

    /// By hand: factors 2 and 4 of the worst case, 1.5 and 1 of the average.
    #[test]
    fn factors_are_means_over_tasks_then_sets() {
        let ran = |longest: [u64; 2], mean: [f64; 2], missed: [bool; 2]| Ran {
            tasks: (0..2)
                .map(|task| Seen {
                    longest: Duration::from_nanos(longest[task]),
                    mean: mean[task],
                    missed: missed[task],
                })
                .collect(),
            total: Duration::from_nanos(longest[1]),
            given_up: missed[0],
        };
        let pair = Pair {
            scheduler: Scheduler::PEdf,
            wss: Bytes::from_kib(32),
            s1: ran([10, 20], [10.0, 20.0], [false, false]),
            s3: ran([20, 80], [15.0, 20.0], [true, false]),
        };
        let rows = rows(&[pair]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].worst, rows[0].average), (3.0, 1.25));
        assert_eq!(rows[0].missed_percent, [0.0, 50.0]);
        assert_eq!((rows[0].total, rows[0].given_up), ([20, 80], [0, 1]));
    }
}
