//! The threads of a program: of its first process and of all that descend from it, moved and raised
//! as one.
//!
//! **One processor at a time** (002 §4.4.2). All of its threads may run on one and the same
//! processor only. When they move, one after the other, those that have arrived must not run while
//! others still do: a dispatcher that is on the processor they leave or on the one they go to keeps
//! its own processor from them as long as it moves them; one that is on a third takes them all to
//! its own first, where none can run, and lets them go from there.
//!
//! **Nobody is forgotten.** What a thread starts inherits priority and processor. Every change is
//! made to all that are known, then to all that were born meanwhile, until a look finds that nobody
//! was: the kernel tells in one number whether anybody was born on the machine ([`Births`]), and
//! how many threads a process has. A birth that is under way in the kernel at that very moment is
//! seen by neither; the supervisor's own looks find it, and what was decided is done to it then.

use crate::kernel::{self, Processors, Thread};
use crate::programs::procfs::{self, Births};
use model::{CpuId, Error, Result};
use std::io;
use std::os::fd::OwnedFd;

/// Threads for which memory is set aside at the start.
const ROOM: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Member {
    thread: Thread,
    process: i32,
    /// The latest change that it has gone through.
    change: u64,
    /// The latest look that found it.
    look: u64,
}

#[derive(Debug)]
struct Process {
    id: i32,
    /// Its directory of threads; its number of links says how many there are.
    tasks: OwnedFd,
    links: u64,
    /// Processor time at the latest reading.
    time: u64,
    look: u64,
}

/// The threads of a program.
#[derive(Debug)]
pub(crate) struct Family {
    births: Births,
    born: i32,
    members: Vec<Member>,
    processes: Vec<Process>,
    change: u64,
    look: u64,
    /// The processor that they may run on.
    cpu: Option<CpuId>,
    /// Processor time of processes that have ended, in nanoseconds.
    before: u64,
}

#[allow(
    clippy::unnecessary_cast,
    reason = "it is narrower on other architectures"
)]
fn links(directory: &OwnedFd) -> u64 {
    // Where it fails the process has gone: no links.
    rustix::fs::fstat(directory).map_or(0, |stat| stat.st_nlink as u64)
}

impl Family {
    /// Of this process and its descendants.
    ///
    /// # Errors
    /// `/proc` is not there, or the process is not.
    pub fn of(process: i32) -> Result<Self> {
        let births = Births::open().ok_or_else(|| {
            procfs::shortage().unwrap_or_else(|| {
                Error::new("cannot read /proc/loadavg").remedy("mount /proc, as every Linux has it")
            })
        })?;
        let mut family = Family {
            born: births.last(),
            births,
            members: Vec::with_capacity(ROOM),
            processes: Vec::with_capacity(64),
            change: 0,
            look: 0,
            cpu: None,
            before: 0,
        };
        if !family.adopt(process) {
            return Err(procfs::shortage()
                .unwrap_or_else(|| Error::new(format!("process {process} has gone"))));
        }
        family.scan();
        Ok(family)
    }

    /// Takes a process in that descends from none of the known ones any more. False: it is there
    /// already, or has gone.
    pub fn adopt(&mut self, process: i32) -> bool {
        if self.processes.iter().any(|p| p.id == process) {
            return false;
        }
        match procfs::open_threads(process) {
            Some(tasks) => {
                self.processes.push(Process {
                    id: process,
                    tasks,
                    links: 0,
                    time: 0,
                    look: 0,
                });
                self.born = 0;
                true
            }
            None => false,
        }
    }

