//! `warmset trace`: checks, adds up and exports what happened, in simulation or for real.

use super::trace_export;
use crate::Answer;
use crate::console::{Console, Format};
use crate::options::{Answered, new_file};
use ::trace::check::{Options, Violation};
use ::trace::stats::JobRow;
use ::trace::view::Moment;
use ::trace::{Checker, Condition, Header, Origin, Reader, Sink, Statistics, Verdict, View, Viewer, csv};
use model::watch::Watch;
use model::{Duration, Error, Instant, Result, files};
use report::schedule::{self, Rows};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Options of `warmset trace`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Decide whether a trace keeps the rules of every schedule and of its policy
    Check(CheckArgs),
    /// Add up a trace: response times, tardiness, misses, preemptions, migrations, time lost
    Stats(StatsArgs),
    /// Write a trace for another tool, or draw a window of it
    Export(trace_export::Args),
}

const CHECK_HELP: &str = "\
Exit status: 0 no rule is broken; 1 one is, or events are missing (lost while it was recorded, damaged, or cut off at the \
end); 2 the file cannot be read.

A simulated trace is checked exactly. On a real machine a decision takes effect after a while: it may be overdue by the \
tolerance, which is part of the answer, next to how long decisions were overdue in fact.

Example: warmset trace check run.wtrace --picture violation.svg";

#[derive(clap::Args, Debug)]
#[command(after_help = CHECK_HELP)]
struct CheckArgs {
    /// The trace
    file: PathBuf,
    /// How long a decision may be overdue [default: none for simulated traces, 1ms for real ones]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    tolerance: Option<Duration>,
    /// Draw the schedule around the first violation, which is marked, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

const STATS_HELP: &str = "\
Example: warmset trace stats run.wtrace --jobs jobs.csv";

#[derive(clap::Args, Debug)]
#[command(after_help = STATS_HELP)]
struct StatsArgs {
    /// The trace
    file: PathBuf,
    /// Write every finished job as a line of CSV
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    jobs: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.what {
        What::Check(args) => check(&args),
        What::Stats(args) => stats(&args),
        What::Export(args) => trace_export::run(&args),
    }
}

/// Hands all events of a file to a sink, with progress, until `enough` says so.
pub(super) fn replay<S: Sink>(
    path: &Path,
    doing: &str,
    mut sink: S,
    enough: impl Fn(&S) -> bool,
) -> Result<(S, Condition)> {
    let console = Console::new()?;
    let mut reader = Reader::open(path)?;
    let size = std::fs::metadata(path).map_or(0, |m| m.len());
    console.begin(doing, size);
    while let Some(events) = reader.next_block()? {
        for event in events {
            sink.record(*event);
        }
        console.advance(4096);
        if console.stopped() {
            return Err(Error::new("stopped before the end").at(path.display()));
        }
        if enough(&sink) {
            break;
        }
    }
    Ok((sink, reader.condition()))
}

pub(super) fn head_of(path: &Path) -> Result<Header> {
    Ok(Reader::open(path)?.header().clone())
}

/// Who rules, one after the other.
fn policies_of(header: &Header) -> String {
    let policies: Vec<&str> = header.stages.iter().map(|s| s.policy.as_str()).collect();
    policies.join(", ")
}

/// What a trace says of itself, in a line.
fn about(header: &Header) -> String {
    format!(
        "{} trace of {} tasks under {} on {} processors ({})",
        header.origin,
        header.tasks.len(),
        policies_of(header),
        header.processors().len(),
        header.provenance.source
    )
}

/// What every JSON document about a trace opens with.
#[derive(Serialize)]
struct About<'a> {
    file: String,
    origin: Origin,
    /// Several that took turns stand apart by `, `.
    policy: String,
    platform: &'a str,
}

impl<'a> About<'a> {
    fn of(file: &Path, header: &'a Header) -> Self {
        About {
            file: file.display().to_string(),
            origin: header.origin,
            policy: policies_of(header),
            platform: &header.platform.name,
        }
    }
}

