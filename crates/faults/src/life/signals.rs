//! Signals at their moments: which processes they reach, when they are due, and how a command that
//! was stopped for long goes on.

use super::{Life, Pending, WATCHDOG};
use crate::family::{self, Process};
use crate::fault::{Signal, Target};
use crate::scenario::Outsider;
use crate::system;
use std::time::Instant;

impl Life<'_> {
    pub(super) fn was_sent(&self, signal: i32, to: Target) -> bool {
        self.lived.sent.contains(&(signal, to))
    }

    /// Numbers by which signals reach a target, if it is there.
    fn resolve(&mut self, target: Target) -> Option<i32> {
        let known = self.resolved.iter().find(|(known, _)| *known == target);
        if let Some((_, pid)) = known {
            let there = *pid < 0 || Process::find(*pid).is_some_and(|p| p.state != 'Z');
            return there.then_some(*pid);
        }
        let pid = self.look_for(target)?;
        self.resolved.push((target, pid));
        Some(pid)
    }

    fn look_for(&self, target: Target) -> Option<i32> {
        let gone = self.ended.is_some();
        match target {
            Target::Engine => (!gone).then_some(self.engine),
            // It leads a group of its own.
            Target::Group => (!gone).then_some(-self.engine),
            Target::Outsider => {
                let joins = |(_, o): &(&i32, &Outsider)| matches!(o, Outsider::Joins(_));
                self.outsiders.iter().find(joins).map(|(pid, _)| *pid)
            }
            Target::Watchdog | Target::Other(_) => {
                let others: Vec<Process> = match gone {
                    true => self.family(),
                    false => {
                        let below = family::below(self.engine);
                        below.into_iter().filter_map(Process::find).collect()
                    }
                };
                let (mut dogs, mut others): (Vec<_>, Vec<_>) = others
                    .into_iter()
                    .filter(|p| p.state != 'Z')
                    .partition(|p| p.name == WATCHDOG);
                let all = match target {
                    Target::Watchdog => &mut dogs,
                    _ => &mut others,
                };
                all.sort_by_key(|p| (p.began, p.pid));
                let at = match target {
                    Target::Other(number) => number as usize % all.len().max(1),
                    _ => 0,
                };
                all.get(at).map(|p| p.pid)
            }
        }
    }

    pub(super) fn send_what_is_due(&mut self) {
        let now = Instant::now();
        for at in 0..self.pending.len() {
            let Pending { signal, at: None } = self.pending[at] else {
                continue;
            };
            if self.resolve(signal.to).is_some() {
                self.pending[at].at = Some(Instant::now() + signal.after);
            }
        }
        let is_due = |p: &Pending| p.at.is_some_and(|at| at <= now);
        let due: Vec<Signal> = self
            .pending
            .iter()
            .filter(|p| is_due(p))
            .map(|p| p.signal)
            .collect();
        if due.is_empty() {
            return;
        }
        self.pending.retain(|p| !is_due(p));
        // All targets are looked for before the first signal: they are sent at one moment.
        let ready: Vec<_> = due.iter().map(|s| (*s, self.resolve(s.to))).collect();
        for (signal, pid) in ready {
            let Some(pid) = pid else { continue };
            if !system::send(pid, signal.number) {
                continue;
            }
            let life = self.began.elapsed().as_secs_f64();
            self.lived.notes += &format!(
                "{life:.4} s: signal {} to {} ({pid})\n",
                signal.number, signal.to
            );
            self.lived.sent.push((signal.number, signal.to));
            self.lived.reached = true;
            self.last_sent = Instant::now();
            let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
            self.stopped |= stops.contains(&signal.number);
        }
    }

    /// What was stopped for long, and what nobody watches that could end it, goes on again.
    pub(super) fn let_go_on(&mut self) {
        let over = self.stopped
            && self.last_sent.elapsed() > self.let_go_on_after
            && self.pending.is_empty();
        if !over {
            return;
        }
        self.stopped = false;
        let family = self.family();
        let engine = family.iter().find(|p| p.pid == self.engine);
        // One that was killed is a zombie until the engine goes on.
        let dog = family.iter().find(|p| p.name == WATCHDOG && p.state != 'Z');
        if let (Some(engine), Some(dog)) = (engine, dog)
            && engine.is_stopped()
            && !dog.is_stopped()
            // Before it takes real-time priority it keeps nobody waiting, and goes on when told to.
            && engine.has_urgent_thread()
        {
            let text = "the watchdog lets a run be that was stopped".to_owned();
            self.lived.wrong.push(("hang", text));
            self.tell(&family);
        }
        let outsiders = self.outsiders.keys().filter_map(|pid| Process::find(*pid));
        // A run holds its programs by stopping them, and ends them however they are.
        let others = family
            .iter()
            .filter(|p| dog.is_none() && p.pid != self.engine);
        let ours = engine.into_iter().chain(dog).chain(others).cloned();
        let all: Vec<Process> = ours.chain(outsiders).collect();
        for process in all.iter().filter(|p| p.is_stopped()) {
            system::send(process.pid, libc::SIGCONT);
            self.lived.let_go_on = true;
            self.lived.notes += &format!("{} ({}) goes on\n", process.pid, process.name);
        }
        if self.lived.let_go_on {
            self.began = Instant::now();
        }
    }
}
