//! `warmset measure`: what this machine costs: cache-related preemption and migration delays, and
//! overheads of the scheduler; and what a program needs of it: its working set.

use super::{
    measure_model as by_model, measure_overheads as overheads, measure_scheduled as scheduled,
    measure_task as task, measure_wss as wss,
};
use crate::console::{self, Console, Format};
use crate::options::{Printed, Seed, directory};
use crate::{Answer, command};
use ::measure::cpmd::Outcome;
use ::measure::plan::Options;
use ::measure::ratio::WriteRatio;
use ::measure::summary;
use app::measure::modelled;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use model::{Bytes, CpuSet, Duration, Error, Load, Result};
use std::path::{Path, PathBuf};

/// Options of `warmset measure`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Example: warmset measure cpmd -o out --quick")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// What is measured.
#[derive(Subcommand, Debug)]
enum What {
    /// Measure the delay of losing a warm cache, by preemption and by every kind of migration
    #[command(
        after_help = "Example: warmset measure cpmd -o out --quick",
        after_long_help = "\
A thread of the highest real-time priority that lets the system live walks through a working set until it is warm, \
leaves its processor for a random time, resumes on a random processor, and walks through it again. The delay is the \
difference between the last walk and the warm one. docs/measuring.md says how to read the numbers.

With --method schedule-sensitive the walks are those of jobs in task sets that the engine schedules under each \
policy; docs/measuring-scheduled.md. Files are then profile.toml (what is in it stays), scheduled.parquet, \
scheduled.json, scheduled.svg, and scheduled.part while it runs.

Files in DIR: profile.toml, for `check` and `study`; samples.parquet, every sample, the discarded ones too with their \
cause; measurement.part while it runs. They appear complete, or not at all.

Changed while measuring: /dev/cpu_dma_latency is held open, so that processors do not sleep; memory is locked; the \
measuring thread has real-time priority; with --prefetchers off the registers that turn hardware prefetchers off. All of \
it ends with the measurement, also when it is killed.

Ctrl-C keeps what was measured: the files are written from the finished blocks, with a warning, and the exit status \
is 130; the same command with --resume goes on. A second Ctrl-C ends at once; --resume goes on then, too.

Examples:
  warmset measure cpmd -o out --quick
  warmset measure cpmd -o out --samples 5000 --write-ratio 0,1/128,1/64,1/16,1/4,1/2,1
  warmset measure cpmd -o out --wss 64KiB,256KiB --load idle --cpus 0-3
  warmset measure cpmd -o out --method schedule-sensitive --policy p-edf,g-edf --quick
  warmset measure cpmd -o out --platform xeon-l7455 --model"
    )]
    Cpmd(CpmdArgs),
    /// Measure what the scheduler costs under each policy, by number of tasks
    #[command(
        after_help = "Example: warmset measure overheads -o out --quick",
        after_long_help = overheads::HELP
    )]
    Overheads(overheads::Args),
    /// Measure the working set of one program by the pages that it touches
    #[command(
        after_help = "Example: warmset measure wss -- ls -R /usr",
        after_long_help = wss::HELP
    )]
    Wss(wss::Args),
    /// Measure how long a program executes, in ordinary memory and in page colors, alone and disturbed
    #[command(
        after_help = "Example: warmset measure task --colors 1,2,4,8 -- ./decode frame.bin",
        after_long_help = task::HELP
    )]
    Task(task::Args),
}

/// Options of `warmset measure cpmd`.
#[derive(ClapArgs, Debug)]
struct CpmdArgs {
    /// Directory for the results
    #[arg(short, long, value_name = "DIR", alias = "out", value_parser = directory)]
    output: PathBuf,
    /// How samples are taken: by a thread that leaves by itself, or by jobs in task sets that the
    /// engine schedules (at most three minutes with --quick)
    #[arg(long, value_enum, default_value_t = Method::Synthetic)]
    method: Method,
    /// About a minute: working sets up to twice the level-2 cache, preemptions up to 5 ms, fewer
    /// samples
    #[arg(long)]
    quick: bool,
    /// Parts of the words that are written: among 0, 1/128, 1/64, 1/32, 1/16, 1/8, 1/4, 1/2, 1
    /// [default: 1/4]
    #[arg(long, value_name = "R,…", value_delimiter = ',')]
    write_ratio: Vec<WriteRatio>,
    /// Working set sizes, multiples of 4KiB [default: powers of two from 4KiB up to the last-level
    /// cache, at most 32MiB, and each cache's own size; those above 32MiB with a tenth of the
    /// samples]
    #[arg(
        long,
        value_name = "SIZE,…",
        allow_hyphen_values = true,
        value_delimiter = ','
    )]
    wss: Vec<Bytes>,
    /// Samples for each working set, write ratio, load and kind of resumption; disturbed ones among
    /// them [default: 1000; quick: 850 among all kinds]
    #[arg(long, value_name = "N")]
    samples: Option<u32>,
    /// Preemption lengths are drawn uniformly between zero and this [default: 50ms; quick: 5ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_preemption: Option<Duration>,
    /// What else runs: nothing, a cache polluter on every processor, or one after the other
    #[arg(long, value_enum, default_value_t = Loads::Both)]
    load: Loads,
    /// Processors to measure on, such as 0-3,8 [default: all that this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Hardware prefetchers while measuring: as the machine has them, or off (root, a processor
    /// whose way to turn them off is known, the module `msr`); put back afterwards
    #[arg(long, value_enum, default_value_t = Prefetchers::AsIs)]
    prefetchers: Prefetchers,
    /// Take the delays from a model of a platform's caches, not from this machine; files in DIR are
    /// profile.toml, which says so, and cpmd-model.svg
    #[arg(long, requires = "platform")]
    model: bool,
    /// Whose caches `--model` takes: a built-in platform such as xeon-l7455, or a file
    #[arg(long, value_name = "PLATFORM", requires = "model")]
    platform: Option<String>,
    #[command(flatten)]
    scheduled: scheduled::Args,
    #[command(flatten)]
    seed: Seed,
    /// Go on with an interrupted measurement in DIR; the other options must be the same
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    printed: Printed,
}

