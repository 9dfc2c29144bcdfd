//! `warmset generate`: random task sets from the field's distributions, as batch lines or as one
//! TOML file.

use crate::Answer;
use crate::console::Console;
use crate::options::{On, Seed, new_file};
use app::generate::{Options, one_set, prepare};
use app::output::Output;
use generate::{Deadlines, Fill, Method, Periods, Utilizations};
use model::{Ratio, Result};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  warmset generate --utilization uniform-medium --periods moderate --cap 12 -m 24 --sets 1000 -o sets.jsonl
  warmset generate --tasks 20 --total 3.2 --method randfixedsum --periods log-uniform:1ms-1s --deadlines constrained
  warmset generate --utilization rtcsa13 --periods rtcsa13 --until GFB -m 4 -o set.toml

Distributions of utilizations (--utilization):
  uniform-light, -medium, -heavy        uniform in [0.001, 0.1], [0.1, 0.4], [0.5, 0.9]
  bimodal-light, -medium, -heavy        [0.001, 0.5) or [0.5, 0.9], the latter for 1, 3, 5 of 9 tasks
  exponential-light, -medium, -heavy    mean 0.10, 0.25, 0.50, drawn anew above 1
  rtcsa13                               uniform in [0.1, 0.7]
  uniform:LOW-HIGH, bimodal:PART, exponential:MEAN
Distributions of periods (--periods):
  short, moderate, long                 whole milliseconds in [3, 33], [10, 100], [50, 250]
  rtcsa13                               25, 50, 100 or 200 ms
  uniform:LOW-HIGH[/STEP], log-uniform:LOW-HIGH[/STEP], choice:A,B,…

The same seed gives the same sets on any machine. Set number k of a seed is the same however many are drawn.";

const PLATFORM: &str = "A built-in platform such as `xeon-l7455` or `symmetric:m=8`, or a file, whose number of processors \
                        is written into each set [default: as many as the cap or the total, rounded up; with `--tasks` \
                        alone, as the total utilization of each set, rounded up]";

/// Options of `warmset generate`.
#[derive(clap::Args, Debug)]
#[command(
    after_long_help = EXAMPLES,
    after_help = "See `warmset generate --help` for the distributions and examples.",
    mut_arg("platform", |platform| platform.help(PLATFORM))
)]
pub struct Args {
    /// Distribution of each task's utilization
    #[arg(long, value_name = "NAME", default_value = "uniform-medium")]
    utilization: Utilizations,
    /// Distribution of periods
    #[arg(long, value_name = "NAME", default_value = "moderate")]
    periods: Periods,
    /// Relative deadlines: `implicit`, `constrained[:LOW-HIGH]` or `arbitrary[:LOW-HIGH]`, as the
    /// part of the way from the WCET to the period
    #[arg(long, value_name = "KIND", default_value = "implicit")]
    deadlines: Deadlines,
    /// Add tasks until the total utilization would exceed this
    #[arg(long, value_name = "U")]
    cap: Option<Ratio>,
    /// What becomes of the task that would exceed the cap: `drop` it, or `scale` it down to what is
    /// left
    #[arg(long, value_name = "HOW", default_value = "drop", requires = "cap")]
    fill: Fill,
    /// So many tasks in each set
    #[arg(long, value_name = "N", conflicts_with = "cap")]
    tasks: Option<u32>,
    /// Split this total utilization among the tasks
    #[arg(
        long,
        value_name = "U",
        requires = "tasks",
        conflicts_with = "utilization"
    )]
    total: Option<Ratio>,
    /// How the total is split: `randfixedsum` or `uunifast-discard`
    #[arg(
        long,
        value_name = "NAME",
        default_value = "randfixedsum",
        requires = "total"
    )]
    method: Method,
    /// The range of each utilization of a total, LOW-HIGH; `randfixedsum` only
    #[arg(long, value_name = "RANGE", requires = "total")]
    range: Option<String>,
    /// Add tasks until this test refuses the set, and drop the last one (needs -m or --platform)
    #[arg(long, value_name = "TEST", conflicts_with_all = ["cap", "tasks"])]
    until: Option<String>,
    #[command(flatten)]
    on: On,
    /// How many sets
    #[arg(long, value_name = "N", default_value_t = 1)]
    sets: u64,
    #[command(flatten)]
    seed: Seed,
    /// Number of the first set
    #[arg(long, value_name = "K", default_value_t = 0)]
    first: u64,
    /// As batch lines (`jsonl`) or as one task file (`toml`); default: by the name of the output,
    /// else lines
    #[arg(long, value_name = "FORMAT")]
    format: Option<SetFormat>,
    /// Write to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

/// How sets are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum SetFormat {
    /// One JSON line a set.
    #[value(alias = "json")]
    Jsonl,
    /// A task file for people; one set.
    Toml,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let format = args.set_format();
    let path = args.output;
    let options = Options {
        utilization: args.utilization,
        periods: args.periods,
        deadlines: args.deadlines,
        cap: args.cap,
        fill: args.fill,
        tasks: args.tasks,
        total: args.total,
        method: args.method,
        range: args.range,
        until: args.until,
        on: args.on.choice(),
        sets: args.sets,
        seed: args.seed.seed,
        first: args.first,
    };
    if format == SetFormat::Toml {
        one_set(options.sets)?;
    }
    let drawing = prepare(&options)?;
    let mut stdout = std::io::stdout();
    let mut output = Output::open(path.as_deref(), &mut stdout)?;
    match format {
        SetFormat::Toml => {
            // A reader that closed the pipe has seen enough.
            let _ = output.write(drawing.task_file()?.as_bytes())?;
        }
        SetFormat::Jsonl => {
            let console = Console::new()?;
            drawing.lines(&mut output, &console)?;
        }
    }
    output.finish()?;
    Ok(Answer::Yes)
}

impl Args {
    fn set_format(&self) -> SetFormat {
        let named_toml = |path: &PathBuf| {
            path.extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("toml"))
        };
        self.format.unwrap_or(match &self.output {
            Some(path) if named_toml(path) => SetFormat::Toml,
            _ => SetFormat::Jsonl,
        })
    }
}
