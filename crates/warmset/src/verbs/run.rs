//! `warmset run`: runs a task set for real, under a policy, and checks what happened.

use super::run_colors::{self, Coloring, Prepared};
use super::run_live::{Live, Screen, When};
use super::run_moment::{Clocks, Moment};
use super::run_performers::{self, performers};
use super::run_reserve;
use super::run_show::{self, Shown};
use super::scheduling::{self, Scheduling};
use super::simulate_inputs::part_of;
use crate::Answer;
use crate::console::{self, Console, Format};
use crate::options::{Answered, directory, new_file};
use ::trace::check::Options;
use ::trace::{Checker, FileSink, Header, Origin, Stage, Statistics};
use execute::preflight::{self, Intent, Level};
use execute::witness::{self, Told};
use execute::{Ending, Enforcement, JoinSocket, Rights, Settings, Triggers};
use machine::settings::Settings as Changed;
use machine::user::User;
use machine::{Machine, Tree};
use model::watch::Watch;
use model::{CpuSet, Duration, Error, Provenance, Result, TaskSet, files, taskfile};
use std::path::PathBuf;

/// Options of `warmset run`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLE, after_long_help = LONG_HELP.as_str())]
pub struct Args {
    /// The task set, in TOML
    tasks: PathBuf,
    #[command(flatten)]
    scheduling: Scheduling,
    /// How long
    #[arg(
        long = "for",
        value_name = "TIME",
        allow_hyphen_values = true,
        default_value = "10s"
    )]
    horizon: Duration,
    /// On these processors only, such as `0-3,8` [default: all that this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// The part of its WCET that a job is calibrated to execute
    #[arg(long, value_name = "PART", default_value = "0.9")]
    execution: String,
    /// How long a decision may be overdue before the checker calls it a violation
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1ms")]
    tolerance: Duration,
    /// Where tasks with `kind = "join"` come in: a socket, made at the start and gone at the end
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Let programs write into files of this directory, one a task, instead of standard error
    #[arg(long, value_name = "DIR", value_parser = directory)]
    programs_to: Option<PathBuf>,
    /// Run programs as this user, who may then also come in at `--socket` [default: as the user of
    /// this command, without capabilities]
    #[arg(long, value_name = "NAME", conflicts_with = "keep_rights")]
    user: Option<String>,
    /// Let programs keep the capabilities of this command, all of them where it runs as root
    #[arg(long)]
    keep_rights: bool,
    /// Keep idle processors awake during the run, as /dev/cpu_dma_latency permits
    #[arg(long)]
    awake: bool,
    /// How long each of the policies rules before the next one takes over
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    switch_every: Option<Duration>,
    /// Release all tasks at this moment: `+2s`, `2026-03-01T12:00:00Z` or `@SECONDS` since 1970 [default: when everything is ready]
    #[arg(long, value_name = "TIME")]
    release_at: Option<Moment>,
    /// Let dispatchers of idle processors be up so long before a release, so that it is prompt [default: 100us where there is
    /// time for it]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    early: Option<Duration>,
    /// Do not look, every millisecond on each processor, whether the machine stands still: then what is overdue for that counts too
    #[arg(long)]
    no_standstills: bool,
    /// Compare the trace with what the kernel's scheduler says of its switches (tracepoint sched_switch); needs tracefs
    #[arg(long)]
    witness: bool,
    /// Only look whether the run could be, and say what would disturb it
    #[arg(long)]
    preflight: bool,
    /// Show processors and tasks while they run
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    live: When,
    /// Write every event to a trace, which can be read while it grows
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    trace: Option<PathBuf>,
    #[command(flatten)]
    coloring: Coloring,
    #[command(flatten)]
    answered: Answered,
}

const EXAMPLE: &str = "\
Example: ten seconds for real, all events kept, on two processors
    warmset run tasks.toml --policy g-edf --for 10s --cpus 0-1 --trace run.wtrace";

