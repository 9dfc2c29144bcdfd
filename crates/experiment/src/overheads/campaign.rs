//! All runs of a plan, one after the other, and what they say together.
//!
//! A journal keeps what each run gave. Interrupted, the measurement writes what it has and keeps
//! the journal, so that it can go on.

use super::plan::{Engine, Header, Plan, Run};
use super::probing;
use super::run::{Looks, Seen, calibrate_walk, run, run_in_kernel};
use analyze::assign::{self, How, Refusal};
use measure::journal::Journal;
use measure::overheads::probe::{self, Probe};
use measure::overheads::raw::{self, Raw};
use measure::overheads::results::{self, Found, Origin, Record};
use measure::overheads::statements::{self, Statement};
use measure::overheads::tiles::Disturbance;
use measure::system;
use model::watch::Watch;
use model::{Duration, Enforcement, OverheadKind, Platform, Profile, Provenance, Result};
use policy::{AnyPlan, Setup, Spec};
use serde::Serialize;
use std::collections::BTreeMap;
use workload::Calibration;

/// The journal within the directory of the results.
pub const JOURNAL: &str = "overheads.part";
/// The quantum of policies that decide at quanta.
const QUANTUM: Duration = Duration::from_millis(1);

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The engine that ran the sets: what it costs is what was found.
    pub engine: Engine,
    /// The policies, as written.
    pub policies: Vec<String>,
    /// How long each run was.
    #[serde(rename = "length_ns", serialize_with = "model::time::ns::serialize")]
    pub length: Duration,
    /// Curves by policy, utilizations, overhead and code.
    pub curves: Vec<Found>,
    /// What the papers say, held against it.
    pub statements: Vec<Statement>,
    /// From one tick of the kernel to the next, if it could be seen.
    #[serde(
        rename = "tick_period_ns",
        serialize_with = "model::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub tick_period: Option<Duration>,
    /// How many runs were done.
    pub runs: u32,
    /// Runs of which nothing counts.
    pub apart: Vec<Apart>,
    /// How many runs have a record of the kernel that ends before they do.
    pub cut: u32,
    /// Samples that do not count, by cause.
    pub discards: BTreeMap<Disturbance, u64>,
    /// Samples that are not among the raw ones, though nothing disturbed them: they are counted.
    pub left_out: u64,
    /// How long an event takes that the kernel records; none where nothing is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "probe::in_document")]
    pub probe: Option<Probe>,
    /// Comings of dispatchers that the kernel did not record; they count since the waking.
    pub unseen: u64,
    /// Why nothing was seen of the kernel, if it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind: Option<String>,
    /// What the machine is emulated by, if it is: figures are of that, and of no hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulated: Option<String>,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// If the user stopped it: how many runs of how many are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<(u32, u32)>,
}

/// A run of which nothing counts.
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

impl Outcome {
    /// What a profile has of it.
    pub fn profile(&self, platform: &Platform) -> Profile {
        let mut profile = Profile::new(platform.name.clone(), self.provenance.clone());
        profile.tick_period = self.tick_period;
        profile.overheads = results::for_profile(&self.curves);
        let has_watch = profile
            .overheads
            .iter()
            .any(|curve| curve.kind == OverheadKind::Watch);
        profile.watch_period = has_watch.then_some(execute::WATCH_EVERY);
        profile
    }
}

/// What a measurement gave.
#[derive(Debug)]
pub struct Measured {
    /// What was found.
    pub outcome: Outcome,
    /// The samples behind it.
    pub raw: Raw,
    /// To be removed when both are written.
    pub journal: Journal,
}

/// Runs what the plan says.
///
/// # Errors
/// As [`run`]; a journal that does not fit; the directory cannot be written; stopped before the
/// first run was done.
pub fn measure(plan: &Plan, platform: &Platform, watch: &dyn Watch) -> Result<Measured> {
    let looks = Looks::here(plan.engine)?;
    let kernel = system::kernel();
    let header = Header::of(plan, platform, &kernel, looks.blind.clone());
    let (journal, records): (Journal, Vec<Record>) =
        Journal::open(&plan.out, JOURNAL, &header, plan.resume)?;
    let runs = plan.runs();
    if let Some(why) = &looks.blind {
        watch.note(&format!(
            "warning: the engine's own part is measured alone, which is not all that jobs lose: {why}"
        ));
    } else if !looks.knows_ticks() {
        watch.note(
            "warning: ticks are not told from other interrupts of the timer: /proc/kallsyms hides \
             the kernel's addresses",
        );
    }
    let left = runs.len().saturating_sub(records.len());
    watch.note(&format!(
        "{left} runs of {}: about {}",
        plan.length,
        about(plan.expected(left))
    ));
    let probe = match looks.blind {
        None => probing::measure(plan.engine, looks.points)?,
        Some(_) => None,
    };
    let session = Session {
        plan,
        platform,
        looks: &looks,
        unit: calibrate_walk(),
        watch,
    };
    let (journal, records) = journal.go_through(
        ("run", &runs),
        records,
        |record, of| record.number == of.number,
        ("measuring overheads", watch),
        |of| match session.one(of) {
            Err(_) if watch.stopped() => Ok(None),
            seen => seen.map(Some),
        },
    )?;
    let raw = raw(plan, records, looks.blind.is_some(), probe);
    Ok(Measured {
        outcome: together(plan, platform, &looks, &raw, kernel),
        raw,
        journal,
    })
}

