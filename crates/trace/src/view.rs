//! A window of a schedule, ready to be drawn: pieces of work, and marks at releases, deadlines,
//! completions and misses.
//!
//! Pictures in text are drawn here; pictures in SVG by room `report`, from the same [`View`].

use crate::event::{Event, EventKind};
use crate::header::Header;
use crate::sink::Sink;
use crate::state::{Doing, Job, Observer, Span, State};
use model::Overhead;
use model::shown::escaped;
use model::{CpuId, Duration, Instant, TaskId};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

/// A stretch of work on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where.
    pub cpu: CpuId,
    /// Whose; for an overhead, whom it delays or serves.
    pub job: Option<(TaskId, u64)>,
    /// Which overhead; `None`: the job executes.
    pub overhead: Option<Overhead>,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
}

/// What is marked at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MarkKind {
    /// A release.
    Release,
    /// A deadline that was kept, or is not yet missed.
    Deadline,
    /// A deadline that was missed.
    Miss,
    /// A completion.
    Completion,
}

/// A mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// What.
    pub kind: MarkKind,
    /// When.
    pub time: Instant,
    /// Whose.
    pub task: TaskId,
    /// Which job, from 0.
    pub job: u64,
    /// On which processor; where the job was released, for deadlines.
    pub cpu: CpuId,
}

/// A moment that a picture is about, such as that at which a rule is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// When.
    pub time: Instant,
    /// What it is called, in a few words.
    pub name: String,
}

/// A window of a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// Where it begins.
    pub from: Instant,
    /// Where it ends; not after the end of the trace.
    pub to: Instant,
    /// Every processor that tasks may use, ascending.
    pub processors: Vec<CpuId>,
    /// Every task's name, in the order of the set.
    pub names: Vec<String>,
    /// What ran, in the order in which it ended.
    pub pieces: Vec<Piece>,
    /// What is marked, by time.
    pub marks: Vec<Mark>,
    /// The moment that it is about; drawn where it lies within.
    pub moment: Option<Moment>,
    /// Was there more than [`View::MOST`] to draw? The rest is left out then.
    pub cut: bool,
}

impl View {
    /// The most pieces and marks that a picture holds.
    pub const MOST: usize = 50_000;

    /// The part around `moment`, which it is about from now on: so much of it, evenly to both
    /// sides, that no processor has more than `most` pieces of jobs, two at least. A busy schedule
    /// stays readable where it matters.
    pub fn around(mut self, moment: Moment, most: usize) -> View {
        let far = |piece: &Piece| {
            let after = piece.from.max(moment.time).since(moment.time);
            let before = moment.time.since(piece.to.min(moment.time));
            after.max(before)
        };
        let reach = self.processors.iter().filter_map(|cpu| {
            let on_it = |p: &&Piece| p.cpu == *cpu && p.overhead.is_none();
            let mut distances: Vec<Duration> = self.pieces.iter().filter(on_it).map(far).collect();
            distances.sort_unstable();
            // What is one piece further is not to be seen.
            distances.get(most.max(2)).copied()
        });
        let (at, reach) = (
            moment.time.nanos(),
            reach.min().unwrap_or(Duration::MAX).nanos(),
        );
        self.from = self.from.max(Instant::from_nanos(at.saturating_sub(reach)));
        self.to = self.to.min(Instant::from_nanos(at.saturating_add(reach)));
        let (from, to) = (self.from, self.to);
        self.pieces.retain_mut(|p| {
            (p.from, p.to) = (p.from.max(from), p.to.min(to));
            p.from < p.to
        });
        self.marks.retain(|m| from <= m.time && m.time <= to);
        self.moment = Some(moment);
        self
    }

    /// What it is about, where that lies within the window.
    pub fn moment_within(&self) -> Option<&Moment> {
        let within = |m: &&Moment| self.from <= m.time && m.time <= self.to;
        self.moment.as_ref().filter(within)
    }
}

/// Collects a window of a schedule.
pub struct Viewer {
    state: State,
    tally: Tally,
    /// The first moment that is not in the window, for events.
    to: Instant,
    done: bool,
}

struct Tally {
    view: View,
    /// Jobs whose deadline mark may turn out to be a miss.
    open: HashSet<(TaskId, u64)>,
}

impl Viewer {
    /// A window from `from` to `to`.
    pub fn new(header: &Header, from: Instant, to: Instant) -> Self {
        let set = &header.tasks;
        Viewer {
            state: State::new(header, Duration::MAX),
            tally: Tally {
                view: View {
                    from,
                    to,
                    processors: header.processors().iter().collect(),
                    names: set
                        .ids()
                        .map(|t| escaped(&set.name(t)).into_owned())
                        .collect(),
                    pieces: Vec::new(),
                    marks: Vec::new(),
                    moment: None,
                    cut: false,
                },
                open: HashSet::new(),
            },
            to,
            done: false,
        }
    }

