//! The keeper of the programs of a run: starts them, looks after them, and sees that none is left.
//!
//! It belongs to the supervisor: an ordinary thread, so that it never takes a lock that a
//! dispatcher may want for longer than it takes to put a number down.

mod ending;

use crate::programs::ends::{How, ProgramEnd, ended};
use crate::programs::joining::{Caller, Callers, JoinSocket};
use crate::programs::launch::{self, Launch, Marked};
use crate::programs::marks::{self, MARK};
use crate::programs::pages::Pages;
use crate::programs::procfs::{self, Identity};
use crate::programs::program::Program;
use crate::programs::rights::Limit;
use crate::programs::run::Run;
use model::{Error, Result, TaskId};
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use warmset_task::shared::{is_closed, send};

/// To look through directories below each other, and one more.
const SPARE: usize = 4;
/// How long they have to ask for their first job.
const JOINING: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct TaskProgram {
    task: TaskId,
    process: i32,
    command: String,
    /// Its processes that were alive at the last look, its first one among them.
    processes: Vec<Identity>,
    /// Its connection to the socket by which it joined, if it came from outside.
    connection: Option<UnixStream>,
    /// Has its first process been waited for?
    ended: Option<ProgramEnd>,
}

impl TaskProgram {
    /// Is this the group that was made for it? One from outside is in a group of somebody else's
    /// making.
    fn is_group(&self, group: i32) -> bool {
        self.connection.is_none() && self.process == group
    }

    /// How it has ended, if it has.
    fn how(&self) -> Option<How> {
        match &self.connection {
            Some(connection) => is_closed(connection).then_some(How::Left),
            None => ended(self.process).map(|status| match libc::WIFEXITED(status) {
                true => How::Exited(libc::WEXITSTATUS(status)),
                false => How::Signal(libc::WTERMSIG(status)),
            }),
        }
    }
}

/// The children of this process, of whichever thread of it.
fn children() -> Vec<i32> {
    let (this, mut found) = (std::process::id() as i32, Vec::new());
    procfs::threads(this, |tid| {
        procfs::children(this, tid, |child| found.push(child))
    });
    found
}

/// Has a process, which may have ended, the limits of this run?
fn is_of(run: &dyn Run, process: i32) -> bool {
    marks::owner_to_the_end(process).is_some_and(|owner| owner.run == run.board().number())
}

/// Keeps programs.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// What all processes of this run carry in their environment.
    mark: String,
    programs: Vec<TaskProgram>,
    /// Orphans that are known already.
    orphans: Vec<i32>,
    /// Was this process a subreaper before?
    before: Option<bool>,
    /// Descriptors for the end of the run, which has to find all processes even where there are no
    /// more to be had.
    spare: Vec<OwnedFd>,
}

impl Keeper {
    /// For a run whose processes carry this mark.
    pub fn new(mark: String) -> Self {
        // What an earlier run was short of is no matter of this one.
        drop(procfs::shortage());
        Keeper {
            mark,
            programs: Vec::new(),
            orphans: Vec::new(),
            before: None,
            spare: Vec::new(),
        }
    }

    fn mark_of(&self, task: TaskId) -> String {
        format!("{}{}", self.mark, task.0)
    }

    /// From now on processes that lose their parents come to this process, if they descend from it.
    pub fn take_orphans(&mut self) {
        if self.before.is_none() {
            // Every kernel that this runs on knows of it.
            let before = rustix::process::child_subreaper();
            let _ = rustix::process::set_child_subreaper(Some(Pid::INIT));
            self.before = Some(before.is_ok_and(|before| before.is_some()));
        }
    }

    /// Sets descriptors aside.
    fn spare(&mut self) -> Result<()> {
        while self.spare.len() < SPARE {
            let file = std::fs::File::open("/dev/null").map_err(|e| {
                Error::new(format!("cannot look after programs: {e}"))
                    .remedy("give it more files with `ulimit -n`")
            })?;
            self.spare.push(file.into());
        }
        Ok(())
    }

