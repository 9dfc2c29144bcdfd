//! Threads of the run that are no task's go behind all jobs.
//!
//! As ordinary threads they would go before them: whatever one does then, a job waits for. So they
//! are of the class of the jobs while these run, and the program in the kernel gives them
//! processors that have no job. Where that may last for too long, somebody makes such a thread an
//! ordinary one for once ([`Seat::press`]), and it does the least that cannot wait: also where it
//! was in the middle of something, and jobs took the processor meanwhile.
//!
//! For the one that takes the events a guard does so where all processors have had jobs for longer
//! than [`PATIENCE`].

use crate::class;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// `SCHED_OTHER`.
const ORDINARY: i32 = 0;
/// How often the guard looks, and how often it has to see nothing. The ring has room for what some
/// seconds bring.
const LOOKS: Duration = Duration::from_millis(100);
const PATIENCE: u32 = 2;

/// The thread is behind all jobs.
const BEHIND: u8 = 0;
/// Somebody is about to make it an ordinary one, which runs at once and has to know why.
const PRESSING: u8 = 1;
/// Somebody has made it an ordinary one.
const PRESSED: u8 = 2;

/// The place of a thread behind all jobs.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// 0: nobody has it.
    thread: AtomicI32,
    /// [`BEHIND`], [`PRESSING`] or [`PRESSED`]. No lock: behind all jobs the thread may stay for
    /// long where it holds one.
    pressed: AtomicU8,
}

impl Seat {
    /// The calling thread takes it. Where that is refused, it stays what it is.
    pub fn take(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Release);
        let _ = class::come_in();
    }

    /// The thread that has it is about to end: its number may be another one's soon.
    pub fn leave(&self) {
        self.thread.store(0, Ordering::Release);
    }

    /// Makes its thread an ordinary one, until that has come to rest.
    pub fn press(&self) {
        let thread = self.thread.load(Ordering::Acquire);
        if thread != 0 {
            self.pressed.store(PRESSING, Ordering::Release);
            let is_set = sys::scheduling::set(thread, ORDINARY, 0).is_ok();
            let came = if is_set { PRESSED } else { BEHIND };
            self.pressed.store(came, Ordering::Release);
        }
    }

    /// Does its thread have to be brief, as jobs wait? That may begin at any time.
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Acquire) != BEHIND
    }

    /// Its thread has done its work for now.
    pub fn rest(&self) {
        // While somebody is at it, it would be made an ordinary one behind this. If that begins in
        // between, it is pressed again.
        let word = &self.pressed;
        let came = word.compare_exchange(PRESSED, BEHIND, Ordering::AcqRel, Ordering::Acquire);
        if came.is_ok() {
            let _ = class::come_in();
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    seat: Seat,
    /// How often the thread has come to its work.
    steps: AtomicU64,
    over: AtomicBool,
}

/// As long as this is there, the thread that has made it is behind all jobs, and a guard sees to it
/// that this does not last for too long.
#[derive(Debug)]
pub(crate) struct Behind {
    known: Arc<Known>,
    guard: Option<JoinHandle<()>>,
}

impl Behind {
    /// The calling thread, which has loaded the program, goes behind all jobs. One that is no
    /// ordinary thread, may run on none of these processors, or has no right to another class stays
    /// what it is: its events come all the same.
    pub fn all(cpus: &[u32]) -> Self {
        let known = Arc::new(Known::default());
        let is_ordinary = sys::scheduling::get(0).is_ok_and(|(policy, _)| policy == ORDINARY);
        let may = machine::realtime::affinity()
            .is_ok_and(|may| may.iter().any(|cpu| cpus.contains(&cpu.0)));
        let guard = (is_ordinary && may)
            .then(|| guard(&known))
            .and_then(Result::ok);
        if guard.is_some() {
            known.seat.take();
        }
        Behind { known, guard }
    }

    /// The thread has come to its work.
    pub fn comes(&self) {
        self.known.steps.fetch_add(1, Ordering::AcqRel);
    }

    /// Does it have to be brief, as jobs wait?
    pub fn is_pressed(&self) -> bool {
        self.known.seat.is_pressed()
    }

    /// The work is done for now.
    pub fn rest(&self) {
        self.known.seat.rest();
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        // Before it waits for anybody, as nobody looks after it any more.
        let _ = sys::scheduling::set(0, ORDINARY, 0);
        self.known.over.store(true, Ordering::Release);
        guard.thread().unpark();
        // It does nothing that could panic.
        let _ = guard.join();
    }
}

fn guard(known: &Arc<Known>) -> std::io::Result<JoinHandle<()>> {
    let known = Arc::clone(known);
    let watch = move || {
        let (mut seen, mut same) = (0, 0);
        while !known.over.load(Ordering::Acquire) {
            std::thread::park_timeout(LOOKS);
            let steps = known.steps.load(Ordering::Acquire);
            same = if steps == seen { same + 1 } else { 0 };
            seen = steps;
            if same >= PATIENCE && !known.over.load(Ordering::Acquire) {
                same = 0;
                known.seat.press();
            }
        }
    };
    std::thread::Builder::new()
        .name("guard".to_owned())
        .stack_size(64 << 10)
        .spawn(watch)
}
