//! All runs of a plan, one after the other, and what they say together.
//!
//! A journal keeps what each run gave. Interrupted, the measurement writes what it has and keeps the
//! journal, so that it can go on. Assumes that nothing else uses the processors; what did is told.

use super::plan::{ASKED, Header, Plan, Run};
use super::run::run;
use analyze::assign::{self, How};
use machine::clock::{self, Calibration, Clock};
use machine::interrupts::Witness;
use machine::settings::Settings;
use measure::cpmd::blocks::{BlockRecord, Row};
use measure::journal::Journal;
use measure::line;
use measure::overheads::statements::Statement;
use measure::placement;
use measure::plan::available_memory;
use measure::pollute::{self, Polluters};
use measure::samples::{Discard, Sample};
use measure::scheduled::compare::{self, Methods, Pair};
use measure::scheduled::example::{self, Example};
use measure::scheduled::file::Scheduled;
use measure::scheduled::job::Tools;
use measure::scheduled::observations;
use measure::scheduled::results::{self, Dropped};
use measure::scheduled::rule::Why;
use measure::scheduled::trend::{self, Value};
use measure::system::{self, Usage};
use model::watch::Watch;
use model::{Duration, Load, Platform, Profile, Provenance, Result, ScheduledCurve};
use policy::{AnyPlan, Setup, Spec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The journal within the directory of the results.
pub const JOURNAL: &str = "scheduled.part";
/// The quantum of policies that decide at quanta.
const QUANTUM: Duration = Duration::from_millis(1);
/// How long polluters run before a run under load begins.
const SETTLE: Duration = Duration::from_millis(10);
/// How long the clock is compared with the system's.
const CALIBRATE: Duration = Duration::from_millis(50);
/// Above this part of the time, the hypervisor took too much.
const STOLEN: f64 = 0.01;

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The policies, as written.
    pub policies: Vec<String>,
    /// How long each run was.
    #[serde(rename = "length_ns", serialize_with = "model::time::ns::serialize")]
    pub length: Duration,
    /// How many runs were done.
    pub runs: u32,
    /// How many jobs ended.
    pub jobs: u64,
    /// How many of them gave a sample that counts.
    pub samples: u64,
    /// Jobs that gave no sample, by why.
    pub others: BTreeMap<Why, u64>,
    /// Samples that do not count, by cause.
    pub discards: BTreeMap<Discard, u64>,
    /// A sample that stands for how all are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
    /// Curves by policy and number of tasks, of equally many samples.
    pub curves: Vec<ScheduledCurve>,
    /// Numbers of tasks that have too few samples for a point.
    pub dropped: Vec<Dropped>,
    /// Do delays depend on the number of tasks?
    pub trends: Vec<trend::Found>,
    /// Policies against each other.
    pub policies_compared: Vec<Pair>,
    /// The synthetic method against this one.
    pub methods_compared: Vec<Methods>,
    /// When the synthetic delays were measured, if there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synthetic_time: Option<String>,
    /// Observations 1 to 5 of 000.
    pub observations: Vec<Statement>,
    /// Runs that were not done.
    pub apart: Vec<Apart>,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// If the user stopped it: how many runs of how many are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<(u32, u32)>,
}

/// A run that was not done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Apart {
    /// The policy.
    pub policy: String,
    /// How many tasks.
    pub tasks: u32,
    /// Which set of this size.
    pub set: u32,
    /// Why, as a clause.
    pub why: String,
}

/// What the journal keeps of a run.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    block: BlockRecord,
    others: BTreeMap<Why, u64>,
    apart: Option<String>,
}

/// All that a measurement gave.
#[derive(Debug)]
pub struct Measured {
    /// What was found.
    pub outcome: Outcome,
    /// All samples, those that do not count too.
    pub samples: Vec<Scheduled>,
    /// To be removed when all is written.
    pub journal: Journal,
}

