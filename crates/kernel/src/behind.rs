//! The thread that takes the events goes behind all jobs.
//!
//! As an ordinary thread it would go before them: whatever it does then, a job waits for. So it is
//! of the class of the jobs while they run, and the program in the kernel gives it processors that
//! have no job. Where all have one for longer than [`PATIENCE`], a guard makes it an ordinary thread
//! for once, and it takes the events and puts off what is made of them: also where that had begun,
//! and jobs took the processor meanwhile.

use crate::class;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// `SCHED_OTHER`.
const ORDINARY: i32 = 0;
/// How often the guard looks, and how often it has to see nothing. The ring has room for what some
/// seconds bring.
const LOOKS: Duration = Duration::from_millis(100);
const PATIENCE: u32 = 2;

#[derive(Debug, Default)]
struct Known {
    /// How often the thread has come to its work.
    steps: AtomicU64,
    /// [`BEHIND`], [`PRESSING`] or [`PRESSED`]. No lock: behind all jobs the thread may stay for
    /// long where it holds one.
    pressed: AtomicU8,
    over: AtomicBool,
}

/// The thread is behind all jobs.
const BEHIND: u8 = 0;
/// The guard is about to make it an ordinary one, which runs at once and has to know why.
const PRESSING: u8 = 1;
/// The guard has made it an ordinary one.
const PRESSED: u8 = 2;

/// As long as this is there, the thread that has made it is behind all jobs.
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
        let behind = Behind { known, guard };
        behind.go_back();
        behind
    }

    fn go_back(&self) {
        if self.guard.is_some() {
            // Where it is refused, it stays ordinary.
            let _ = class::come_in();
        }
    }

    /// The thread has come to its work.
    pub fn comes(&self) {
        self.known.steps.fetch_add(1, Ordering::AcqRel);
    }

    /// Does it have to be brief, as jobs wait? That may begin at any time.
    pub fn is_pressed(&self) -> bool {
        self.known.pressed.load(Ordering::Acquire) != BEHIND
    }

    /// The work is done for now.
    pub fn rest(&self) {
        // While the guard is at it, it would make it an ordinary one behind this. If it begins in
        // between, it presses again.
        let word = &self.known.pressed;
        let came = word.compare_exchange(PRESSED, BEHIND, Ordering::AcqRel, Ordering::Acquire);
        if came.is_ok() {
            self.go_back();
        }
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
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
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
                known.pressed.store(PRESSING, Ordering::Release);
                let is_set = sys::scheduling::set(thread, ORDINARY, 0).is_ok();
                let came = if is_set { PRESSED } else { BEHIND };
                known.pressed.store(came, Ordering::Release);
            }
        }
    };
    std::thread::Builder::new()
        .name("guard".to_owned())
        .stack_size(64 << 10)
        .spawn(watch)
}
