//! What `warmset run` shows while it runs: who is on which processor, and how close each task came to its deadlines.
//!
//! Drawn by the supervisor, an ordinary thread, a few times a second from the events that it has collected, which are about two
//! tenths of a second old. Where standard error is not a terminal, a line now and then says how far it is.

use crate::console::Console;
use ::trace::state::{Doing, Job, Observer, Span, State};
use ::trace::{Event, EventKind, Header, Sink};
use model::watch::Watch;
use model::{Duration, Instant, TaskId, TaskSet};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

/// When a run is shown live.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum When {
    /// Where standard error is a terminal.
    #[default]
    Auto,
    /// Never: the progress is shown alone.
    Never,
}

/// How often it is drawn.
const EVERY: time::Duration = time::Duration::from_millis(250);
/// How often a line is written where nothing can be drawn.
const PLAIN: time::Duration = time::Duration::from_secs(10);
/// Over how long the share of a processor is taken.
const WINDOW: Duration = Duration::from_millis(1000);

/// What a task has done so far.
#[derive(Clone, Default)]
struct TaskTally {
    jobs: u64,
    worst: Duration,
    misses: u64,
    preemptions: u64,
}

/// What a processor has done so far.
#[derive(Clone, Copy, Default)]
struct CpuTally {
    executed: u64,
    /// What it had executed when the window began.
    before: u64,
    /// Its share in the latest full window.
    share: f64,
}

#[derive(Default)]
struct Tally {
    tasks: Vec<TaskTally>,
    cpus: Vec<CpuTally>,
}

impl Observer for Tally {
    fn span(&mut self, span: Span) {
        if span.doing == Doing::Executing {
            self.cpus[span.cpu.index()].executed += span.to.since(span.from).nanos();
        }
    }
    fn done(&mut self, task: TaskId, job: &Job, completion: Instant, _: Duration) {
        let tally = &mut self.tasks[task.index()];
        tally.jobs += 1;
        tally.worst = tally.worst.max(completion.since(job.release));
    }
}

/// The schedule as far as it is known.
struct Seen {
    set: TaskSet,
    state: State,
    tally: Tally,
    /// When the window of shares began.
    window: Instant,
}

impl Seen {
    fn record(&mut self, event: Event) {
        // What makes no sense is for the checker to tell.
        if self.state.apply(&event, &mut self.tally).is_err() {
            return;
        }
        match event.kind {
            EventKind::Preemption => self.tally.tasks[event.task.index()].preemptions += 1,
            EventKind::DeadlineMiss => self.tally.tasks[event.task.index()].misses += 1,
            _ => {}
        }
        let length = self.state.now.since(self.window);
        if length >= WINDOW {
            for cpu in &mut self.tally.cpus {
                // A job that was on the processor all the time is accounted for when it leaves.
                cpu.share = ((cpu.executed - cpu.before) as f64 / length.nanos() as f64).min(1.0);
                cpu.before = cpu.executed;
            }
            self.window = self.state.now;
        }
    }

    fn totals(&self) -> (u64, u64) {
        let tasks = &self.tally.tasks;
        (
            tasks.iter().map(|t| t.jobs).sum(),
            tasks.iter().map(|t| t.misses).sum(),
        )
    }

    /// At most so many lines of at most so many columns.
    fn lines(&self, most: usize, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for (cpu, processor) in self.state.processors.iter().enumerate() {
            if !processor.may_run() {
                continue;
            }
            let who = processor
                .running
                .map_or("idle".to_owned(), |task| self.set.name(task));
            let share = self.tally.cpus[cpu].share;
            let bar = "#".repeat((20.0 * share).round() as usize);
            lines.push(format!(
                "processor {cpu:<4} {:>3.0} % {bar:<20}  {who}",
                100.0 * share
            ));
        }
        // Half of the room for processors at most, where there are too many of both.
        shorten(
            &mut lines,
            (most / 2).max(most.saturating_sub(self.set.len() + 1)),
            "processors",
        );
        let names = self.set.ids().map(|id| self.set.name(id).chars().count());
        let width = names.max().unwrap_or(0).clamp(4, 24);
        lines.push(format!(
            "{:width$} {:>9} {:>12} {:>12} {:>8} {:>8} {:>11}",
            "task", "jobs", "worst", "deadline", "of it", "misses", "preemptions"
        ));
        let mut tasks: Vec<(f64, String)> = self.set.ids().map(|id| self.task(id, width)).collect();
        let room = most.saturating_sub(lines.len());
        if tasks.len() > room {
            // Those that came closest to their deadlines.
            tasks.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
        let mut tasks: Vec<String> = tasks.into_iter().map(|(_, line)| line).collect();
        shorten(&mut tasks, room, "tasks, further from their deadlines");
        lines.append(&mut tasks);
        lines
            .into_iter()
            .map(|line| line.chars().take(columns).collect())
            .collect()
    }

    fn task(&self, id: TaskId, width: usize) -> (f64, String) {
        let (tally, deadline) = (
            &self.tally.tasks[id.index()],
            self.set.timings()[id.index()].deadline,
        );
        let part = tally.worst.nanos() as f64 / deadline.nanos().max(1) as f64;
        let name: String = self.set.name(id).chars().take(width).collect();
        let line = format!(
            "{name:width$} {:>9} {:>12} {:>12} {:>6.0} % {:>8} {:>11}",
            tally.jobs,
            tally.worst.rounded().to_string(),
            deadline.to_string(),
            100.0 * part,
            tally.misses,
            tally.preemptions
        );
        (part, line)
    }
}

/// Leaves so many lines, the last of which says how many more there are.
fn shorten(lines: &mut Vec<String>, most: usize, of_what: &str) {
    let count = lines.len();
    if count > most {
        lines.truncate(most.saturating_sub(1));
        if most > 0 {
            lines.push(format!("and {} more {of_what}", count - lines.len()));
        }
    }
}

/// A run as it is seen: a sink of its events.
#[derive(Clone)]
pub struct Live(Arc<Mutex<Seen>>);

impl Live {
    /// Nothing has happened yet.
    pub fn new(header: &Header) -> Self {
        // How late a real machine may be is for the checker to say.
        let state = State::new(header, Duration::MAX);
        Live(Arc::new(Mutex::new(Seen {
            set: header.tasks.clone(),
            tally: Tally {
                tasks: vec![TaskTally::default(); header.tasks.len()],
                cpus: vec![CpuTally::default(); state.processors.len()],
            },
            state,
            window: Instant::ZERO,
        })))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Live {
    fn record(&mut self, event: Event) {
        self.seen().record(event);
    }
}

/// The console of a run: its bar, and above it what is seen.
pub struct Screen<'a> {
    console: &'a Console,
    live: Live,
    when: When,
    /// When it is drawn or written next.
    next: Mutex<time::Instant>,
    began: time::Instant,
}

impl<'a> Screen<'a> {
    /// Begins with an empty screen.
    pub fn new(console: &'a Console, live: Live, when: When) -> Self {
        let began = time::Instant::now();
        let is_drawn = std::io::stderr().is_terminal();
        Screen {
            console,
            live,
            when,
            next: Mutex::new(began + if is_drawn { EVERY } else { PLAIN }),
            began,
        }
    }

