//! The keeper of the programs of a run: starts them, looks after them, and sees that none is left.
//!
//! It belongs to the supervisor: an ordinary thread, so that it never takes a lock that a dispatcher may want for longer than it
//! takes to put a number down.

use crate::kernel;
use crate::procfs;
use crate::program::{self, How, Launch, MARK, ProgramEnd};
use crate::team::Team;
use model::{Error, Result, TaskId};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long programs have to end when they are told to.
const GRACE: Duration = Duration::from_millis(1500);

#[derive(Debug)]
struct Kept {
    task: u32,
    process: i32,
    command: String,
    /// Has its first process been waited for?
    ended: Option<ProgramEnd>,
}

/// Keeps programs.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// What all processes of this run carry in their environment.
    mark: String,
    programs: Vec<Kept>,
    /// Orphans that are known already.
    orphans: Vec<i32>,
    /// Was this process a subreaper before?
    before: Option<i32>,
}

impl Keeper {
    /// For a run whose processes carry this mark.
    pub fn new(mark: String) -> Self {
        Keeper {
            mark,
            programs: Vec::new(),
            orphans: Vec::new(),
            before: None,
        }
    }

    fn mark_of(&self, task: u32) -> String {
        format!("{}{task}", self.mark)
    }

    /// Starts the program of a task.
    ///
    /// # Errors
    /// It cannot be started or held.
    pub fn launch(&mut self, team: &Team, task: u32, launch: Launch) -> Result<()> {
        if !procfs::tells_children() {
            return Err(Error::new("this kernel does not tell whose child a process is")
                .remedy("use a kernel with CONFIG_PROC_CHILDREN, as distributions have it"));
        }
        if self.before.is_none() {
            let mut before = 0;
            // SAFETY: the first call writes to a place that lives through it, the second has no pointers. Orphans of programs
            // come to this process then.
            unsafe {
                libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &mut before);
                libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
            }
            self.before = Some(before);
        }
        let worker = &team.workers[task as usize];
        let command = launch.command.join(" ");
        let mark = self.mark_of(task);
        let (process, program) = program::launch(launch, &mark, worker.name())
            .map_err(|e| e.at(format!("task {}", worker.name())))?;
        self.programs.push(Kept {
            task,
            process,
            command,
            ended: None,
        });
        worker.perform(program);
        Ok(())
    }

    /// Looks once: who has ended, who was born, who lost its parents. A program that failed ends the run.
    pub fn look(&mut self, team: &Team) {
        if self.programs.is_empty() {
            return;
        }
        for kept in &mut self.programs {
            let worker = &team.workers[kept.task as usize];
            let Some(program) = worker.program() else { continue };
            if kept.ended.is_none()
                && let Some(status) = program::ended(kept.process)
            {
                program.gone.store(true, Ordering::Release);
                let how = if libc::WIFEXITED(status) {
                    How::Exited(libc::WEXITSTATUS(status))
                } else {
                    How::Signal(libc::WTERMSIG(status))
                };
                let at = team.now();
                kept.ended = Some(ProgramEnd {
                    task: TaskId(kept.task),
                    how,
                    at,
                });
                if how != How::Exited(0) {
                    team.fail(
                        Error::new(format!("its program `{}` {how} at {at}", kept.command))
                            .at(format!("task {}", worker.name()))
                            .remedy("see what it wrote; start it by hand once"),
                    );
                }
            }
            if program.look(kept.process) {
                team.tidy(kept.task);
            }
        }
        self.adopt_orphans(team);
    }

    /// Children of this process that carry the mark and were not started by it.
    fn adopt_orphans(&mut self, team: &Team) {
        let mut children = Vec::new();
        let this = std::process::id() as i32;
        procfs::threads(this, |tid| {
            procfs::children(this, tid, |child| children.push(child))
        });
        self.orphans.retain(|orphan| children.contains(orphan));
        for child in children {
            if self.programs.iter().any(|p| p.process == child) {
                continue;
            }
            match procfs::state(child) {
                // Waited for, if it was one of ours: by its group, as it has no environment any more.
                Some((b'Z', group))
                    if self.orphans.contains(&child) || self.programs.iter().any(|p| p.process == group) =>
                {
                    program::ended(child);
                }
                Some((b'Z', _)) => {}
                Some(_) if !self.orphans.contains(&child) => {
                    let whose = self.programs.iter().find(|p| {
                        let mark = format!("{MARK}={}\0", self.mark_of(p.task));
                        procfs::has_in_environment(child, mark.as_bytes())
                    });
                    if let Some(kept) = whose {
                        self.orphans.push(child);
                        if let Some(program) = team.workers[kept.task as usize].program() {
                            program.adopt(child);
                            team.tidy(kept.task);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// How many programs have ended.
    pub fn ended(&self) -> usize {
        self.programs.iter().filter(|p| p.ended.is_some()).count()
    }

    /// Ends all of them, whatever they do. Dispatchers and sentinels have ended before.
    pub fn end(&mut self, team: &Team) -> Vec<ProgramEnd> {
        if !self.programs.is_empty() {
            self.end_all(team);
        }
        if let Some(before) = self.before.take() {
            // SAFETY: a call without pointers.
            unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, before) };
        }
        let mut ends: Vec<ProgramEnd> = self.programs.iter().filter_map(|p| p.ended).collect();
        ends.sort_by_key(|e| e.task);
        ends
    }

    fn end_all(&mut self, team: &Team) {
        let at = team.now();
        for kept in &self.programs {
            if let Some(program) = team.workers[kept.task as usize].program() {
                program.dismiss(libc::SIGTERM);
            }
        }
        let until = Instant::now() + GRACE;
        let mark = format!("{MARK}={}", self.mark);
        loop {
            self.reap(at, How::Told);
            let waiting: bool = self.programs.iter().any(|p| p.ended.is_none());
            // Signal 0 is sent to nobody: it only counts.
            if self.signal(&mark, 0) == 0 && !waiting {
                break;
            }
            if Instant::now() >= until {
                self.kill(at, &mark);
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to all processes of the run that are alive, and remembers them; how many there are.
    fn signal(&mut self, mark: &str, signal: i32) -> usize {
        let (mut found, orphans) = (0, &mut self.orphans);
        program::signal_marked(mark.as_bytes(), signal, |process| {
            found += 1;
            if !orphans.contains(&process) {
                orphans.push(process);
            }
        });
        found
    }

    fn reap(&mut self, at: model::Instant, how: How) {
        for kept in &mut self.programs {
            if kept.ended.is_none() && program::ended(kept.process).is_some() {
                let task = TaskId(kept.task);
                kept.ended = Some(ProgramEnd { task, how, at });
            }
        }
        let mut children = Vec::new();
        let this = std::process::id() as i32;
        procfs::threads(this, |tid| {
            procfs::children(this, tid, |child| children.push(child))
        });
        for child in children {
            let ours = |(_, group)| self.programs.iter().any(|p| p.process == group);
            if self.orphans.contains(&child) || procfs::state(child).is_some_and(ours) {
                program::ended(child);
            }
        }
    }

    /// Kills whoever is left, again and again until nobody is.
    fn kill(&mut self, at: model::Instant, mark: &str) {
        let until = kernel::monotonic() + 5_000_000_000;
        while kernel::monotonic() < until {
            for kept in self.programs.iter().filter(|p| p.ended.is_none()) {
                // SAFETY: a group of our own making, whose first process is not waited for yet.
                unsafe { libc::kill(-kept.process, libc::SIGKILL) };
            }
            let left = self.signal(mark, libc::SIGKILL);
            self.reap(at, How::Forced);
            if left == 0 && self.programs.iter().all(|p| p.ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