fn check(args: &CheckArgs) -> Result<Answer> {
    let header = head_of(&args.file)?;
    let mut options = Options::for_trace(&header);
    if let Some(tolerance) = args.tolerance {
        options.tolerance = tolerance;
    }
    let checker = Checker::new(header.clone(), options).map_err(|e| e.at(args.file.display()))?;
    let (checker, condition) = replay(&args.file, "checking", checker, |_| false)?;
    let verdict = checker.finish();
    let picture = match verdict.first.first() {
        Some(violation) => Some(around(&args.file, &header, violation)?),
        None => None,
    };
    if let (Some(path), Some(view)) = (&args.picture, &picture) {
        let title = verdict.first.first().map_or(String::new(), |v| {
            format!(
                "{}: rule {} is broken at {}",
                policies_of(&header),
                v.rule,
                report::words::moment(Instant::from_nanos(v.time_ns))
            )
        });
        let figure = schedule::figure("violation", &title, view, Rows::Processors, 760.0, "");
        files::write(path, figure.to_svg())?;
    }
    let clean = verdict.is_clean() && condition.is_whole();
    #[derive(Serialize)]
    struct Checked<'a> {
        #[serde(flatten)]
        about: About<'a>,
        /// No rule is broken, and nothing is missing.
        clean: bool,
        whole: bool,
        condition: Condition,
        verdict: &'a Verdict,
    }
    let checked = Checked {
        about: About::of(&args.file, &header),
        clean,
        whole: condition.is_whole(),
        condition,
        verdict: &verdict,
    };
    let table = |_| told(&header, condition, &verdict, picture.as_ref());
    args.answered.give(table, &checked)?;
    Ok(if clean { Answer::Yes } else { Answer::No })
}

/// The most pieces of jobs on a processor that can be told apart in a picture of a violation.
const PIECES: usize = 14;

/// The schedule around a violation, its moment marked.
fn around(path: &Path, header: &Header, violation: &Violation) -> Result<View> {
    let shortest = header
        .tasks
        .timings()
        .iter()
        .map(|t| t.period)
        .min()
        .unwrap_or_default();
    let time = Instant::from_nanos(violation.time_ns);
    let (from, to) = schedule::around(time, shortest);
    let viewer = Viewer::new(header, from, to);
    let (viewer, _) = replay(path, "drawing", viewer, Viewer::is_done)?;
    let name = violation.rule.to_owned();
    Ok(viewer.finish().around(Moment { time, name }, PIECES))
}

fn told(header: &Header, condition: Condition, verdict: &Verdict, picture: Option<&View>) -> String {
    // Writing into a string cannot fail.
    let mut text = format!("{}\n{condition}\n", about(header));
    let policies = match verdict.policies.as_slice() {
        [] => String::new(),
        names => format!(" and those of {}", names.join(", ")),
    };
    let tolerance = Duration::from_nanos(verdict.tolerance_ns);
    let _ = writeln!(
        text,
        "checked against the rules of every schedule{policies}, {}",
        match verdict.tolerance_ns {
            0 => "exactly".to_owned(),
            _ => format!("with a tolerance of {tolerance}"),
        }
    );
    let late = &verdict.late_releases;
    if late.count > 0 {
        let _ = writeln!(
            text,
            "jobs were released late: median {}, 99.9th percentile {}, longest {}",
            Duration::from_nanos(late.median_ns),
            Duration::from_nanos(late.p999_ns),
            Duration::from_nanos(late.max_ns)
        );
    }
    if verdict.standstills.count > 0 {
        let _ = writeln!(text, "{}", verdict.standstills);
    }
    if verdict.overdue.count > 0 && verdict.tolerance_ns > 0 {
        let o = &verdict.overdue;
        let time = |ns| Duration::from_nanos(ns).to_string();
        let _ = writeln!(
            text,
            "decisions were overdue {} times: median {}, 99.9th percentile {}, longest {}",
            o.count,
            time(o.median_ns),
            time(o.p999_ns),
            time(o.max_ns)
        );
    }
    for note in &verdict.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if verdict.unchecked > 0 {
        let _ = writeln!(
            text,
            "not checked: the {} events after the loss",
            verdict.unchecked
        );
    }
    if verdict.is_clean() {
        text.push_str(if condition.is_whole() {
            "no rule is broken\n"
        } else {
            "no rule is broken in what is there; the answer is no because the trace is not whole\n"
        });
        return text;
    }
    let plural = if verdict.violations == 1 { "" } else { "s" };
    let _ = writeln!(text, "{} violation{plural}", verdict.violations);
    for (place, violation) in verdict.first.iter().enumerate() {
        let time = Instant::from_nanos(violation.time_ns);
        let _ = writeln!(
            text,
            "\n{}. at {time}, rule `{}`: {}",
            place + 1,
            violation.rule,
            violation.text
        );
        if let Some((number, event)) = &violation.event {
            let _ = writeln!(text, "   event {number}: {event}");
        }
        let queue: Vec<String> = violation
            .queue
            .iter()
            .map(|r| {
                let deadline = Instant::from_nanos(r.deadline_ns);
                match r.on {
                    Some(cpu) => format!("{}·{} (by {deadline}, on P{cpu})", r.task, r.job),
                    None => format!("{}·{} (by {deadline}, waits)", r.task, r.job),
                }
            })
            .collect();
        let _ = writeln!(
            text,
            "   ready then: {}",
            if queue.is_empty() {
                "nothing".to_owned()
            } else {
                queue.join(", ")
            }
        );
        if let (0, Some(view)) = (place, picture) {
            text.push('\n');
            for line in view.text().lines() {
                let _ = writeln!(text, "   {line}");
            }
        }
    }
    let left = verdict.violations - verdict.first.len() as u64;
    if left > 0 {
        let _ = writeln!(text, "\n… and {left} more");
    }
    text
}

