//! The keeper of the programs of a run: starts them, looks after them, and sees that none is left.
//!
//! It belongs to the supervisor: an ordinary thread, so that it never takes a lock that a dispatcher may want for longer than it
//! takes to put a number down.

use crate::kernel;
use crate::programs::ends::{How, ProgramEnd, ended};
use crate::programs::joining::{Caller, Callers, Door};
use crate::programs::launch::{self, Launch, Marked};
use crate::programs::marks::{self, MARK, Mark};
use crate::programs::pages::Pages;
use crate::programs::procfs::{self, Identity};
use crate::programs::program::Program;
use crate::programs::rights::{Limit, Owner};
use crate::threads::host::ThreadTeam;
use model::{Error, Result, TaskId};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use warmset_task::shared::{is_closed, send};

/// How long programs have to end when they are told to.
const GRACE: Duration = Duration::from_millis(1500);
/// To look through directories below each other, and one more.
const SPARE: usize = 4;
/// How long they have to ask for their first job.
const JOINING: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Kept {
    task: TaskId,
    process: i32,
    command: String,
    /// Its processes that were alive at the last look, its first one among them.
    processes: Vec<Identity>,
    /// Where it came through, if from outside.
    door: Option<UnixStream>,
    /// Has its first process been waited for?
    ended: Option<ProgramEnd>,
}

impl Kept {
    /// Is this the group that was made for it? One from outside is in a group of somebody else's making.
    fn is_group(&self, group: i32) -> bool {
        self.door.is_none() && self.process == group
    }

    /// How it has ended, if it has.
    fn how(&self) -> Option<How> {
        match &self.door {
            Some(door) => is_closed(door).then_some(How::Left),
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
    procfs::threads(this, |tid| procfs::children(this, tid, |child| found.push(child)));
    found
}

/// Has a process, which may have ended, the limits of this run?
fn is_of(team: &ThreadTeam, process: i32) -> bool {
    marks::owner_to_the_end(process).is_some_and(|owner| owner.run == team.host.board.number())
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
            let mut before = 0;
            // SAFETY: the first call writes to a place that lives through it, the second has no
            // pointers.
            unsafe {
                libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &mut before);
                libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
            }
            self.before = Some(before);
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
        team: &ThreadTeam,
        task: TaskId,
        launch: Launch,
        longest: model::Duration,
    ) -> Result<()> {
        if !procfs::tells_children() {
            if let Some(e) = procfs::shortage() {
                return Err(e);
            }
            return Err(Error::new("this kernel does not tell whose child a process is")
                .remedy("use a kernel with CONFIG_PROC_CHILDREN, as distributions have it"));
        }
        self.take_orphans();
        self.spare()?;
        let worker = &team.host.worker(task);
        let command = launch.command.join(" ");
        let mark = self.mark_of(task);
        let by = Marked {
            mark: &mark,
            name: team.name(task),
            limit: Limit::new(longest, task.0, team.host.board.number()),
            group: team.host.board.group(),
        };
        let (process, program) = launch::launch(launch, &by, &team.host.belfry)
            .map_err(|e| e.at(format!("task {}", team.name(task))))?;
        self.programs.push(Kept {
            task,
            process,
            command,
            processes: Identity::of(process).into_iter().collect(),
            door: None,
            ended: None,
        });
        if let Some(known) = Identity::of(process) {
            team.host.board.know(known, None)?;
        }
        // Before the run it runs on one processor, too.
        program.pin(team.posts[0].cpu).map_err(|e| {
            Error::new(format!("cannot move its program: {e}")).at(format!("task {}", team.name(task)))
        })?;
        if program.pages().is_some() {
            program.release();
        }
        worker.perform(program);
        Ok(())
    }

