//! The program, loaded into the kernel. When this value goes, so does the program, and every task
//! is of the fair class again; the kernel does the same when this process ends.

use crate::bpf_skel::{MainSkel, MainSkelBuilder};
use crate::intf::{self, Choice, Ending, MAX_DOMAINS, MAX_TASKS, Plan};
use crate::outcome::Settings;
use crate::support;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{
    ErrorKind, Link, MapCore, MapFlags, MapMut, OpenObject, PrintLevel, ProgramInput, ProgramMut,
};
use model::{Error, Result, TaskId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use sys::memory::{Mapping, Use};

/// The only key of a map that is one value.
const FIRST: [u8; 4] = 0u32.to_ne_bytes();

/// Where a program is kept while it is loaded.
pub(crate) type Place = MaybeUninit<OpenObject>;

/// The program schedules as long as the link is there, which goes first.
pub(crate) struct Loaded<'a> {
    link: Option<Link>,
    skel: MainSkel<'a>,
}

/// Of `pidfd_open`, since Linux 6.9: a thread that need not be the first of its process.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);

/// Has a thread ended?
fn is_gone(descriptor: &OwnedFd) -> bool {
    let mut look = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut look, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
}

/// What failed, by libbpf or the kernel.
fn failed(what: &str, e: &dyn std::fmt::Display) -> Error {
    Error::new(format!("cannot {what}: {e}"))
        .at("--engine kernel")
        .remedy("`warmset platform` tells what this kernel permits; docs/kernel.md which ones do")
}

/// What libbpf says, while somebody notes it.
static SAID: Mutex<String> = Mutex::new(String::new());

/// Does something, and returns what libbpf says meanwhile, too, warnings and errors.
fn while_noting<T>(work: impl FnOnce() -> T) -> (T, String) {
    let said = || SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let note = |_: PrintLevel, text: String| {
        SAID.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(&text);
    };
    said().clear();
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, note)));
    let done = work();
    libbpf_rs::set_print(before);
    let said = std::mem::take(&mut *said());
    (done, said)
}

impl<'a> Loaded<'a> {
    /// Loads the program; it schedules nothing yet.
    ///
    /// # Errors
    /// The kernel has no sched_ext, refuses the program, or this process has no right to it.
    pub fn load(place: &'a mut Place, settings: &Settings) -> Result<Self> {
        Self::load_by(place, settings, |said| eprint!("{said}"))
    }

