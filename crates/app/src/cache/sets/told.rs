//! What came of all sets: Figs. 4 to 6 and Table 1 of 003 in numbers.

use super::picture::Points;
use super::{Distribution, Late, Mtt, Options, Row};
use model::{Error, Provenance, Result};
use serde::Serialize;

/// All sets. JSON: as `warmset cache sets --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// The name of the platform.
    pub platform: String,
    /// Sets for each distribution and pattern.
    pub sets: u64,
    /// How long each was simulated, in nanoseconds.
    pub horizon_ns: u64,
    /// Is something missing since the user stopped it?
    pub interrupted: bool,
    /// The profiler's accuracy by pattern (Fig. 4).
    pub accuracy: Vec<Accuracy>,
    /// Miss rates against G-EDF by distribution (Figs. 5 and 6).
    pub changes: Vec<Summed>,
    /// Tardiness by policy (Table 1).
    pub tardiness: Vec<Tardiness>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// What the picture shows of each task.
    #[serde(skip)]
    pub(super) points: Points,
}

/// How well the profiler knew working sets at the end (Fig. 4).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Accuracy {
    /// `random` or `sequential`.
    pub pattern: &'static str,
    /// The least working set of these MTTs, in bytes; `None`: all MTTs.
    pub from_bytes: Option<u64>,
    /// MTTs.
    pub mtts: u64,
    /// Parts of them of which the estimate was off by less than 5 % and 10 %.
    pub within_5_percent: f64,
    /// Likewise.
    pub within_10_percent: f64,
    /// The mean of estimate by working set.
    pub mean_ratio: f64,
    /// Part of them whose estimates had converged.
    pub converged: f64,
}

/// Changes of miss rates in one distribution.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summed {
    /// Its name, and its utilizations as the paper writes them.
    pub distribution: &'static str,
    /// Likewise.
    pub utilizations: &'static str,
    /// MTTs.
    pub mtts: u64,
    /// Of all jobs (Fig. 5).
    pub average: Change,
    /// Of the worst job of each MTT (Fig. 6).
    pub worst: Change,
    /// Of the worst one that ended in the second half; `None`: no such job is known.
    pub settled: Option<Change>,
}

/// How much lower miss rates are than under G-EDF.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Change {
    /// Least, mean and largest decrease, as differences of rates.
    pub min: f64,
    /// Likewise.
    pub mean: f64,
    /// Likewise.
    pub max: f64,
    /// Part of MTTs whose rate is lower by more than [`SAME`].
    pub better: f64,
    /// Part whose rate differs by no more than that.
    pub same: f64,
    /// Part whose rate is higher by more.
    pub worse: f64,
}

/// Rates that differ by no more count as the same. The paper does not say where it draws the line.
pub const SAME: f64 = 0.01;

/// How late jobs were under a policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Tardiness {
    /// The policy.
    pub policy: &'static str,
    /// Jobs.
    pub jobs: u64,
    /// Mean of their tardiness, in nanoseconds.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Compared {
    pub(super) fn of(rows: &[Row], options: &Options, interrupted: bool) -> Self {
        let mut accuracy = Vec::new();
        for (pattern, sequential) in [("random", false), ("sequential", true)] {
            let rows = rows.iter().filter(|row| row.sequential == sequential);
            let mtts: Vec<Mtt> = rows.flat_map(|row| row.mtts.iter().copied()).collect();
            accuracy.extend(Accuracy::all(pattern, &mtts));
        }
        let changes = options.distributions.iter();
        let changes = changes.filter_map(|distribution| Summed::of(*distribution, rows));
        let both: Vec<(Late, Late)> = rows
            .iter()
            .filter_map(|row| Some((row.g_edf?, row.ca_edf)))
            .collect();
        let tardiness = match both.is_empty() {
            true => Vec::new(),
            false => vec![
                Tardiness::of("g-edf", both.iter().map(|late| late.0)),
                Tardiness::of("ca-edf:wss=profiled", both.iter().map(|late| late.1)),
            ],
        };
        Compared {
            platform: String::new(),
            sets: options.sets,
            horizon_ns: options.horizon.nanos(),
            interrupted,
            accuracy,
            changes: changes.collect(),
            tardiness,
            provenance: Provenance::default(),
            points: Points::of(rows),
        }
    }

    /// Is it complete?
    ///
    /// # Errors
    /// The user stopped it: what it says is true of the sets that were run.
    pub fn complete(&self) -> Result<()> {
        match self.interrupted {
            true => Err(Error::new("stopped before all sets were run")
                .remedy("what is shown is true of those that were; with `--journal` run it again for the rest")),
            false => Ok(()),
        }
    }
}