static LONG_HELP: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let policies = scheduling::policies();
    let mut levels = String::from("Priorities (SCHED_FIFO):\n");
    for (who, priority) in execute::levels() {
        levels.push_str(&format!("    {who:15} {priority}\n"));
    }
    format!(
        "{EXAMPLE}\n\n{policies}\n{levels}\n\
        What may disturb the run is counted on standard error, and told in full by `--preflight`; nothing is changed but with \
        `--awake`, and that is restored. \
        A watchdog ends the run when the machine does not answer.\n\n\
        Exit status 1: a task that is not `soft` missed a deadline, the trace breaks a rule, events were lost, or the witness disagrees."
    )
});

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let begun = Clocks::read();
    let release_at = args.release_at.map(|m| m.reading(&begun)).transpose()?;
    let set = taskfile::from_toml(&files::read_text(&args.tasks)?).map_err(|e| e.at(args.tasks.display()))?;
    let extras = |what: fn(&model::Extras) -> bool| set.extras().iter().any(what);
    let ignored = match (extras(|x| !x.jitter.is_zero()), extras(|x| !x.blocking.is_zero())) {
        (true, true) => "`jitter` and `blocking` are",
        (true, false) => "`jitter` is",
        (false, true) => "`blocking` is",
        (false, false) => "",
    };
    let triggers = triggers(&args.scheduling, &set).map_err(|e| e.at(args.tasks.display()))?;
    let machine = on(machine::this_machine()?, args.cpus.as_ref())?;
    let platform = &machine.platform;
    let cpus = platform.in_cache_order();
    let how = &args.scheduling;
    match (how.then().is_empty(), args.switch_every) {
        (false, None) => {
            return Err(
                Error::new("several policies are given, and not how long each of them rules")
                    .at("--policy")
                    .remedy("add such as `--switch-every 5s`, or give one policy"),
            );
        }
        (true, Some(_)) => {
            return Err(Error::new("there is only one policy, nothing to switch to")
                .at("--switch-every")
                .remedy("give several, such as `--policy g-edf,p-edf`"));
        }
        _ => {}
    }
    let part = part_of(&args.execution).map_err(|e| e.at("--execution"))?;
    let (boundary, unmeasured) = run_reserve::measure(how, &machine)?;
    let reserved = run_reserve::reserve(how, &set, platform, &args.tasks, boundary.as_ref())?;
    let enforcement = Enforcement::from(how.enforcement);
    let mut plans = Vec::new();
    for (policy, stage) in how.all().zip(&reserved.stages) {
        let setup = how.setup(&set, platform, stage.assignment.as_ref());
        plans.push(policy.plan(&setup)?);
    }
    let intent = Intent {
        machine: &machine,
        tree: &Tree::new("/".as_ref()),
        cpus: &cpus,
        set: &set,
        stages: &reserved.stages,
        part,
        enforcement,
        quantum: how.quantum,
        awake: args.awake,
        boundary,
    };
    let mut findings = preflight::look(&intent);
    let of_machine = findings.len();
    findings.extend(unmeasured);
    findings.extend(reserved.findings);
    let early = args.early.unwrap_or_else(|| preflight::early(&intent));
    if args.preflight {
        let answered = &args.answered;
        let text = run_show::preflight(&findings, answered.printed.format())?;
        match (answered.printed.format(), &answered.output) {
            (Format::Table, None) => console::show(&text)?,
            (_, output) => console::give(&text, output.as_deref())?,
        }
        return Ok(match preflight::permit(&findings) {
            Ok(()) => Answer::Yes,
            Err(_) => Answer::No,
        });
    }
    let console = Console::new()?;
    if let Some(line) = run_show::disturbances(&findings[..of_machine]) {
        console.note(&line);
    }
    // What is said of this set is no matter of the machine, and concerns its deadlines.
    for finding in findings[of_machine..].iter().filter(|f| f.level == Level::Warn) {
        console.note(&format!("{}: {}; {}", finding.name, finding.seen, finding.remedy));
    }
    if !ignored.is_empty() {
        console.note(&format!(
            "{ignored} for `check` alone: this run releases every job when it arrives, and adds no blocking"
        ));
    }
    preflight::permit(&findings)?;
    let colored = run_colors::prepare(&args.coloring, &set, platform, cpus.len(), &console)?;
    let rights = match &args.user {
        Some(name) => Rights::Of(User::find(name).map_err(|e| e.at("--user"))?),
        None if args.keep_rights => Rights::Kept,
        None => Rights::Dropped,
    };
    let door = match &args.socket {
        Some(path) => Some(std::sync::Arc::new(JoinSocket::at(path, rights.user())?)),
        None => None,
    };
    let (performers, workloads) = performers(
        &set,
        part,
        args.programs_to.as_deref(),
        colored.as_ref(),
        door.as_ref(),
        &rights,
        &console,
    )?;
    let (best_effort, units) = run_performers::best_effort(&set, &rights)?;
    let header = header(&set, &machine, reserved.stages, enforcement);
    let options = Options {
        tolerance: args.tolerance,
        ..Options::for_trace(&header)
    };
    let file = match &args.trace {
        Some(path) => Some(FileSink::create(path, &header)?),
        None => None,
    };
    let live = Live::new(&header);
    let screen = Screen::new(&console, live.clone(), args.live);
    let mut sink = (
        (file, live),
        (
            (
                Checker::new(header.clone(), options)?,
                Statistics::new(&header, false),
            ),
            args.witness.then(|| Told::new(set.len())),
        ),
    );
    let settings = Settings {
        horizon: args.horizon,
        enforcement,
        quantum: how.quantum,
        provider: colored.as_ref().map(Prepared::provider),
        early,
        release_at,
        triggers,
        best_effort,
        standstills: !args.no_standstills,
        witness: args.witness,
        ..Settings::default()
    };
    // Held for the run only: the kernel restores it, whatever happens to this process.
    let mut changed = Changed::new();
    if args.awake {
        changed.keep_processors_awake()?;
        console.note("processors are kept awake until the end of the run");
    }
    if let Some(at) = release_at {
        console.note(&format!("all tasks are released at {}", begun.wall_at(at)));
    }
    let outcome = execute::run_in_turn(
        &plans,
        args.switch_every,
        &set,
        performers,
        &settings,
        &screen,
        &mut sink,
        |((file, _), _)| {
            if let Some(file) = file {
                file.flush();
            }
        },
    );
    drop(changed);
    let ((file, _), ((checker, statistics), told)) = sink;
    if let Some(file) = file {
        file.finish()?;
    }
    console.finish();
    let outcome = outcome?;
    let testimony = match (&outcome.switches, told) {
        (Some(switches), Some(told)) => {
            let run = witness::Run {
                threads: &outcome.threads,
                origin: outcome.origin,
                end: outcome.end,
                // What kept a dispatcher from waking up keeps its decision from coming true, too.
                allowed: args
                    .tolerance
                    .saturating_add(outcome.latest)
                    .saturating_add(outcome.latest),
            };
            Some(witness::compare(switches, &told, &run))
        }
        _ => None,
    };
    let colors = colored
        .as_ref()
        .map(|c| c.statement(&set, &console))
        .transpose()?;
    let shown = Shown {
        policy: how.policies(),
        set: &set,
        platform: &platform.name,
        cpus: &cpus,
        findings: &findings,
        workloads: &workloads,
        summary: statistics.summary(),
        verdict: checker.finish(),
        outcome: &outcome,
        released_at: begun.wall_at(outcome.origin).to_string(),
        colors: colors.as_ref(),
        testimony: testimony.as_ref(),
        units: &units,
    };
    shown.give(&args.answered)?;
    if outcome.ending == Ending::Interrupted {
        return Err(Error::new(format!(
            "the run was interrupted after {}",
            Duration::from_nanos(outcome.end.nanos()).rounded()
        ))
        .remedy("what is shown is true up to then; run it again for the rest"));
    }
    let missed = set.ids().any(|id| {
        let hard = !set.details(id).is_some_and(|d| d.soft);
        hard && shown.summary.tasks[id.index()].misses > 0
    });
    let denied = testimony.as_ref().is_some_and(|t| t.disagreements > 0);
    Ok(
        match missed || denied || !shown.verdict.is_clean() || outcome.lost > 0 {
            true => Answer::No,
            false => Answer::Yes,
        },
    )
}