/// Runs what the plan says. `synthetic`: the profile in the same directory and its samples, which
/// the results are held against.
///
/// # Errors
/// No right to run tasks in real time; a journal that does not fit; the directory cannot be
/// written; stopped before the first run was done.
pub fn measure(
    plan: &Plan,
    platform: &Platform,
    synthetic: (Option<&Profile>, &[Sample]),
    watch: &dyn Watch,
) -> Result<Measured> {
    #[cfg(target_arch = "x86_64")]
    match clock::counter() {
        Ok(counter) => return measure_with(plan, platform, synthetic, watch, counter),
        Err(e) => watch.note(&format!("note: {e}")),
    }
    measure_with(plan, platform, synthetic, watch, clock::Monotonic)
}

fn measure_with<C: Clock + 'static>(
    plan: &Plan,
    platform: &Platform,
    synthetic: (Option<&Profile>, &[Sample]),
    watch: &dyn Watch,
    clock: C,
) -> Result<Measured> {
    let kernel = system::kernel();
    let header = Header::of(plan, platform, &kernel);
    let (journal, records): (Journal, Vec<Record>) =
        Journal::open(&plan.out, JOURNAL, &header, plan.resume)?;
    let runs = plan.runs();
    let mut warnings = Vec::new();
    let mut changed = Settings::new();
    if let Err(e) = changed.keep_processors_awake() {
        warnings.push(format!("processors may have slept while idle: {e}"));
    }
    let session = Session {
        plan,
        platform,
        tools: Tools {
            clock,
            calibration: Calibration::of(clock, CALIBRATE)?,
            witness: Witness::new(),
        },
        polluters: polluters(plan, platform)?,
        watch,
    };
    if !session.tools.witness.works() {
        warnings.push(
            "interrupts are not seen on this machine: short ones may be among the delays"
                .to_owned(),
        );
    }
    for warning in &warnings {
        watch.note(&format!("warning: {warning}"));
    }
    let left = runs.len().saturating_sub(records.len());
    let expected = plan.expected(left).nanos().div_ceil(1_000_000_000);
    watch.note(&format!(
        "{left} runs of {}: about {expected} s",
        plan.length
    ));
    let (journal, records) = journal.go_through(
        ("run", &runs),
        records,
        |_, _| true,
        ("measuring cache delays in schedules", watch),
        |of| match session.one(of) {
            Err(_) if watch.stopped() => Ok(None),
            seen => seen.map(Some),
        },
    )?;
    let samples = samples_of(plan, platform, &records);
    let mut outcome = together(plan, platform, &records, &samples, synthetic);
    outcome.provenance = provenance(plan, platform, &records, kernel, warnings, &changed);
    if let Some((done, all)) = outcome.interrupted {
        let told = format!("interrupted after {done} of {all} runs");
        outcome.provenance.warnings.push(told);
    }
    Ok(Measured {
        outcome,
        samples,
        journal,
    })
}

fn polluters(plan: &Plan, platform: &Platform) -> Result<Option<Polluters>> {
    if !plan.loads.contains(&Load::Load) {
        return Ok(None);
    }
    let cpus = platform.usable();
    let size = pollute::array_size(platform, &cpus, available_memory());
    Polluters::start(&cpus, size).map(Some)
}

struct Session<'a, C> {
    plan: &'a Plan,
    platform: &'a Platform,
    tools: Tools<C>,
    polluters: Option<Polluters>,
    watch: &'a dyn Watch,
}

