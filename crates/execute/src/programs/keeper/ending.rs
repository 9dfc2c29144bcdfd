//! The end of a run for its programs: all of them end, whatever they do, and so does what they
//! started.

use super::{Keeper, children, is_of};
use crate::kernel;
use crate::programs::ends::{How, ProgramEnd, ended};
use crate::programs::marks::{self, MARK, Mark};
use crate::programs::procfs::{self, Identity};
use crate::programs::rights::Owner;
use crate::programs::run::Run;
use rustix::process::Pid;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How long programs have to end when they are told to.
const GRACE: Duration = Duration::from_millis(1500);

impl Keeper {
    /// Ends all of them, whatever they do. Dispatchers and sentinels have ended before.
    pub fn end(&mut self, run: &dyn Run) -> Vec<ProgramEnd> {
        if run.board().has_programs() || !self.programs.is_empty() {
            self.end_all(run);
        }
        if let Some(before) = self.before.take() {
            // Any number but 0 says yes.
            let _ = rustix::process::set_child_subreaper(before.then_some(Pid::INIT));
        }
        for process in self.programs.iter().flat_map(|p| &p.processes) {
            run.board().forget(*process);
        }
        let mut ends: Vec<ProgramEnd> = self.programs.iter().filter_map(|p| p.ended).collect();
        ends.sort_by_key(|e| e.task);
        ends
    }

    fn end_all(&mut self, run: &dyn Run) {
        self.spare.clear();
        let at = run.now();
        for kept in &self.programs {
            if let Some(program) = run.program(kept.task) {
                program.dismiss(libc::SIGTERM);
            }
        }
        let until = Instant::now() + GRACE;
        let mut told = false;
        loop {
            run.board().ordinary();
            // Signal 0 is sent to nobody: it only counts. Who ends behind the count is found by the
            // reaping.
            let alive = self.signal(run, 0);
            if !std::mem::replace(&mut told, true) {
                self.tell_unknown(&alive);
            }
            if self.reap(run, at, How::Told) && alive.is_empty() {
                return;
            }
            if Instant::now() >= until {
                self.kill(run, at);
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
            kernel::kill(*process, libc::SIGTERM);
        }
    }

    /// Sends a signal to all processes of the run that are alive, remembers and returns them.
    fn signal(&mut self, run: &dyn Run, signal: i32) -> Vec<i32> {
        let (mut found, orphans) = (Vec::new(), &mut self.orphans);
        // Orphans come to this process.
        let this = std::process::id() as i32;
        let text = format!("{MARK}={}", self.mark);
        let mark = Mark {
            text: text.as_bytes(),
            owner: Owner {
                run: run.board().number(),
                number: None,
            },
        };
        marks::signal_marked(mark, Some(this), signal, |process| found.push(process));
        // The kernel knows them best, where it was asked to.
        for process in run
            .board()
            .group()
            .and_then(|group| group.processes().ok())
            .unwrap_or_default()
        {
            if !found.contains(&process)
                && procfs::state(process).is_some_and(|(state, _)| state != b'Z')
            {
                found.push(process);
                kernel::kill(process, signal);
            }
        }
        // Whoever has put the mark out of its environment is in its group still, or was seen when
        // it was born. A child that nobody has waited for keeps its number.
        for child in children() {
            if let Some((state, group)) = procfs::state(child)
                && state != b'Z'
                && self.programs.iter().any(|p| p.is_group(group))
                && !found.contains(&child)
            {
                found.push(child);
                kernel::kill(child, signal);
            }
        }
        for kept in self.programs.iter_mut().filter(|p| p.connection.is_none()) {
            if let Some(program) = run.program(kept.task) {
                program.look(&mut kept.processes);
            }
            for process in &kept.processes {
                let Identity { process, .. } = *process;
                let lives = procfs::state(process).is_some_and(|(state, _)| state != b'Z');
                if lives && !found.contains(&process) {
                    found.push(process);
                    kernel::kill(process, signal);
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
    fn reap(&mut self, run: &dyn Run, at: model::Instant, how: How) -> bool {
        for kept in &mut self.programs {
            // Who came from outside goes on, as an ordinary process.
            if kept.ended.is_none() && (kept.connection.is_some() || ended(kept.process).is_some())
            {
                let task = kept.task;
                kept.ended = Some(ProgramEnd { task, how, at });
            }
        }
        let mut children = children();
        // How the first process of a program ended is asked above: whoever asks here would take the
        // answer away.
        children.retain(|child| self.programs.iter().all(|p| p.process != *child));
        let hired = run.hired().lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|child| !hired.contains(child));
        let mut all = self.programs.iter().all(|p| p.ended.is_some());
        for child in children {
            let group = procfs::state(child).map(|(_, group)| group);
            let kept = self.programs.iter().find(|p| group == Some(p.process));
            if self.orphans.contains(&child) || kept.is_some() || is_of(run, child) {
                // Between its memory and its end a process is neither alive, by its environment,
                // nor to be waited for. What belongs to a program from outside goes on with that.
                let goes_on = kept.is_some_and(|p| p.connection.is_some());
                all &= ended(child).is_some() || goes_on;
            }
        }
        all
    }

    /// Kills whoever is left, again and again until nobody is.
    fn kill(&mut self, run: &dyn Run, at: model::Instant) {
        let until = kernel::monotonic() + 5_000_000_000;
        while kernel::monotonic() < until {
            run.board().ordinary();
            for kept in self
                .programs
                .iter()
                .filter(|p| p.ended.is_none() && p.connection.is_none())
            {
                // A group of our own making, whose first process is not waited for yet.
                kernel::kill_group(kept.process, libc::SIGKILL);
            }
            let alive = self.signal(run, libc::SIGKILL);
            if self.reap(run, at, How::Forced) && alive.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
