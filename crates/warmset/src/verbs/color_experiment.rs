//! `warmset color experiment`: what a partition is worth on this machine (001 §5.2 and §5.3, Fig. 4).

use super::color_find::{find_palette, keep_pages};
use crate::Answer;
use crate::console::{Console, Format, print, print_json};
use model::Result;
use partition::isolation::{self, Isolation, SCENARIOS, SIZES};
use std::fmt::Write as _;

/// From which unpredictability on a flood does harm, and up to which a partition isolates.
const HARM: f64 = 1.5;
const ISOLATES: f64 = 1.15;

const HELP: &str = "\
A digital filter runs for short; between its activations a flooder reads and writes all of the cache. Shown is the
longest activation against the shortest one alone (c_max / c_min), medians over the runs.

Exit status, at the working set that is half of the partition: 0 the partition isolates (at most 1.15 where it is at least
1.5 without); 1 it does not, or the flood does no such harm; 2 it could not be measured.

Example: warmset color experiment --colors 4";

/// Options of `warmset color experiment`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    /// The level of the cache [default: the first one that has colors]
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// The processor [default: the first one]
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<u32>,
    /// How many colors are the filter's
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    colors: u16,
    /// How many runs
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Activations of each scenario in a run
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    activations: u32,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
    let platform = machine::this_machine()?.platform;
    let console = Console::new()?;
    let settings = keep_pages(&console);
    let mut palette = find_palette(&platform, args.level, args.cpu, &console)?;
    let isolation = isolation::filter(
        &mut palette,
        args.colors,
        &SIZES,
        args.runs as usize,
        args.activations as usize,
        &console,
    )?;
    console.finish();
    drop(settings);
    match args.format {
        Format::Json => print_json(&isolation)?,
        Format::Table => print(&text_of(&isolation))?,
    }
    Ok(if isolates(&isolation) {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn isolates(isolation: &Isolation) -> bool {
    isolation
        .at_half()
        .is_some_and(|row| row.unpredictability[1] >= HARM && row.unpredictability[2] <= ISOLATES)
}

fn text_of(isolation: &Isolation) -> String {
    // Writing into a string cannot fail.
    let mut text = format!(
        "filter in colors {} ({}), {} runs of {} activations; c_max / c_min\n\n{:>12} {:>8} {:>10}",
        isolation.colors,
        isolation.partition,
        isolation.runs.0,
        isolation.runs.1,
        "coefficients",
        "wss",
        "c_min"
    );
    for scenario in SCENARIOS {
        let name = match scenario {
            isolation::Scenario::Alone => "alone",
            isolation::Scenario::Unpartitioned => "unpartitioned",
            isolation::Scenario::Partitioned => "partitioned",
            isolation::Scenario::SingleWriter => "single-writer",
            isolation::Scenario::Translations => "translations",
        };
        let _ = write!(text, " {name:>14}");
    }
    text.push('\n');
    for row in &isolation.rows {
        let _ = write!(
            text,
            "{:>12} {:>8} {:>7.2} us",
            row.coefficients,
            row.wss.to_string(),
            row.least_ns / 1000.0
        );
        for value in row.unpredictability {
            let _ = write!(text, " {value:>14.2}");
        }
        text.push('\n');
    }
    let (interrupted, counted) = isolation
        .rows
        .iter()
        .fold((0, 0), |sum, r| (sum.0 + r.interrupted, sum.1 + r.counted));
    let _ = writeln!(
        text,
        "\n{counted} activations count, {interrupted} were interrupted and left out{}",
        if isolation.witnessed {
            ""
        } else {
            " (this machine does not show interrupts)"
        }
    );
    text.push_str("001 Fig. 4 reads about 1.35 unpartitioned for large filters on the Pentium, 1.10 partitioned at 256 coefficients,\nand up to 1.6 with a single writer on the Pentium Pro\n");
    if let Some(row) = isolation.at_half() {
        let _ = writeln!(
            text,
            "{}: with {} of {}, {:.2} partitioned and {:.2} unpartitioned ({ISOLATES} and {HARM} are wanted)",
            if isolates(isolation) {
                "the partition isolates"
            } else {
                "not shown"
            },
            row.wss,
            isolation.partition,
            row.unpredictability[2],
            row.unpredictability[1]
        );
    }
    text
}