/// What releases the tasks that have a trigger; what is not there yet is made by the run.
fn triggers(how: &Scheduling, set: &TaskSet) -> Result<Triggers> {
    let triggered = set
        .ids()
        .find(|id| set.details(*id).is_some_and(|d| d.trigger.is_some()));
    let by_quanta = |spec: &&policy::Spec| spec.info().quantum_driven;
    if let (Some(task), Some(spec)) = (triggered, how.all().find(by_quanta)) {
        return Err(Error::new(format!(
            "`{spec}` takes releases at multiples of the quantum alone, and a trigger may come at any time"
        ))
        .at(format!("task {}", set.name(task)))
        .remedy("choose another policy, or leave the trigger out"));
    }
    Triggers::open(set)
}

/// The machine with only these processors to use.
fn on(mut machine: Machine, cpus: Option<&CpuSet>) -> Result<Machine> {
    if let Some(cpus) = cpus {
        let usable = machine.platform.usable();
        if cpus.is_empty() || !cpus.is_subset(&usable) {
            return Err(
                Error::new(format!("not all of the processors `{cpus}` can be used"))
                    .at("--cpus")
                    .remedy(format!("choose among {usable}")),
            );
        }
        for processor in &mut machine.platform.processors {
            processor.usable &= cpus.contains(processor.id);
        }
    }
    Ok(machine)
}

fn header(set: &TaskSet, machine: &Machine, stages: Vec<Stage>, enforcement: Enforcement) -> Header {
    let provenance = Provenance {
        machine: machine.fact("model").unwrap_or_default().to_owned(),
        kernel: machine.fact("kernel").unwrap_or_default().to_owned(),
        settings: machine.settings(),
        ..scheduling::provenance()
    };
    Header {
        origin: Origin::Real,
        enforcement: match enforcement {
            Enforcement::Off => ::trace::Enforcement::Off,
            Enforcement::PerQuantum => ::trace::Enforcement::Quantum,
            Enforcement::Exact => ::trace::Enforcement::Exact,
        },
        stages: stages.clone(),
        ..Header::simulated(
            set.clone(),
            machine.platform.clone(),
            stages[0].clone(),
            provenance,
        )
    }
}
