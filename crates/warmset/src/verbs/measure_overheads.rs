//! `warmset measure overheads`: what the scheduler costs under each policy.

use crate::console::{self, Console, Format, look};
use crate::options::{Printed, Seed, directory};
use crate::{Answer, command};
use app::measure::overheads::{self, Overheads};
use clap::Args as ClapArgs;
use experiment::overheads::campaign;
use experiment::overheads::plan::{Engine, Options, Utilization};
use measure::overheads::curve::Point;
use measure::overheads::results::Found;
use measure::overheads::tiles::Cost;
use model::table::Table;
use model::{Code, Duration, Error, Result};
use policy::Spec;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
Random task sets of growing size run on the engine under each policy (002 §5.1). The engine times its own work, the \
kernel's tracepoints tell what the kernel does in between, and each nanosecond from the interrupt of the timer until \
the next job goes on belongs to one overhead. docs/measuring-overheads.md says how to read the numbers.

Files in DIR: profile.toml, for `check`, `simulate` and `study`; cache delays that are in it stay. overheads.json: all \
curves, with the engine's part and the kernel's. overheads.parquet: the samples behind them, to be read by pandas, or \
here again with --samples. overheads-maximum.svg and overheads-average.svg. overheads.part while \
it runs.

With --engine kernel the sets run in the engine in the kernel (docs/kernel.md): all that it takes is the kernel's own \
code, and is told by its tracepoints alone.

The kernel's part needs root and tracefs (`mount -t tracefs nodev /sys/kernel/tracing`); without it the engine's own \
part is measured alone, and the profile says so.

Ctrl-C keeps what was measured: the files are written from the finished runs, with a warning, and the exit status is \
130; the same command with --resume goes on.

Examples:
  warmset measure overheads -o out --quick
  warmset measure overheads -o out --policy p-edf,g-edf --tasks 10,20,100 --sets 5
  warmset measure overheads -o kernel --engine kernel --quick
  warmset measure overheads --samples out/overheads.parquet";

/// Options of `warmset measure overheads`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Directory for the results
    #[arg(short, long, value_name = "DIR", alias = "out", value_parser = directory, required_unless_present = "samples")]
    output: Option<PathBuf>,
    /// Measure nothing: make the table again from the samples that a measurement kept
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["output", "engine", "quick", "policy", "tasks", "sets", "length", "resume"]
    )]
    samples: Option<PathBuf>,
    /// Which engine runs the sets: what it costs is what is measured
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t)]
    engine: EngineArg,
    /// At most three minutes: fewer policies, sizes and sets, shorter runs
    #[arg(long)]
    quick: bool,
    /// Policies [default: p-edf, g-edf, c-edf where clusters differ from both, p-rm, edf-fm, edf-wm
    /// and nps-f; quick: p-edf, g-edf, c-edf, edf-wm and nps-f]
    #[arg(long, value_name = "NAME,…")]
    policy: Option<String>,
    /// Numbers of tasks; utilizations of many are scaled down to what the processors have
    /// [default: up to 350]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=5000))]
    tasks: Vec<u32>,
    /// Task sets of each size [default: 10; quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    sets: Option<u32>,
    /// How long each set runs [default: 4s; quick: 1500ms]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, value_parser = length)]
    length: Option<Duration>,
    #[command(flatten)]
    seed: Seed,
    /// Go on with an interrupted measurement in DIR; the other options must be the same
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
enum EngineArg {
    /// Those of the engine in user space
    #[default]
    User,
    /// Those of the engine in the kernel: a kernel with sched_ext
    Kernel,
}

impl From<EngineArg> for Engine {
    fn from(arg: EngineArg) -> Self {
        match arg {
            EngineArg::User => Engine::User,
            EngineArg::Kernel => Engine::Kernel,
        }
    }
}

/// Shorter runs have no job of many tasks.
pub fn length(text: &str) -> Result<Duration> {
    let length: Duration = text.parse()?;
    match length >= Duration::from_millis(100) && length <= Duration::from_secs(3600) {
        true => Ok(length),
        false => {
            Err(Error::new(format!("runs of {length} cannot be measured"))
                .remedy("give 100ms to 1h"))
        }
    }
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    if let Some(path) = &args.samples {
        return show(path, args.printed.format());
    }
    let dir = args.output.unwrap_or_default();
    let options = Options {
        out: dir.clone(),
        engine: args.engine.into(),
        quick: args.quick,
        policies: args
            .policy
            .as_deref()
            .map(Spec::list)
            .transpose()?
            .unwrap_or_default(),
        tasks: args.tasks,
        sets: args.sets,
        length: args.length,
        seed: args.seed.seed,
        resume: args.resume,
        command: command::whole(),
        ..Options::default()
    };
    let console = Console::new()?;
    let measured = overheads::overheads(options, &console)?;
    match args.printed.format() {
        Format::Table => console::show(&as_text(&measured))?,
        Format::Json => console::print_json(&measured)?,
    }
    overheads::complete(&measured, &dir)?;
    Ok(Answer::Yes)
}

/// Shows what kept samples say.
fn show(path: &Path, format: Format) -> Result<Answer> {
    let read = overheads::of_samples(path)?;
    match format {
        Format::Json => console::print_json(&read)?,
        Format::Table => {
            let mut text = curves_text(&read.curves);
            let _ = writeln!(
                text,
                "{} samples of {} runs; {} more were counted and not kept.",
                read.samples, read.runs, read.left_out
            );
            console::show(&text)?;
        }
    }
    Ok(Answer::Yes)
}

