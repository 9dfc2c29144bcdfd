//! `warmset trace export`: a trace for other tools, or a picture of a window of it.

use crate::Answer;
use crate::console::{Console, Screened};
use crate::options::new_file;
use app::output::Output;
use app::trace::export::{self, Options, Rows};
use model::{Duration, Result};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// What a trace can be turned into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Target {
    /// For the Perfetto trace viewer (https://ui.perfetto.dev): tracks for processors and tasks
    Perfetto,
    /// Every event as a line of CSV
    Csv,
    /// A window drawn in the notation of the papers
    Svg,
    /// A window drawn in text
    Text,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum RowsArg {
    /// One row a processor
    Processors,
    /// One row a task
    Tasks,
}

const EXPORT_HELP: &str = "\
Examples:
  warmset trace export run.wtrace --to svg --from 10ms --to-time 60ms -o run.svg
  warmset trace export run.wtrace --to perfetto -o run.pftrace";

/// Options of `warmset trace export`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXPORT_HELP)]
pub struct Args {
    /// The trace
    file: PathBuf,
    /// Into what
    #[arg(long, value_enum, value_name = "KIND")]
    to: Target,
    /// Where the window begins
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        default_value = "0ms"
    )]
    from: Duration,
    /// Where the window ends [default: the end; for pictures: eight of the longest periods after
    /// its begin]. An SVG ends earlier where arrows or pieces would lie too close to be told apart,
    /// and says so
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to_time: Option<Duration>,
    /// What the rows of an SVG are
    #[arg(long, value_enum, default_value = "processors")]
    rows: RowsArg,
    /// Width of an SVG, in pixels: the wider, the longer the window that has room
    #[arg(long, value_name = "PIXELS", default_value_t = 760, value_parser = clap::value_parser!(u32).range(200..=20_000))]
    width: u32,
    /// Title of an SVG [default: the policy]
    #[arg(long)]
    title: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

impl From<Target> for export::Target {
    fn from(target: Target) -> Self {
        match target {
            Target::Perfetto => export::Target::Perfetto,
            Target::Csv => export::Target::Csv,
            Target::Svg => export::Target::Svg,
            Target::Text => export::Target::Text,
        }
    }
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
    let options = Options {
        to: args.to.into(),
        from: args.from,
        until: args.to_time,
        rows: match args.rows {
            RowsArg::Processors => Rows::Processors,
            RowsArg::Tasks => Rows::Tasks,
        },
        width: args.width,
        title: args.title.clone(),
    };
    // Pictures are shown at once, events as they come.
    let mut out: Box<dyn Write> = match args.to {
        Target::Svg | Target::Text => Box::new(Screened),
        Target::Csv | Target::Perfetto => {
            Box::new(BufWriter::with_capacity(1 << 18, std::io::stdout()))
        }
    };
    let console = Console::new()?;
    let path = args.output.as_deref();
    export::export(
        &args.file,
        &options,
        || Output::open(path, &mut *out),
        &console,
    )?;
    Ok(Answer::Yes)
}
