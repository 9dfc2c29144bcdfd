//! Three ways to let another thread run instead of the one that runs, on the dispatcher's processor
//! and on another one.
//!
//! A dispatcher above all takes A, which runs, off its processor and lets B run there, then the
//! other way round, by
//!
//! - **priority**: A is lowered below B, B is raised above A;
//! - **gate**: A gets a signal whose handler sleeps on a futex, B is woken from there
//!   ([`execute::gate`]);
//! - **stop**: A's process gets SIGSTOP, B's gets SIGCONT (threads cannot be stopped one by one).
//!
//! What is timed is from before the first call to B's next instruction. The ways take turns within
//! one run; medians. The peers are each other; user-level schedulers of the literature report ones
//! to tens of microseconds (Mollison and Anderson, RTAS 2013).

use execute::gate::{self, Gate};
use execute::kernel::{self, DISPATCHER, RUN, Thread, WAIT};
use execute::watchdog::{Board, BoardRef, Patience, Watchdog};
use model::{CpuId, Error, Result};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Bursts of every way, and switches of each of them: half of the time nobody runs at real-time
/// priority.
const BURSTS: usize = 12;
const SWITCHES: usize = 40;
/// From one switch to the next, in nanoseconds; a thread that was off for half of that notes when
/// it is on again.
const STEP: u64 = 400_000;

/// What spinners and dispatcher share, also across processes.
struct Shared {
    /// When each spinner was on again.
    resumed: [AtomicU64; 4],
    tid: [AtomicI32; 4],
    stop: AtomicBool,
}

fn spin(shared: &Shared, who: usize) {
    shared.tid[who].store(Thread::current().0, Ordering::Release);
    let mut last = kernel::monotonic();
    while !shared.stop.load(Ordering::Relaxed) {
        let now = kernel::monotonic();
        if now - last > STEP / 2 {
            shared.resumed[who].store(now, Ordering::Relaxed);
        }
        last = now;
    }
}

/// A way to let one spinner run instead of the other.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Priority,
    Gate,
    Stop,
}

struct Bench<'a> {
    shared: &'a Shared,
    gates: [Gate; 2],
}

impl Bench<'_> {
    /// Spinners 0 and 1 are threads, 2 and 3 processes.
    fn thread(&self, way: Way, who: usize) -> Thread {
        let first = if way == Way::Stop { 2 } else { 0 };
        Thread(self.shared.tid[first + who].load(Ordering::Acquire))
    }

    fn kill(&self, who: usize, signal: i32) {
        // SAFETY: a child of ours that is not waited for before the end.
        unsafe { libc::kill(self.thread(Way::Stop, who).0, signal) };
    }

    fn switch(&self, way: Way, from: usize, to: usize) -> std::io::Result<()> {
        match way {
            Way::Priority => {
                self.thread(way, from).raise(WAIT)?;
                self.thread(way, to).raise(RUN)?;
            }
            Way::Gate => {
                self.gates[from].close(self.thread(way, from))?;
                self.gates[to].open();
            }
            Way::Stop => {
                self.kill(from, libc::SIGSTOP);
                self.kill(to, libc::SIGCONT);
            }
        }
        Ok(())
    }

    /// The first spinner runs, the second one waits in the way that it is done.
    fn begin(&self, way: Way, cpu: CpuId) -> std::io::Result<()> {
        for who in 0..2 {
            let thread = self.thread(way, who);
            thread.pin(cpu)?;
            thread.raise(if way == Way::Priority && who == 1 {
                WAIT
            } else {
                RUN
            })?;
        }
        match way {
            Way::Priority => self.gates.iter().for_each(Gate::open),
            Way::Gate => self.gates[0].open(),
            Way::Stop => self.kill(0, libc::SIGCONT),
        }
        Ok(())
    }

    /// Nobody runs any more.
    fn pause(&self, way: Way) -> std::io::Result<()> {
        for who in 0..2 {
            match way {
                Way::Stop => self.kill(who, libc::SIGSTOP),
                _ => self.gates[who].close(self.thread(way, who))?,
            }
            self.thread(way, who).lower()?;
        }
        Ok(())
    }

    fn burst(
        &self,
        way: Way,
        cpu: CpuId,
        times: &mut Vec<u64>,
        board: &Board,
    ) -> std::io::Result<()> {
        self.begin(way, cpu)?;
        let word = AtomicU32::new(0);
        let first = if way == Way::Stop { 2 } else { 0 };
        let mut next = kernel::monotonic() + STEP;
        for switch in 0..SWITCHES {
            kernel::futex_wait(&word, 0, Some(next));
            board.beat(0);
            let (from, to) = (switch % 2, (switch + 1) % 2);
            let before = kernel::monotonic();
            self.switch(way, from, to)?;
            next += STEP;
            kernel::futex_wait(&word, 0, Some(next - STEP / 8));
            let resumed = self.shared.resumed[first + to].load(Ordering::Relaxed);
            // The first ones have not been off for long enough to note it.
            if switch > 1 && resumed > before {
                times.push(resumed - before);
            }
        }
        self.pause(way)
    }

    fn run(
        &self,
        dispatcher: CpuId,
        cpu: CpuId,
        where_to: &str,
        board: &Board,
    ) -> std::io::Result<()> {
        let thread = Thread::current();
        thread.pin(dispatcher)?;
        let ways = [
            (Way::Priority, "priority"),
            (Way::Gate, "gate"),
            (Way::Stop, "stop"),
        ];
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..BURSTS {
            for ((way, _), times) in ways.iter().zip(&mut times) {
                thread.raise(DISPATCHER.get())?;
                let done = self.burst(*way, cpu, times, board);
                board.rest(0);
                thread.lower()?;
                done?;
                std::thread::sleep(std::time::Duration::from_nanos(STEP * SWITCHES as u64));
            }
        }
        for ((_, name), times) in ways.iter().zip(&mut times) {
            times.sort_unstable();
            let at = |part: usize| {
                times
                    .get(times.len() * part / 100)
                    .map_or(f64::NAN, |t| *t as f64 / 1e3)
            };
            println!(
                "{where_to:18} {name:9} {:6.1} us median  {:6.1} us 99 %   ({} switches)",
                at(50),
                at(99),
                times.len()
            );
        }
        Ok(())
    }
}