impl Accuracy {
    /// Of all MTTs, and of those with a working set from 0, 2, 4 and 6 MiB on.
    fn all(pattern: &'static str, mtts: &[Mtt]) -> Vec<Self> {
        const STEP: u64 = 2 << 20;
        let mut all = Vec::new();
        all.extend(Accuracy::of(pattern, None, mtts.iter()));
        for from in (0..4).map(|step| step * STEP) {
            let range = from..from + STEP;
            let within = mtts.iter().filter(|mtt| range.contains(&mtt.wss));
            all.extend(Accuracy::of(pattern, Some(from), within));
        }
        all
    }

    fn of<'a>(
        pattern: &'static str,
        from_bytes: Option<u64>,
        mtts: impl Iterator<Item = &'a Mtt> + Clone,
    ) -> Option<Self> {
        let count = mtts.clone().count();
        let ratio = |mtt: &Mtt| mtt.estimate as f64 / mtt.wss.max(1) as f64;
        let part = |of: &dyn Fn(&Mtt) -> bool| {
            mtts.clone().filter(|mtt| of(mtt)).count() as f64 / count as f64
        };
        (count > 0).then(|| Accuracy {
            pattern,
            from_bytes,
            mtts: count as u64,
            within_5_percent: part(&|mtt| (ratio(mtt) - 1.0).abs() < 0.05),
            within_10_percent: part(&|mtt| (ratio(mtt) - 1.0).abs() < 0.10),
            mean_ratio: mtts.clone().map(ratio).sum::<f64>() / count as f64,
            converged: part(&|mtt| mtt.converged),
        })
    }
}

impl Summed {
    fn of(distribution: Distribution, rows: &[Row]) -> Option<Self> {
        let rows = rows
            .iter()
            .filter(|row| row.distribution == distribution.name());
        let mtts = rows.flat_map(|row| &row.mtts);
        let settled: Vec<_> = mtts.clone().filter_map(|mtt| mtt.settled).collect();
        let rates = mtts.filter_map(|mtt| Some((mtt.g_edf?, mtt.ca_edf?)));
        let rates: Vec<_> = rates.collect();
        (!rates.is_empty()).then(|| Summed {
            distribution: distribution.name(),
            utilizations: distribution.range(),
            mtts: rates.len() as u64,
            average: Change::of(rates.iter().map(|(g, ca)| g.0 - ca.0)),
            worst: Change::of(rates.iter().map(|(g, ca)| g.1 - ca.1)),
            settled: (!settled.is_empty())
                .then(|| Change::of(settled.iter().map(|(ca, g)| g - ca))),
        })
    }
}

impl Change {
    fn of(decreases: impl Iterator<Item = f64> + Clone) -> Self {
        let count = decreases.clone().count().max(1) as f64;
        let part = |of: fn(&f64) -> bool| decreases.clone().filter(of).count() as f64 / count;
        Change {
            min: decreases.clone().fold(f64::INFINITY, f64::min),
            mean: decreases.clone().sum::<f64>() / count,
            max: decreases.clone().fold(f64::NEG_INFINITY, f64::max),
            better: part(|x| *x > SAME),
            same: part(|x| x.abs() <= SAME),
            worse: part(|x| *x < -SAME),
        }
    }
}

impl Tardiness {
    fn of(policy: &'static str, late: impl Iterator<Item = Late> + Clone) -> Self {
        let jobs: u64 = late.clone().map(|l| l.jobs).sum();
        let sum: u128 = late.clone().map(|l| u128::from(l.sum_ns)).sum();
        let mean = sum / u128::from(jobs.max(1));
        Tardiness {
            policy,
            jobs,
            // A mean of 64-bit numbers is one.
            mean_ns: u64::try_from(mean).unwrap_or(u64::MAX),
            max_ns: late.map(|l| l.max_ns).max().unwrap_or(0),
        }
    }
}