fn curves_text(curves: &[Found]) -> String {
    let mut text = table(curves).text(look());
    text += "\nTimes in µs, outliers removed; own: the engine's part; most: with outliers. A range \
             of tasks: the largest of its sizes. Adds: the part that recording events of the kernel \
             takes of the overhead as it was measured; off: it is subtracted, but from `most`.\n\n";
    text
}

fn as_text(measured: &Overheads) -> String {
    let outcome = &measured.outcome;
    let mut text = curves_text(&outcome.curves);
    for statement in &outcome.statements {
        let _ = writeln!(
            text,
            "{}: {} ({}). Here: {}.",
            statement.holds.words(),
            statement.says,
            statement.source,
            statement.here
        );
    }
    text.push('\n');
    if outcome.engine == Engine::Kernel {
        text += "Of the engine in the kernel, by the kernel's tracepoints.\n";
    }
    if let Some(by) = &outcome.emulated {
        let _ = writeln!(text, "Note: {}.", campaign::emulation(by));
    }
    if let Some(period) = outcome.tick_period {
        let _ = writeln!(text, "The kernel ticks every {period}.");
    }
    if !outcome.discards.is_empty() {
        let causes = outcome.discards.iter();
        let causes: Vec<String> = causes
            .map(|(cause, count)| format!("{count} with {}", cause.words()))
            .collect();
        let _ = writeln!(text, "Samples that do not count: {}.", causes.join(", "));
    }
    if let Some(probe) = &outcome.probe {
        let _ = writeln!(text, "An event of the kernel takes {}.", probe.words());
    }
    if outcome.unseen > 0 {
        let _ = writeln!(
            text,
            "The kernel did not record {} switches to a dispatcher; it counts as there since it was \
             woken.",
            outcome.unseen
        );
    }
    if !outcome.apart.is_empty() {
        let first = &outcome.apart[0];
        let _ = writeln!(
            text,
            "{} of {} runs do not count, the first: {} with {} tasks, {}.",
            outcome.apart.len(),
            outcome.runs,
            first.policy,
            first.tasks,
            first.why
        );
    }
    let mut files = vec![measured.profile_path.display().to_string()];
    files.push(measured.results_path.display().to_string());
    files.push(measured.samples_path.display().to_string());
    files.extend(
        measured
            .figures
            .iter()
            .map(|path| path.display().to_string()),
    );
    let _ = writeln!(text, "Wrote {}.", files.join(", "));
    text += &super::measure::hint(&measured.profile_path);
    text
}

/// One row for each overhead, policy and kind of sets.
fn table(curves: &[Found]) -> Table {
    let mut rows = Table::new(3, 0);
    rows.row([
        "overhead",
        "policy",
        "tasks",
        "samples",
        "mean",
        "largest",
        "own mean",
        "own largest",
        "most",
        "adds",
        "rises",
    ]);
    let mut whole: Vec<&Found> = curves.iter().filter(|f| is_main(f, curves)).collect();
    whole.sort_by_key(|f| (f.cost, f.utilization, f.scaled));
    for found in whole {
        let own = curves
            .iter()
            .find(|f| is_of(f, found) && f.code == Code::Own);
        let of = |found: Option<&Found>, value: fn(&Point) -> u64| {
            let largest = found.and_then(|f| f.curve.points.iter().map(value).max());
            largest.map_or("–".to_owned(), micros)
        };
        let rises = match (found.curve.points.is_empty(), found.curve.maximum.rises) {
            (true, _) => "too few",
            (false, true) => "yes",
            (false, false) => "no",
        };
        rows.row([
            words(found.cost),
            found.policy.clone(),
            sizes(found),
            found.seen.to_string(),
            of(Some(found), |p| p.average_ns),
            of(Some(found), |p| p.maximum_ns),
            of(own, |p| p.average_ns),
            of(own, |p| p.maximum_ns),
            micros(found.max_ns),
            adds(found),
            rises.to_owned(),
        ]);
    }
    rows
}

/// What measuring added: `3 %`, `8 %, off` where it is subtracted.
fn adds(found: &Found) -> String {
    match &found.added {
        None => "–".to_owned(),
        Some(added) => format!(
            "{:.1} %{}",
            100.0 * added.part,
            if added.subtracted { ", off" } else { "" }
        ),
    }
}

/// Is this the curve of all the code that is known?
fn is_main(found: &Found, curves: &[Found]) -> bool {
    match found.code {
        Code::Both => true,
        Code::Own => !curves
            .iter()
            .any(|f| is_of(f, found) && f.code == Code::Both),
        Code::Kernel => false,
    }
}

/// Are both of the same cost of the same sets?
fn is_of(a: &Found, b: &Found) -> bool {
    (a.cost, &a.policy, a.utilization, a.scaled) == (b.cost, &b.policy, b.utilization, b.scaled)
}

fn words(cost: Cost) -> String {
    match cost {
        Cost::Look => "nothing to do",
        Cost::Overhead(kind) => kind.words(),
    }
    .to_owned()
}

/// `4–30`, `100–350 scaled`, `2–6 medium`.
fn sizes(found: &Found) -> String {
    let points = &found.curve.points;
    let dropped = found.curve.dropped.iter().map(|(tasks, _)| *tasks);
    let mut all: Vec<u32> = points.iter().map(|p| p.tasks).collect();
    if all.is_empty() {
        all.extend(dropped);
    }
    let (least, most) = (all.iter().min().copied(), all.iter().max().copied());
    let mut text = match (least, most) {
        (Some(least), Some(most)) if least < most => format!("{least}–{most}"),
        (least, _) => least.unwrap_or(0).to_string(),
    };
    if found.utilization == Utilization::Medium {
        text += " medium";
    }
    if found.scaled {
        text += " scaled";
    }
    text
}

fn micros(nanos: u64) -> String {
    format!("{:.2}", nanos as f64 / 1e3)
}