impl<C: Clock + 'static> Session<'_, C> {
    fn one(&self, of: &Run) -> Result<Record> {
        let began = clock::monotonic_raw();
        let cpus = self.platform.usable();
        let set = self.plan.draw(of, cpus.len() as u32)?;
        let spec: Spec = self.plan.policies[of.policy].parse()?;
        let assigned = assign::assign(&spec, &set, self.platform, &How::default())?;
        let mut record = Record {
            block: BlockRecord {
                number: of.block.number,
                before: Vec::new(),
                after: Vec::new(),
                foreign: 0.0,
                steal: 0.0,
                samples: Vec::new(),
                spent: Duration::ZERO,
            },
            others: BTreeMap::new(),
            apart: None,
        };
        let Ok(assignment) = assigned else {
            record.apart = Some("the policy has no assignment for the set".to_owned());
            return Ok(record);
        };
        let plan: AnyPlan = spec.plan(&Setup {
            set: &set,
            platform: self.platform,
            assignment: assignment.as_ref(),
            quantum: QUANTUM,
        })?;
        let pairs = line::pairs(self.platform, &cpus);
        record.block.before = line::measure(&pairs)?;
        let usage = Usage::now(&cpus);
        let polluters = self
            .polluters
            .as_ref()
            .filter(|_| of.block.load == Load::Load);
        if let Some(polluters) = polluters {
            polluters.set_running(true);
            machine::realtime::sleep(SETTLE);
        }
        let (tools, length) = (&self.tools, self.plan.length);
        let seen = run(plan, &set, &of.block, tools, length, self.watch);
        if let Some(polluters) = polluters {
            polluters.set_running(false);
        }
        let seen = seen?;
        (record.block.foreign, record.block.steal) = Usage::now(&cpus).since(&usage);
        record.block.after = line::measure(&pairs)?;
        record.others = seen.others;
        record.block.samples = seen
            .taken
            .into_iter()
            .map(|(t, cause)| {
                let times = [t.asked, t.preempted, t.cold, t.warm, t.post].map(Duration::nanos);
                Row(t.from, t.to, times, cause)
            })
            .collect();
        record.block.spent = Duration::from_nanos(clock::monotonic_raw().saturating_sub(began));
        Ok(record)
    }
}

fn samples_of(plan: &Plan, platform: &Platform, records: &[Record]) -> Vec<Scheduled> {
    let is_done: Vec<BlockRecord> = records.iter().map(|r| r.block.clone()).collect();
    let placements = placement::classify(&is_done);
    let mut samples = Vec::new();
    for ((of, block), apart) in plan.runs().iter().zip(&is_done).zip(placements) {
        samples.extend(block.expand(&of.block, platform).map(|mut sample| {
            sample.discarded = sample.discarded.or(apart);
            Scheduled {
                policy: plan.policies[of.policy].clone(),
                tasks: of.tasks,
                set: of.set,
                sample,
            }
        }));
    }
    samples
}

fn together(
    plan: &Plan,
    platform: &Platform,
    records: &[Record],
    samples: &[Scheduled],
    synthetic: (Option<&Profile>, &[Sample]),
) -> Outcome {
    let runs = plan.runs();
    let cells = results::cells(samples);
    let (compared, dropped) = results::compared(&cells);
    let trends: Vec<_> = [Value::Average, Value::Maximum]
        .into_iter()
        .filter_map(|value| trend::test(&cells, value, plan.seed))
        .collect();
    let mut others: BTreeMap<Why, u64> = BTreeMap::new();
    for (why, count) in records.iter().flat_map(|record| &record.others) {
        *others.entry(*why).or_default() += count;
    }
    let mut discards: BTreeMap<Discard, u64> = BTreeMap::new();
    for cause in samples.iter().filter_map(|s| s.sample.discarded) {
        *discards.entry(cause).or_default() += 1;
    }
    let apart = runs.iter().zip(records).filter_map(|(of, record)| {
        Some(Apart {
            policy: plan.policies[of.policy].clone(),
            tasks: of.tasks,
            set: of.set,
            why: record.apart.clone()?,
        })
    });
    let none = Profile::new(platform.name.clone(), Provenance::default());
    let profile = synthetic.0.unwrap_or(&none);
    let told = synthetic.0.filter(|p| !p.cpmd.is_empty());
    Outcome {
        policies: plan.policies.clone(),
        length: plan.length,
        runs: records.len() as u32,
        jobs: samples.len() as u64 + others.values().sum::<u64>(),
        samples: samples
            .iter()
            .filter(|s| s.sample.discarded.is_none())
            .count() as u64,
        others,
        discards,
        example: example::of(samples),
        curves: results::curves(&compared, plan.seed),
        dropped,
        observations: observations::all(profile, platform, synthetic.1, &trends),
        trends,
        policies_compared: compare::policies(&compared),
        methods_compared: compare::methods(&compared, profile, plan.seed),
        synthetic_time: told.map(|p| p.provenance.time.clone()),
        apart: apart.collect(),
        provenance: Provenance::default(),
        interrupted: (records.len() < runs.len())
            .then_some((records.len() as u32, runs.len() as u32)),
    }
}