    /// How many threads are known.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Finds all threads and processes that there are now.
    fn scan(&mut self) {
        self.look += 1;
        let look = self.look;
        let mut at = 0;
        while at < self.processes.len() {
            let process = &mut self.processes[at];
            at += 1;
            let id = process.id;
            process.links = links(&process.tasks);
            let (mut found, members) = (false, &mut self.members);
            procfs::threads(id, |tid| {
                found = true;
                let thread = Thread(tid);
                match members
                    .iter_mut()
                    .find(|m| m.thread == thread && m.process == id)
                {
                    Some(member) => member.look = look,
                    None => members.push(Member {
                        thread,
                        process: id,
                        change: 0,
                        look,
                    }),
                }
            });
            if found {
                self.processes[at - 1].look = look;
            }
            for member in 0..self.members.len() {
                let Member {
                    thread, process, ..
                } = self.members[member];
                if process == id {
                    procfs::children(id, thread.0, |child| {
                        self.adopt(child);
                    });
                }
            }
        }
        if procfs::is_short() {
            // Who could not be looked for may be there: whom it concerns has to be let go at last.
            return;
        }
        self.members.retain(|m| m.look == look);
        let before = &mut self.before;
        self.processes.retain(|p| {
            if p.look != look {
                *before += p.time;
            }
            p.look == look
        });
    }

    /// Looks again if anybody may have been born. True if there is somebody new.
    fn look_for_births(&mut self) -> bool {
        let born = self.births.last();
        let same = |p: &Process| links(&p.tasks) == p.links;
        if born == self.born && self.processes.iter().all(same) {
            return false;
        }
        self.born = born;
        self.scan();
        self.members.iter().any(|m| m.change != self.change)
    }

    /// Does something to every thread, whoever is born meanwhile.
    fn each(&mut self, mut act: impl FnMut(Thread) -> io::Result<()>) -> io::Result<()> {
        self.look_for_births();
        self.change += 1;
        loop {
            for at in 0..self.members.len() {
                let member = self.members[at];
                if member.change == self.change {
                    continue;
                }
                match act(member.thread) {
                    // It has gone.
                    Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                    done => done?,
                }
                self.members[at].change = self.change;
            }
            if !self.look_for_births() {
                return Ok(());
            }
        }
    }

    /// Lets them run on one processor only.
    ///
    /// # Errors
    /// The processor is not permitted to them.
    pub fn pin(&mut self, cpu: CpuId) -> io::Result<()> {
        let here = machine::clock::current_cpu();
        if self.cpu != Some(here) && cpu != here && self.cpu != Some(cpu) && self.members.len() > 1
        {
            self.each(|thread| thread.pin(here))?;
        }
        self.cpu = Some(cpu);
        self.each(|thread| thread.pin(cpu))
    }

    /// Gives them a priority that they hand on. To run, each time another one is raised first: who
    /// is first runs first, and the kernel lets it run for a tenth of a second
    /// (sched_rr_timeslice_ms), which may be longer than any budget.
    ///
    /// # Errors
    /// No right to it.
    pub fn raise(&mut self, priority: i32) -> io::Result<()> {
        if priority == kernel::RUN && !self.members.is_empty() {
            self.members.rotate_left(1);
        }
        self.each(|thread| thread.raise_with_heirs(priority))
    }

