//! The program, loaded into the kernel. When this value goes, so does the program, and every task
//! is of the fair class again; the kernel does the same when this process ends.

use crate::intf::{self, Choice, Ending, MAX_DOMAINS, MAX_TASKS, Plan};
use crate::outcome::Settings;
use crate::support;
use libbpf_rs::{
    ErrorKind, Link, Map, MapCore, MapFlags, MapMut, Object, ObjectBuilder, PrintLevel,
    ProgramInput,
};
use model::{Error, Result, TaskId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use sys::memory::{Mapping, Use};

/// The compiled program; `make test-kernel` holds it against its source.
static PROGRAM: &[u8] = include_bytes!("bpf/main.bpf.o");

/// Names of maps.
const PLAN: &str = ".data.plan";
const PAGES: &str = ".data.pages";
const ENDING: &str = ".data.ending";
const LOSSES: &str = ".data.losses";
const DECISIONS: &str = ".data.decisions";
const INSIDE: &str = ".data.inside";
const OVER: &str = ".data.over";
const GONE: &str = ".data.gone";
const PATIENCE: &str = ".data.patience";
const SEEN: &str = ".bss.seen";
const CHOICES: &str = ".bss.choices";
const ASKED: &str = ".data.asked";
const MEMBERS: &str = "members";
pub(crate) const EVENTS: &str = "events";
pub(crate) const CALLS: &str = "calls";
const SCHEDULER: &str = "warmset";

/// The only key of a map that is one value.
const FIRST: [u8; 4] = 0u32.to_ne_bytes();

#[derive(Debug)]
pub(crate) struct Loaded {
    object: Object,
    link: Option<Link>,
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

impl Loaded {
    /// Loads the program; it schedules nothing yet.
    ///
    /// # Errors
    /// The kernel has no sched_ext, refuses the program, or this process has no right to it.
    pub fn load(settings: &Settings) -> Result<Self> {
        Self::load_by(settings, |said| eprint!("{said}"))
    }

    /// The same; what libbpf says of it goes into the error alone.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn load_quietly(settings: &Settings) -> Result<Self> {
        Self::load_by(settings, |_| {})
    }

    /// `show`: what is to become of what libbpf says, which is the whole log of the verifier.
    fn load_by(settings: &Settings, show: impl Fn(&str)) -> Result<Self> {
        let builder = |e: libbpf_rs::Error| failed("read the program for the kernel", &e);
        let mut open = ObjectBuilder::default()
            .open_memory(PROGRAM)
            .map_err(builder)?;
        for mut map in open.maps_mut().filter(|map| map.name() == EVENTS) {
            map.set_max_entries(settings.ring).map_err(builder)?;
        }
        // `timeout_ms` is the first member of the scheduler.
        let watchdog = (settings.watchdog.nanos() / 1_000_000) as u32;
        for mut map in open.maps_mut().filter(|map| map.name() == SCHEDULER) {
            let value = map.initial_value_mut().and_then(|v| v.first_chunk_mut());
            *value.ok_or_else(|| failed("use the program", &"its scheduler is empty"))? =
                watchdog.to_ne_bytes();
        }
        let (object, said) = while_noting(|| open.load());
        show(&said);
        let object = object.map_err(|e| {
            let why = support::refusal(&said).map_or(String::new(), |why| format!(" ({why})"));
            failed("load the program into the kernel", &format!("{e}{why}"))
        })?;
        let loaded = Loaded { object, link: None };
        for (name, size) in [
            (PLAN, Plan::SIZE),
            (PAGES, intf::PAGE * MAX_TASKS),
            (ENDING, Ending::SIZE),
            (LOSSES, 8),
            (DECISIONS, 8 * MAX_DOMAINS),
            (SEEN, intf::SEEN * MAX_DOMAINS),
            (CHOICES, Choice::SIZE * MAX_DOMAINS),
            (ASKED, intf::ASKED * MAX_TASKS),
        ] {
            let there = loaded.map(name)?.value_size() as usize;
            if there != size {
                return Err(Error::new(format!(
                    "`{name}` of the program has {there} bytes, and this build expects {size}"
                ))
                .at("--engine kernel")
                .remedy("build warmset again from one source"));
            }
        }
        loaded.write(PATIENCE, &FIRST, &settings.patience.nanos().to_ne_bytes())?;
        Ok(loaded)
    }

    /// A map of the program.
    ///
    /// # Errors
    /// The program has none of this name.
    pub fn map(&self, name: &str) -> Result<Map<'_>> {
        let found = self
            .object
            .maps()
            .find(|map| map.name() == OsStr::new(name));
        found.ok_or_else(|| failed("use the program", &format!("it has no map `{name}`")))
    }

    fn write(&self, name: &str, key: &[u8], bytes: &[u8]) -> Result<()> {
        let written = self.map(name)?.update(key, bytes, MapFlags::ANY);
        written.map_err(|e| failed(&format!("write `{name}` of the program"), &e))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let found = self.map(name)?.lookup(&FIRST, MapFlags::ANY);
        let found = found.map_err(|e| failed(&format!("read `{name}` of the program"), &e))?;
        Ok(found.unwrap_or_default())
    }

    /// What is to be carried out.
    pub fn set_plan(&self, plan: &Plan) -> Result<()> {
        self.write(PLAN, &FIRST, &plan.to_bytes())
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
        match self.map(MEMBERS)?.update(&key, &task, MapFlags::NO_EXIST) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists && !is_gone(&descriptor) => {
                Err(failed(&format!("write `{MEMBERS}` of the program"), &e))
            }
            _ => Ok(()),
        }
    }

    /// From now on no task is held back.
    pub fn end(&self) -> Result<()> {
        self.write(OVER, &FIRST, &1u32.to_ne_bytes())
    }

    /// The pages of all tasks, which the program reads and writes at the same time.
    pub fn pages(&self) -> Result<Mapping> {
        self.mapped(PAGES, intf::PAGE * MAX_TASKS)
    }

    fn mapped(&self, name: &str, size: usize) -> Result<Mapping> {
        let map = self.map(name)?;
        let mapped = Mapping::file(std::os::fd::AsFd::as_fd(&map), size, Use::Write, true);
        mapped.map_err(|e| failed(&format!("map `{name}` of the program"), &e))
    }

    /// What a thread needs that decides at quanta.
    pub fn deciding(&self) -> Result<Deciding<'_>> {
        Ok(Deciding {
            object: &self.object,
            seen: self.mapped(SEEN, intf::SEEN * MAX_DOMAINS)?,
            choices: self.mapped(CHOICES, Choice::SIZE * MAX_DOMAINS)?,
        })
    }

    /// What a thread needs that hears triggers.
    pub fn asking(&self) -> Result<Asking<'_>> {
        Ok(Asking {
            object: &self.object,
            asked: self.mapped(ASKED, intf::ASKED * MAX_TASKS)?,
        })
    }

    /// What threads need that tell programs of their jobs.
    pub fn finishing(&self) -> Finishing<'_> {
        Finishing(&self.object)
    }

    /// From now on the program schedules the tasks that are of its class.
    ///
    /// # Errors
    /// Another scheduler is loaded.
    pub fn attach(&mut self) -> Result<()> {
        let mut maps = self.object.maps_mut();
        let found: Option<MapMut<'_>> = maps.find(|map| map.name() == SCHEDULER);
        let mut map = found.ok_or_else(|| failed("use the program", &"it has no scheduler"))?;
        let link = map.attach_struct_ops();
        self.link = Some(link.map_err(|e| failed("let the program schedule", &e))?);
        Ok(())
    }

    /// Arms the first release of a domain, on the processor on which this thread runs.
    pub fn start(&self, domain: u32) -> Result<()> {
        call(
            &self.object,
            "warmset_start",
            domain,
            "start a scheduling domain",
        )
    }

    /// How the program came to its end in the kernel; `None`: it is there, or this process has
    /// unloaded it.
    pub fn ending(&self) -> Result<Option<Ending>> {
        let ending = Ending::from_bytes(&self.read(ENDING)?);
        Ok(ending.filter(|ending| !matches!(ending.kind, 0 | Ending::UNLOADED)))
    }

    /// How many tasks the program has in custody.
    pub fn inside(&self) -> Result<usize> {
        Ok(self.short(INSIDE)? as usize)
    }

    /// The first task whose thread has left the class of the program.
    pub fn gone(&self) -> Result<Option<TaskId>> {
        Ok(self.short(GONE)?.checked_sub(1).map(TaskId))
    }

    fn short(&self, name: &str) -> Result<u32> {
        let word = self.read(name)?.first_chunk::<4>().copied();
        Ok(word.map_or(0, u32::from_ne_bytes))
    }

    /// How many events were lost as the ring was full.
    pub fn losses(&self) -> Result<u64> {
        Ok(self.words(LOSSES)?.iter().sum())
    }

    /// How often domains have decided, all together.
    pub fn decisions(&self) -> Result<u64> {
        Ok(self.words(DECISIONS)?.iter().sum())
    }

    fn words(&self, name: &str) -> Result<Vec<u64>> {
        let bytes = self.read(name)?;
        let words = bytes.as_chunks::<8>().0;
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// Unloads the scheduler; all tasks are of the fair class again.
    pub fn detach(&mut self) {
        self.link = None;
    }
}