fn provenance(
    plan: &Plan,
    platform: &Platform,
    records: &[Record],
    kernel: String,
    mut warnings: Vec<String>,
    changed: &Settings,
) -> Provenance {
    let steal = records.iter().map(|r| r.block.steal).sum::<f64>() / records.len().max(1) as f64;
    if steal > STOLEN {
        let percent = steal * 100.0;
        warnings.push(format!(
            "the hypervisor took {percent:.0} % of the processors' time"
        ));
    }
    let mut settings = plan.about.clone();
    for (name, value) in changed.told() {
        settings.insert(name.clone(), value.clone());
    }
    let mut tell = |name: &str, value: String| settings.insert(name.to_owned(), value);
    tell(
        "task sets",
        format!(
            "{} of each kind, each for {}; uniform medium utilizations scaled to {ASKED} of the \
             processors, moderate periods; all tasks of a set have the same working set",
            plan.sets, plan.length
        ),
    );
    tell("prefetchers", plan.prefetchers.name().to_owned());
    Provenance {
        source: format!(
            "warmset {}, schedule-sensitive method (000 §3.1)",
            env!("CARGO_PKG_VERSION")
        ),
        command: plan.command.clone(),
        time: system::now(),
        machine: platform.description.clone(),
        kernel,
        seed: Some(plan.seed),
        warnings,
        settings,
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Options;
    use super::*;
    use model::CpuId;

    /// All runs of the quick plan with so many preemptions each, of delays around a level.
    fn records(plan: &Plan, each: u64) -> Vec<Record> {
        let record = |of: &Run| Record {
            block: BlockRecord {
                number: of.block.number,
                before: Vec::new(),
                after: Vec::new(),
                foreign: 0.0,
                steal: 0.0,
                samples: (0..each)
                    .map(|n| {
                        let times = [900, 1000, 3000, 1000, 2000 + n];
                        Row(CpuId(0), CpuId(0), times, None)
                    })
                    .collect(),
                spent: Duration::ZERO,
            },
            others: [(Why::NotPreempted, 7)].into(),
            apart: None,
        };
        plan.runs().iter().map(record).collect()
    }

    #[test]
    fn jobs_are_counted_and_methods_kept_apart() {
        let platform = Platform::symmetric(2);
        let options = Options {
            quick: true,
            ..Options::default()
        };
        let plan = Plan::of(&options, &platform).unwrap();
        let records = records(&plan, 15);
        let samples = samples_of(&plan, &platform, &records);
        let outcome = together(&plan, &platform, &records, &samples, (None, &[]));
        let runs = records.len() as u64;
        assert_eq!((outcome.samples, outcome.jobs), (15 * runs, 22 * runs));
        assert_eq!(outcome.others, [(Why::NotPreempted, 7 * runs)].into());
        // Two policies, three numbers of tasks, two loads.
        assert_eq!(outcome.curves.len(), 12);
        assert!(outcome.dropped.is_empty() && outcome.methods_compared.is_empty());
        assert_eq!(outcome.observations.len(), 5);
        assert_eq!(outcome.policies_compared[0].cells, 12);
        let few = records_of_half(&plan);
        let samples = samples_of(&plan, &platform, &few);
        let outcome = together(&plan, &platform, &few, &samples, (None, &[]));
        assert_eq!(outcome.interrupted, Some((24, 48)));
    }

    fn records_of_half(plan: &Plan) -> Vec<Record> {
        let mut all = records(plan, 15);
        all.truncate(24);
        all
    }
}
