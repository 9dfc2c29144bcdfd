//! Random sets of multithreaded tasks in the model, under the cache-aware scheduler with its
//! profiler and under G-EDF (003 §4.1 and §4.2).
//!
//! Jobs walk their working set three times, jobs of one number of an MTT the same memory, others
//! memory of their own (003 §3.2, assumption 1). Where the pattern is sequential, the last private
//! cache fetches the next line, and what it fetches counts as nobody's miss, as on the paper's
//! machine.

mod draw;
mod journal;
mod picture;
mod told;

pub use draw::{Distribution, draw};
pub use told::{Accuracy, Change, Compared, Summed, Tardiness};

use crate::scheduling::Scheduling;
use crate::simulate::caches::{self, Caches};
use crate::{On, provenance};
use ::cache::Shape;
use journal::Journal;
use model::strategy::Prefetch;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Pattern, Platform, Result, TaskId, TaskSet};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use simulate::{Cached, Ending, Observer, Scenario, Summary, Tally};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is run. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose caches.
    pub on: On,
    /// From what utilizations are drawn. Default: all.
    pub distributions: Vec<Distribution>,
    /// How jobs walk. Default: at random, and in order.
    pub patterns: Vec<Pattern>,
    /// Sets for each distribution and pattern. Default: 100.
    pub sets: u64,
    /// How long each is simulated. Default: one minute.
    pub horizon: Duration,
    /// Seed of the sets. Default: 1.
    pub seed: u64,
    /// Keep what is done here, and go on from there.
    pub journal: Option<PathBuf>,
    /// The command that does it again, for the result.
    pub command: String,
}

impl Options {
    /// As 003 §4.1 has it.
    pub fn new(on: On) -> Self {
        Options {
            on,
            distributions: Distribution::ALL.to_vec(),
            patterns: vec![Pattern::Random, Pattern::Sequential],
            sets: 100,
            horizon: Duration::from_secs(60),
            seed: 1,
            journal: None,
            command: String::new(),
        }
    }
}

/// What came of one set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The name of the distribution.
    pub distribution: String,
    /// Did jobs walk in order?
    pub sequential: bool,
    /// The number of the set.
    pub set: u64,
    /// What came of each MTT.
    pub mtts: Vec<Mtt>,
    /// How late jobs were under the cache-aware scheduler, and under G-EDF where that was run.
    pub ca_edf: Late,
    /// Under G-EDF, where that was run.
    pub g_edf: Option<Late>,
}

/// What came of a multithreaded task.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mtt {
    /// Its working set, in bytes.
    pub wss: u64,
    /// What the profiler found at the end, and whether it had converged.
    pub estimate: u64,
    /// Did estimates agree?
    pub converged: bool,
    /// Miss rates under the cache-aware scheduler: of all jobs, of the worst job.
    pub ca_edf: Option<(f64, f64)>,
    /// The same under G-EDF.
    pub g_edf: Option<(f64, f64)>,
    /// Of the worst job that ended in the second half, when most working sets are found: under the
    /// cache-aware scheduler and under G-EDF. Journals from before that was counted have none.
    #[serde(default)]
    pub settled: Option<(f64, f64)>,
}

/// How late jobs were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Late {
    /// Complete jobs.
    pub jobs: u64,
    /// Sum of their tardiness, in nanoseconds.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Runs all sets. What the journal has is not run again.
///
/// # Errors
/// No sets; a platform whose caches cannot be modelled or have no prices; a journal of other
/// options.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Compared> {
    if options.sets == 0 || options.distributions.is_empty() || options.patterns.is_empty() {
        return Err(Error::new("there is nothing to run")
            .at("--sets")
            .remedy("give at least one set, one distribution and one pattern"));
    }
    crate::workers()?;
    let platform = options.on.platform()?;
    let lab = Lab {
        shape: Shape::of(&platform)?,
        page: cache::page_of(&platform),
        platform: &platform,
        options,
    };
    let journal = Journal::open(options, &platform.name)?;
    let all = lab.all();
    let missing: Vec<Which> = all
        .iter()
        .copied()
        .filter(|which| !journal.done.contains_key(which))
        .collect();
    watch.begin("running task sets in the model", all.len() as u64);
    watch.advance((all.len() - missing.len()) as u64);
    let ran = missing.into_par_iter().map(|which| {
        if watch.stopped() {
            return Ok(None);
        }
        let Some(row) = lab.row(which, watch)? else {
            return Ok(None);
        };
        journal.keep(&row)?;
        watch.advance(1);
        Ok(Some((which, row)))
    });
    let ran: Vec<Option<(Which, Row)>> = ran.collect::<Result<_>>()?;
    watch.finish();
    let mut rows = journal.done;
    rows.extend(ran.into_iter().flatten());
    let interrupted = all.iter().any(|which| !rows.contains_key(which));
    let rows: Vec<Row> = all.iter().filter_map(|which| rows.remove(which)).collect();
    let mut compared = Compared::of(&rows, options, interrupted);
    compared.platform.clone_from(&platform.name);
    compared.provenance = provenance(&options.command);
    compared.provenance.seed = Some(options.seed);
    Ok(compared)
}

/// A set: its distribution, whether it is walked in order, its number.
type Which = (Distribution, bool, u64);

struct Lab<'a> {
    shape: Shape,
    page: u64,
    platform: &'a Platform,
    options: &'a Options,
}

/// Asks whether to stop, and reports nothing.
pub(super) struct Quiet<'a>(pub(super) &'a dyn Watch);

impl Watch for Quiet<'_> {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}