    fn draw(&self) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = time::Instant::now();
        if now < *next {
            return;
        }
        match self.console.room() {
            Some((lines, columns)) => {
                *next = now + EVERY;
                if self.when == When::Auto {
                    self.console.show(&self.live.seen().lines(lines, columns));
                }
            }
            None => {
                *next = now + PLAIN;
                let (jobs, misses) = self.live.seen().totals();
                let seconds = now.duration_since(self.began).as_secs();
                self.console.note(&format!(
                    "running for {seconds}s: {jobs} jobs, {misses} deadlines missed"
                ));
            }
        }
    }
}

impl Watch for Screen<'_> {
    fn begin(&self, what: &str, total: u64) {
        self.console.begin(what, total);
    }
    fn advance(&self, steps: u64) {
        self.console.advance(steps);
        self.draw();
    }
    fn note(&self, text: &str) {
        self.console.note(text);
    }
    fn stopped(&self) -> bool {
        self.console.stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::trace::Stage;
    use model::{CpuId, Platform, Provenance, Timing};

    fn live(tasks: usize) -> Live {
        let ms = Duration::from_millis;
        let set = TaskSet::from_timings(vec![Timing::implicit(ms(2), ms(10)); tasks]).unwrap();
        let stage = Stage {
            policy: "g-edf".to_owned(),
            assignment: None,
            quantum: None,
        };
        let header = Header::simulated(set, Platform::symmetric(2), stage, Provenance::default());
        let mut live = Live::new(&Header {
            origin: ::trace::Origin::Real,
            ..header
        });
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let (first, second) = (TaskId(0), TaskId(1));
        for event in [
            Event::release(at(0), CpuId(0), first, 0, at(10)),
            Event::start(at(0), CpuId(0), first, 0),
            Event::release(at(1), CpuId(1), second, 0, at(11)),
            Event::start(at(1), CpuId(1), second, 0),
            Event::completion(at(8), CpuId(0), first, 0, ms(8)),
            Event::preemption(at(9), CpuId(1), second, 0),
            Event::resumption(at(1000), CpuId(1), CpuId(1), second, 0),
        ] {
            live.record(event);
        }
        live
    }

    #[test]
    fn processors_and_tasks_are_shown_as_they_are() {
        let shown = live(2).seen().lines(20, 100);
        assert_eq!(
            shown,
            [
                "processor 0      1 %                       idle",
                "processor 1      1 %                       T2",
                "task      jobs        worst     deadline    of it   misses preemptions",
                "T1           1          8ms         10ms     80 %        0           0",
                "T2           0          0ms         10ms      0 %        0           1",
            ]
        );
        assert_eq!(live(2).seen().totals(), (1, 0));
    }

    #[test]
    fn what_does_not_fit_is_counted_and_the_closest_to_their_deadlines_stay() {
        let live = live(50);
        let shown = live.seen().lines(8, 30);
        assert_eq!(shown.len(), 8);
        assert!(shown.iter().all(|line| line.chars().count() <= 30), "{shown:?}");
        assert!(shown[3].starts_with("T1 "), "{shown:?}");
        assert!(shown[7].starts_with("and 46 more tasks"), "{shown:?}");
        for lines in 0..60 {
            assert!(live.seen().lines(lines, 80).len() <= lines.max(1), "{lines}");
        }
    }
}