    /// Has the window passed? What follows is not looked at.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The window, as far as the trace went.
    pub fn finish(mut self) -> View {
        let now = if self.done {
            self.to
        } else {
            self.state.now.min(self.to)
        };
        self.close(now);
        let mut view = self.tally.view;
        if !self.done {
            view.to = view.to.min(self.state.now).max(view.from);
        }
        // Deadlines that had passed when the window ended.
        for mark in &mut view.marks {
            if mark.kind == MarkKind::Deadline
                && mark.time < now
                && self.tally.open.contains(&(mark.task, mark.job))
            {
                mark.kind = MarkKind::Miss;
            }
        }
        view.marks.sort_by_key(|m| (m.time, m.task, m.kind));
        view
    }

    fn close(&mut self, at: Instant) {
        self.state.account_all(at, &mut self.tally);
    }
}

impl Tally {
    fn mark(&mut self, kind: MarkKind, time: Instant, task: TaskId, job: u64, cpu: CpuId) {
        if time < self.view.from || time > self.view.to {
            return;
        }
        if self.view.marks.len() >= View::MOST {
            self.view.cut = true;
            return;
        }
        self.view.marks.push(Mark {
            kind,
            time,
            task,
            job,
            cpu,
        });
    }
}

impl Observer for Tally {
    fn span(&mut self, span: Span) {
        let view = &mut self.view;
        let (from, to) = (span.from.max(view.from), span.to.min(view.to));
        if from >= to {
            return;
        }
        let overhead = match span.doing {
            Doing::Executing => None,
            Doing::Overhead(overhead) => Some(overhead),
        };
        // What was only looked at in between is one piece.
        if let Some(last) = view
            .pieces
            .iter_mut()
            .rev()
            .take(64)
            .find(|p| p.cpu == span.cpu)
            && (last.to, last.job, last.overhead) == (from, span.job, overhead)
        {
            last.to = to;
            return;
        }
        if view.pieces.len() >= View::MOST {
            view.cut = true;
            return;
        }
        view.pieces.push(Piece {
            cpu: span.cpu,
            job: span.job,
            overhead,
            from,
            to,
        });
    }

    fn done(&mut self, task: TaskId, job: &Job, completion: Instant, _: Duration) {
        if completion > job.deadline {
            let at = (job.deadline, task, job.number);
            let marks = self.view.marks.iter_mut().rev();
            for mark in marks.filter(|m| (m.time, m.task, m.job) == at) {
                if mark.kind == MarkKind::Deadline {
                    mark.kind = MarkKind::Miss;
                }
            }
        }
        self.open.remove(&(task, job.number));
    }
}

impl Sink for Viewer {
    fn record(&mut self, event: Event) {
        if self.done {
            return;
        }
        if event.time > self.to {
            self.close(self.to);
            self.done = true;
            return;
        }
        // What makes no sense is the checker's business; the picture shows what there is.
        let _ = self.state.apply(&event, &mut self.tally);
        let Some(cpu) = event.cpu() else { return };
        if event.task.index() >= self.tally.view.names.len() {
            return;
        }
        let (task, job) = (event.task, event.job);
        match event.kind {
            EventKind::Release => {
                self.tally
                    .mark(MarkKind::Release, event.time, task, job, cpu);
                let deadline = event.deadline();
                if deadline >= self.tally.view.from && deadline <= self.tally.view.to {
                    self.tally.open.insert((task, job));
                    self.tally
                        .mark(MarkKind::Deadline, deadline, task, job, cpu);
                }
            }
            EventKind::Completion => {
                self.tally
                    .mark(MarkKind::Completion, event.time, task, job, cpu)
            }
            _ => {}
        }
    }
}

/// Columns of a picture in text.
const COLUMNS: usize = 96;
/// A symbol for every task that fits; the others share `*`.
const SYMBOLS: &[u8] = b"123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

