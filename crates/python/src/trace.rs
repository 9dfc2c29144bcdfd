//! Recorded schedules: what stands in a trace, what it adds up to, whether it keeps the rules.

use crate::columns::{self, Columns, integers, some_integers, some_words, truths, words};
use crate::error::raise;
use crate::work::work;
use app::output::Output;
use app::trace::export::{Options, Rows, Target};
use arrow_array::{ArrayRef, RecordBatch};
use model::watch::Watch;
use model::{Duration, Error, Instant, Overhead, Result, TaskId, document};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use trace::stats::JobRow;
use trace::{Event, EventKind, Flags, Header, Reader, Sink, Statistics};

/// Rows of one batch of columns.
const ROWS: usize = 65_536;

/// What a trace opens with: where it comes from, tasks, platform, policies. As JSON.
#[pyfunction]
pub(crate) fn trace_header(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    work(py, None, |_| Reader::open(&path)?.header().to_json())
}

/// Whether a trace keeps the rules of every schedule and of its policy: the document of `warmset
/// trace check --format json`.
#[pyfunction]
#[pyo3(signature = (path, tolerance_ns=None, progress=None))]
pub(crate) fn trace_check(
    py: Python<'_>,
    path: PathBuf,
    tolerance_ns: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = app::trace::CheckOptions {
        tolerance: tolerance_ns.map(Duration::from_nanos),
        picture: None,
    };
    work(py, progress, |watch| {
        document::compact(&app::trace::check(&path, &options, watch)?)
    })
}

/// What a trace adds up to: the document of `warmset trace stats --format json`.
#[pyfunction]
#[pyo3(signature = (path, progress=None))]
pub(crate) fn trace_stats(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    work(py, progress, |watch| {
        document::compact(&app::trace::stats(&path, None, watch)?)
    })
}

/// A window of a trace as a picture, as SVG.
#[pyfunction]
#[pyo3(signature = (path, from_ns=0, until_ns=None, rows="processors", width=760, title=None))]
pub(crate) fn trace_svg(
    py: Python<'_>,
    path: PathBuf,
    from_ns: u64,
    until_ns: Option<u64>,
    rows: &str,
    width: u32,
    title: Option<String>,
) -> PyResult<String> {
    let rows = match rows {
        "processors" => Rows::Processors,
        "tasks" => Rows::Tasks,
        other => {
            let error = Error::new(format!("`{other}` are no rows of a picture")).at("rows");
            return Err(raise(error.remedy("write `processors` or `tasks`")));
        }
    };
    let options = Options {
        from: Duration::from_nanos(from_ns),
        until: until_ns.map(Duration::from_nanos),
        rows,
        width,
        title,
        ..Options::to(Target::Svg)
    };
    let text = work(py, None, |watch| {
        let mut text: Vec<u8> = Vec::new();
        let into = &mut text;
        app::trace::export::export(
            &path,
            &options,
            move || Ok(Output::Writer("the picture", into)),
            watch,
        )?;
        Ok(text)
    })?;
    Ok(String::from_utf8(text)?)
}

