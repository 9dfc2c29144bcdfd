//! `warmset simulate`: runs a task set in virtual time under a policy and says what came of its jobs.

use super::{simulate_batch, simulate_inputs, simulate_show};
use crate::Answer;
use crate::console::{Console, Format};
use analyze::partition::pack::Scratch;
use analyze::partition::{Fit, Order};
use analyze::semi::{edf_fm, edf_wm, nps_f};
use model::assignment::Clustered;
use model::files::Aside;
use model::watch::Watch;
use model::{
    Assignment, ClusterSpec, CpuId, CpuSet, Duration, Error, Load, Platform, Profile, Provenance, Result,
    Statistic, TaskSet, files, taskfile,
};
use policy::registry::Needs;
use policy::{Setup, Spec};
use simulate::{Costs, Distributions, Ending, Enforcement, Execution, Releases, Scenario, Summary, Traced};
use std::path::{Path, PathBuf};
use trace::{FileSink, Header, Stage};

/// Options of `warmset simulate`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLE, after_long_help = LONG_HELP.as_str())]
pub struct Args {
    /// The task set, in TOML
    #[arg(required_unless_present = "batch")]
    tasks: Option<PathBuf>,
    /// The policy, such as `g-edf`, `c-edf:l3` or `p-rm`
    #[arg(long, value_name = "POLICY", default_value = "g-edf")]
    policy: Spec,
    /// A built-in platform or a file [default: this machine]
    #[arg(long, value_name = "NAME", conflicts_with = "processors")]
    platform: Option<String>,
    /// As many identical processors, instead of a platform
    #[arg(short = 'm', long, value_name = "M")]
    processors: Option<u32>,
    /// Charge overheads and cache delays: a built-in profile or a file
    #[arg(long, value_name = "NAME", conflicts_with = "batch")]
    profile: Option<String>,
    /// What else runs on the machine, for cache delays
    #[arg(long, value_enum, default_value_t = OnMachine::Load)]
    load: OnMachine,
    /// Which number of a profile is charged
    #[arg(long, value_enum, default_value_t = Charge::Maximum)]
    charge: Charge,
    /// Who runs where, as JSON, instead of what the tool would assign
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    assignment: Option<PathBuf>,
    /// How long to simulate [default: one hyperperiod, at most 60 s]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    horizon: Option<Duration>,
    /// `periodic`, `sporadic:PART` (gaps up to that part of a period), `sporadic:DISTRIBUTION`, or a file with release times
    #[arg(long, value_name = "HOW", default_value = "periodic")]
    releases: String,
    /// A part of the WCET (`0.8`), a range of parts (`0.5..1.2`), a distribution of parts (`normal:0.7,0.1`), or a file
    #[arg(long, value_name = "HOW", default_value = "1")]
    execution: String,
    /// What happens to jobs that execute for longer than their WCET
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Enforce::Off)]
    enforcement: Enforce,
    /// Length of a quantum, where something happens at quanta
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1ms")]
    quantum: Duration,
    /// Seed of random gaps and execution times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How tasks are partitioned, where the policy needs it: `wfd`, `ffd`, `bfd`, `nfd`
    #[arg(long, value_name = "FIT", default_value = "wfd")]
    fit: Fit,
    /// Stop at the first deadline miss, at the latest after 60 simulated seconds, and answer whether there was one
    #[arg(long)]
    brute_force: bool,
    /// Write every event to a trace
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    trace: Option<PathBuf>,
    /// Simulate every task set of a batch file, one JSON line each; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tasks", "platform", "processors"])]
    batch: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// [`Enforcement`] on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Enforce {
    /// They go on
    Off,
    /// They are cut short at the end of a quantum, what is left is added to the next job
    Quantum,
    /// They are cut short at once, what is left is added to the next job
    Exact,
}

/// [`Load`] on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnMachine {
    /// Nothing
    Idle,
    /// Cache polluters on every processor
    Load,
}