    /// The same; what libbpf says of it goes into the error alone.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn load_quietly(place: &'a mut Place, settings: &Settings) -> Result<Self> {
        Self::load_by(place, settings, |_| {})
    }

    /// `show`: what is to become of what libbpf says, which is the whole log of the verifier.
    fn load_by(place: &'a mut Place, settings: &Settings, show: impl Fn(&str)) -> Result<Self> {
        let builder = |e: libbpf_rs::Error| failed("read the program for the kernel", &e);
        let builds = MainSkelBuilder::default();
        let mut open = builds.open(place).map_err(builder)?;
        let events = &mut open.maps.events;
        events.set_max_entries(settings.ring).map_err(builder)?;
        open.struct_ops.warmset_mut().timeout_ms = (settings.watchdog.nanos() / 1_000_000) as u32;
        let (skel, said) = while_noting(|| open.load());
        show(&said);
        let skel = skel.map_err(|e| {
            let why = support::refusal(&said).map_or(String::new(), |why| format!(" ({why})"));
            failed("load the program into the kernel", &format!("{e}{why}"))
        })?;
        let loaded = Loaded { link: None, skel };
        let patience = settings.patience.nanos().to_ne_bytes();
        write(&loaded.skel.maps.data_patience, &patience)?;
        Ok(loaded)
    }

    /// The ring that tells what happens.
    pub fn events(&self) -> &MapMut<'a> {
        &self.skel.maps.events
    }

    /// The ring by which the program calls those who tell programs of their jobs.
    pub fn calls(&self) -> &MapMut<'a> {
        &self.skel.maps.calls
    }

    /// What is to be carried out.
    pub fn set_plan(&self, plan: &Plan) -> Result<()> {
        write(&self.skel.maps.data_plan, &plan.to_bytes())
    }

    /// This thread does the jobs of this task. One that is known stays as it is: the program notes
    /// there whether it can run.
    pub fn add_member(&self, thread: i32, task: u32) -> Result<()> {
        let thread = Pid::from_raw(thread).ok_or_else(|| Error::new("no such thread"))?;
        let descriptor = match pidfd_open(thread, PIDFD_THREAD) {
            // It has ended meanwhile.
            Err(Errno::SRCH) => return Ok(()),
            opened => opened.map_err(|e| failed("name a thread to the program", &e))?,
        };
        let (key, task) = (
            descriptor.as_raw_fd().to_ne_bytes(),
            (task + 1).to_ne_bytes(),
        );
        let members = &self.skel.maps.members;
        match members.update(&key, &task, MapFlags::NO_EXIST) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists && !is_gone(&descriptor) => {
                Err(not_written(members, &e))
            }
            _ => Ok(()),
        }
    }

    /// From now on no task is held back.
    pub fn end(&self) -> Result<()> {
        write(&self.skel.maps.data_over, &1u32.to_ne_bytes())
    }

    /// The pages of all tasks, which the program reads and writes at the same time.
    pub fn pages(&self) -> Result<Mapping> {
        mapped(&self.skel.maps.data_pages, intf::PAGE * MAX_TASKS)
    }

    /// What a thread needs that decides at quanta.
    pub fn deciding(&self) -> Result<Deciding<'_>> {
        Ok(Deciding {
            skel: &self.skel,
            seen: mapped(&self.skel.maps.bss_seen, intf::SEEN * MAX_DOMAINS)?,
            choices: mapped(&self.skel.maps.bss_choices, Choice::SIZE * MAX_DOMAINS)?,
        })
    }

    /// What a thread needs that hears triggers.
    pub fn asking(&self) -> Result<Asking<'_>> {
        Ok(Asking {
            skel: &self.skel,
            asked: mapped(&self.skel.maps.data_asked, intf::ASKED * MAX_TASKS)?,
        })
    }

    /// What threads need that tell programs of their jobs.
    pub fn finishing(&self) -> Finishing<'_> {
        Finishing(&self.skel)
    }

    /// From now on the program schedules the tasks that are of its class.
    ///
    /// # Errors
    /// Another scheduler is loaded.
    pub fn attach(&mut self) -> Result<()> {
        let link = self.skel.maps.warmset.attach_struct_ops();
        self.link = Some(link.map_err(|e| failed("let the program schedule", &e))?);
        Ok(())
    }

    /// Arms the first release of a domain, on the processor on which this thread runs.
    pub fn start(&self, domain: u32) -> Result<()> {
        let what = "start a scheduling domain";
        match is_on(&self.skel.progs.warmset_start, domain, what)? {
            true => Ok(()),
            false => Err(failed(what, &"the run is over")),
        }
    }

    /// How the program came to its end in the kernel; `None`: it is there, or this process has
    /// unloaded it.
    pub fn ending(&self) -> Result<Option<Ending>> {
        let ending = Ending::from_bytes(&read(&self.skel.maps.data_ending)?);
        Ok(ending.filter(|ending| !matches!(ending.kind, 0 | Ending::UNLOADED)))
    }

    /// How many tasks the program has in custody.
    pub fn inside(&self) -> Result<usize> {
        Ok(short(&self.skel.maps.data_inside)? as usize)
    }

    /// The first task whose thread has left the class of the program.
    pub fn gone(&self) -> Result<Option<TaskId>> {
        Ok(short(&self.skel.maps.data_gone)?.checked_sub(1).map(TaskId))
    }

    /// How many events were lost as the ring was full.
    pub fn losses(&self) -> Result<u64> {
        Ok(words(&self.skel.maps.data_losses)?.iter().sum())
    }

    /// How often domains have decided, all together.
    pub fn decisions(&self) -> Result<u64> {
        Ok(words(&self.skel.maps.data_decisions)?.iter().sum())
    }

    /// Unloads the scheduler; all tasks are of the fair class again.
    pub fn detach(&mut self) {
        self.link = None;
    }
}

fn write(map: &MapMut<'_>, bytes: &[u8]) -> Result<()> {
    let written = map.update(&FIRST, bytes, MapFlags::ANY);
    written.map_err(|e| not_written(map, &e))
}

fn not_written(map: &MapMut<'_>, e: &libbpf_rs::Error) -> Error {
    failed(&format!("write {:?} of the program", map.name()), e)
}