impl Lab<'_> {
    fn all(&self) -> Vec<Which> {
        let mut all = Vec::new();
        for pattern in &self.options.patterns {
            for distribution in &self.options.distributions {
                let sequential = *pattern == Pattern::Sequential;
                all.extend((0..self.options.sets).map(|n| (*distribution, sequential, n)));
            }
        }
        all
    }

    /// What comes of a set; `None`: interrupted.
    fn row(
        &self,
        (distribution, sequential, number): Which,
        watch: &dyn Watch,
    ) -> Result<Option<Row>> {
        let pattern = match sequential {
            true => Pattern::Sequential,
            false => Pattern::Random,
        };
        let processors = self.platform.usable().len() as u64;
        let set = draw(distribution, pattern, processors, self.options.seed, number)?;
        let Some(aware) = self.simulate(&set, "ca-edf:wss=profiled", sequential, watch)? else {
            return Ok(None);
        };
        // The paper compares the schedulers with random patterns alone.
        let plain = match sequential {
            true => None,
            false => match self.simulate(&set, "g-edf", sequential, watch)? {
                None => return Ok(None),
                Some(plain) => Some(plain),
            },
        };
        Ok(Some(Row {
            distribution: distribution.to_string(),
            sequential,
            set: number,
            mtts: mtts(&set, &aware, plain.as_ref()),
            ca_edf: aware.late,
            g_edf: plain.map(|plain| plain.late),
        }))
    }

    fn simulate(
        &self,
        set: &TaskSet,
        policy: &str,
        sequential: bool,
        watch: &dyn Watch,
    ) -> Result<Option<Simulated>> {
        let mut shape = self.shape.clone();
        if sequential {
            prefetch_before_last(&mut shape);
        }
        let how = Caches {
            fresh: true,
            ..Caches::default()
        };
        let mut cached = caches::in_shape(set, shape, self.page, how, self.options.seed)?;
        cached.count_from(Duration::from_nanos(self.options.horizon.nanos() / 2));
        let scheduling = Scheduling::of(policy)?;
        let plan = scheduling
            .policy()
            .plan(&scheduling.setup(set, self.platform, None))?;
        let scenario = Scenario {
            horizon: self.options.horizon,
            ..Scenario::default()
        };
        let mut lateness = Lateness::of(set);
        let run = simulate::Run {
            set,
            platform: self.platform,
            scenario: &scenario,
            costs: None,
            watch: &Quiet(watch),
        };
        let summary = run.in_caches(plan, &mut lateness, &mut cached)?;
        Ok((summary.ending != Ending::Interrupted)
            .then(|| Simulated::of(&summary, &lateness, &cached)))
    }
}

/// Lets the caches before the outermost one fetch the next line.
fn prefetch_before_last(shape: &mut Shape) {
    let before_last: Vec<usize> = (0..shape.parts.len())
        .filter(|at| {
            let next = shape.parts[*at].next;
            next.is_some_and(|next| shape.parts[next].next.is_none())
        })
        .collect();
    for part in before_last {
        shape.parts[part].prefetch = Some(Prefetch::NextLine);
    }
}

/// What came of a set under one policy.
struct Simulated {
    late: Late,
    tallies: Vec<Tally>,
    profiled: Vec<(u32, policy::profiler::Estimate)>,
}

impl Simulated {
    fn of(summary: &Summary, lateness: &Lateness, cached: &Cached) -> Self {
        Simulated {
            late: lateness.late,
            tallies: cached.tallies().collect(),
            profiled: summary.profiled.clone(),
        }
    }
}

/// Adds up how late jobs are.
struct Lateness {
    deadlines: Vec<u64>,
    late: Late,
}

impl Lateness {
    fn of(set: &TaskSet) -> Self {
        Lateness {
            deadlines: set.timings().iter().map(|t| t.deadline.nanos()).collect(),
            late: Late::default(),
        }
    }
}

impl Observer for Lateness {
    const EVENTS: bool = false;
    fn completed(&mut self, task: TaskId, _number: u64, response: u64) {
        let tardiness = response.saturating_sub(self.deadlines[task.index()]);
        self.late.jobs += 1;
        self.late.sum_ns = self.late.sum_ns.saturating_add(tardiness);
        self.late.max_ns = self.late.max_ns.max(tardiness);
    }
}

/// What came of each MTT.
fn mtts(set: &TaskSet, aware: &Simulated, plain: Option<&Simulated>) -> Vec<Mtt> {
    let mut all: BTreeMap<u32, (Mtt, Tally, Tally)> = BTreeMap::new();
    for (id, (mtt, found)) in set.ids().zip(&aware.profiled) {
        let (_, ours, others) = all.entry(*mtt).or_insert_with(|| {
            let mtt = Mtt {
                wss: set.wss(id).map_or(0, Bytes::get),
                estimate: found.wss.get(),
                converged: found.converged,
                ca_edf: None,
                g_edf: None,
                settled: None,
            };
            (mtt, Tally::default(), Tally::default())
        });
        ours.add(&aware.tallies[id.index()]);
        if let Some(plain) = plain {
            others.add(&plain.tallies[id.index()]);
        }
    }
    let rates = |tally: &Tally| Some((tally.miss_rate()?, tally.worst_rate()?));
    all.into_values()
        .map(|(mtt, ours, others)| Mtt {
            ca_edf: rates(&ours),
            g_edf: rates(&others),
            settled: ours.worst_counted_rate().zip(others.worst_counted_rate()),
            ..mtt
        })
        .collect()
}