/// [`Statistic`] on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Charge {
    /// The mean, as for soft real time
    Average,
    /// The largest sample, as for hard real time
    Maximum,
}

const EXAMPLE: &str = "\
Example: two processors, ten seconds, all events kept
    warmset simulate tasks.toml --policy g-edf -m 2 --for 10s --trace run.wtrace";

static LONG_HELP: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let mut policies = String::from("Policies, with parameters after a colon:\n");
    for info in policy::registry::all() {
        policies.push_str(&format!("    {:10} {}\n", info.name, info.summary));
    }
    format!(
        "{EXAMPLE}\n\n{policies}\n{}\n\nExit status 1: a task that is not `soft` missed a deadline.\n\n{}",
        simulate_inputs::HELP,
        simulate_batch::HELP
    )
});

/// How long brute force looks for a miss (002 §6.3), and the longest default.
const LONGEST_DEFAULT: Duration = Duration::from_secs(60);

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let mut scenario = Scenario {
        execution: Execution::default(),
        enforcement: match args.enforcement {
            Enforce::Off => Enforcement::Off,
            Enforce::Quantum => Enforcement::PerQuantum,
            Enforce::Exact => Enforcement::Exact,
        },
        quantum: args.quantum,
        stop_at_miss: args.brute_force,
        seed: args.seed,
        ..Scenario::default()
    };
    if let Some(batch) = &args.batch {
        scenario.releases = simulate_inputs::releases(&args.releases, None)?;
        scenario.execution = simulate_inputs::execution(&args.execution, None)?;
        return simulate_batch::run(
            batch,
            &args.policy,
            args.fit,
            args.horizon,
            &scenario,
            args.output.as_deref(),
        );
    }
    let Some(path) = &args.tasks else {
        return Err(Error::new("no task set is given").remedy("name a TOML file, or use --batch"));
    };
    let set = taskfile::from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()))?;
    let platform = platform(&args)?;
    scenario.releases = simulate_inputs::releases(&args.releases, Some(&set))?;
    scenario.execution = simulate_inputs::execution(&args.execution, Some(&set))?;
    scenario.horizon = args.horizon.unwrap_or_else(|| match args.brute_force {
        true => LONGEST_DEFAULT,
        false => default_horizon(&set),
    });
    scenario.check(&set)?;
    let costs = costs(&args, &set, &platform)?;
    let assignment = match &args.assignment {
        Some(file) => Some(assignment_in(file)?),
        None => assignment_for(&args.policy, &set, &platform, args.fit)?.map_err(|why| {
            Error::new(why)
                .at(path.display())
                .remedy("choose another --fit, more processors, or a global policy")
        })?,
    };
    let plan = args.policy.plan(&Setup {
        set: &set,
        platform: &platform,
        assignment: assignment.as_ref(),
        quantum: args.quantum,
    })?;
    let console = Console::new()?;
    let costs = costs.as_ref();
    for missing in costs.iter().flat_map(|c| &c.missing) {
        console.note(missing);
    }
    let distributions = Distributions::new(&set);
    let (summary, distributions) = match &args.trace {
        None => simulate::simulate(plan, &set, &platform, &scenario, costs, &console, distributions)?,
        Some(file) => {
            let quantum = args.policy.quantum(args.quantum)?;
            let header = Header {
                charges: costs.as_ref().map(|c| c.charges(args.quantum)),
                ..header(&args, &set, &platform, assignment.clone(), &scenario, quantum)
            };
            // Aside: a trace of before stays until this one is whole.
            let sink = FileSink::new(Aside::create(file)?, file, &header)?;
            let observer = (distributions, Traced(sink));
            let (summary, (distributions, Traced(sink))) =
                simulate::simulate(plan, &set, &platform, &scenario, costs, &console, observer)?;
            sink.finish()?.finish()?;
            (summary, distributions)
        }
    };
    console.finish();
    let shown = simulate_show::Shown {
        policy: args.policy.to_string(),
        platform: platform.name.clone(),
        set: &set,
        summary: &summary,
        added_up: summary.added_up(&set, &distributions),
        scenario: &scenario,
    };
    shown.print(args.format, args.output.as_deref())?;
    if summary.ending == Ending::Interrupted {
        return Err(
            Error::new(format!("the simulation was interrupted after {}", summary.end))
                .remedy("what is shown is true up to then; run it again for the rest"),
        );
    }
    Ok(answer(&set, &summary, args.brute_force))
}

