//! What `warmset run` shows while it runs: who is on which processor, and how close each task came
//! to its deadlines.
//!
//! Drawn by the supervisor, an ordinary thread, a few times a second from the events that it has
//! collected, which are about two tenths of a second old. Where standard error is not a terminal, a
//! line now and then says how far it is.

use crate::console::Console;
use app::run::live::{Live, Snapshot, Task};
use model::watch::Watch;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
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
/// At most so many lines of at most so many columns.
fn lines(now: &Snapshot, most: usize, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for processor in &now.processors {
        let who = processor.running.as_deref().unwrap_or("idle");
        let bar = "#".repeat((20.0 * processor.share).round() as usize);
        lines.push(format!(
            "processor {:<4} {:>3.0} % {bar:<20}  {who}",
            processor.cpu.0,
            100.0 * processor.share
        ));
    }
    // Half of the room for processors at most, where there are too many of both.
    shorten(
        &mut lines,
        (most / 2).max(most.saturating_sub(now.tasks.len() + 1)),
        "processors",
    );
    let names = now.tasks.iter().map(|t| t.name.chars().count());
    let width = names.max().unwrap_or(0).clamp(4, 24);
    lines.push(format!(
        "{:width$} {:>9} {:>12} {:>12} {:>8} {:>8} {:>11}",
        "task", "jobs", "worst", "deadline", "of it", "misses", "preemptions"
    ));
    let mut tasks: Vec<(f64, String)> = now.tasks.iter().map(|t| task(t, width)).collect();
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

/// The part of its deadline that the longest job took, and the line that shows it.
fn task(t: &Task, width: usize) -> (f64, String) {
    let part = t.worst.nanos() as f64 / t.deadline.nanos().max(1) as f64;
    let name: String = t.name.chars().take(width).collect();
    let line = format!(
        "{name:width$} {:>9} {:>12} {:>12} {:>6.0} % {:>8} {:>11}",
        t.jobs,
        t.worst.rounded().to_string(),
        t.deadline.to_string(),
        100.0 * part,
        t.misses,
        t.preemptions
    );
    (part, line)
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
            Some((room, columns)) => {
                *next = now + EVERY;
                if self.when == When::Auto {
                    let shown = lines(&self.live.snapshot(), room, columns);
                    self.console.show(&shown);
                }
            }
            None => {
                *next = now + PLAIN;
                let now_seen = self.live.snapshot();
                let (jobs, misses) = (now_seen.jobs(), now_seen.misses());
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
    fn finish(&self) {
        self.console.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::trace::{Event, Header, Sink, Stage};
    use model::{CpuId, Duration, Instant, Platform, Provenance, TaskId, TaskSet, Timing};

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
        let shown = lines(&live(2).snapshot(), 20, 100);
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
        let now = live(2).snapshot();
        assert_eq!((now.jobs(), now.misses()), (1, 0));
    }

    #[test]
    fn what_does_not_fit_is_counted_and_the_closest_to_their_deadlines_stay() {
        let live = live(50);
        let shown = lines(&live.snapshot(), 8, 30);
        assert_eq!(shown.len(), 8);
        assert!(
            shown.iter().all(|line| line.chars().count() <= 30),
            "{shown:?}"
        );
        assert!(shown[3].starts_with("T1 "), "{shown:?}");
        assert!(shown[7].starts_with("and 46 more tasks"), "{shown:?}");
        for most in 0..60 {
            assert!(
                lines(&live.snapshot(), most, 80).len() <= most.max(1),
                "{most}"
            );
        }
    }
}