/// How samples are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Method {
    /// A thread triggers preemptions and migrations itself (000 §3.2)
    Synthetic,
    /// Jobs in task sets that the engine schedules (000 §3.1)
    ScheduleSensitive,
}

/// What is done about hardware prefetchers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Prefetchers {
    /// Nothing
    AsIs,
    /// They are turned off
    Off,
}

/// Which loads are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Loads {
    /// Nothing else
    Idle,
    /// Polluters
    Load,
    /// Both, in blocks that take turns
    Both,
}

impl Loads {
    fn list(self) -> Vec<Load> {
        match self {
            Loads::Idle => vec![Load::Idle],
            Loads::Load => vec![Load::Load],
            Loads::Both => vec![Load::Idle, Load::Load],
        }
    }
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.what {
        What::Cpmd(args) => run_cpmd(args),
        What::Overheads(args) => overheads::run(args),
        What::Wss(args) => wss::run(args),
        What::Task(args) => task::run(args),
    }
}

fn run_cpmd(args: CpmdArgs) -> Result<Answer> {
    if let Some(platform) = &args.platform {
        return run_model(&args, platform);
    }
    if args.method == Method::ScheduleSensitive {
        return run_scheduled(args);
    }
    args.scheduled.refuse()?;
    let dir = args.output.clone();
    let options = Options {
        out: args.output,
        quick: args.quick,
        write_ratios: args.write_ratio,
        wss: args.wss,
        samples: args.samples,
        max_preemption: args.max_preemption,
        loads: args.load.list(),
        cpus: args.cpus,
        prefetchers_off: args.prefetchers == Prefetchers::Off,
        seed: args.seed.seed,
        resume: args.resume,
        command: command::whole(),
        ..Options::default()
    };
    let console = Console::new()?;
    let outcome = app::measure::cpmd(options, &console)?;
    match args.printed.format() {
        Format::Table => console::show(&as_text(&outcome))?,
        Format::Json => console::print_json(&outcome)?,
    }
    app::measure::complete(&outcome, &dir)?;
    Ok(Answer::Yes)
}

/// The delays by a model.
fn run_model(args: &CpmdArgs, platform: &str) -> Result<Answer> {
    let given = [
        ("--method", args.method != Method::Synthetic),
        ("--quick", args.quick),
        ("--write-ratio", !args.write_ratio.is_empty()),
        ("--cpus", args.cpus.is_some()),
        ("--prefetchers", args.prefetchers != Prefetchers::AsIs),
        ("--resume", args.resume),
    ];
    if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(
            Error::new("this is an option of measurements of this machine")
                .at(*name)
                .remedy("leave it out with `--model`"),
        );
    }
    args.scheduled.refuse()?;
    let on = app::On::Platform(app::Choice::Named(platform.to_owned()));
    let usual = modelled::Options::new(on, args.output.clone());
    let options = modelled::Options {
        wss: args.wss.clone(),
        samples: args.samples.unwrap_or(usual.samples),
        max_preemption: args.max_preemption.unwrap_or(usual.max_preemption),
        loads: args.load.list(),
        seed: args.seed.seed,
        command: command::whole(),
        ..usual
    };
    by_model::run(&options, args.printed)
}

fn run_scheduled(args: CpmdArgs) -> Result<Answer> {
    let given = [
        ("--samples", args.samples.is_some()),
        ("--max-preemption", args.max_preemption.is_some()),
        ("--cpus", args.cpus.is_some()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(Error::new("this is an option of the synthetic method")
            .at(name)
            .remedy("leave it out: here the schedule decides, on all processors"));
    }
    let options = scheduled::Options {
        out: args.output,
        quick: args.quick,
        wss: args.wss,
        write_ratios: args.write_ratio,
        loads: args.load.list(),
        prefetchers_off: args.prefetchers == Prefetchers::Off,
        seed: args.seed.seed,
        resume: args.resume,
        command: command::whole(),
        ..scheduled::Options::default()
    };
    scheduled::run(args.scheduled, options, args.printed)
}

fn as_text(outcome: &Outcome) -> String {
    let mut text = summary::table(&outcome.profile);
    text.push('\n');
    for sentence in summary::sentences(outcome) {
        text += &sentence;
        text.push('\n');
    }
    text += &format!(
        "Wrote {} and {}.\n",
        outcome.profile_path.display(),
        outcome.samples_path.display()
    );
    text += &hint(&outcome.profile_path);
    text
}

/// How the profile becomes the one that is charged here.
pub fn hint(profile: &Path) -> String {
    format!(
        "To charge it on this machine from now on: warmset profile use {}\n",
        profile.display()
    )
}
