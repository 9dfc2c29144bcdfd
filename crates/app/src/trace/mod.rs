//! Checks, adds up and exports what happened, in simulation or for real.

pub mod export;
pub mod import;

use ::trace::check::{Options as Checks, Violation};
use ::trace::stats::JobRow;
use ::trace::view::Moment;
use ::trace::{
    Checker, Condition, Header, Origin, Reader, Sink, Statistics, Verdict, View, Viewer, csv,
};
use model::watch::Watch;
use model::{Duration, Error, Instant, Result, files};
use report::schedule::{self, Rows};
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Hands all events of a file to a sink, with progress, until `enough` says so.
fn replay<S: Sink>(
    path: &Path,
    doing: &str,
    mut sink: S,
    enough: impl Fn(&S) -> bool,
    watch: &dyn Watch,
) -> Result<(S, Condition)> {
    let mut reader = Reader::open(path)?;
    let size = std::fs::metadata(path).map_or(0, |m| m.len());
    watch.begin(doing, size);
    while let Some(events) = reader.next_block()? {
        for event in events {
            sink.record(*event);
        }
        watch.advance(4096);
        if watch.stopped() {
            return Err(Error::new("stopped before the end").at(path.display()));
        }
        if enough(&sink) {
            break;
        }
    }
    Ok((sink, reader.condition()))
}

fn head_of(path: &Path) -> Result<Header> {
    Ok(Reader::open(path)?.header().clone())
}

/// Who rules, one after the other.
pub fn policies_of(header: &Header) -> String {
    let policies: Vec<&str> = header.stages.iter().map(|s| s.policy.as_str()).collect();
    policies.join(", ")
}

/// What every answer about a trace opens with.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The trace.
    pub file: String,
    /// Whether it was simulated.
    pub origin: Origin,
    /// Several that took turns stand apart by `, `.
    pub policy: String,
    /// The name of the platform.
    pub platform: String,
}

impl About {
    fn of(file: &Path, header: &Header) -> Self {
        About {
            file: file.display().to_string(),
            origin: header.origin,
            policy: policies_of(header),
            platform: header.platform.name.clone(),
        }
    }
}

/// How a trace is checked. By default a simulated one exactly, one of a real run within 1 ms.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// How long a decision may be overdue.
    pub tolerance: Option<Duration>,
    /// Draw the schedule around the first violation into this file, as SVG.
    pub picture: Option<PathBuf>,
}

/// What the checker says of a trace. JSON: as `warmset trace check --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Which trace.
    #[serde(flatten)]
    pub about: About,
    /// No rule is broken, and nothing is missing.
    pub clean: bool,
    /// Whether nothing is missing.
    pub whole: bool,
    /// What is missing.
    pub condition: Condition,
    /// Which rules are broken.
    pub verdict: Verdict,
    /// The schedule around the first violation.
    #[serde(skip)]
    pub picture: Option<View>,
    /// What the trace opens with.
    #[serde(skip)]
    pub header: Header,
}

/// Decides whether a trace keeps the rules of every schedule and of its policy.
///
/// # Errors
/// The file is no trace; the picture cannot be written; the user stopped it.
pub fn check(file: &Path, options: &CheckOptions, watch: &dyn Watch) -> Result<Checked> {
    let header = head_of(file)?;
    let mut checks = Checks::for_trace(&header);
    if let Some(tolerance) = options.tolerance {
        checks.tolerance = tolerance;
    }
    let checker = Checker::new(header.clone(), checks).map_err(|e| e.at(file.display()))?;
    let (checker, condition) = replay(file, "checking", checker, |_| false, watch)?;
    let verdict = checker.finish();
    let picture = match verdict.first.first() {
        Some(violation) => Some(around(file, &header, violation, watch)?),
        None => None,
    };
    if let (Some(path), Some(view), Some(violation)) =
        (&options.picture, &picture, verdict.first.first())
    {
        let title = format!(
            "{}: rule {} is broken at {}",
            policies_of(&header),
            violation.rule,
            report::words::moment(Instant::from_nanos(violation.time_ns))
        );
        let figure = schedule::figure("violation", &title, view, Rows::Processors, 760.0, "");
        files::write(path, figure.to_svg())?;
    }
    watch.finish();
    Ok(Checked {
        about: About::of(file, &header),
        clean: verdict.is_clean() && condition.is_whole(),
        whole: condition.is_whole(),
        condition,
        verdict,
        picture,
        header,
    })
}

/// The most pieces of jobs on a processor that can be told apart in a picture of a violation.
const PIECES: usize = 14;

/// The schedule around a violation, its moment marked.
fn around(path: &Path, header: &Header, violation: &Violation, watch: &dyn Watch) -> Result<View> {
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
    let (viewer, _) = replay(path, "drawing", viewer, Viewer::is_done, watch)?;
    let name = violation.rule.to_owned();
    Ok(viewer.finish().around(Moment { time, name }, PIECES))
}

/// A trace, added up. JSON: as `warmset trace stats --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Sums {
    /// Which trace.
    #[serde(flatten)]
    pub about: About,
    /// Response times, tardiness, misses, preemptions, migrations, time lost.
    #[serde(flatten)]
    pub summary: ::trace::Summary,
    /// What is missing of the trace.
    #[serde(skip)]
    pub condition: Condition,
    /// What the trace opens with.
    #[serde(skip)]
    pub header: Header,
}

/// Adds up a trace; writes every finished job as a line of CSV into `jobs`.
///
/// # Errors
/// The file is no trace; the jobs cannot be written; the user stopped it.
pub fn stats(file: &Path, jobs: Option<&Path>, watch: &dyn Watch) -> Result<Sums> {
    let header = head_of(file)?;
    let names: Vec<String> = header
        .tasks
        .ids()
        .map(|t| csv::field(&header.tasks.name(t)))
        .collect();
    let place = jobs.unwrap_or(file);
    let out = jobs.map(files::Aside::create).transpose()?;
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
    let (mut jobs, condition) = replay(file, "adding up", jobs, |j| j.error.is_some(), watch)?;
    jobs.write();
    if let Some(e) = jobs.error {
        return Err(Error::io(place, "write the jobs", &e));
    }
    if let Some(out) = jobs.out {
        let aside = out
            .into_inner()
            .map_err(|e| Error::io(place, "write the jobs", e.error()))?;
        aside.finish()?;
    }
    watch.finish();
    Ok(Sums {
        about: About::of(file, &header),
        summary: jobs.statistics.summary(),
        condition,
        header,
    })
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