fn shared() -> Result<&'static Shared> {
    // SAFETY: a new mapping, filled with zeros, which is a valid value of atomic words; never
    // unmapped.
    unsafe {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        let at = libc::mmap(
            std::ptr::null_mut(),
            size_of::<Shared>(),
            protection,
            flags,
            -1,
            0,
        );
        match at {
            libc::MAP_FAILED => Err(Error::new("no memory can be shared")),
            at => Ok(&*at.cast::<Shared>()),
        }
    }
}

fn bench() -> Result<()> {
    let cpus = machine::this_machine()?.platform.in_cache_order();
    let (Some(one), Some(two)) = (cpus.first().copied(), cpus.get(1).copied()) else {
        return Err(Error::new("two processors are needed"));
    };
    gate::install()?;
    let shared = shared()?;
    let children: Vec<i32> = (2..4)
        .map(|who| {
            // SAFETY: the child spins, and ends without coming back; it dies with this process.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    spin(shared, who);
                    libc::_exit(0);
                }
                child
            }
        })
        .collect();
    let result = Watchdog::start(Patience::default()).and_then(|watchdog| {
        let board: BoardRef = watchdog.board();
        let gates = [Gate::default(), Gate::default()];
        let bench = Bench { shared, gates };
        let _entry = board.enter()?;
        std::thread::scope(|scope| {
            for who in 0..2 {
                let (bench, board) = (&bench, &board);
                scope.spawn(move || {
                    let _entry = board.enter();
                    let _attached = bench.gates[who].attach();
                    spin(shared, who);
                });
            }
            while shared.tid.iter().any(|t| t.load(Ordering::Acquire) == 0) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let failed = |e: std::io::Error| Error::new(format!("cannot switch: {e}"));
            let done = bench
                .pause(Way::Priority)
                .and_then(|()| bench.pause(Way::Stop))
                .and_then(|()| bench.run(one, one, "same processor", &board))
                .and_then(|()| bench.run(one, two, "another processor", &board));
            shared.stop.store(true, Ordering::Relaxed);
            bench.gates.iter().for_each(Gate::open);
            done.map_err(failed)
        })
    });
    for child in children {
        // SAFETY: our own children, ended and waited for here.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
    result
}

fn main() {
    // `cargo test --benches` only wants to know that it can be built and started.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    if let Err(e) = bench() {
        println!("skipped: {e}");
    }
}
