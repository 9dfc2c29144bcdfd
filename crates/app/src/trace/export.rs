//! Exports a trace for other tools, or draws a window of it.

use super::{head_of, replay};
use crate::output::Output;
use ::trace::{Condition, Header, Sink, View, Viewer, csv, perfetto};
use model::watch::Watch;
use model::{Duration, Error, Instant, Result};
use report::schedule;
use std::ops::ControlFlow;
use std::path::Path;

pub use report::schedule::Rows;

/// What a trace can be turned into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// For the Perfetto trace viewer (<https://ui.perfetto.dev>): tracks for processors and tasks.
    Perfetto,
    /// Every event as a line of CSV.
    Csv,
    /// A window drawn in the notation of the papers.
    Svg,
    /// A window drawn in text.
    Text,
}

/// What is exported. [`Options::to`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Into what.
    pub to: Target,
    /// Where the window begins. Default: at zero.
    pub from: Duration,
    /// Where the window ends; `None`: at the end, for pictures eight of the longest periods after
    /// its begin. An SVG ends earlier where arrows or pieces would lie too close to be told apart.
    pub until: Option<Duration>,
    /// What the rows of an SVG are. Default: processors.
    pub rows: Rows,
    /// Width of an SVG in pixels. Default: 760.
    pub width: u32,
    /// Title of an SVG; `None`: the policy.
    pub title: Option<String>,
}

impl Options {
    /// The whole trace, or the first window of a picture.
    pub fn to(to: Target) -> Self {
        Options {
            to,
            from: Duration::ZERO,
            until: None,
            rows: Rows::Processors,
            width: 760,
            title: None,
        }
    }

    /// The window.
    ///
    /// # Errors
    /// It is empty.
    fn window(&self, header: &Header) -> Result<(Instant, Instant)> {
        let from = Instant::ZERO + self.from;
        let longest = header.tasks.timings().iter().map(|t| t.period).max();
        let longest = longest.unwrap_or_default();
        let to = match self.until {
            Some(to) => Instant::ZERO + to,
            None if self.is_picture() => {
                let reach = Duration::from_nanos(longest.nanos().saturating_mul(8));
                from.checked_add(reach)
                    .unwrap_or(Instant::from_nanos(u64::MAX))
            }
            None => Instant::from_nanos(u64::MAX),
        };
        match from >= to {
            true => Err(
                Error::new(format!("the window from {from} to {to} is empty"))
                    .at("--to-time")
                    .remedy("give an end after `--from`"),
            ),
            false => Ok((from, to)),
        }
    }

    fn is_picture(&self) -> bool {
        matches!(self.to, Target::Svg | Target::Text)
    }
}

/// Exports a trace into what `output` opens: it is opened when the trace is known to be one. What
/// is missing of a trace that is not whole is a remark to `watch`.
///
/// # Errors
/// The file is no trace; an empty window, or one with too much to draw; the output cannot be
/// written; the user stopped it.
pub fn export<'o>(
    file: &Path,
    options: &Options,
    output: impl FnOnce() -> Result<Output<'o>>,
    watch: &dyn Watch,
) -> Result<()> {
    let header = head_of(file)?;
    let (from, to) = options.window(&header)?;
    if options.is_picture() {
        let text = picture(file, options, &header, (from, to), watch)?;
        let mut output = output()?;
        let _ = output.write(text.as_bytes())?;
        return output.finish();
    }
    let sink = Export {
        header: &header,
        names: header
            .tasks
            .ids()
            .map(|t| csv::field(&header.tasks.name(t)))
            .collect(),
        from,
        to,
        text: if options.to == Target::Csv {
            csv::HEAD.to_owned()
        } else {
            String::new()
        },
        perfetto: (options.to == Target::Perfetto).then(|| perfetto::Writer::new(&header)),
        out: output()?,
        ended: None,
        passed: false,
    };
    let (mut sink, condition) = replay(
        file,
        "exporting",
        sink,
        |s| s.ended.is_some() || s.passed,
        watch,
    )?;
    watch.finish();
    note_damage(
        file,
        &condition,
        !sink.passed && sink.ended.is_none(),
        watch,
    );
    sink.finish();
    match sink.ended {
        Some(Err(e)) => Err(e),
        _ => sink.out.finish(),
    }
}