    /// Makes them ordinary threads.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn lower(&mut self) -> io::Result<()> {
        self.each(Thread::lower)
    }

    /// Makes them ordinary threads that may run on these processors and go on, and knows them no
    /// more.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn let_go(&mut self, processors: &Processors) -> io::Result<()> {
        self.each(|thread| {
            thread.lower()?;
            thread.free(processors)
        })?;
        self.signal(libc::SIGCONT);
        self.before = self.time();
        self.members.clear();
        self.processes.clear();
        Ok(())
    }

    /// Sends a signal to every process.
    pub fn signal(&mut self, signal: libc::c_int) {
        self.look_for_births();
        let mut told = 0;
        loop {
            for process in &self.processes[told..] {
                kernel::kill(process.id, signal);
            }
            told = self.processes.len();
            // New ones are behind those that are known; some may have gone.
            if !self.look_for_births() || self.processes.len() <= told {
                return;
            }
        }
    }

    /// What all of them have used of processors, in nanoseconds.
    pub fn time(&mut self) -> u64 {
        let mut sum = self.before;
        for process in &mut self.processes {
            // A process that has gone has no clock: it used what was read last.
            process.time = process.time.max(sys::clock::of_process(process.id));
            sum += process.time;
        }
        sum
    }

    /// Does everything again that was done last, to whoever did not take part.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn repeat(&mut self, priority: Option<i32>) -> io::Result<()> {
        self.born = 0;
        let cpu = self.cpu;
        self.each(|thread| {
            if let Some(cpu) = cpu {
                thread.pin(cpu)?;
            }
            match priority {
                Some(priority) => thread.raise_with_heirs(priority),
                None => thread.lower(),
            }
        })
    }

    /// The processes, as they are known.
    #[cfg(test)]
    fn processes(&self) -> impl Iterator<Item = i32> {
        self.processes.iter().map(|p| p.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    /// A shell that starts children of its own and says when they are there.
    fn shell(script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (child, out)
    }

    #[test]
    fn children_and_their_children_belong_to_it_and_time_adds_up() {
        assert!(
            procfs::tells_children(),
            "programs cannot be run on a kernel without CONFIG_PROC_CHILDREN"
        );
        let script = "sh -c 'sleep 60 & i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo there; wait' & wait";
        let (mut child, mut out) = shell(script);
        let mut family = Family::of(child.id() as i32).unwrap();
        out.read_line(&mut String::new()).unwrap();
        assert!(family.look_for_births() || family.len() == 3);
        assert_eq!(family.len(), 3, "{family:?}");
        let used = family.time();
        assert!(used > 0);
        // All of them are on one processor, whoever is asked.
        let cpu = machine::clock::current_cpu();
        family.pin(cpu).unwrap();
        for process in family.processes() {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
            let list = status
                .lines()
                .find(|l| l.starts_with("Cpus_allowed_list"))
                .unwrap();
            assert_eq!(
                list.split_whitespace().last(),
                Some(cpu.0.to_string().as_str())
            );
        }
        family.signal(libc::SIGKILL);
        child.wait().unwrap();
        while family.len() > 0 {
            family.born = 0;
            family.look_for_births();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(family.time() >= used, "what has ended has still been used");
    }

    /// A process that starts threads as fast as it can, each of which starts another.
    #[test]
    fn a_change_reaches_those_who_are_born_meanwhile() {
        // In a process of its own: threads that come and go belong to nobody else. SAFETY: the
        // child only starts threads and sleeps, and is killed; that it hangs on a lock would be
        // found below.
        let child = unsafe { sys::process::fork() }.unwrap().unwrap_or(0);
        if child == 0 {
            fn spawn(depth: u32) {
                std::thread::spawn(move || {
                    if depth > 0 {
                        spawn(depth - 1);
                    }
                    std::thread::sleep(std::time::Duration::from_millis(3));
                });
            }
            loop {
                spawn(8);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        let mut family = Family::of(child).unwrap();
        let cpu = machine::clock::current_cpu();
        for _ in 0..20 {
            family.pin(cpu).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        // Whoever is there now was born after that, or was pinned: all are where they belong.
        let mut found = 0;
        procfs::threads(child, |tid| {
            let path = format!("/proc/{child}/task/{tid}/status");
            let Ok(status) = std::fs::read_to_string(path) else {
                return;
            };
            let list = status.lines().find(|l| l.starts_with("Cpus_allowed_list"));
            if let Some(list) = list {
                found += 1;
                assert_eq!(
                    list.split_whitespace().last(),
                    Some(cpu.0.to_string().as_str())
                );
            }
        });
        assert!(found > 0);
        kernel::kill(child, libc::SIGKILL);
        rustix::process::waitpid(
            rustix::process::Pid::from_raw(child),
            rustix::process::WaitOptions::empty(),
        )
        .unwrap();
    }
}
