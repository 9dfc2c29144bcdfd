//! The life of a command, from its start until nobody is left of it: signals are sent at their
//! moments, its system calls are answered, the dead are buried.

mod signals;

use crate::family::{self, Process};
use crate::fault::{Fault, Signal, Target};
use crate::filter::{Answers, Filter};
use crate::outsider;
use crate::plan::Trial;
use crate::room::{self, Room, WORK};
use crate::scenario::{Line, Outsider};
use crate::system::{self, Start};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, WaitOptions, WaitStatus, pidfd_open, wait, waitid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::PipeReader;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A command that takes longer hangs: its watchdog ends a run within four seconds, programs that
/// are written for it are awaited for ten, and the machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(45);
/// Looking for page colors takes that much longer at most.
const FOR_COLORS: Duration = Duration::from_secs(90);
/// After the command has ended, its other processes have so long.
const OTHERS: Duration = Duration::from_secs(12);
/// What was stopped is let go on after so long: the watchdog of a run should have ended it by then.
const STOPPED: Duration = Duration::from_secs(8);
/// The same where nobody watches.
const UNWATCHED: Duration = Duration::from_millis(500);
/// How often is looked who is there.
const TICK: Duration = Duration::from_millis(4);
/// Called so by the command.
const WATCHDOG: &str = "warmset-dog";

/// What came of it.
#[derive(Debug, Default)]
pub struct Lived {
    /// How the command ended; nothing where it did not begin, or was ended by the harness.
    pub status: Option<WaitStatus>,
    /// It could not even begin, for this reason.
    pub not_begun: Option<String>,
    /// Signals that were sent, each with its target.
    pub sent: Vec<(i32, Target)>,
    /// Was anything done to it?
    pub reached: bool,
    /// Standard error was kept from it.
    pub silenced: bool,
    /// It was stopped for so long that the harness let it go on.
    pub let_go_on: bool,
    /// What is wrong: the kind, and what exactly.
    pub wrong: Vec<(&'static str, String)>,
    /// What happened, for a report.
    pub notes: String,
    /// How many calls were made that might have failed.
    pub calls: u32,
}

struct Pending {
    signal: Signal,
    at: Option<Instant>,
}

struct Life<'a> {
    engine: i32,
    pidfd: OwnedFd,
    bystander: i32,
    outsiders: BTreeMap<i32, Outsider>,
    again: Vec<Outsider>,
    answers: Option<Answers>,
    /// What it says, where that is not kept in a file.
    words: Option<PipeReader>,
    pending: Vec<Pending>,
    resolved: Vec<(Target, i32)>,
    began: Instant,
    ended: Option<Instant>,
    last_sent: Instant,
    stopped: bool,
    let_go_on_after: Duration,
    patience: Duration,
    /// Is the harness above all others as long as the command lives?
    urgent: bool,
    stop: &'a AtomicBool,
    lived: Lived,
}

/// The user wants the harness to end.
#[derive(Debug)]
pub struct Stopped;

/// Lives a command line through. Whoever is left afterwards is killed, and told.
///
/// # Errors
/// [`Stopped`], with nobody left.
pub fn live(
    room: &Room,
    line: &Line,
    trial: &Trial,
    bystander: i32,
    stop: &AtomicBool,
) -> Result<Lived, Stopped> {
    let Trial { scenario, fault } = trial;
    // Next to ordinary commands an ordinary process is punctual enough.
    let urgent = scenario.is_urgent();
    let begun = system::rise(urgent)
        .map_err(|e| e.to_string())
        .and_then(|()| Life::begin(room, line, fault, bystander, stop));
    let mut life = match begun {
        Ok(life) => life,
        Err(why) => {
            // It may have begun, and is not awaited.
            end_everybody(bystander);
            return Ok(Lived {
                not_begun: Some(why),
                reached: true,
                ..Lived::default()
            });
        }
    };
    if scenario.needs_colors() {
        life.patience += FOR_COLORS;
    }
    if !scenario.has_watchdog() {
        life.let_go_on_after = UNWATCHED;
    }
    life.urgent = urgent;
    let done = life.until_nobody_is_left(room);
    life.end_all();
    done?;
    if let Some(Err(e)) = life.words.take().map(|pipe| room.keep_words(pipe)) {
        life.lived
            .wrong
            .push(("harness", format!("nothing heard: {e}")));
    }
    let left = room::left_instance(life.engine);
    life.lived
        .wrong
        .extend(left.map(|path| ("instance left", path)));
    life.lived.silenced = life.answers.as_ref().is_some_and(|a| a.silenced);
    life.lived.calls = life.answers.as_ref().map_or(0, |a| a.made);
    if let Some(answers) = &life.answers {
        life.lived.reached |= answers.failed > 0;
        for which in &answers.which {
            life.lived.notes += &format!("failed: {which}\n");
        }
    }
    life.lived.reached |= matches!(fault, Fault::Limit(..) | Fault::Disk(_) | Fault::Device);
    Ok(life.lived)
}

