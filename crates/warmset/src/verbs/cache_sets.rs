//! `warmset cache sets` and `videos`: 003 §4 in the model.

use crate::console::Console;
use crate::options::{Answered, On, Seed, draw, new_file};
use crate::{Answer, command};
use app::cache::sets::{self, Change, Compared, Distribution};
use app::cache::videos::{self, Decoded};
use model::table::{Look, Table};
use model::{Bytes, Duration, Pattern, Result};
use std::path::PathBuf;

const SETS: &str = "\
Examples:
  warmset cache sets --platform core-i7 --sets 2 --for 5s
  warmset cache sets --platform core-i7 --journal sets.jsonl --picture sets.svg

Random sets of multithreaded tasks as in 003 §4.1, simulated under `ca-edf:wss=profiled` and `g-edf` with jobs that walk working \
sets of 128 KiB to 7.5 MiB three times. All of the paper's sets take hours: with --journal the command goes on where it was \
stopped.";

/// Options of `warmset cache sets`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = SETS)]
pub struct SetsArgs {
    #[command(flatten)]
    on: On,
    /// Utilizations of tasks: `light`, `medium`, `heavy`, `wide`, `bimodal` [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    distributions: Vec<Distribution>,
    /// How jobs walk their working sets; the profiler alone is tried in order [default: both]
    #[arg(long, value_name = "HOW", value_enum)]
    pattern: Option<PatternArg>,
    /// Sets for each distribution and pattern
    #[arg(long, value_name = "N", default_value_t = 100)]
    sets: u64,
    /// How long each is simulated
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    horizon: Duration,
    #[command(flatten)]
    seed: Seed,
    /// Keep what is done in this file, and go on from there
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Draw the profiler's accuracy and the changes of miss rates, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

/// A pattern on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PatternArg {
    /// At random
    Random,
    /// In order, beside a prefetcher whose misses are not counted
    Sequential,
}

/// Runs `warmset cache sets`.
pub fn sets(args: &SetsArgs) -> Result<Answer> {
    let mut options = sets::Options {
        sets: args.sets,
        horizon: args.horizon,
        seed: args.seed.seed,
        journal: args.journal.clone(),
        command: command::without_outputs(),
        ..sets::Options::new(args.on.choice())
    };
    if !args.distributions.is_empty() {
        options.distributions.clone_from(&args.distributions);
    }
    match args.pattern {
        None => {}
        Some(PatternArg::Random) => options.patterns = vec![Pattern::Random],
        Some(PatternArg::Sequential) => options.patterns = vec![Pattern::Sequential],
    }
    let console = Console::new()?;
    let seen = sets::run(&options, &console)?;
    draw(args.picture.as_deref(), || {
        Ok(seen.figure()?.map(|figure| figure.to_svg()))
    })?;
    args.answered.give(|look| compared(&seen, look), &seen)?;
    seen.complete()?;
    Ok(Answer::Yes)
}

fn percent(part: f64) -> String {
    format!("{:.2} %", 100.0 * part)
}

fn compared(seen: &Compared, look: Look) -> String {
    let mut text = format!(
        "{}: {} sets a distribution and pattern, {} each\n\n",
        seen.platform,
        seen.sets,
        Duration::from_nanos(seen.horizon_ns)
    );
    text += &accuracy(seen).text(look);
    for (of, title) in [
        (
            (|s: &sets::Summed| Some(s.average)) as fn(&sets::Summed) -> Option<Change>,
            "miss rate lower than under g-edf by",
        ),
        (|s| Some(s.worst), "that of the worst job"),
        (|s| s.settled, "that of the worst job in the second half"),
    ] {
        if seen.changes.iter().any(|summed| of(summed).is_some()) {
            text += "\n";
            text += &changes(seen, title, of).text(look);
        }
    }
    if !seen.tardiness.is_empty() {
        let mut table = Table::new(1, 0);
        table.row(["tardiness", "jobs", "mean", "max"]);
        for late in &seen.tardiness {
            let time = |ns| Duration::from_nanos(ns).rounded().to_string();
            table.row([
                late.policy.to_owned(),
                late.jobs.to_string(),
                time(late.mean_ns),
                time(late.max_ns),
            ]);
        }
        text += "\n";
        text += &table.text(look);
    }
    text
}

fn accuracy(seen: &Compared) -> Table {
    let mut table = Table::new(2, 0);
    table.row([
        "profiled",
        "working sets from",
        "tasks",
        "off by < 5 %",
        "< 10 %",
        "mean of known",
        "converged",
    ]);
    for row in &seen.accuracy {
        table.row([
            row.pattern.to_owned(),
            row.from_bytes
                .map_or("all".to_owned(), |from| Bytes::new(from).to_string()),
            row.mtts.to_string(),
            percent(row.within_5_percent),
            percent(row.within_10_percent),
            percent(row.mean_ratio),
            percent(row.converged),
        ]);
    }
    table
}

fn changes(seen: &Compared, title: &str, of: fn(&sets::Summed) -> Option<Change>) -> Table {
    let mut table = Table::new(1, 0);
    table.row([
        title, "tasks", "min", "mean", "max", "better", "same", "worse",
    ]);
    for row in &seen.changes {
        let Some(change) = of(row) else {
            continue;
        };
        table.row([
            row.utilizations.to_owned(),
            row.mtts.to_string(),
            format!("{:.3}", change.min),
            format!("{:.3}", change.mean),
            format!("{:.3}", change.max),
            percent(change.better),
            percent(change.same),
            percent(change.worse),
        ]);
    }
    table
}

const VIDEOS: &str = "\
Example: warmset cache videos --platform core-i7 --picture videos.svg

Each video is a task with a frame of 14 ms and 2688 KiB every 41 ms, each frame in memory of its own, read twice (003 §4.3).";

/// Options of `warmset cache videos`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = VIDEOS)]
pub struct VideosArgs {
    #[command(flatten)]
    on: On,
    /// How many videos are decoded side by side
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 6, 12])]
    videos: Vec<u32>,
    /// How long each is simulated
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    horizon: Duration,
    /// Draw the longest frames by number of videos, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

/// Runs `warmset cache videos`.
pub fn videos(args: &VideosArgs) -> Result<Answer> {
    let options = videos::Options {
        on: args.on.choice(),
        videos: args.videos.clone(),
        horizon: args.horizon,
        command: command::without_outputs(),
    };
    let console = Console::new()?;
    let seen = videos::run(&options, &console)?;
    draw(args.picture.as_deref(), || {
        Ok(seen.figure()?.map(|figure| figure.to_svg()))
    })?;
    args.answered.give(|look| decoded(&seen, look), &seen)?;
    Ok(Answer::Yes)
}

fn decoded(seen: &Decoded, look: Look) -> String {
    let mut table = Table::new(0, 0);
    table.row([
        "videos",
        "g-edf",
        "ca-edf",
        "lower by",
        "ca-edf while it learns",
    ]);
    for row in &seen.rows {
        let (plain, aware) = (row.g_edf.nanos() as f64, row.ca_edf.nanos() as f64);
        table.row([
            row.videos.to_string(),
            row.g_edf.rounded().to_string(),
            row.ca_edf.rounded().to_string(),
            percent(1.0 - aware / plain.max(1.0)),
            row.ca_edf_all.rounded().to_string(),
        ]);
    }
    format!(
        "{}: the longest frame by number of videos\n\n{}",
        seen.platform,
        table.text(look)
    )
}