    /// Starts the program of a task, which never runs for so long without sleeping.
    ///
    /// # Errors
    /// It cannot be started or held.
    pub fn launch(
        &mut self,
        run: &dyn Run,
        task: TaskId,
        launch: Launch,
        longest: model::Duration,
    ) -> Result<()> {
        if !procfs::tells_children() {
            if let Some(e) = procfs::shortage() {
                return Err(e);
            }
            return Err(
                Error::new("this kernel does not tell whose child a process is")
                    .remedy("use a kernel with CONFIG_PROC_CHILDREN, as distributions have it"),
            );
        }
        self.take_orphans();
        self.spare()?;
        let command = launch.command.join(" ");
        let mark = self.mark_of(task);
        let by = Marked {
            mark: &mark,
            name: run.name(task),
            limit: Limit::new(longest, task.0, run.board().number()),
            group: run.board().group(),
        };
        let (process, program) = launch::launch(launch, &by, run.bells())
            .map_err(|e| e.at(format!("task {}", run.name(task))))?;
        self.programs.push(TaskProgram {
            task,
            process,
            command,
            processes: Identity::of(process).into_iter().collect(),
            connection: None,
            ended: None,
        });
        if let Some(known) = Identity::of(process) {
            run.board().know(known, None)?;
        }
        // Before the run it runs on one processor, too.
        if let Some(cpu) = run.first_cpu() {
            program.pin(cpu).map_err(|e| {
                Error::new(format!("cannot move its program: {e}"))
                    .at(format!("task {}", run.name(task)))
            })?;
        }
        if program.pages().is_some() {
            program.release();
        }
        run.perform(task, program);
        Ok(())
    }