    /// Waits until all programs that were written for it have asked for their first job, those of `outside` after they have
    /// come through their door. `stopped`: the user does not want to wait any more.
    ///
    /// # Errors
    /// One of them ended before, or did not ask within ten seconds after it was started.
    pub fn gather(
        &mut self,
        team: &ThreadTeam,
        outside: &[(TaskId, Arc<Door>)],
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let until = Instant::now() + JOINING;
        let mut doors: Vec<(&Arc<Door>, Callers)> = Vec::new();
        for (_, door) in outside {
            if !doors.iter().any(|(known, _)| Arc::ptr_eq(known, door)) {
                doors.push((door, Callers::default()));
            }
        }
        loop {
            for (door, callers) in &mut doors {
                for caller in callers.listen(door)? {
                    self.admit(team, outside, caller)?;
                }
            }
            self.look(team);
            if let Some(e) = team.fault() {
                return Err(e.clone());
            }
            let is_late = Instant::now() >= until;
            let mut missing = outside
                .iter()
                .any(|(task, _)| team.host.worker(*task).program().is_none());
            for kept in &self.programs {
                let worker = &team.host.worker(kept.task);
                let pages = worker.program().and_then(Program::pages);
                if pages.is_none_or(Pages::is_waiting) {
                    continue;
                }
                missing = true;
                let refuse = |cause: &str| {
                    Err(Error::new(format!("`{}` {cause}", kept.command))
                        .at(format!("task {}", team.name(kept.task)))
                        .remedy("let it join and wait (`warmset.h`), or run it as it is: `exec = […]`"))
                };
                if kept.ended.is_some() {
                    return refuse("ended before it asked for its first job");
                }
                if is_late && kept.door.is_none() {
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
    fn admit(&mut self, team: &ThreadTeam, outside: &[(TaskId, Arc<Door>)], caller: Caller) -> Result<()> {
        let Caller {
            name,
            process,
            stream,
        } = caller;
        let wanted = outside.iter().map(|(task, _)| *task).find(|task| {
            let worker = &team.host.worker(*task);
            team.name(*task) == name && worker.program().is_none()
        });
        // A process does the jobs of one task.
        let is_here = self.programs.iter().any(|p| p.process == process);
        let Some(task) = wanted.filter(|_| !is_here) else {
            return Ok(());
        };
        let pages = Pages::new()?;
        if send(&stream, &pages.files(&team.host.belfry)).is_err() {
            return Ok(());
        }
        let program = Program::guest(process, pages).map_err(|e| e.at(format!("task {name}")))?;
        let known = Identity::of(process);
        if let Some(known) = known {
            team.host.board.know(known, program.home())?;
        }
        program.pin(team.posts[0].cpu).map_err(|e| {
            Error::new(format!("cannot move process {process}: {e}")).at(format!("task {name}"))
        })?;
        team.host.worker(task).perform(program);
        self.programs.push(Kept {
            task,
            process,
            command: format!("process {process}"),
            processes: known.into_iter().collect(),
            door: Some(stream),
            ended: None,
        });
        Ok(())
    }

    /// Looks once: who has ended, who was born, who lost its parents. A program that failed ends the run.
    pub fn look(&mut self, team: &ThreadTeam) {
        if self.before.is_none() && self.programs.is_empty() {
            return;
        }
        if let Some(e) = procfs::shortage() {
            team.fail(e);
        }
        for kept in &mut self.programs {
            let worker = &team.host.worker(kept.task);
            let Some(program) = worker.program() else { continue };
            if kept.ended.is_none()
                && let Some(how) = kept.how()
            {
                program.gone.store(true, Ordering::Release);
                // Nothing rings for it any more.
                for place in 0..team.posts.len() {
                    team.host.belfry.bells.ring(place as u32);
                }
                let at = team.now();
                kept.ended = Some(ProgramEnd {
                    task: kept.task,
                    how,
                    at,
                });
                if !matches!(how, How::Exited(0) | How::Left) {
                    team.fail(
                        Error::new(format!("its program `{}` {how} at {at}", kept.command))
                            .at(format!("task {}", team.name(kept.task)))
                            .remedy("see what it wrote; start it by hand once"),
                    );
                }
            }
            if program.free.load(Ordering::Acquire) {
                kept.processes
                    .iter()
                    .for_each(|process| team.host.board.forget(*process));
                kept.processes.clear();
                continue;
            }
            let before = kept.processes.clone();
            let mut untidy = program.look(&mut kept.processes);
            let (now, home) = (&kept.processes, program.home());
            for process in before.iter().filter(|p| !now.contains(p)) {
                team.host.board.forget(*process);
            }
            for process in now.iter().filter(|p| !before.contains(p)) {
                if let Err(e) = team.host.board.know(*process, home) {
                    team.fail(e.at(format!("task {}", team.name(kept.task))));
                }
            }
            if home.is_some() && kept.ended.is_some() {
                // Whoever has left is let go by its dispatcher.
                program.stale.store(true, Ordering::Release);
                untidy = true;
            }
            if untidy {
                team.tidy(kept.task);
            }
        }
        self.adopt_orphans(team);
    }

    /// Children of this process that carry the mark and were not started by it.
    fn adopt_orphans(&mut self, team: &ThreadTeam) {
        // The next look does it, where a best-effort program is being started.
        let Ok(hired) = team.host.hired.try_lock() else {
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
                // Waited for, if it was one of ours: by its group, as it has no environment any more.
                Some((b'Z', group))
                    if self.orphans.contains(&child)
                        || self.programs.iter().any(|p| p.process == group)
                        || is_of(team, child) =>
                {
                    ended(child);
                }
                Some((b'Z', _)) => {}
                Some((_, group)) if !self.orphans.contains(&child) => {
                    let run = &self.mark;
                    // Whoever has put the mark out of its environment and left the group of its
                    // program has that program's limits.
                    let owner = marks::owner(child).filter(|owner| owner.run == team.host.board.number());
                    let number = owner.and_then(|owner| owner.number);
                    let whose = self.programs.iter_mut().find(|p| {
                        let mark = format!("{MARK}={run}{}\0", p.task.0);
                        p.is_group(group)
                            || number == Some(p.task.0)
                            || procfs::has_in_environment(child, mark.as_bytes())
                    });
                    if let Some(kept) = whose {
                        // Most were seen while they had their parents.
                        let is_known = kept.processes.iter().any(|p| p.process == child);
                        if let Some(known) = Identity::of(child).filter(|_| !is_known) {
                            kept.processes.push(known);
                            if let Err(e) = team.host.board.know(known, None) {
                                team.fail(e);
                            }
                        }
                        self.orphans.push(child);
                        if let Some(program) = team.host.worker(kept.task).program() {
                            program.adopt(child);
                            team.tidy(kept.task);
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

    /// How many programs have ended.
    pub fn ended(&self) -> usize {
        self.programs.iter().filter(|p| p.ended.is_some()).count()
    }

    /// Ends all of them, whatever they do. Dispatchers and sentinels have ended before.
    pub fn end(&mut self, team: &ThreadTeam) -> Vec<ProgramEnd> {
        if team.host.board.has_programs() || !self.programs.is_empty() {
            self.end_all(team);
        }
        if let Some(before) = self.before.take() {
            // SAFETY: a call without pointers.
            unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, before) };
        }
        for process in self.programs.iter().flat_map(|p| &p.processes) {
            team.host.board.forget(*process);
        }
        let mut ends: Vec<ProgramEnd> = self.programs.iter().filter_map(|p| p.ended).collect();
        ends.sort_by_key(|e| e.task);
        ends
    }

    fn end_all(&mut self, team: &ThreadTeam) {
        self.spare.clear();
        let at = team.now();
        for kept in &self.programs {
            if let Some(program) = team.host.worker(kept.task).program() {
                program.dismiss(libc::SIGTERM);
            }
        }
        let until = Instant::now() + GRACE;
        let mut told = false;
        loop {
            team.host.board.ordinary();
            // Signal 0 is sent to nobody: it only counts. Who ends behind the count is found by the reaping.
            let alive = self.signal(team, 0);
            if !std::mem::replace(&mut told, true) {
                self.tell_unknown(&alive);
            }
            if self.reap(team, at, How::Told) && alive.is_empty() {
                return;
            }
            if Instant::now() >= until {
                self.kill(team, at);
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks those to end who belong to the run and to no program that was told: what best-effort
    /// work has left.
    fn tell_unknown(&self, alive: &[i32]) {
        let is_known = |process: i32| {
            let mut all = self.programs.iter().flat_map(|p| &p.processes);
            all.any(|known| known.process == process)
        };
        for process in alive.iter().filter(|process| !is_known(**process)) {
            // SAFETY: a call without pointers, to a process that was found to be of this run a
            // moment ago.
            unsafe { libc::kill(*process, libc::SIGTERM) };
        }
    }

    /// Sends a signal to all processes of the run that are alive, remembers and returns them.
    fn signal(&mut self, team: &ThreadTeam, signal: i32) -> Vec<i32> {
        let (mut found, orphans) = (Vec::new(), &mut self.orphans);
        // Orphans come to this process.
        let this = std::process::id() as i32;
        let text = format!("{MARK}={}", self.mark);
        let mark = Mark {
            text: text.as_bytes(),
            owner: Owner {
                run: team.host.board.number(),
                number: None,
            },
        };
        marks::signal_marked(mark, Some(this), signal, |process| found.push(process));
        // The kernel knows them best, where it was asked to.
        for process in team
            .host
            .board
            .group()
            .and_then(|group| group.processes().ok())
            .unwrap_or_default()
        {
            if !found.contains(&process) && procfs::state(process).is_some_and(|(state, _)| state != b'Z') {
                found.push(process);
                // SAFETY: a call without pointers, to a process that was in the group of this run a
                // moment ago.
                unsafe { libc::kill(process, signal) };
            }
        }
        // Whoever has put the mark out of its environment is in its group still, or was seen when it was born. A child that
        // nobody has waited for keeps its number.
        for child in children() {
            if let Some((state, group)) = procfs::state(child)
                && state != b'Z'
                && self.programs.iter().any(|p| p.is_group(group))
                && !found.contains(&child)
            {
                found.push(child);
                // SAFETY: a call without pointers.
                unsafe { libc::kill(child, signal) };
            }
        }
        for kept in self.programs.iter_mut().filter(|p| p.door.is_none()) {
            if let Some(program) = team.host.worker(kept.task).program() {
                program.look(&mut kept.processes);
            }
            for process in &kept.processes {
                let Identity { process, .. } = *process;
                let lives = procfs::state(process).is_some_and(|(state, _)| state != b'Z');
                if lives && !found.contains(&process) {
                    found.push(process);
                    // SAFETY: a call without pointers, to a process that was found to be of this run a moment ago.
                    unsafe { libc::kill(process, signal) };
                }
            }
        }
        for process in &found {
            if !orphans.contains(process) {
                orphans.push(*process);
            }
        }
        found
    }

    /// Waits for whoever has ended; is nobody of the run a child of this process any more?
    fn reap(&mut self, team: &ThreadTeam, at: model::Instant, how: How) -> bool {
        for kept in &mut self.programs {
            // Who came from outside goes on, as an ordinary process.
            if kept.ended.is_none() && (kept.door.is_some() || ended(kept.process).is_some()) {
                let task = kept.task;
                kept.ended = Some(ProgramEnd { task, how, at });
            }
        }
        let mut children = children();
        // How the first process of a program ended is asked above: whoever asks here would take the answer away.
        children.retain(|child| self.programs.iter().all(|p| p.process != *child));
        let hired = team.host.hired.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|child| !hired.contains(child));
        let mut all = self.programs.iter().all(|p| p.ended.is_some());
        for child in children {
            let group = procfs::state(child).map(|(_, group)| group);
            let kept = self.programs.iter().find(|p| group == Some(p.process));
            if self.orphans.contains(&child) || kept.is_some() || is_of(team, child) {
                // Between its memory and its end a process is neither alive, by its environment, nor to be waited for.
                // What belongs to a program from outside goes on with that.
                let goes_on = kept.is_some_and(|p| p.door.is_some());
                all &= ended(child).is_some() || goes_on;
            }
        }
        all
    }

    /// Kills whoever is left, again and again until nobody is.
    fn kill(&mut self, team: &ThreadTeam, at: model::Instant) {
        let until = kernel::monotonic() + 5_000_000_000;
        while kernel::monotonic() < until {
            team.host.board.ordinary();
            for kept in self
                .programs
                .iter()
                .filter(|p| p.ended.is_none() && p.door.is_none())
            {
                // SAFETY: a group of our own making, whose first process is not waited for yet.
                unsafe { libc::kill(-kept.process, libc::SIGKILL) };
            }
            let alive = self.signal(team, libc::SIGKILL);
            if self.reap(team, at, How::Forced) && alive.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