/// Calls one of the programs for a domain.
fn call(object: &Object, name: &str, domain: u32, what: &str) -> Result<()> {
    match is_on(object, name, domain, what)? {
        true => Ok(()),
        false => Err(failed(what, &"the run is over")),
    }
}

/// Calls one of the programs for a domain. `false`: the run is over.
fn is_on(object: &Object, name: &str, domain: u32, what: &str) -> Result<bool> {
    match test_run(object, name, &mut domain.to_ne_bytes(), what)? {
        0 => Ok(true),
        intf::IS_OVER => Ok(false),
        code => Err(failed(
            what,
            &format!("the program refuses it (step {code})"),
        )),
    }
}

/// Calls one of the programs. Returns what it says.
fn test_run(object: &Object, name: &str, request: &mut [u8], what: &str) -> Result<u32> {
    let found = object.progs_mut().find(|p| p.name() == OsStr::new(name));
    let program = found.ok_or_else(|| failed("use the program", &format!("it has no `{name}`")))?;
    let output = program.test_run(ProgramInput {
        context_in: Some(request),
        ..ProgramInput::default()
    });
    Ok(output.map_err(|e| failed(what, &e))?.return_value)
}

/// The program as it is known to a thread that hears triggers.
pub(crate) struct Asking<'a> {
    object: &'a Object,
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
            self.object,
            "warmset_trigger",
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
pub(crate) struct Finishing<'a>(&'a Object);