/// The finished jobs of a trace, a row each, in the order of their completions.
#[pyfunction]
#[pyo3(signature = (path, progress=None))]
pub(crate) fn trace_jobs(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Columns> {
    work(py, progress, |watch| {
        let header = Reader::open(&path)?.header().clone();
        let mut statistics = Statistics::new(&header, true);
        let names = Names::of(&header);
        let (mut rows, mut batches) = (Vec::new(), Vec::new());
        replay(&path, watch, |events| {
            for event in events {
                statistics.record(*event);
            }
            rows.append(&mut statistics.take_rows());
            while rows.len() >= ROWS {
                let rest = rows.split_off(ROWS);
                batches.push(jobs(&rows, &names)?);
                rows = rest;
            }
            Ok(())
        })?;
        batches.push(jobs(&rows, &names)?);
        Ok(Columns::of(batches[0].schema(), batches))
    })
}

/// The events of a trace, a row each, as `warmset trace export --to csv` has them.
#[pyfunction]
#[pyo3(signature = (path, from_ns=0, until_ns=None, progress=None))]
pub(crate) fn trace_events(
    py: Python<'_>,
    path: PathBuf,
    from_ns: u64,
    until_ns: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Columns> {
    let window = Instant::from_nanos(from_ns)..=Instant::from_nanos(until_ns.unwrap_or(u64::MAX));
    work(py, progress, |watch| {
        let header = Reader::open(&path)?.header().clone();
        let names = Names::of(&header);
        let (mut rows, mut batches) = (Vec::new(), Vec::new());
        replay(&path, watch, |block| {
            rows.extend(block.iter().filter(|e| window.contains(&e.time)).copied());
            while rows.len() >= ROWS {
                let rest = rows.split_off(ROWS);
                batches.push(events(&rows, &names)?);
                rows = rest;
            }
            Ok(())
        })?;
        batches.push(events(&rows, &names)?);
        Ok(Columns::of(batches[0].schema(), batches))
    })
}

/// The names of the tasks.
struct Names(Vec<String>);

impl Names {
    fn of(header: &Header) -> Self {
        Names(header.tasks.ids().map(|t| header.tasks.name(t)).collect())
    }

    fn get(&self, task: TaskId) -> Option<&str> {
        self.0.get(task.index()).map(String::as_str)
    }
}

/// Hands all events of a file on, block by block.
fn replay(
    path: &Path,
    watch: &dyn Watch,
    mut with: impl FnMut(&[Event]) -> Result<()>,
) -> Result<()> {
    let mut reader = Reader::open(path)?;
    let size = std::fs::metadata(path).map_or(0, |m| m.len());
    watch.begin("reading the trace", size);
    while let Some(events) = reader.next_block()? {
        with(events)?;
        watch.advance((events.len() * Event::SIZE) as u64);
        if watch.stopped() {
            return Err(Error::new("stopped before the end").at(path.display()));
        }
    }
    let condition = reader.condition();
    if !condition.is_whole() {
        watch.note(&format!("{}: {condition}", path.display()));
    }
    Ok(())
}

/// Jobs as columns: those of `warmset trace stats --jobs`. Jobs count from 1.
fn jobs(rows: &[JobRow], names: &Names) -> Result<RecordBatch> {
    let instants = |of: fn(&JobRow) -> Instant| integers(rows.iter().map(move |r| of(r).nanos()));
    let spans = |of: fn(&JobRow) -> Duration| integers(rows.iter().map(move |r| of(r).nanos()));
    let name = |r: &JobRow| names.get(r.task).unwrap_or_default().to_owned();
    let mut all: Vec<(String, ArrayRef)> = [
        ("task", words(rows.iter().map(name))),
        (
            "job",
            integers(rows.iter().map(|r| r.job.saturating_add(1))),
        ),
        ("release_ns", instants(|r| r.release)),
        ("deadline_ns", instants(|r| r.deadline)),
        ("start_ns", instants(|r| r.start)),
        ("completion_ns", instants(|r| r.completion)),
        ("response_ns", spans(|r| r.completion.since(r.release))),
        ("tardiness_ns", spans(|r| r.completion.since(r.deadline))),
        ("processor", integers(rows.iter().map(|r| r.cpu.0.into()))),
        ("executed_ns", spans(|r| r.executed)),
        (
            "preemptions",
            integers(rows.iter().map(|r| r.preemptions.into())),
        ),
        (
            "migrations",
            integers(rows.iter().map(|r| r.migrations.into())),
        ),
        ("cut", truths(rows.iter().map(|r| r.cut))),
    ]
    .map(|(name, column)| (name.to_owned(), column))
    .into();
    for (at, overhead) in Overhead::ALL.into_iter().enumerate() {
        let name = format!("lost_{}_ns", overhead.name().replace('-', "_"));
        all.push((name, integers(rows.iter().map(|r| r.lost[at].nanos()))));
    }
    columns::batch(all)
}

/// Events as columns. Jobs count from 1; `value` is what [`EventKind`] says of its kind.
fn events(rows: &[Event], names: &Names) -> Result<RecordBatch> {
    let value = |e: &Event| match e.kind {
        EventKind::Release
        | EventKind::DeadlineMiss
        | EventKind::Window
        | EventKind::Migration
        | EventKind::Completion
        | EventKind::BudgetExhausted
        | EventKind::Standstill
        | EventKind::PolicySwitch
        | EventKind::Lost => Some(e.argument),
        EventKind::ServerBegin | EventKind::ServerEnd => Some(e.argument.saturating_add(1)),
        _ => None,
    };
    let of_job = |e: &Event| names.get(e.task).map(|_| e.job.saturating_add(1));
    let note = |e: &Event| match e.flags {
        flags if flags.has(Flags::CUT) => Some("cut"),
        flags if flags.has(Flags::DELIBERATE) => Some("deliberate"),
        _ => None,
    };
    columns::batch(vec![
        ("time_ns", integers(rows.iter().map(|e| e.time.nanos()))),
        (
            "processor",
            some_integers(rows.iter().map(|e| e.cpu().map(|c| c.0.into()))),
        ),
        ("event", words(rows.iter().map(|e| e.kind.to_string()))),
        ("task", some_words(rows.iter().map(|e| names.get(e.task)))),
        ("job", some_integers(rows.iter().map(of_job))),
        ("value", some_integers(rows.iter().map(value))),
        (
            "overhead",
            some_words(rows.iter().map(|e| e.overhead_kind().map(|o| o.name()))),
        ),
        ("note", some_words(rows.iter().map(note))),
    ])
}
