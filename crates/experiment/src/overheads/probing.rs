//! How long the kernel's record of an event takes, found by doing the same with the record and
//! without it.
//!
//! Two threads on one processor hand a word to each other again and again, as a dispatcher and a
//! job do: with each turn one is woken, one sleeps, and the processor changes between them. For the
//! engine in the kernel both yield instead, as its jobs do: what is recorded differs, and a
//! processor that records one system call is slower in all of them. Turns with the recording and
//! without it take turns, so that a machine that changes meanwhile changes for both.

use super::plan::Engine;
use machine::clock::{current_cpu, monotonic_raw};
use machine::realtime::{self, Priority, Raised};
use machine::tracefs::{Recording, Tracepoint};
use measure::overheads::probe::Probe;
use model::{CpuId, Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Thread};

/// So many pairs are measured.
const PAIRS: usize = 12;
/// So often a word is handed over in each half of a pair.
const TURNS: u32 = 2_000;
/// Among the kernel's real-time threads, whose switches are recorded.
const PRIORITY: i32 = 40;

/// Measures it of these tracepoints on one processor, in a few seconds; `None` where nothing could
/// be recorded without a loss.
///
/// # Errors
/// No right to real-time priorities or to the record; no thread.
pub fn measure(engine: Engine, points: &[Tracepoint]) -> Result<Option<Probe>> {
    let cpu = current_cpu();
    let hand_over = |cpu| hand_over(engine, cpu);
    let mut differences = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let without = hand_over(cpu)?;
        let recording = Recording::begin(points)?;
        let with = hand_over(cpu);
        let recorded = recording.end()?;
        let with = with?;
        let events = recorded.all.iter().filter(|record| record.cpu == cpu.0);
        let events = events.count();
        // A record that is not complete says nothing of how long one takes.
        if recorded.lost == 0 && !recorded.cut && events > 0 {
            differences.push((with as f64 - without as f64) / events as f64);
        }
    }
    Ok(Probe::of(&differences))
}

/// Hands a word over so often on this processor. Returns how long that took, in nanoseconds.
fn hand_over(engine: Engine, cpu: CpuId) -> Result<u64> {
    let (ask, answer): (Asks, Answers) = match engine {
        Engine::User => (ask, answer),
        Engine::Kernel => (yield_first, yield_second),
    };
    let word = Word::default();
    let one = || -> Result<u64> {
        let _raised = on(cpu)?;
        let first = thread::current();
        thread::scope(|scope| {
            let other = scope.spawn(|| answer(cpu, &word, &first));
            let length = ask(&word, other.thread());
            match other.join() {
                Ok(answered) => answered.map(|()| length),
                Err(_) => Err(Error::new("a thread ended before its time")),
            }
        })
    };
    // A thread of its own, so that the caller keeps its priority and its processors.
    thread::scope(|scope| scope.spawn(one).join())
        .unwrap_or_else(|_| Err(Error::new("a thread ended before its time")))
}

/// The first thread's part. Returns how long it took.
fn ask(word: &Word, other: &Thread) -> u64 {
    if word.wait_until(|said| said >= NOT_HERE) == NOT_HERE {
        return 0;
    }
    let begun = monotonic_raw();
    for number in 0..TURNS {
        word.say(2 * number + 1, other);
        word.wait_until(|said| said == 2 * number + 2);
    }
    monotonic_raw() - begun
}

/// The second thread's part.
fn answer(cpu: CpuId, word: &Word, first: &Thread) -> Result<()> {
    let raised = on(cpu);
    word.say(if raised.is_ok() { HERE } else { NOT_HERE }, first);
    let _raised = raised?;
    for number in 0..TURNS {
        word.wait_until(|said| said == 2 * number + 1);
        word.say(2 * number + 2, first);
    }
    Ok(())
}

/// The first thread's part for the engine in the kernel. Returns how long it took.
fn yield_first(word: &Word, _: &Thread) -> u64 {
    if word.wait_until(|said| said >= NOT_HERE) == NOT_HERE {
        return 0;
    }
    let begun = monotonic_raw();
    for _ in 0..TURNS {
        thread::yield_now();
    }
    monotonic_raw() - begun
}

/// The second thread's part: it yields until the first one is done.
fn yield_second(cpu: CpuId, word: &Word, first: &Thread) -> Result<()> {
    let raised = on(cpu);
    word.say(if raised.is_ok() { HERE } else { NOT_HERE }, first);
    let _raised = raised?;
    for _ in 0..TURNS {
        thread::yield_now();
    }
    Ok(())
}

type Asks = fn(&Word, &Thread) -> u64;
type Answers = fn(CpuId, &Word, &Thread) -> Result<()>;

/// Puts the calling thread on this processor, above ordinary ones.
fn on(cpu: CpuId) -> Result<Raised> {
    let priority =
        Priority::new(PRIORITY).ok_or_else(|| Error::new("there is no such priority"))?;
    realtime::pin_to(cpu).map_err(|e| Error::new(format!("cannot run on processor {cpu}: {e}")))?;
    realtime::raise(priority)
}

/// The second thread is on its processor.
const HERE: u32 = u32::MAX;
/// It cannot be.
const NOT_HERE: u32 = HERE - 1;

/// What one thread says to the other.
#[derive(Default)]
struct Word(AtomicU32);

impl Word {
    fn say(&self, word: u32, to: &Thread) {
        self.0.store(word, Ordering::Release);
        to.unpark();
    }

    fn wait_until(&self, is_it: impl Fn(u32) -> bool) -> u32 {
        loop {
            let said = self.0.load(Ordering::Acquire);
            if is_it(said) {
                return said;
            }
            thread::park();
        }
    }
}