/// The window as an SVG or as text.
fn picture(
    file: &Path,
    options: &Options,
    header: &Header,
    (from, to): (Instant, Instant),
    watch: &dyn Watch,
) -> Result<String> {
    let mut view = view_of(file, header, (from, to), watch)?;
    watch.finish();
    if options.to == Target::Text {
        return Ok(view.text());
    }
    let (rows, width) = (options.rows, f64::from(options.width));
    let mut remark = String::new();
    if let Some(end) = schedule::readable_until(&view, rows, width) {
        remark = shortened((from, end), view.to);
        watch.note(&remark);
        // Read anew: the view may have been cut, and then lacks pieces that began before `end`.
        view = view_of(file, header, (from, end), watch)?;
        watch.finish();
    }
    if view.cut {
        return Err(Error::new(format!(
            "there are more than {} pieces in the window",
            View::MOST
        ))
        .at(file.display())
        .remedy("narrow it with `--from` and `--to-time`"));
    }
    let title = options
        .title
        .clone()
        .unwrap_or_else(|| header.stages[0].policy.clone());
    let figure = schedule::figure("schedule", &title, &view, rows, width, &remark);
    Ok(figure.to_svg())
}

/// Says which part of a window is drawn, and how to see the rest.
fn shortened((from, end): (Instant, Instant), asked: Instant) -> String {
    let [from, end, asked] = [from, end, asked].map(report::words::moment);
    format!(
        "Drawn from {from} to {end} only: up to {asked} arrows or pieces would lie too close to be \
         told apart. `--from` draws a later part, a larger `--width` more of it."
    )
}

fn view_of(
    file: &Path,
    header: &Header,
    (from, to): (Instant, Instant),
    watch: &dyn Watch,
) -> Result<View> {
    let viewer = Viewer::new(header, from, to);
    let (viewer, condition) = replay(file, "drawing", viewer, Viewer::is_done, watch)?;
    note_damage(file, &condition, !viewer.is_done(), watch);
    let view = viewer.finish();
    if view.to <= view.from {
        return Err(Error::new(format!("the trace ends before {from}"))
            .at(file.display())
            .remedy("choose an earlier `--from`"));
    }
    Ok(view)
}

/// Says what is missing where a trace is not whole: neither a picture nor a table of events shows
/// it. Of one that was not read `to_the_end` no more is known than which blocks are damaged.
pub fn note_damage(path: &Path, condition: &Condition, to_the_end: bool, watch: &dyn Watch) {
    let is_whole = condition.is_whole() || !to_the_end && condition.damaged_blocks == 0;
    if !is_whole {
        watch.note(&format!("{}: {condition}", path.display()));
    }
}

/// Writes events as they come.
struct Export<'h, 'o> {
    header: &'h Header,
    names: Vec<String>,
    from: Instant,
    to: Instant,
    text: String,
    perfetto: Option<perfetto::Writer>,
    out: Output<'o>,
    /// Why nothing more is written: the reader has seen enough, or an error.
    ended: Option<Result<()>>,
    passed: bool,
}

impl Export<'_, '_> {
    fn flush(&mut self) {
        let written = match &mut self.perfetto {
            Some(writer) => self.out.write(&writer.take()),
            None => self.out.write(self.text.as_bytes()),
        };
        self.text.clear();
        if self.ended.is_none() {
            self.ended = match written {
                Ok(ControlFlow::Continue(())) => None,
                Ok(ControlFlow::Break(())) => Some(Ok(())),
                Err(e) => Some(Err(e)),
            };
        }
    }
    fn finish(&mut self) {
        if let Some(writer) = &mut self.perfetto {
            writer.close(self.to);
        }
        self.flush();
    }
}

impl Sink for Export<'_, '_> {
    fn record(&mut self, event: ::trace::Event) {
        if event.time > self.to {
            self.passed = true;
            return;
        }
        match &mut self.perfetto {
            // It has to know what was under way when the window began.
            Some(writer) => writer.event(self.header, &event, event.time >= self.from),
            None if event.time >= self.from => csv::row(&event, &self.names, &mut self.text),
            None => {}
        }
        if self.text.len() > 1 << 16 || self.perfetto.as_ref().is_some_and(|p| p.len() > 1 << 16) {
            self.flush();
        }
    }
}
