//! `warmset color experiment`: the experiments of 001 §5 and 004 §IV on this machine, with table,
//! picture and raw samples.

use crate::console::{Console, Format, print_json, show};
use crate::options::{Printed, Seed, directory};
use crate::{Answer, command};
use app::Choice;
use app::color::experiment::{self, Options, Shown, Which as Experiment, multicore};
use model::Result;
use std::path::PathBuf;

const HELP: &str = "\
With -o DIR, four files are written there: NAME.txt (the table), NAME.svg (the picture), NAME.json (the figures, and where they \
come from) and NAME.csv (every measurement, also those that were left out, with the reason).

Exit status: 0 it was measured, and of `isolation`, the answer is yes; 1 the answer of `isolation` is no; 2 it could not be \
measured; 130 it was stopped by Ctrl-C, and shows and writes what was done by then.

Example: warmset color experiment filter -o results";

const ISOLATION: &str = "\
The filter of 001 §5.2 with a working set of half of its partition, beside the flooder on the same processor: is its longest \
activation at most 1.15 times its shortest one alone, where it is at least 1.5 times that without a partition? Medians over the \
runs. Exit status: 0 yes; 1 no, or the flood does no such harm; 2 it could not be measured.

Example: warmset color experiment isolation";

/// Options of `warmset color experiment`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true, after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(clap::Subcommand, Debug)]
enum Which {
    /// Yes or no: does a partition isolate the filter from the flooder (at most 1.15 where it is at
    /// least 1.5 without)?
    #[command(after_help = ISOLATION)]
    Isolation(Short),
    /// A digital filter of 4 to 8192 coefficients beside a flooder of the cache (001 §5.2, §5.3,
    /// Fig. 4)
    #[command(after_help = "Example: warmset color experiment filter -o results")]
    Filter(Short),
    /// A discrete cosine transform likewise (001 §5.3, Fig. 5)
    #[command(after_help = "Example: warmset color experiment cosine -o results")]
    Cosine(Short),
    /// A fast Fourier transform likewise (001 §5.3, Fig. 5)
    #[command(after_help = "Example: warmset color experiment fourier -o results")]
    Fourier(Short),
    /// A product of matrices in time slices of 25 to 1000 us, with a flood after each (001 §5.4,
    /// Fig. 7)
    #[command(after_help = "Example: warmset color experiment matrix -o results")]
    Matrix(Single),
    /// The product of matrices, interrupted by the filter 2000 to 20000 times a second (001 §5.5,
    /// Fig. 8)
    #[command(after_help = "Example: warmset color experiment combined -o results")]
    Combined(Single),
    /// Periodic tasks in colors under G-EDF and P-EDF (004 §IV, Figs. 10 to 12)
    Multicore(MulticoreArgs),
}

/// Options of the experiments on one processor.
#[derive(clap::Args, Debug)]
struct Single {
    /// Write table, picture, figures and raw samples into this directory
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    /// The level of the cache [default: the first one that has colors]
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// The processor [default: the first one]
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<u32>,
    /// How many colors are the task's [default: 4; of the matrices 3, one for each]
    #[arg(long, value_name = "NUMBER")]
    colors: Option<u16>,
    /// How many runs
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    #[command(flatten)]
    printed: Printed,
}

/// Options of short tasks.
#[derive(clap::Args, Debug)]
struct Short {
    #[command(flatten)]
    single: Single,
    /// Activations of each scenario in a run
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    activations: u32,
}

const MULTICORE: &str = "\
Task sets as in 004 §IV-A are run under G-EDF and P-EDF on all processors, their memory in colors as the scenarios S1, S2 and S3 \
say (§IV-B), and S1 a second time, which shows what does not come from colors. Working sets are 32 to 256 KiB (the best-effort \
task's 512 KiB), as in the paper, and scaled to this machine's cache.

The paper: 10 sets for each scheduler, 200 jobs of each task, 50 repetitions, which takes two weeks with both kinds of sizes:
    warmset color experiment multicore --sets 10 --jobs 200 --repetitions 50 -o DIR

With -o DIR, what was measured is kept in DIR/multicore.jsonl as soon as a set is done with one size; the same command goes on \
there. More --sets may be given later. Written besides: multicore.txt, .svg, .json (the figures, and where they come from) \
and .csv (task by task).

Exit status: 0, or 2 where it could not be measured.

Example: warmset color experiment multicore --quick -o results";

/// Options of `warmset color experiment multicore`.
#[derive(clap::Args, Debug)]
#[command(after_help = MULTICORE)]
struct MulticoreArgs {
    /// One set for each scheduler, ten jobs of each task, times a tenth of the paper's: half a
    /// minute
    #[arg(long, conflicts_with_all = ["sets", "jobs", "hasten"])]
    quick: bool,
    /// How many task sets for each scheduler
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    sets: u32,
    /// Jobs of each task in a run
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jobs: u64,
    /// How often a set is run in each scenario
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Divide periods and WCETs by this: reloading a cache takes a larger part of shorter jobs
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    hasten: u64,
    /// The part of its WCET that a job is calibrated to execute, alone in colors of its own
    #[arg(long, value_name = "PART", default_value = "0.9")]
    execution: String,
    #[command(flatten)]
    seed: Seed,
    /// Keep what is measured, and write table, picture, figures and raw samples into this directory
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    /// The level of the cache [default: the first one that has colors]
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    #[command(flatten)]
    printed: Printed,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.which {
        Which::Isolation(args) => short(args, Experiment::Isolation),
        Which::Filter(args) => short(args, Experiment::Filter),
        Which::Cosine(args) => short(args, Experiment::Cosine),
        Which::Fourier(args) => short(args, Experiment::Fourier),
        Which::Matrix(args) => single(args, Experiment::Matrix, Options::default()),
        Which::Combined(args) => single(args, Experiment::Combined, Options::default()),
        Which::Multicore(args) => on_all(args),
    }
}

fn short(args: Short, which: Experiment) -> Result<Answer> {
    let options = Options {
        activations: args.activations,
        ..Options::default()
    };
    single(args.single, which, options)
}

fn single(args: Single, which: Experiment, options: Options) -> Result<Answer> {
    let options = Options {
        output: args.output,
        level: args.level,
        cpu: args.cpu,
        colors: args.colors,
        runs: args.runs,
        command: command::without_outputs(),
        ..options
    };
    let console = Console::new()?;
    give(&experiment::run(which, &options, &console)?, args.printed)
}

fn on_all(args: MulticoreArgs) -> Result<Answer> {
    let options = multicore::Options {
        sets: args.sets,
        jobs: args.jobs,
        repetitions: args.repetitions,
        hasten: args.hasten,
        execution: Choice::Named(args.execution),
        seed: args.seed.seed,
        output: args.output,
        level: args.level,
        command: command::without_outputs(),
    };
    let options = match args.quick {
        true => options.quick(),
        false => options,
    };
    let console = Console::new()?;
    match multicore::run(&options, &console)? {
        Some(shown) => give(&shown, args.printed),
        None => Ok(Answer::Yes),
    }
}

/// Prints it.
fn give(shown: &Shown, printed: Printed) -> Result<Answer> {
    match printed.format() {
        Format::Json => print_json(shown)?,
        Format::Table => show(&shown.text)?,
    }
    shown.complete()?;
    Ok(match shown.holds {
        Some(false) => Answer::No,
        Some(true) | None => Answer::Yes,
    })
}