fn read(map: &MapMut<'_>) -> Result<Vec<u8>> {
    let found = map.lookup(&FIRST, MapFlags::ANY);
    let found = found.map_err(|e| failed(&format!("read {:?} of the program", map.name()), &e))?;
    Ok(found.unwrap_or_default())
}

fn short(map: &MapMut<'_>) -> Result<u32> {
    let word = read(map)?.first_chunk::<4>().copied();
    Ok(word.map_or(0, u32::from_ne_bytes))
}

fn words(map: &MapMut<'_>) -> Result<Vec<u64>> {
    let bytes = read(map)?;
    let words = bytes.as_chunks::<8>().0;
    Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}

fn mapped(map: &MapMut<'_>, size: usize) -> Result<Mapping> {
    let mapped = Mapping::file(map.as_fd(), size, Use::Write, true);
    mapped.map_err(|e| failed(&format!("map {:?} of the program", map.name()), &e))
}

/// Calls one of the programs for a domain. `false`: the run is over.
fn is_on(program: &ProgramMut<'_>, domain: u32, what: &str) -> Result<bool> {
    match test_run(program, &mut domain.to_ne_bytes(), what)? {
        0 => Ok(true),
        intf::IS_OVER => Ok(false),
        code => Err(failed(
            what,
            &format!("the program refuses it (step {code})"),
        )),
    }
}

/// Calls one of the programs. Returns what it says.
fn test_run(program: &ProgramMut<'_>, request: &mut [u8], what: &str) -> Result<u32> {
    let output = program.test_run(ProgramInput {
        context_in: Some(request),
        ..ProgramInput::default()
    });
    Ok(output.map_err(|e| failed(what, &e))?.return_value)
}

/// The program as it is known to a thread that hears triggers.
pub(crate) struct Asking<'a> {
    skel: &'a MainSkel<'a>,
    /// By task, `struct asked`.
    asked: Mapping,
}

impl Asking<'_> {
    /// So many releases of a task are asked for.
    ///
    /// # Errors
    /// The program is gone.
    pub fn ask(&self, task: TaskId, count: u64) -> Result<()> {
        let mut request = intf::asking(task.0, count);
        // That thousands are released and not begun is found by `overrun`.
        test_run(
            &self.skel.progs.warmset_trigger,
            &mut request,
            "release a job",
        )
        .map(|_| ())
    }

    /// A word of what came of the trigger of a task.
    pub fn word(&self, task: TaskId, at: usize) -> u64 {
        let word = self.asked.word(task.index() * intf::ASKED + at);
        word.load(Ordering::Acquire)
    }

    /// Are thousands of jobs of a task released and not begun?
    pub fn is_overrun(&self, task: TaskId) -> bool {
        self.word(task, intf::ASKED_OVERRUN) != 0
    }
}

/// The program as it is known to threads that tell programs of their jobs.
pub(crate) struct Finishing<'a>(&'a MainSkel<'a>);

impl Finishing<'_> {
    /// The program of a task has done a job, as its page says, or has gone.
    ///
    /// # Errors
    /// The program is gone.
    pub fn finished(&self, task: TaskId) -> Result<()> {
        let mut request = task.0.to_ne_bytes();
        let program = &self.0.progs.warmset_finished;
        test_run(program, &mut request, "end a job").map(|_| ())
    }
}

/// The program as it is known to a thread that decides at quanta.
pub(crate) struct Deciding<'a> {
    skel: &'a MainSkel<'a>,
    /// By domain, `struct seen`.
    pub seen: Mapping,
    choices: Mapping,
}

impl Deciding<'_> {
    /// A quantum begins: what is due is released, and `seen` says what has happened. `false`: the
    /// run is over.
    pub fn quantum(&self, domain: u32) -> Result<bool> {
        is_on(&self.skel.progs.warmset_quantum, domain, "begin a quantum")
    }

    /// Has a choice carried out. `false`: the run is over.
    pub fn choose(&self, domain: u32, choice: &Choice) -> Result<bool> {
        let first = domain as usize * Choice::SIZE;
        for (place, word) in choice.words().enumerate() {
            let at = self.choices.word(first + 8 * place);
            at.store(word, Ordering::Release);
        }
        is_on(
            &self.skel.progs.warmset_choose,
            domain,
            "carry out a decision",
        )
    }
}
