//! `warmset trace`: checks, adds up and exports what happened, in simulation or for real.

use super::{trace_export, trace_import};
use crate::Answer;
use crate::console::{Console, Format};
use crate::options::{Answered, new_file};
use ::trace::check::Violation;
use ::trace::{Condition, Header, Verdict, View};
use app::trace::{CheckOptions, policies_of};
use model::{Duration, Instant, Result};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Options of `warmset trace`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: warmset trace check run.wtrace"
)]
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
    /// Make a trace of what Linux itself scheduled: of the text of sched_switch and sched_wakeup
    Import(trace_import::Args),
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
        What::Import(args) => trace_import::run(args),
    }
}

fn check(args: &CheckArgs) -> Result<Answer> {
    let options = CheckOptions {
        tolerance: args.tolerance,
        picture: args.picture.clone(),
    };
    let console = Console::new()?;
    let checked = app::trace::check(&args.file, &options, &console)?;
    let table = |_| {
        let picture = checked.picture.as_ref();
        told(
            &checked.header,
            checked.condition,
            &checked.verdict,
            picture,
        )
    };
    args.answered.give(table, &checked)?;
    Ok(match checked.clean {
        true => Answer::Yes,
        false => Answer::No,
    })
}

fn stats(args: &StatsArgs) -> Result<Answer> {
    let console = Console::new()?;
    let sums = app::trace::stats(&args.file, args.jobs.as_deref(), &console)?;
    let condition = sums.condition;
    if args.answered.printed.format() == Format::Json {
        app::trace::export::note_damage(&args.file, &condition, true, &console);
    }
    let table = |look| {
        let complete = if condition.is_whole() {
            String::new()
        } else {
            format!("{condition}\n")
        };
        format!(
            "{}\n{complete}{}",
            about(&sums.header),
            sums.summary.text(look)
        )
    };
    args.answered.give(table, &sums)?;
    Ok(Answer::Yes)
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

fn write_violation(text: &mut String, number: usize, violation: &Violation) {
    let time = Instant::from_nanos(violation.time_ns);
    let _ = writeln!(
        text,
        "\n{}. at {time}, rule `{}`: {}",
        number, violation.rule, violation.text
    );
    if let Some((place, event)) = &violation.event {
        let _ = writeln!(text, "   event {place}: {event}");
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
}

fn told(
    header: &Header,
    condition: Condition,
    verdict: &Verdict,
    picture: Option<&View>,
) -> String {
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
    write_violations(&mut text, verdict, picture);
    text
}

/// The violations that a verdict keeps, with a picture of the first, and how many more there are.
fn write_violations(text: &mut String, verdict: &Verdict, picture: Option<&View>) {
    let plural = if verdict.violations == 1 { "" } else { "s" };
    let _ = writeln!(text, "{} violation{plural}", verdict.violations);
    for (place, violation) in verdict.first.iter().enumerate() {
        write_violation(text, place + 1, violation);
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
}
