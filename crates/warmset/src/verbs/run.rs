//! `warmset run`: runs a task set for real, under a policy, and checks what happened.

use super::run_live::{Screen, When};
use super::run_show;
use crate::console::{self, Console, Format};
use crate::options::{Answered, JobsEnd, directory, new_file};
use crate::scheduling_options::{SchedulingArgs, policies};
use crate::{Answer, command};
use app::run::colors::{By, Coloring};
use app::run::live::Live;
use app::run::{Clocks, Engine, Moment, Options, Planned, Until};
use app::{Choice, Tasks, own};
use model::{CpuSet, Duration, Result, Rights};
use partition::plan::Scheme;
use std::path::PathBuf;

/// Options of `warmset run`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLE, after_long_help = LONG_HELP.as_str())]
pub struct Args {
    /// The task set, in TOML
    tasks: PathBuf,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    /// Who carries it out
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t)]
    engine: EngineArg,
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
    #[command(flatten)]
    jobs: JobsEnd,
    /// How long a decision may be overdue before the checker calls it a violation
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        default_value = "1ms"
    )]
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
    /// Release all tasks at this moment: `+2s`, `2026-03-01T12:00:00Z` or `@SECONDS` since 1970
    /// [default: when everything is ready]
    #[arg(long, value_name = "TIME")]
    release_at: Option<Moment>,
    /// Let dispatchers of idle processors be up so long before a release, so that it is prompt
    /// [default: 100us where there is time for it]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    early: Option<Duration>,
    /// Do not look, every 2 ms on each processor, whether the machine stands still: then
    /// what is overdue for that counts too
    #[arg(long)]
    no_standstills: bool,
    /// Compare the trace with what the kernel's scheduler says of its switches (tracepoint
    /// sched_switch); needs tracefs
    #[arg(long)]
    witness: bool,
    /// What the engine itself costs: a profile that was measured on this machine, `this-machine` or
    /// `none` [default: the profile in use (`warmset profile use`); with none, what a change of jobs
    /// costs is measured before the run where it matters]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
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
    coloring: ColoringArgs,
    #[command(flatten)]
    answered: Answered,
}

/// Options of coloring.
#[derive(clap::Args, Debug)]
struct ColoringArgs {
    /// Give working sets page colors: `named` (as the set does), `auto` (as many as each needs), or
    /// the scenarios `s1`, `s2`, `s3` of 004 §IV-B [default: `named`, where a task names some]
    #[arg(long, value_name = "HOW")]
    colors: Option<Scheme>,
    /// What is given out: colors of pages, or ways of a cache where the hardware partitions it
    /// (resctrl)
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    colors_by: ByArg,
    /// The level of the cache whose colors they are [default: the first one that has colors]
    #[arg(long, value_name = "LEVEL")]
    color_level: Option<u8>,
    /// Take memory from the memory server at this socket, in colors that were granted to this
    /// process; without it, memory is sorted for the run
    #[arg(long, value_name = "FILE")]
    color_server: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
enum EngineArg {
    /// Threads of real-time priority, from user space
    #[default]
    User,
    /// The kernel's scheduler, by a program loaded into it: a kernel with sched_ext
    Kernel,
    /// The kernel where it can, else user space; says which, and why
    Auto,
}

impl From<EngineArg> for Engine {
    fn from(arg: EngineArg) -> Self {
        match arg {
            EngineArg::User => Engine::User,
            EngineArg::Kernel => Engine::Kernel,
            EngineArg::Auto => Engine::Auto,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
enum ByArg {
    #[default]
    Pages,
    Hardware,
}

impl From<ColoringArgs> for Coloring {
    fn from(args: ColoringArgs) -> Self {
        Coloring {
            colors: args.colors,
            by: match args.colors_by {
                ByArg::Pages => By::Pages,
                ByArg::Hardware => By::Hardware,
            },
            level: args.color_level,
            server: args.color_server,
        }
    }
}

const EXAMPLE: &str = "\
Example: ten seconds for real, all events kept, on two processors
    warmset run tasks.toml --policy g-edf --for 10s --cpus 0-1 --trace run.wtrace";

static LONG_HELP: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let policies = policies();
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
    // Before anything is read.
    args.release_at.map(|m| m.reading(&begun)).transpose()?;
    let (scheduling, tasks) = args.scheduling.planned(Tasks::read(&args.tasks)?)?;
    let options = Options {
        scheduling,
        engine: args.engine.into(),
        horizon: args.horizon,
        cpus: args.cpus,
        execution: Choice::Named(args.execution),
        until: args.jobs.until(Until::Work),
        tolerance: args.tolerance,
        socket: args.socket,
        programs_to: args.programs_to,
        rights: match args.user {
            Some(name) => Rights::User(name),
            None if args.keep_rights => Rights::Keep,
            None => Rights::Drop,
        },
        awake: args.awake,
        switch_every: args.switch_every,
        release_at: args.release_at,
        begun: Some(begun),
        early: args.early,
        standstills: !args.no_standstills,
        witness: args.witness,
        trace: args.trace,
        coloring: args.coloring.into(),
        profile: match args.profile.as_deref() {
            None => own::in_use()?.map(Choice::Value),
            Some(own::NONE) => None,
            Some(name) => Some(Choice::Named(name.to_owned())),
        },
        command: command::without_outputs(),
    };
    let planned = app::run::plan(&tasks, &options)?;
    match args.preflight {
        true => look(&planned, &args.answered),
        false => run_now(planned, args.live, &args.answered),
    }
}

/// Shows what was seen before the run, which is not begun.
fn look(planned: &Planned<'_>, answered: &Answered) -> Result<Answer> {
    let text = run_show::preflight(&planned.preflight, answered.printed.format())?;
    match (answered.printed.format(), &answered.output) {
        (Format::Table, None) => console::show(&text)?,
        (_, output) => console::give(&text, output.as_deref())?,
    }
    Ok(match planned.preflight.permit() {
        Ok(()) => Answer::Yes,
        Err(_) => Answer::No,
    })
}

fn run_now(planned: Planned<'_>, when: When, answered: &Answered) -> Result<Answer> {
    let console = Console::new()?;
    let live = Live::new(&planned.header);
    let screen = Screen::new(&console, live.clone(), when);
    let ran = planned.run(&screen, live)?;
    answered.give(|look| run_show::table(&ran, look), &ran)?;
    ran.complete()?;
    Ok(match ran.holds() {
        true => Answer::Yes,
        false => Answer::No,
    })
}