/// No, if a hard task missed a deadline; under brute force, if any did.
fn answer(set: &TaskSet, summary: &Summary, any: bool) -> Answer {
    let missed = set.ids().any(|id| {
        let hard = !set.details(id).is_some_and(|d| d.soft);
        (hard || any) && summary.tasks[id.index()].misses > 0
    });
    let first = summary
        .first_miss
        .is_some_and(|miss| any || !set.details(miss.task).is_some_and(|d| d.soft));
    if missed || first { Answer::No } else { Answer::Yes }
}

fn platform(args: &Args) -> Result<Platform> {
    match (&args.platform, args.processors) {
        (Some(name), _) => Platform::find(name),
        (None, Some(m)) => Platform::builtin(&format!("symmetric:m={m}")).map_err(|e| e.at("-m")),
        (None, None) => Ok(machine::this_machine()?.platform),
    }
}

/// One hyperperiod after the last phase, at most 60 s.
pub fn default_horizon(set: &TaskSet) -> Duration {
    let most = u128::from(LONGEST_DEFAULT.nanos());
    let mut hyperperiod: u128 = 1;
    for t in set.timings() {
        let period = u128::from(t.period.nanos());
        let (mut a, mut b) = (hyperperiod, period);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        hyperperiod = hyperperiod / a * period;
        if hyperperiod >= most {
            return LONGEST_DEFAULT;
        }
    }
    let phase = set
        .ids()
        .filter_map(|id| set.details(id).map(|d| d.phase))
        .max()
        .unwrap_or_default();
    // Below 60 s, checked in the loop.
    Duration::from_nanos(hyperperiod as u64)
        .saturating_add(phase)
        .min(LONGEST_DEFAULT)
}

/// The assignment that a policy needs; inside, why there is none.
pub fn assignment_for(
    spec: &Spec,
    set: &TaskSet,
    platform: &Platform,
    fit: Fit,
) -> Result<Result<Option<Assignment>, String>> {
    let timings = set.timings();
    let cpus = platform.in_cache_order();
    let order = Order::DecreasingUtilization;
    let task = |index: usize, what: &str| format!("{} fits {what}", set.name(model::TaskId(index as u32)));
    let nowhere = format!("on no processor or cluster that is left, by {fit}");
    Ok(match (spec.info().needs)(spec)? {
        Needs::Nothing => Ok(None),
        Needs::Clusters(clusters) => {
            let clusters = platform.clusters(clusters)?;
            let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
            match Scratch::new().pack(timings, &sizes, order, fit) {
                Ok(cluster_of) => Ok(Some(Assignment::Clustered(Clustered {
                    clusters,
                    cluster_of: cluster_of.to_vec(),
                }))),
                Err(index) => Err(task(index as usize, &nowhere)),
            }
        }
        Needs::Turns => match edf_fm::assign(timings, &cpus, edf_fm::Fill::default()) {
            Ok(turns) => Ok(Some(Assignment::Turns(turns))),
            Err(edf_fm::Refusal::Task(index)) => Err(task(index, "on no two processors that are left")),
            Err(edf_fm::Refusal::Migratory(place)) => Err(format!(
                "the tasks that take turns on the {}. processor need all of it",
                place + 1
            )),
        },
        Needs::Slices => {
            let settings = edf_wm::Settings {
                fit,
                ..edf_wm::Settings::default()
            };
            match edf_wm::assign(timings, &cpus, &settings) {
                Ok(slices) => Ok(Some(Assignment::Slices(slices))),
                Err(edf_wm::Refusal::Task(index)) => Err(task(
                    index as usize,
                    "on no processors that are left, whole or in slices",
                )),
                Err(edf_wm::Refusal::Limit) => Err(edf_wm::LIMIT.to_string()),
            }
        }
        Needs::Slots { delta, clusters } => {
            let clusters = platform.clusters(clusters.unwrap_or(ClusterSpec::Global))?;
            let of = |cluster: &CpuSet| cpus.iter().copied().filter(|c| cluster.contains(*c)).collect();
            let clusters: Vec<Vec<CpuId>> = clusters.iter().map(of).collect();
            let settings = nps_f::Settings {
                delta,
                ..nps_f::Settings::default()
            };
            match nps_f::assign(timings, &clusters, &settings) {
                Ok(slots) => Ok(Some(Assignment::Slots(slots))),
                Err(nps_f::Refusal::Task(index)) => Err(task(index as usize, "in no server")),
                Err(nps_f::Refusal::Servers) => Err("the servers need more than the processors have".into()),
                Err(nps_f::Refusal::Slot) => Err("the slot is too short to be divided".into()),
            }
        }
    })
}

