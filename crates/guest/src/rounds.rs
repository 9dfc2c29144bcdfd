//! Rounds of faults within the guest: runs each of them in a process of its own, and looks at the
//! machine after it.

use crate::archive;
use crate::case::{self, Case};
use crate::fault::{self, End, Fault, Round};
use crate::init::{ended, one, start};
use crate::ordinary::Look;
use crate::outside;
use model::{Duration, Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use workload::Work;

/// Says how many rounds there are: `COUNT SEED [FIRST]`.
const FAULTS: &str = "/faults";
/// How long a round may take to come to its end.
const PATIENCE: Duration = Duration::from_secs(20);
/// For how long a processor is offline, or a process stopped.
const FOR: std::time::Duration = std::time::Duration::from_millis(60);

/// Does all rounds that the guest was given, and writes what came of them.
///
/// # Errors
/// It cannot be written, or is not told well.
pub(crate) fn all(look: &Look, port: &mut impl Write) -> Result<()> {
    let Ok(text) = fs::read_to_string(FAULTS) else {
        return Ok(());
    };
    let (mut results, mut bad) = (String::new(), 0);
    let rounds = fault::rounds(&text)?;
    for (seed, number) in &rounds {
        let (round, begun) = (Round::of(*seed, *number), Instant::now());
        let said = play(*seed, &round).and_then(|how| look.again().map(|()| how));
        let line = match said {
            Ok(how) => format!("{number} well {how}: {round}"),
            Err(e) => {
                bad += 1;
                format!("{number} BAD {e}: {round}")
            }
        };
        println!("guest: fault {line} in {:.1?}", begun.elapsed());
        results += &line;
        results.push('\n');
        // What is wrong now would be wrong in every round to come.
        if bad > 3 {
            break;
        }
    }
    archive::write(port, "faults.result", results.as_bytes())
        .map_err(|e| Error::new(format!("cannot write to the port: {e}")))
}

/// A round, watched from outside. Returns what became of the run, in a word.
fn play(seed: u64, round: &Round) -> Result<&'static str> {
    let number = round.number.to_string();
    let mut child = start(&["round", &seed.to_string(), &number])?;
    let late = (round.early || loaded(&mut child)) && ended(&mut child, round.after).is_none();
    let id = Pid::from_child(&child);
    if late {
        from_outside(round, &child, id)?;
    }
    let Some(status) = ended(&mut child, PATIENCE) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Error::new(format!(
            "it does not come to its end within {PATIENCE}"
        )));
    };
    match (round.end(), status.code()) {
        (End::Killed, None) => Ok("killed"),
        (End::Killed, Some(0)) if !late => Ok("ended before"),
        (End::Well | End::Either, Some(0)) => Ok("ran"),
        (End::Either, Some(2)) => Ok("ended with an error"),
        _ => Err(Error::new(format!("it ended with {status}"))),
    }
}

/// Waits until the kernel lets the program schedule; `false`: the process has ended before.
pub(crate) fn loaded(child: &mut Child) -> bool {
    loop {
        match fs::read_to_string("/sys/kernel/sched_ext/state") {
            Ok(state) if state.trim() == "enabled" => return true,
            _ if ended(child, Duration::from_millis(5)).is_some() => return false,
            _ => {}
        }
    }
}

/// What is done to a run from outside.
fn from_outside(round: &Round, child: &Child, id: Pid) -> Result<()> {
    let write = |path: &str, text: &str| {
        fs::write(path, text).map_err(|e| Error::io(path, "write to it", &e))
    };
    let signal = |signal| {
        kill_process(id, signal).map_err(|e| Error::new(format!("cannot send a signal: {e}")))
    };
    match round.fault {
        Fault::Killed => signal(Signal::KILL),
        Fault::Aborted => write("/proc/sysrq-trigger", "S"),
        Fault::Offline => {
            let path = format!("/sys/devices/system/cpu/cpu{}/online", 1 + round.task % 3);
            write(&path, "0")?;
            std::thread::sleep(FOR);
            write(&path, "1")
        }
        Fault::Stopped => {
            signal(Signal::STOP)?;
            std::thread::sleep(FOR);
            signal(Signal::CONT)
        }
        Fault::Reclassed | Fault::Confined => {
            let Some(thread) = outside::threads(child.id()).get(round.task).copied() else {
                return Ok(());
            };
            let done = match round.fault {
                // It may have ended meanwhile.
                Fault::Reclassed => execute_class(thread),
                _ => confine(thread),
            };
            let _ = done;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn execute_class(thread: i32) -> std::io::Result<()> {
    sys::scheduling::set(thread, 0, 0)
}

fn confine(thread: i32) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(0);
    Ok(rustix::thread::sched_setaffinity(
        Pid::from_raw(thread),
        &set,
    )?)
}

/// Runs the round of this number, within the process that is done for it.
///
/// # Errors
/// The run failed.
pub fn round(seed: &str, number: &str) -> Result<()> {
    let bad = |_| Error::new("no such round");
    let round = Round::of(seed.parse().map_err(bad)?, number.parse().map_err(bad)?);
    let line = format!("round {} {} {}", round.policy, round.horizon, round.set);
    let case: Case = case::read(&line)?.remove(0);
    let change = |task: usize, work: Box<dyn Work>| match task == round.task {
        true => faulty(&round, work),
        false => work,
    };
    one(&case, Path::new("/dev/null"), change).map(|_| ())
}

fn faulty(round: &Round, work: Box<dyn Work>) -> Box<dyn Work> {
    let job = round.job;
    match round.fault {
        Fault::NeverYields | Fault::Dies | Fault::Sleeps => Box::new(Faulty {
            work,
            job,
            fault: round.fault,
        }),
        _ => work,
    }
}

/// The same work, but that its first job never comes to its end.
pub(crate) fn never_ends(work: Box<dyn Work>) -> Box<dyn Work> {
    Box::new(Faulty {
        work,
        job: 0,
        fault: Fault::NeverYields,
    })
}

/// Work that goes wrong in one of its jobs.
struct Faulty {
    work: Box<dyn Work>,
    job: u64,
    fault: Fault,
}

impl Work for Faulty {
    fn job(&mut self, number: u64, stop: &AtomicBool) {
        match self.fault {
            // Not by an instruction that says that it spins: at each of them QEMU looks what else
            // there is to do, and its time stands nearly still.
            Fault::NeverYields if number == self.job => loop {
                std::hint::black_box(number);
            },
            // The unwinding ends the thread.
            Fault::Dies if number == self.job => std::panic::panic_any("dies, as it is told"),
            Fault::Sleeps => {
                std::thread::sleep(std::time::Duration::from_millis(2));
                self.work.job(number, stop);
            }
            _ => self.work.job(number, stop),
        }
    }
}