fn stats(args: &StatsArgs) -> Result<Answer> {
    let header = head_of(&args.file)?;
    let names: Vec<String> = header
        .tasks
        .ids()
        .map(|t| csv::field(&header.tasks.name(t)))
        .collect();
    let out = args.jobs.as_deref().map(files::Aside::create).transpose()?;
    let mut jobs = Jobs {
        statistics: Statistics::new(&header, out.is_some()),
        names,
        text: JobRow::csv_head(),
        out: out.map(BufWriter::new),
        error: None,
    };
    if jobs.out.is_none() {
        jobs.text.clear();
    }
    let (mut jobs, condition) = replay(&args.file, "adding up", jobs, |j| j.error.is_some())?;
    jobs.write();
    if let Some(e) = jobs.error {
        return Err(Error::io(
            args.jobs.as_deref().unwrap_or(&args.file),
            "write the jobs",
            &e,
        ));
    }
    if let Some(out) = jobs.out {
        let path = args.jobs.as_deref().unwrap_or(&args.file);
        let aside = out
            .into_inner()
            .map_err(|e| Error::io(path, "write the jobs", e.error()))?;
        aside.finish()?;
    }
    let summary = jobs.statistics.summary();
    #[derive(Serialize)]
    struct Sums<'a> {
        #[serde(flatten)]
        about: About<'a>,
        #[serde(flatten)]
        summary: &'a ::trace::Summary,
    }
    let sums = Sums {
        about: About::of(&args.file, &header),
        summary: &summary,
    };
    if args.answered.printed.format() == Format::Json {
        trace_export::note_damage(&args.file, &condition, true);
    }
    let table = |look| {
        let complete = if condition.is_whole() {
            String::new()
        } else {
            format!("{condition}\n")
        };
        format!("{}\n{complete}{}", about(&header), summary.text(look))
    };
    args.answered.give(table, &sums)?;
    Ok(Answer::Yes)
}

/// Adds up, and writes the jobs as they finish.
struct Jobs {
    statistics: Statistics,
    names: Vec<String>,
    text: String,
    out: Option<BufWriter<files::Aside>>,
    error: Option<std::io::Error>,
}

impl Jobs {
    fn write(&mut self) {
        for row in self.statistics.take_rows() {
            if let Some(name) = self.names.get(row.task.index()) {
                row.csv(name, &mut self.text);
            }
        }
        if let (Some(out), None) = (&mut self.out, &self.error) {
            self.error = out.write_all(self.text.as_bytes()).err();
        }
        self.text.clear();
    }
}

impl Sink for Jobs {
    fn record(&mut self, event: ::trace::Event) {
        self.statistics.record(event);
        if self.out.is_some() && event.kind == ::trace::EventKind::Completion {
            self.write();
        }
    }
}