/// The records with what they are of.
fn raw(plan: &Plan, records: Vec<Record>, blind: bool, probe: Option<Probe>) -> Raw {
    let runs = plan.runs().into_iter().zip(records);
    let runs = runs.map(|(run, record)| raw::Run {
        of: Origin {
            policy: plan.policies[run.policy].clone(),
            utilization: run.size.utilization,
            scaled: run.size.scaled,
            tasks: run.size.tasks,
        },
        set: run.set,
        record,
    });
    Raw {
        runs: runs.collect(),
        blind,
        probe,
    }
}

/// In seconds or minutes, rounded up.
fn about(time: Duration) -> String {
    let seconds = time.nanos().div_ceil(1_000_000_000);
    match seconds < 120 {
        true => format!("{seconds} s"),
        false => format!("{} min", seconds.div_ceil(60)),
    }
}

struct Session<'a> {
    plan: &'a Plan,
    platform: &'a Platform,
    looks: &'a Looks,
    unit: Calibration,
    watch: &'a dyn Watch,
}

impl Session<'_> {
    fn one(&self, of: &Run) -> Result<Record> {
        let processors = self.platform.usable().len() as u32;
        let set = self.plan.draw(of, processors)?.set;
        let spec: Spec = self.plan.policies[of.policy].parse()?;
        let assignment = match assign::assign(&spec, &set, self.platform, &How::default())? {
            Ok(assignment) => assignment,
            Err(why) => return Ok(apart(of, not_assigned(&why))),
        };
        let plan: AnyPlan = spec.plan(&Setup {
            set: &set,
            platform: self.platform,
            assignment: assignment.as_ref(),
            quantum: QUANTUM,
        })?;
        let length = self.plan.length;
        if self.plan.engine == Engine::Kernel {
            let given = kernel::Given {
                set: &set,
                platform: self.platform,
                enforcement: Enforcement::Off,
                horizon: length,
            };
            // Of some sets a policy makes more slices, or changes of servers, than it has room for.
            let carried = match kernel::plan::of(&spec.to_string(), &plan, &given) {
                Ok(carried) => carried,
                Err(e) => return Ok(apart(of, e.cause().to_owned())),
            };
            let seen = run_in_kernel(carried, &set, &self.unit, self.looks, self.watch)?;
            return Ok(record(of, &seen));
        }
        let seen = run(plan, &set, &self.unit, length, self.looks, self.watch)?;
        Ok(record(of, &seen))
    }
}

/// A run that cannot be.
fn apart(of: &Run, why: String) -> Record {
    Record {
        number: of.number,
        apart: Some(why),
        ..Record::default()
    }
}

fn not_assigned(why: &Refusal) -> String {
    match why {
        Refusal::KeptApart(why) => why.clone(),
        _ => "the policy has no assignment for the set".to_owned(),
    }
}

fn record(of: &Run, seen: &Seen) -> Record {
    let apart = match (seen.lost, seen.senseless) {
        (0, 0) => None,
        (0, n) => Some(format!(
            "{n} events make no sense where they come: some were lost"
        )),
        (n, _) => Some(format!("{n} events were lost")),
    };
    let record = match apart {
        None => Record::of(
            seen.tiles.iter().map(|(cpu, tiles)| (*cpu, &tiles[..])),
            &seen.calls,
            &seen.events,
        ),
        Some(_) => Record::default(),
    };
    Record {
        number: of.number,
        apart,
        unseen: seen.unseen,
        cut: seen.cut,
        ..record
    }
}

fn together(plan: &Plan, platform: &Platform, looks: &Looks, raw: &Raw, kernel: String) -> Outcome {
    let all = plan.runs().len();
    let records = || raw.runs.iter().map(|run| &run.record);
    let origins: Vec<(Origin, &Record)> = raw
        .runs
        .iter()
        .map(|run| (run.of.clone(), &run.record))
        .collect();
    let curves = results::curves(&origins, raw.blind, raw.probe.as_ref());
    let apart = raw.runs.iter().filter_map(|run| {
        Some(Apart {
            policy: run.of.policy.clone(),
            tasks: run.of.tasks,
            set: run.set,
            why: run.record.apart.clone()?,
        })
    });
    let mut discards: BTreeMap<Disturbance, u64> = BTreeMap::new();
    for (cause, count) in records().flat_map(|record| &record.discards) {
        *discards.entry(*cause).or_default() += count;
    }
    let done = raw.runs.len();
    let mut outcome = Outcome {
        engine: plan.engine,
        policies: plan.policies.clone(),
        length: plan.length,
        statements: statements::all(&curves),
        curves,
        tick_period: results::tick_period(&records().collect::<Vec<_>>()),
        runs: done as u32,
        apart: apart.collect(),
        cut: records().filter(|record| record.cut).count() as u32,
        discards,
        left_out: raw.left_out(),
        probe: raw.probe,
        unseen: records().map(|record| record.unseen).sum(),
        blind: looks.blind.clone(),
        emulated: plan.emulated.clone(),
        provenance: Provenance::default(),
        interrupted: (done < all).then_some((done as u32, all as u32)),
    };
    outcome.provenance = provenance(plan, platform, &outcome, kernel);
    outcome
}