/// The assignment of a file.
pub fn assignment_in(file: &Path) -> Result<Assignment> {
    serde_json::from_str(&files::read_text(file)?).map_err(|e| {
        Error::new(format!("this is no assignment: {e}"))
            .at(file.display())
            .remedy("give one as the head of a trace has it, such as {\"kind\":\"clustered\",\"clusters\":[\"0\",\"1\"],\"cluster_of\":[0,1]}")
    })
}

/// What the run is charged for, if a profile is given.
fn costs(args: &Args, set: &TaskSet, platform: &Platform) -> Result<Option<Costs>> {
    let Some(name) = &args.profile else {
        return Ok(None);
    };
    let load = match args.load {
        OnMachine::Idle => Load::Idle,
        OnMachine::Load => Load::Load,
    };
    let statistic = match args.charge {
        Charge::Average => Statistic::Average,
        Charge::Maximum => Statistic::Maximum,
    };
    let profile = Profile::find(name)?;
    Costs::from_profile(&profile, args.policy.info().name, set, platform, load, statistic)
        .map(Some)
        .map_err(|e| e.at("--profile"))
}

fn header(
    args: &Args,
    set: &TaskSet,
    platform: &Platform,
    assignment: Option<Assignment>,
    scenario: &Scenario,
    quantum: Option<Duration>,
) -> Header {
    let stage = Stage {
        policy: args.policy.to_string(),
        assignment,
        quantum,
    };
    let provenance = Provenance {
        source: format!("warmset {}", env!("CARGO_PKG_VERSION")),
        command: command(),
        seed: Some(args.seed),
        ..Provenance::default()
    };
    Header {
        releases: match scenario.releases {
            Releases::Periodic => trace::Releases::Periodic,
            Releases::Sporadic(_) | Releases::SporadicBy(_) => trace::Releases::Sporadic,
            Releases::Given(_) => trace::Releases::Given,
        },
        enforcement: match scenario.enforcement {
            Enforcement::Off if scenario.may_overrun() => trace::Enforcement::Off,
            Enforcement::Off => trace::Enforcement::None,
            Enforcement::PerQuantum => trace::Enforcement::Quantum,
            Enforcement::Exact => trace::Enforcement::Exact,
        },
        ..Header::simulated(set.clone(), platform.clone(), stage, provenance)
    }
}

/// The command line without where its results go: the same input gives the same trace, byte for byte.
pub fn command() -> String {
    let mut words = vec!["warmset".to_owned()];
    let mut skip = false;
    for word in std::env::args().skip(1) {
        let output = ["--trace", "-o", "--output"];
        if std::mem::take(&mut skip) || output.iter().any(|o| word.starts_with(&format!("{o}="))) {
            continue;
        }
        if output.contains(&word.as_str()) {
            skip = true;
            continue;
        }
        words.push(word);
    }
    words.join(" ")
}