impl<'a> Life<'a> {
    fn begin(
        room: &Room,
        line: &Line,
        fault: &Fault,
        bystander: i32,
        stop: &'a AtomicBool,
    ) -> Result<Self, String> {
        let text = |e: std::io::Error| e.to_string();
        for (name, content) in &line.files {
            std::fs::write(Path::new(WORK).join(name), content).map_err(text)?;
        }
        let call = match fault {
            Fault::Call(call) => Some(*call),
            _ => None,
        };
        let start = Arc::new(Start {
            limit: match fault {
                Fault::Limit(limit, value) => Some((*limit, *value)),
                _ => None,
            },
            filter: call
                .map(|c| Filter::new(c.kind.calls))
                .transpose()
                .map_err(text)?,
        });
        let (mut command, words) = room
            .command(line, fault, Arc::clone(&start))
            .map_err(text)?;
        let began = Instant::now();
        // Its exit is waited for with that of all others.
        let engine = command.spawn().map_err(text)?.id() as i32;
        drop(command);
        let filter = Arc::into_inner(start).and_then(|start| start.filter);
        let answers = match (filter, call) {
            (Some(filter), Some(call)) => {
                let listener = filter.listener().map_err(text)?;
                Some(Answers::new(listener, call, &room.warmset))
            }
            _ => None,
        };
        let pid = Pid::from_raw(engine).ok_or("the command has no number")?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| e.to_string())?;
        let mut signals = match fault {
            Fault::Signals(signals) => signals.clone(),
            _ => Vec::new(),
        };
        signals.extend(line.ends_after_ms.map(|ms| Signal {
            number: libc::SIGINT,
            to: Target::Engine,
            after: Duration::from_millis(ms),
            of_its_life: false,
        }));
        let pending = signals.into_iter().map(|signal| Pending {
            signal,
            at: (!signal.of_its_life).then(|| began + signal.after),
        });
        let mut life = Life {
            engine,
            pidfd,
            bystander,
            outsiders: BTreeMap::new(),
            again: line.outsiders.clone(),
            answers,
            words,
            pending: pending.collect(),
            resolved: Vec::new(),
            began,
            ended: None,
            last_sent: began,
            stopped: false,
            let_go_on_after: STOPPED,
            patience: PATIENCE,
            urgent: false,
            stop,
            lived: Lived::default(),
        };
        life.start_outsiders(room).map_err(text)?;
        Ok(life)
    }

    fn start_outsiders(&mut self, room: &Room) -> std::io::Result<()> {
        for outsider in std::mem::take(&mut self.again) {
            let pid = outsider::start(room, &outsider, self.engine)?;
            self.outsiders.insert(pid, outsider);
        }
        Ok(())
    }

    /// All that descend from this process but the bystander and those from outside.
    fn family(&self) -> Vec<Process> {
        let mut except: BTreeSet<i32> = self.outsiders.keys().copied().collect();
        except.insert(self.bystander);
        family::descendants(std::process::id() as i32, &except)
    }

    fn until_nobody_is_left(&mut self, room: &Room) -> Result<(), Stopped> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped);
            }
            self.send_what_is_due();
            self.wait();
            self.bury();
            if let Err(e) = self.start_outsiders(room) {
                self.lived
                    .wrong
                    .push(("harness", format!("no outsider: {e}")));
            }
            self.let_go_on();
            let now = Instant::now();
            match self.ended {
                Some(ended) => {
                    let left = self.family();
                    if left.is_empty() && self.outsiders.is_empty() {
                        return Ok(());
                    }
                    if now > ended + OTHERS {
                        self.tell_of_left(&left);
                        return Ok(());
                    }
                }
                None if now > self.began + self.patience => {
                    self.lived
                        .wrong
                        .push(("hang", "the command does not end".to_owned()));
                    self.tell(&self.family());
                    return Ok(());
                }
                None => {}
            }
        }
    }

    fn tell_of_left(&mut self, left: &[Process]) {
        if !left.is_empty() {
            let names: BTreeSet<&str> = left.iter().map(|p| p.name.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            self.lived.wrong.push(("process left", names.join(", ")));
            self.tell(left);
        }
        for (pid, outsider) in self.outsiders.clone() {
            let told = Process::find(pid).map_or(String::new(), |p| p.details());
            self.lived
                .wrong
                .push(("outsider waits", format!("{outsider:?}")));
            self.lived.notes += &told;
        }
    }

    fn tell(&mut self, processes: &[Process]) {
        for process in processes {
            self.lived.notes += &process.details();
        }
    }

    /// Until a tick is over, a call is to be answered, or the command ends.
    fn wait(&mut self) {
        let nearest = self.pending.iter().filter_map(|p| p.at).min();
        let mut time = nearest.map_or(TICK, |at| TICK.min(at.duration_since(Instant::now())));
        if self.ended.is_some() {
            time = TICK;
        }
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let time = Timespec {
                tv_sec: 0,
                tv_nsec: left.as_nanos() as _,
            };
            // One that is closed is polled for nothing.
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
            if let Some(answers) = &self.answers {
                fds.push(PollFd::from_borrowed_fd(answers.fd(), PollFlags::IN));
            }
            if self.ended.is_none() {
                fds.push(PollFd::new(&self.pidfd, PollFlags::IN));
            }
            // A signal ends the wait early, and no harm is done.
            let ready = poll(&mut fds, Some(&time)).unwrap_or(0);
            let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
            let asked = self.answers.is_some() && events[0].contains(PollFlags::IN);
            let over = self.answers.is_some() && events[0].contains(PollFlags::HUP);
            if asked && let Some(answers) = &mut self.answers {
                if let Err(e) = answers.answer() {
                    self.lived.notes += &format!("a call was not answered: {e}\n");
                }
            } else if over || ready == 0 || left.is_zero() {
                // Nobody has the filter any more: to poll it would not wait.
                if over {
                    std::thread::sleep(left);
                }
                return;
            } else if ready > 0 {
                return;
            }
        }
    }

    fn bury(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !matches!(waitid(WaitId::All, options), Ok(Some(_))) {
            return;
        }
        // See `system::rise`. Lowering oneself is always possible.
        let _ = system::rise(false);
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            if pid == self.engine && self.ended.is_none() {
                self.lived.status = Some(status);
                self.ended = Some(Instant::now());
            } else if let Some(outsider) = self.outsiders.remove(&pid) {
                let killed = status.terminating_signal();
                let by_us = killed.is_some_and(|s| self.was_sent(s, Target::Outsider));
                if by_us && self.ended.is_none() {
                    // A run that waits for a program to come waits for ever.
                    self.again.push(outsider.clone());
                }
                if status.exit_status() != Some(0) && !by_us {
                    let text = format!("{outsider:?}: {status:?}");
                    self.lived
                        .wrong
                        .push(("outsider not let go as it came", text));
                }
            }
        }
        // There is nothing to be punctual for once the command has ended.
        if self.urgent
            && self.ended.is_none()
            && let Err(e) = system::rise(true)
        {
            self.lived
                .wrong
                .push(("harness", format!("not raised again: {e}")));
        }
    }

    /// Nobody is left of it, whatever it takes.
    fn end_all(&mut self) {
        self.outsiders.clear();
        let left = end_everybody(self.bystander);
        if !left.is_empty() {
            self.lived
                .wrong
                .push(("process left", "it cannot be killed".to_owned()));
            self.tell(&left);
        }
    }
}

/// Kills and buries all that descend from this process but the bystander. Who cannot be killed.
fn end_everybody(bystander: i32) -> Vec<Process> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let this = std::process::id() as i32;
        let left = family::descendants(this, &BTreeSet::from([bystander]));
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        for process in &left {
            system::send(process.pid, libc::SIGKILL);
        }
        let _ = system::rise(false);
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::sleep(TICK);
    }
}