impl View {
    /// The window in text: a row a processor, a row for the marks of each task that has any.
    ///
    /// A cell shows what took most of its time: a task, `#` an overhead, `.` nothing. Marks: `^`
    /// release, `v` deadline, `x` both, `T` completion, `!` a missed deadline; `|` in a row of its
    /// own the moment that the picture is about.
    pub fn text(&self) -> String {
        let tasks: BTreeSet<TaskId> = self
            .pieces
            .iter()
            .filter_map(|p| p.job.map(|(task, _)| task))
            .chain(self.marks.iter().map(|m| m.task))
            .collect();
        let symbol = |task: TaskId| {
            let place = tasks.range(..task).count();
            SYMBOLS.get(place).map_or('*', |s| char::from(*s))
        };
        let shown: Vec<TaskId> = tasks.iter().copied().take(SYMBOLS.len()).collect();
        let label = |task: TaskId| format!("{} {}", symbol(task), self.names[task.index()]);
        let width = shown
            .iter()
            .map(|t| label(*t).chars().count())
            .chain([5])
            .max()
            .unwrap_or(5)
            .min(24);
        let mut text = String::new();
        self.write_scale(&mut text, width);
        for cpu in &self.processors {
            let _ = writeln!(
                text,
                "{:width$} {}",
                format!("P{cpu}"),
                self.row_of(*cpu, symbol)
            );
        }
        for task in shown {
            let name: String = label(task).chars().take(width).collect();
            let row = format!("{name:width$} {}", self.marks_of(task));
            let _ = writeln!(text, "{}", row.trim_end());
        }
        if self.cut {
            let _ = writeln!(
                text,
                "(more than {} pieces: the rest is left out)",
                View::MOST
            );
        }
        text
    }

    /// The length of the window in nanoseconds, at least one.
    fn length(&self) -> u128 {
        u128::from(self.to.since(self.from).nanos().max(1))
    }

    /// The column of a moment in text.
    fn column(&self, time: Instant) -> usize {
        let at = u128::from(time.since(self.from).nanos()) * COLUMNS as u128 / self.length();
        (at as usize).min(COLUMNS - 1)
    }

    /// A time at every eighth of the width; below it, where the moment is that the picture is
    /// about.
    fn write_scale(&self, text: &mut String, width: usize) {
        let _ = write!(text, "{:width$} ", "");
        let mut line = String::new();
        for eighth in 0..8_u64 {
            let ns = (self.length() * u128::from(eighth) / 8) as u64;
            let time = self
                .from
                .checked_add(Duration::from_nanos(ns))
                .unwrap_or(self.to);
            let _ = write!(line, "{:<1$}", format!("|{time}"), COLUMNS / 8);
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if let Some(moment) = self.moment_within() {
            let (at, name) = (self.column(moment.time), &moment.name);
            let line = match at + 2 + name.chars().count() <= COLUMNS {
                true => format!("{:at$}| {name}", ""),
                false => format!("{:>at$}|", format!("{name} ")),
            };
            let _ = writeln!(text, "{:width$} {line}", "");
        }
    }

    /// The cells of a processor: what took most of each.
    fn row_of(&self, cpu: CpuId, symbol: impl Fn(TaskId) -> char) -> String {
        let length = self.length();
        // For every column, who had it and for how long.
        let mut cells = [('.', 0_u128); COLUMNS];
        for piece in self.pieces.iter().filter(|p| p.cpu == cpu) {
            let what = match (piece.overhead, piece.job) {
                (Some(o), _) if !o.occupies_processor() => continue,
                (Some(_), _) => '#',
                (None, Some((task, _))) => symbol(task),
                (None, None) => continue,
            };
            let scaled = |t: Instant| u128::from(t.since(self.from).nanos()) * COLUMNS as u128;
            let (from, to) = (scaled(piece.from), scaled(piece.to));
            for (c, cell) in cells
                .iter_mut()
                .enumerate()
                .take(self.column(piece.to) + 1)
                .skip(self.column(piece.from))
            {
                let start = c as u128 * length;
                let part = to.min(start + length).saturating_sub(from.max(start));
                if part > cell.1 {
                    *cell = (what, part);
                }
            }
        }
        cells.iter().map(|(c, _)| *c).collect()
    }

    /// The cells of the marks of a task.
    fn marks_of(&self, task: TaskId) -> String {
        let mut cells = [' '; COLUMNS];
        for mark in self.marks.iter().filter(|m| m.task == task) {
            let cell = &mut cells[self.column(mark.time)];
            *cell = match (mark.kind, *cell) {
                (MarkKind::Miss, _) | (_, '!') => '!',
                (MarkKind::Completion, _) | (_, 'T') => 'T',
                (MarkKind::Release, 'v' | 'x') | (MarkKind::Deadline, '^' | 'x') => 'x',
                (MarkKind::Release, _) => '^',
                (MarkKind::Deadline, _) => 'v',
            };
        }
        cells.iter().collect()
    }
}