impl Finishing<'_> {
    /// The program of a task has done a job, as its page says, or has gone.
    ///
    /// # Errors
    /// The program is gone.
    pub fn finished(&self, task: TaskId) -> Result<()> {
        let mut request = task.0.to_ne_bytes();
        test_run(self.0, "warmset_finished", &mut request, "end a job").map(|_| ())
    }
}

/// The program as it is known to a thread that decides at quanta.
pub(crate) struct Deciding<'a> {
    object: &'a Object,
    /// By domain, `struct seen`.
    pub seen: Mapping,
    choices: Mapping,
}

impl Deciding<'_> {
    /// A quantum begins: what is due is released, and `seen` says what has happened. `false`: the
    /// run is over.
    pub fn quantum(&self, domain: u32) -> Result<bool> {
        is_on(self.object, "warmset_quantum", domain, "begin a quantum")
    }

    /// Has a choice carried out. `false`: the run is over.
    pub fn choose(&self, domain: u32, choice: &Choice) -> Result<bool> {
        let first = domain as usize * Choice::SIZE;
        for (place, word) in choice.words().enumerate() {
            let at = self.choices.word(first + 8 * place);
            at.store(word, Ordering::Release);
        }
        is_on(
            self.object,
            "warmset_choose",
            domain,
            "carry out a decision",
        )
    }
}