/// What emulation makes of figures, for people.
pub fn emulation(by: &str) -> String {
    format!(
        "this machine is emulated ({by}): its caches and the ways between its processors are none \
         of hardware's, and figures are of the emulation; measure hardware with the same command \
         there"
    )
}

fn provenance(plan: &Plan, platform: &Platform, outcome: &Outcome, kernel: String) -> Provenance {
    let mut warnings = Vec::new();
    if let Some(why) = &outcome.blind {
        warnings.push(format!("overheads are the engine's own part alone: {why}"));
    }
    if let Some(by) = &outcome.emulated {
        warnings.push(emulation(by));
    }
    if let Some((done, all)) = outcome.interrupted {
        warnings.push(format!("interrupted after {done} of {all} runs"));
    }
    if !outcome.apart.is_empty() {
        warnings.push(format!(
            "{} of {} runs do not count, such as: {}",
            outcome.apart.len(),
            outcome.runs,
            outcome.apart[0].why
        ));
    }
    let mut settings = plan.about.clone();
    let mut tell = |name: &str, value: String| settings.insert(name.to_owned(), value);
    tell(
        "task sets",
        format!(
            "{} of each size, each for {}; uniform light and medium utilizations, moderate periods \
             (002 §6.2.1)",
            plan.sets, plan.length
        ),
    );
    tell(
        "outliers",
        "beyond 1.5 interquartile ranges, removed from average and maximum; `untrimmed_…` holds \
         them (002 §5.1)"
            .to_owned(),
    );
    if let Some(probe) = &outcome.probe {
        tell(
            "what measuring adds",
            format!(
                "an event of the kernel takes {}; subtracted where the events within an overhead \
                 take 5 % of it or more",
                probe.words()
            ),
        );
    }
    tell(
        "samples that do not count",
        match outcome.discards.is_empty() {
            true => "none".to_owned(),
            false => {
                let causes = outcome.discards.iter();
                let causes: Vec<String> = causes
                    .map(|(cause, count)| format!("{count} with {}", cause.words()))
                    .collect();
                causes.join(", ")
            }
        },
    );
    Provenance {
        source: format!(
            "warmset {}, engine {} (002 §5.1)",
            env!("CARGO_PKG_VERSION"),
            match plan.engine {
                Engine::User => "in real time",
                Engine::Kernel => "in the kernel",
            }
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
    use measure::overheads::tiles::{Cost, Tile};
    use model::{CpuId, OverheadKind};

    fn plan() -> Plan {
        let options = Options {
            quick: true,
            ..Options::default()
        };
        Plan::of(&options, &Platform::symmetric(2)).unwrap()
    }
    fn seen(whole: u64) -> Seen {
        let tile = Tile {
            cost: Cost::Overhead(OverheadKind::Release),
            begun: 0,
            own: Some(whole / 2),
            whole,
            disturbed: None,
        };
        Seen {
            tiles: [(CpuId(0), vec![tile; 200])].into(),
            ..Seen::default()
        }
    }

    #[test]
    fn runs_in_which_events_were_lost_do_not_count_and_are_told() {
        let plan = plan();
        let runs = plan.runs();
        let records: Vec<Record> = runs
            .iter()
            .map(|of| {
                let mut seen = seen(1_000);
                seen.lost = u64::from(of.number == 3);
                seen.senseless = u64::from(of.number == 4);
                record(of, &seen)
            })
            .collect();
        let looks = Looks::seeing();
        let platform = Platform::symmetric(2);
        let raw = raw(&plan, records, false, None);
        let outcome = together(&plan, &platform, &looks, &raw, String::new());
        let apart: Vec<_> = outcome
            .apart
            .iter()
            .map(|a| (a.policy.as_str(), a.tasks))
            .collect();
        assert_eq!(apart, [("nps-f", 4), ("p-edf", 12)]);
        assert_eq!(outcome.interrupted, None);
        assert!(outcome.provenance.warnings[0].contains("2 of 72 runs"));
        let profile = outcome.profile(&platform);
        let curve = profile
            .overhead_curve(OverheadKind::Release, "g-edf")
            .unwrap();
        assert_eq!(curve.points.len(), 6);
    }

    #[test]
    fn what_was_interrupted_says_so() {
        let plan = plan();
        let records: Vec<Record> = plan.runs()[..10]
            .iter()
            .map(|of| record(of, &seen(1_000)))
            .collect();
        let platform = Platform::symmetric(2);
        let raw = raw(&plan, records, false, None);
        let outcome = together(&plan, &platform, &Looks::seeing(), &raw, String::new());
        assert_eq!(outcome.interrupted, Some((10, 72)));
    }
}
