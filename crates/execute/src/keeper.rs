//! The keeper of the programs of a run: starts them, looks after them, and sees that none is left.
//!
//! It belongs to the supervisor: an ordinary thread, so that it never takes a lock that a dispatcher may want for longer than it
//! takes to put a number down.

use crate::kernel;
use crate::pages::Pages;
use crate::procfs::{self, Identity};
use crate::program::{self, How, Launch, MARK, Program, ProgramEnd};
use crate::team::Team;
use model::{Error, Result, TaskId};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use warmset_task::shared::{is_closed, send};

/// How long programs have to end when they are told to.
const GRACE: Duration = Duration::from_millis(1500);
/// How long they have to ask for their first job.
const JOINING: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Kept {
    task: u32,
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
            None => program::ended(self.process).map(|status| match libc::WIFEXITED(status) {
                true => How::Exited(libc::WEXITSTATUS(status)),
                false => How::Signal(libc::WTERMSIG(status)),
            }),
        }
    }
}

/// Where programs come in that somebody else has started: a socket, gone when this is.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Opens it at a path where nothing is.
    ///
    /// # Errors
    /// Something is there, or nothing can be.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let failed = |e: std::io::Error| {
            Error::new(format!("cannot listen: {e}"))
                .at(path.display())
                .remedy("give a path in a directory that is there, where no file is")
        };
        let listener = UnixListener::bind(&path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Door { listener, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Somebody who stands there, if anybody does.
    fn knock(&self) -> Option<UnixStream> {
        let (stream, _) = self.listener.accept().ok()?;
        let patience = Some(Duration::from_secs(1));
        stream.set_read_timeout(patience).ok()?;
        stream.set_write_timeout(patience).ok()?;
        Some(stream)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The children of this process, of whichever thread of it.
fn children() -> Vec<i32> {
    let (this, mut found) = (std::process::id() as i32, Vec::new());
    procfs::threads(this, |tid| procfs::children(this, tid, |child| found.push(child)));
    found
}

/// A short line.
fn first_line(mut stream: &UnixStream) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0u8];
    while line.len() < 4096 {
        stream.read_exact(&mut byte).ok()?;
        if byte[0] == b'\n' {
            return String::from_utf8(line).ok();
        }
        line.push(byte[0]);
    }
    None
}

/// The process at the other end.
fn peer(stream: &UnixStream) -> Option<i32> {
    // SAFETY: an all-zero `ucred` is valid; the kernel fills it in.
    let mut who: libc::ucred = unsafe { std::mem::zeroed() };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the place is as large as is said and lives through the call.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut who).cast(),
            &mut size,
        )
    };
    (done == 0).then_some(who.pid)
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
        let (process, program) = program::launch(launch, &mark, worker.name(), &team.belfry)
            .map_err(|e| e.at(format!("task {}", worker.name())))?;
        self.programs.push(Kept {
            task,
            process,
            command,
            processes: Identity::of(process).into_iter().collect(),
            door: None,
            ended: None,
        });
        if let Some(known) = Identity::of(process) {
            team.board.know(known, None)?;
        }
        // Before the run it runs on one processor, too.
        program.pin(team.posts[0].cpu).map_err(|e| {
            Error::new(format!("cannot move its program: {e}")).at(format!("task {}", worker.name()))
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
        team: &Team,
        outside: &[(u32, Arc<Door>)],
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let until = Instant::now() + JOINING;
        loop {
            for (_, door) in outside {
                if let Some(stream) = door.knock() {
                    // Who is not wanted sees the door closed.
                    self.admit(team, outside, stream)?;
                }
            }
            self.look(team);
            if let Some(e) = team.fault() {
                return Err(e.clone());
            }
            let is_late = Instant::now() >= until;
            let mut missing = outside
                .iter()
                .any(|(task, _)| team.workers[*task as usize].program().is_none());
            for kept in &self.programs {
                let worker = &team.workers[kept.task as usize];
                let pages = worker.program().and_then(Program::pages);
                if pages.is_none_or(Pages::is_waiting) {
                    continue;
                }
                missing = true;
                let refuse = |cause: &str| {
                    Err(Error::new(format!("`{}` {cause}", kept.command))
                        .at(format!("task {}", worker.name()))
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

    /// Lets a process in that says which task it is. One that is not waited for is sent away.
    fn admit(&mut self, team: &Team, outside: &[(u32, Arc<Door>)], stream: UnixStream) -> Result<()> {
        let Some(name) = first_line(&stream) else {
            return Ok(());
        };
        let wanted = outside.iter().map(|(task, _)| *task).find(|task| {
            let worker = &team.workers[*task as usize];
            worker.name() == name && worker.program().is_none()
        });
        let (Some(task), Some(process)) = (wanted, peer(&stream)) else {
            return Ok(());
        };
        let pages = Pages::new()?;
        if send(&stream, &pages.files(&team.belfry)).is_err() {
            return Ok(());
        }
        let program = Program::guest(process, pages).map_err(|e| e.at(format!("task {name}")))?;
        let known = Identity::of(process);
        if let Some(known) = known {
            team.board.know(known, program.home())?;
        }
        program.pin(team.posts[0].cpu).map_err(|e| {
            Error::new(format!("cannot move process {process}: {e}")).at(format!("task {name}"))
        })?;
        team.workers[task as usize].perform(program);
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
    pub fn look(&mut self, team: &Team) {
        if self.programs.is_empty() {
            return;
        }
        for kept in &mut self.programs {
            let worker = &team.workers[kept.task as usize];
            let Some(program) = worker.program() else { continue };
            if kept.ended.is_none()
                && let Some(how) = kept.how()
            {
                program.gone.store(true, Ordering::Release);
                // Nothing rings for it any more.
                for place in 0..team.posts.len() {
                    team.belfry.bells.ring(place as u32);
                }
                let at = team.now();
                kept.ended = Some(ProgramEnd {
                    task: TaskId(kept.task),
                    how,
                    at,
                });
                if !matches!(how, How::Exited(0) | How::Left) {
                    team.fail(
                        Error::new(format!("its program `{}` {how} at {at}", kept.command))
                            .at(format!("task {}", worker.name()))
                            .remedy("see what it wrote; start it by hand once"),
                    );
                }
            }
            if program.free.load(Ordering::Acquire) {
                kept.processes
                    .iter()
                    .for_each(|process| team.board.forget(*process));
                kept.processes.clear();
                continue;
            }
            let before = kept.processes.clone();
            let mut untidy = program.look(&mut kept.processes);
            let (now, home) = (&kept.processes, program.home());
            for process in before.iter().filter(|p| !now.contains(p)) {
                team.board.forget(*process);
            }
            for process in now.iter().filter(|p| !before.contains(p)) {
                if let Err(e) = team.board.know(*process, home) {
                    team.fail(e.at(format!("task {}", worker.name())));
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
    fn adopt_orphans(&mut self, team: &Team) {
        let children = children();
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
                Some((_, group)) if !self.orphans.contains(&child) => {
                    let run = &self.mark;
                    // Whoever has put the mark out of its environment is in its group all the same, until it leaves that, too.
                    let whose = self.programs.iter_mut().find(|p| {
                        let mark = format!("{MARK}={run}{}\0", p.task);
                        p.is_group(group) || procfs::has_in_environment(child, mark.as_bytes())
                    });
                    if let Some(kept) = whose {
                        // Most were seen while they had their parents.
                        let is_known = kept.processes.iter().any(|p| p.process == child);
                        if let Some(known) = Identity::of(child).filter(|_| !is_known) {
                            kept.processes.push(known);
                            if let Err(e) = team.board.know(known, None) {
                                team.fail(e);
                            }
                        }
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
        for process in self.programs.iter().flat_map(|p| &p.processes) {
            team.board.forget(*process);
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
            team.board.ordinary();
            // Signal 0 is sent to nobody: it only counts. Who ends behind the count is found by the reaping.
            let alive = self.signal(team, &mark, 0);
            if self.reap(at, How::Told) && alive == 0 {
                break;
            }
            if Instant::now() >= until {
                self.kill(team, at, &mark);
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to all processes of the run that are alive, and remembers them; how many there are.
    fn signal(&mut self, team: &Team, mark: &str, signal: i32) -> usize {
        let (mut found, orphans) = (Vec::new(), &mut self.orphans);
        // Orphans come to this process.
        let this = std::process::id() as i32;
        program::signal_marked(mark.as_bytes(), Some(this), signal, |process| found.push(process));
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
            if let Some(program) = team.workers[kept.task as usize].program() {
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
        found.len()
    }

    /// Waits for whoever has ended; is nobody of the run a child of this process any more?
    fn reap(&mut self, at: model::Instant, how: How) -> bool {
        for kept in &mut self.programs {
            // Who came from outside goes on, as an ordinary process.
            if kept.ended.is_none() && (kept.door.is_some() || program::ended(kept.process).is_some()) {
                let task = TaskId(kept.task);
                kept.ended = Some(ProgramEnd { task, how, at });
            }
        }
        let mut children = children();
        // How the first process of a program ended is asked above: whoever asks here would take the answer away.
        children.retain(|child| self.programs.iter().all(|p| p.process != *child));
        let mut all = self.programs.iter().all(|p| p.ended.is_some());
        for child in children {
            let group = procfs::state(child).map(|(_, group)| group);
            let kept = self.programs.iter().find(|p| group == Some(p.process));
            if self.orphans.contains(&child) || kept.is_some() {
                // Between its memory and its end a process is neither alive, by its environment, nor to be waited for.
                // What belongs to a program from outside goes on with that.
                let goes_on = kept.is_some_and(|p| p.door.is_some());
                all &= program::ended(child).is_some() || goes_on;
            }
        }
        all
    }

    /// Kills whoever is left, again and again until nobody is.
    fn kill(&mut self, team: &Team, at: model::Instant, mark: &str) {
        let until = kernel::monotonic() + 5_000_000_000;
        while kernel::monotonic() < until {
            team.board.ordinary();
            for kept in self
                .programs
                .iter()
                .filter(|p| p.ended.is_none() && p.door.is_none())
            {
                // SAFETY: a group of our own making, whose first process is not waited for yet.
                unsafe { libc::kill(-kept.process, libc::SIGKILL) };
            }
            let alive = self.signal(team, mark, libc::SIGKILL);
            if self.reap(at, How::Forced) && alive == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