    /// Waits until all programs that were written for it have asked for their first job, those of
    /// `outside` after they have joined through their socket. `stopped`: the user does not want to
    /// wait any more.
    ///
    /// # Errors
    /// One of them ended before, or did not ask within ten seconds after it was started.
    pub fn gather(
        &mut self,
        run: &dyn Run,
        outside: &[(TaskId, Arc<JoinSocket>)],
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let until = Instant::now() + JOINING;
        let mut sockets: Vec<(&Arc<JoinSocket>, Callers)> = Vec::new();
        for (_, socket) in outside {
            if !sockets.iter().any(|(known, _)| Arc::ptr_eq(known, socket)) {
                sockets.push((socket, Callers::default()));
            }
        }
        loop {
            for (socket, callers) in &mut sockets {
                for caller in callers.listen(socket)? {
                    self.admit(run, outside, caller)?;
                }
            }
            self.look(run);
            if let Some(e) = run.fault() {
                return Err(e.clone());
            }
            let is_late = Instant::now() >= until;
            let mut missing = outside.iter().any(|(task, _)| run.program(*task).is_none());
            for kept in &self.programs {
                let pages = run.program(kept.task).and_then(Program::pages);
                if pages.is_none_or(Pages::is_waiting) {
                    continue;
                }
                missing = true;
                let refuse = |cause: &str| {
                    Err(Error::new(format!("`{}` {cause}", kept.command))
                        .at(format!("task {}", run.name(kept.task)))
                        .remedy(
                            "let it join and wait (`warmset.h`), or run it as it is: `exec = […]`",
                        ))
                };
                if kept.ended.is_some() {
                    return refuse("ended before it asked for its first job");
                }
                if is_late && kept.connection.is_none() {
                    return refuse("did not ask for its first job within 10 s");
                }
            }
            if !missing {
                return Ok(());
            }
            if stopped() {
                return Err(Error::new("stopped before the run began"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets a process in that has said which task it is. One that is not waited for is sent away:
    /// it sees its connection closed.
    fn admit(
        &mut self,
        run: &dyn Run,
        outside: &[(TaskId, Arc<JoinSocket>)],
        caller: Caller,
    ) -> Result<()> {
        let Caller {
            name,
            process,
            stream,
        } = caller;
        let wanted = outside
            .iter()
            .map(|(task, _)| *task)
            .find(|task| run.name(*task) == name && run.program(*task).is_none());
        // A process does the jobs of one task.
        let is_here = self.programs.iter().any(|p| p.process == process);
        let Some(task) = wanted.filter(|_| !is_here) else {
            return Ok(());
        };
        let pages = Pages::new()?;
        if send(&stream, &pages.files(run.bells())).is_err() {
            return Ok(());
        }
        let program = Program::guest(process, pages).map_err(|e| e.at(format!("task {name}")))?;
        let known = Identity::of(process);
        if let Some(known) = known {
            run.board().know(known, program.home())?;
        }
        if let Some(cpu) = run.first_cpu() {
            program.pin(cpu).map_err(|e| {
                Error::new(format!("cannot move process {process}: {e}")).at(format!("task {name}"))
            })?;
        }
        run.perform(task, program);
        self.programs.push(TaskProgram {
            task,
            process,
            command: format!("process {process}"),
            processes: known.into_iter().collect(),
            connection: Some(stream),
            ended: None,
        });
        Ok(())
    }

    /// Looks once: who has ended, who was born, who lost its parents. A program that failed ends
    /// the run.
    pub fn look(&mut self, run: &dyn Run) {
        if self.before.is_none() && self.programs.is_empty() {
            return;
        }
        if let Some(e) = procfs::shortage() {
            run.fail(e);
        }
        for kept in &mut self.programs {
            let Some(program) = run.program(kept.task) else {
                continue;
            };
            if kept.ended.is_none()
                && let Some(how) = kept.how()
            {
                program.gone.store(true, Ordering::Release);
                // Nothing rings for it any more.
                run.ring_all();
                let at = run.now();
                kept.ended = Some(ProgramEnd {
                    task: kept.task,
                    how,
                    at,
                });
                if !matches!(how, How::Exited(0) | How::Left) {
                    run.fail(
                        Error::new(format!("its program `{}` {how} at {at}", kept.command))
                            .at(format!("task {}", run.name(kept.task)))
                            .remedy("see what it wrote; start it by hand once"),
                    );
                }
            }
            if program.free.load(Ordering::Acquire) {
                kept.processes
                    .iter()
                    .for_each(|process| run.board().forget(*process));
                kept.processes.clear();
                continue;
            }
            let before = kept.processes.clone();
            let mut untidy = program.look(&mut kept.processes);
            let (now, home) = (&kept.processes, program.home());
            for process in before.iter().filter(|p| !now.contains(p)) {
                run.board().forget(*process);
            }
            for process in now.iter().filter(|p| !before.contains(p)) {
                if let Err(e) = run.board().know(*process, home) {
                    run.fail(e.at(format!("task {}", run.name(kept.task))));
                }
            }
            if home.is_some() && kept.ended.is_some() {
                // Whoever has left is let go by its dispatcher.
                program.stale.store(true, Ordering::Release);
                untidy = true;
            }
            if untidy {
                run.tidy(kept.task);
            }
        }
        self.adopt_orphans(run);
    }

    /// Children of this process that carry the mark and were not started by it.
    fn adopt_orphans(&mut self, run: &dyn Run) {
        // The next look does it, where a best-effort program is being started.
        let Ok(hired) = run.hired().try_lock() else {
            return;
        };
        let mut children = children();
        children.retain(|child| !hired.contains(child));
        drop(hired);
        self.orphans.retain(|orphan| children.contains(orphan));
        for child in children {
            if self.programs.iter().any(|p| p.process == child) {
                continue;
            }
            match procfs::state(child) {
                // Waited for, if it was one of ours: by its group, as it has no environment any
                // more.
                Some((b'Z', group))
                    if self.orphans.contains(&child)
                        || self.programs.iter().any(|p| p.process == group)
                        || is_of(run, child) =>
                {
                    ended(child);
                }
                Some((b'Z', _)) => {}
                Some((_, group)) if !self.orphans.contains(&child) => {
                    let mark_of_run = &self.mark;
                    // Whoever has put the mark out of its environment and left the group of its
                    // program has that program's limits.
                    let owner =
                        marks::owner(child).filter(|owner| owner.run == run.board().number());
                    let number = owner.and_then(|owner| owner.number);
                    let whose = self.programs.iter_mut().find(|p| {
                        let mark = format!("{MARK}={mark_of_run}{}\0", p.task.0);
                        p.is_group(group)
                            || number == Some(p.task.0)
                            || procfs::has_in_environment(child, mark.as_bytes())
                    });
                    if let Some(kept) = whose {
                        // Most were seen while they had their parents.
                        let is_known = kept.processes.iter().any(|p| p.process == child);
                        if let Some(known) = Identity::of(child).filter(|_| !is_known) {
                            kept.processes.push(known);
                            if let Err(e) = run.board().know(known, None) {
                                run.fail(e);
                            }
                        }
                        self.orphans.push(child);
                        if let Some(program) = run.program(kept.task) {
                            program.adopt(child);
                            run.tidy(kept.task);
                        }
                    } else if owner.is_some() {
                        // Of best-effort work, or one that has changed its limits: it ends with the
                        // run.
                        self.orphans.push(child);
                    }
                }
                _ => {}
            }
        }
    }

    fn of(&self, task: TaskId) -> Option<&TaskProgram> {
        self.programs.iter().find(|kept| kept.task == task)
    }

    /// The first process of the program of a task.
    pub fn first_process(&self, task: TaskId) -> Option<i32> {
        self.of(task).map(|kept| kept.process)
    }

    /// The threads of the program of a task, as they are now, of processes that were alive at the
    /// last look.
    pub fn threads(&self, task: TaskId) -> Vec<i32> {
        let mut threads = Vec::new();
        for known in self.of(task).iter().flat_map(|kept| &kept.processes) {
            procfs::threads(known.process, |thread| threads.push(thread));
        }
        threads
    }

    /// How many programs have ended.
    pub fn ended(&self) -> usize {
        self.programs.iter().filter(|p| p.ended.is_some()).count()
    }
}
