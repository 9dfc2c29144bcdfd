//! Rounds of faults within the guest: runs each of them in a process of its own, and looks at the
//! machine after it.

use crate::archive;
use crate::case::{self, Case};
use crate::fault::{self, Fault, Round};
use crate::init::{Harm, SAID, end_stuck, ended, one, seen_by_kernel, start_saying};
use crate::ordinary::Look;
use crate::outside;
use crate::programs;
use kernel::intf::Choice;
use kernel::quanta::{Machines, Seen};
use model::{Duration, Error, Result, TaskId};
use policy::profiler::Estimate;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use workload::Work;

/// Says how many rounds there are: `COUNT SEED [FIRST [TIMES]]`.
const FAULTS: &str = "/faults";
/// So many ordinary processes are started at once.
const MANY: usize = 24;
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
    let broken = |e| Error::new(format!("cannot write to the port: {e}"));
    let rounds = fault::rounds(&text)?;
    for (seed, number) in &rounds {
        let (round, begun) = (Round::of(*seed, *number), Instant::now());
        let said = play(*seed, &round).and_then(|how| look.again().map(|()| how));
        let seen = seen_by_kernel().filter(|_| said.is_err());
        if let Some(seen) = seen {
            let name = format!("fault-{seed}-{number}.ftrace");
            archive::write(port, &name, &seen).map_err(broken)?;
        }
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
    archive::write(port, "faults.result", results.as_bytes()).map_err(broken)
}

/// A round, watched from outside. Returns what became of the run, in a few words.
fn play(seed: u64, round: &Round) -> Result<&'static str> {
    let number = round.number.to_string();
    let file = File::create(SAID).map_err(|e| Error::io(SAID, "make it", &e))?;
    let mut child = start_saying(&["round", &seed.to_string(), &number], file.into())?;
    let late = (round.early || loaded(&mut child)) && ended(&mut child, round.after).is_none();
    let id = Pid::from_child(&child);
    if late {
        from_outside(round, &child, id)?;
    }
    let Some(status) = ended(&mut child, PATIENCE) else {
        end_stuck(&mut child);
        return Err(Error::new(format!(
            "it does not come to its end within {PATIENCE}"
        )));
    };
    let said = fs::read_to_string(SAID).map_err(|e| Error::io(SAID, "read it", &e))?;
    round.judge(status.code(), late, &said)
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
            let threads = match round.program {
                true => programs::all(),
                false => outside::threads(child.id()),
            };
            let at = match round.program {
                true => round.task % threads.len().max(1),
                false => round.task,
            };
            let Some(thread) = threads.get(at).copied() else {
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
        Fault::Forks => {
            // They say that there is no such call, and end.
            let many = (0..MANY).map(|_| start_saying(&["nothing"], Stdio::null()));
            for child in many.collect::<Result<Vec<_>>>()? {
                let mut child = child;
                if ended(&mut child, PATIENCE).is_none() {
                    return Err(Error::new("an ordinary process does not come to its end"));
                }
            }
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
    let case: Case = case::read(&round.line())?.remove(0);
    // A round before this one may have left some.
    for task in 0..case.triggers {
        let _ = fs::remove_file(case.fifo(TaskId(task)));
    }
    let work = |task: usize, work: Box<dyn Work>| match round.is_wrong(task) {
        true => faulty(&round, work),
        false => work,
    };
    let machines = |machines: Box<dyn Machines>| match round.fault {
        Fault::PolicyFails => Box::new(FailingPolicy(machines, 40 + round.job)),
        _ => machines,
    };
    let harm = Harm {
        work: &work,
        machines: &machines,
        watchdog: round.watchdog(),
        ..Harm::default()
    };
    let outcome = one(&case, Path::new("/dev/null"), &harm)?;
    for task in outcome.stuck {
        eprintln!("task T{} is stuck", task.0 + 1);
    }
    Ok(())
}

/// State machines that decide so many times, and then no more.
struct FailingPolicy(Box<dyn Machines>, u64);

impl Machines for FailingPolicy {
    fn decide(&mut self, domain: usize, seen: &Seen) -> Choice {
        self.1 = self.1.checked_sub(1).expect("fails, as it is told");
        self.0.decide(domain, seen)
    }

    fn profiled(&self) -> Vec<(u32, Estimate)> {
        self.0.profiled()
    }
}

fn faulty(round: &Round, work: Box<dyn Work>) -> Box<dyn Work> {
    Box::new(Faulty {
        work,
        job: round.job,
        fault: round.fault,
    })
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
            Fault::NeverYields | Fault::Stalls if number == self.job => loop {
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
