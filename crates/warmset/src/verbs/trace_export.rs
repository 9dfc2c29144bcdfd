//! `warmset trace export`: a trace for other tools, or a picture of a window of it.

use super::trace::{head_of, replay};
use crate::Answer;
use crate::console::{give, note};
use crate::options::new_file;
use ::trace::{Condition, Header, Sink, View, Viewer, csv, perfetto};
use model::{Duration, Error, Instant, Result, files};
use report::schedule::{self, Rows};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

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
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "0ms")]
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

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
    let header = head_of(&args.file)?;
    let from = Instant::ZERO + args.from;
    let is_picture = matches!(args.to, Target::Svg | Target::Text);
    let longest = header
        .tasks
        .timings()
        .iter()
        .map(|t| t.period)
        .max()
        .unwrap_or_default();
    let to = match args.to_time {
        Some(to) => Instant::ZERO + to,
        None if is_picture => {
            let reach = Duration::from_nanos(longest.nanos().saturating_mul(8));
            from.checked_add(reach).unwrap_or(Instant::from_nanos(u64::MAX))
        }
        None => Instant::from_nanos(u64::MAX),
    };
    if from >= to {
        return Err(Error::new(format!("the window from {from} to {to} is empty"))
            .at("--to-time")
            .remedy("give an end after `--from`"));
    }
    if is_picture {
        return picture(args, &header, (from, to));
    }
    let out = Output::create(args.output.as_deref())?;
    let sink = Export {
        header: &header,
        names: header
            .tasks
            .ids()
            .map(|t| csv::field(&header.tasks.name(t)))
            .collect(),
        from,
        to,
        text: if args.to == Target::Csv {
            csv::HEAD.to_owned()
        } else {
            String::new()
        },
        perfetto: (args.to == Target::Perfetto).then(|| perfetto::Writer::new(&header)),
        out,
        error: None,
        passed: false,
    };
    let (mut sink, condition) = replay(&args.file, "exporting", sink, |s| s.error.is_some() || s.passed)?;
    note_damage(&args.file, &condition, !sink.passed && sink.error.is_none());
    sink.finish();
    let name = args.output.as_deref().unwrap_or(Path::new("standard output"));
    match sink.error {
        Some(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io(name, "write", &e)),
        _ => sink.out.finish(name).map(|()| Answer::Yes),
    }
}

/// The window as an SVG or as text.
fn picture(args: &Args, header: &Header, (from, to): (Instant, Instant)) -> Result<Answer> {
    let mut view = view_of(args, header, (from, to))?;
    if args.to == Target::Text {
        return write_text(args.output.as_deref(), &view.text());
    }
    let rows = match args.rows {
        RowsArg::Processors => Rows::Processors,
        RowsArg::Tasks => Rows::Tasks,
    };
    let width = f64::from(args.width);
    let mut remark = String::new();
    if let Some(end) = schedule::readable_until(&view, rows, width) {
        remark = shortened((from, end), view.to);
        note(&remark);
        // Read anew: the view may have been cut, and then lacks pieces that began before `end`.
        view = view_of(args, header, (from, end))?;
    }
    if view.cut {
        return Err(
            Error::new(format!("there are more than {} pieces in the window", View::MOST))
                .at(args.file.display())
                .remedy("narrow it with `--from` and `--to-time`"),
        );
    }
    let title = args
        .title
        .clone()
        .unwrap_or_else(|| header.stages[0].policy.clone());
    let figure = schedule::figure("schedule", &title, &view, rows, width, &remark);
    write_text(args.output.as_deref(), &figure.to_svg())
}

/// Says which part of a window is drawn, and how to see the rest.
fn shortened((from, end): (Instant, Instant), asked: Instant) -> String {
    let [from, end, asked] = [from, end, asked].map(report::words::moment);
    format!(
        "Drawn from {from} to {end} only: up to {asked} arrows or pieces would lie too close to be \
         told apart. `--from` draws a later part, a larger `--width` more of it."
    )
}

fn view_of(args: &Args, header: &Header, (from, to): (Instant, Instant)) -> Result<View> {
    let viewer = Viewer::new(header, from, to);
    let (viewer, condition) = replay(&args.file, "drawing", viewer, Viewer::is_done)?;
    note_damage(&args.file, &condition, !viewer.is_done());
    let view = viewer.finish();
    if view.to <= view.from {
        return Err(Error::new(format!("the trace ends before {from}"))
            .at(args.file.display())
            .remedy("choose an earlier `--from`"));
    }
    Ok(view)
}

/// Says what is missing where a trace is not whole: neither a picture nor a table of events shows it. Of one that was not read
/// `to_the_end` no more is known than which blocks are damaged.
pub(super) fn note_damage(path: &Path, condition: &Condition, to_the_end: bool) {
    let is_whole = condition.is_whole() || !to_the_end && condition.damaged_blocks == 0;
    if !is_whole {
        note(&format!("{}: {condition}", path.display()));
    }
}

fn write_text(path: Option<&Path>, text: &str) -> Result<Answer> {
    give(text, path)?;
    Ok(Answer::Yes)
}

/// A file that appears when it is complete, or standard output.
enum Output {
    File(BufWriter<files::Aside>),
    Standard(BufWriter<std::io::Stdout>),
}

impl Output {
    fn create(path: Option<&Path>) -> Result<Self> {
        Ok(match path {
            Some(path) => Output::File(BufWriter::with_capacity(1 << 18, files::Aside::create(path)?)),
            None => Output::Standard(BufWriter::with_capacity(1 << 18, std::io::stdout())),
        })
    }
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Output::File(out) => out.write_all(bytes),
            Output::Standard(out) => out.write_all(bytes),
        }
    }
    fn finish(self, name: &Path) -> Result<()> {
        match self {
            Output::File(out) => out
                .into_inner()
                .map_err(|e| Error::io(name, "write", e.error()))?
                .finish(),
            Output::Standard(mut out) => match out.flush() {
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io(name, "write", &e)),
                _ => Ok(()),
            },
        }
    }
}

/// Writes events as they come.
struct Export<'h> {
    header: &'h Header,
    names: Vec<String>,
    from: Instant,
    to: Instant,
    text: String,
    perfetto: Option<perfetto::Writer>,
    out: Output,
    error: Option<std::io::Error>,
    passed: bool,
}

impl Export<'_> {
    fn flush(&mut self) {
        let result = match &mut self.perfetto {
            Some(writer) => self.out.write(&writer.take()),
            None => self.out.write(self.text.as_bytes()),
        };
        self.text.clear();
        if self.error.is_none() {
            self.error = result.err();
        }
    }
    fn finish(&mut self) {
        if let Some(writer) = &mut self.perfetto {
            writer.close(self.to);
        }
        self.flush();
    }
}

impl Sink for Export<'_> {
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
