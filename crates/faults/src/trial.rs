//! A trial from its beginning to what is wrong afterwards.

use crate::family;
use crate::fault::{Fault, Target};
use crate::judge;
use crate::life::{self, Lived, Stopped};
use crate::plan::Trial;
use crate::room::{Room, SAID, WORK};
use crate::scenario::{OUT, Scenario, TRACE};
use crate::system;
use crate::turns::Turns;
use crate::watch::{Bystander, Machine};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What came of a trial.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Which.
    pub trial: Trial,
    /// How the command ended.
    pub outcome: String,
    /// Was anything done to it, or was it over before?
    pub reached: bool,
    /// What is wrong: the kind, and what exactly.
    pub wrong: Vec<(String, String)>,
    /// How long it took.
    pub seconds: f64,
    /// How many calls were made that might have failed.
    pub calls: u32,
    /// What happened and what was said.
    pub details: String,
}

/// Carries out trials, one after the other.
#[derive(Debug)]
pub struct Harness {
    room: Room,
    turns: Turns,
    bystander: Bystander,
    stop: Arc<AtomicBool>,
    began: Instant,
}

/// Where runs note what they have made: the directory stays.
const NOTES: &str = "/run/warmset";
/// Reading a trace, and all else that is short, must be done within this time.
const READING: Duration = Duration::from_secs(60);

impl Harness {
    /// Takes this process into a room of its own, and above all others. Once a process.
    ///
    /// # Errors
    /// A right is missing, or a program.
    pub fn new(warmset: &Path, keep: &Path, stop: Arc<AtomicBool>) -> Result<Self, String> {
        let text = |what: &str, e: std::io::Error| format!("cannot {what}: {e}");
        let none = rustix::process::Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        // What dies of a signal leaves no memory behind in a file.
        rustix::process::setrlimit(rustix::process::Resource::Core, none)
            .map_err(|e| text("forbid core files", e.into()))?;
        let turns = Turns::open(warmset).map_err(|e| text("open the command", e))?;
        let room = Room::enter(warmset, keep)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|e| text("adopt orphans", e.into()))?;
        let bystander = Bystander::start(&room.helper).map_err(|e| text("start a bystander", e))?;
        // Each trial takes it anew.
        system::rise(true)
            .and_then(|()| system::rise(false))
            .map_err(|e| text("take the highest real-time priority (as root)", e))?;
        Ok(Harness {
            room,
            turns,
            bystander,
            stop,
            began: Instant::now(),
        })
    }

    /// Where results are kept.
    pub fn keep(&self) -> &Path {
        &self.room.keep
    }

    /// Can this be run here?
    pub fn can(&self, scenario: &Scenario) -> bool {
        self.room.has_tracefs || !scenario.needs_tracefs()
    }

    /// How long it has been at work.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Carries one out.
    ///
    /// # Errors
    /// [`Stopped`], with nobody left.
    pub fn carry_out(&self, trial: &Trial) -> Result<Report, Stopped> {
        let turn = self.turns.take(trial.scenario.needs_colors());
        let began = Instant::now();
        let disk = match trial.fault {
            Fault::Disk(bytes) => Some(bytes),
            _ => None,
        };
        let mut report = Report {
            trial: trial.clone(),
            outcome: String::new(),
            reached: false,
            wrong: Vec::new(),
            seconds: 0.0,
            calls: 0,
            details: String::new(),
        };
        let ready = turn.as_ref().map(drop).map_err(|e| e.to_string());
        if let Err(why) = ready.and_then(|()| self.room.prepare(disk)) {
            report.wrong.push(("harness".to_owned(), why));
            return Ok(report);
        }
        let line = trial.scenario.line(&self.room.helper);
        let before = Machine::now(&self.room, &self.bystander);
        let bystander = self.bystander.pid();
        let lived = life::live(&self.room, &line, trial, bystander, &self.stop)?;
        let stderr = said("stderr");
        let mut wrong = lived.wrong.clone();
        wrong.extend(judge::words(&trial.scenario, &trial.fault, &lived, &stderr));
        if judge::may_leave_setting(&lived, &stderr) {
            wrong.extend(self.restores_settings());
        }
        let after = Machine::now(&self.room, &self.bystander);
        let given: Vec<String> = line.files.iter().map(|(name, _)| in_work(name)).collect();
        let may_stay = |path: &str, kind: char| {
            given.iter().any(|file| file == path) || may_stay(trial, &lived, path, kind)
        };
        // What the harness has killed could not tidy up.
        if lived.status.is_some() {
            wrong.extend(after.changes(&before, &self.bystander, may_stay));
        }
        wrong.extend(self.trace_is_readable());
        report.wrong = wrong
            .into_iter()
            .map(|(kind, text)| (kind.to_owned(), text))
            .collect();
        report.outcome = judge::outcome(&lived, &stderr);
        report.reached = lived.reached;
        report.calls = lived.calls;
        report.seconds = began.elapsed().as_secs_f64();
        report.details = details(&lived, &stderr);
        self.room.clear();
        Ok(report)
    }

    /// Where a setting is noted that nobody was left to restore, the next command restores it: one
    /// that may change settings, and has nothing to do.
    fn restores_settings(&self) -> Option<(&'static str, String)> {
        let noted = || {
            let all = std::fs::read_dir(NOTES).into_iter().flatten().flatten();
            all.filter_map(|e| e.file_name().into_string().ok())
                .find(|name| name.starts_with("settings-"))
        };
        noted()?;
        if let Err(why) = self.says(&["run", "/nothing.toml"], "next") {
            return Some(("next run", why));
        }
        noted().map(|name| ("setting left", format!("the next command lets `{name}` be")))
    }

    /// A trace that is there is read, or refused with a sentence.
    fn trace_is_readable(&self) -> Vec<(&'static str, String)> {
        let path = in_work(TRACE);
        if !Path::new(&path).is_file() {
            return Vec::new();
        }
        match self.says(&["trace", "stats", &path], "reading") {
            Ok((Some(0), _)) => Vec::new(),
            Ok((Some(2), said)) if said.starts_with("warmset: ") => Vec::new(),
            Ok((status, said)) => {
                vec![(
                    "trace",
                    format!("status {status:?} of reading it: {}", said.trim()),
                )]
            }
            Err(why) => vec![("trace", why)],
        }
    }

    /// Lets the command do something short: its status, and what it says, which is kept as `name`.
    fn says(&self, words: &[&str], name: &str) -> Result<(Option<i32>, String), String> {
        let mut command = Command::new(&self.room.warmset);
        command.args(words).env_clear().current_dir("/");
        let file = std::fs::File::create(Path::new(SAID).join(name));
        let file = file.map_err(|e| e.to_string())?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let until = Instant::now() + READING;
        loop {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                return Ok((status.code(), said(name)));
            }
            if Instant::now() > until {
                // It ends by this; that it hung is what is told.
                let _ = child.kill().and_then(|()| child.wait());
                return Err(format!("`{}` has no end", words.join(" ")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let except = [self.bystander.pid()].into();
        for process in family::descendants(std::process::id() as i32, &except) {
            system::send(process.pid, libc::SIGKILL);
        }
    }
}

fn in_work(name: &str) -> String {
    Path::new(WORK).join(name).display().to_string()
}

/// What a command has said, as far as it is text.
fn said(name: &str) -> String {
    let bytes = std::fs::read(Path::new(SAID).join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the command was told to write may stay, and what it can take away at its next call only.
fn may_stay(trial: &Trial, lived: &Lived, path: &str, kind: char) -> bool {
    if let Some(rest) = path.strip_prefix(NOTES) {
        // What nobody was left to take away is noted for the next run.
        return rest.is_empty() || lived.sent.iter().any(|(_, to)| *to == Target::Watchdog);
    }
    let Some(name) = path.strip_prefix(&in_work(OUT)) else {
        return false;
    };
    let killed = lived
        .status
        .is_none_or(|s| s.terminating_signal().is_some());
    let keeps = killed && trial.scenario.keeps_parts();
    match kind {
        'd' => true,
        // A measurement goes on from its part.
        'f' => !name.ends_with(".part") || name.ends_with("/measurement.part") || keeps,
        's' => keeps,
        _ => false,
    }
}

fn details(lived: &Lived, stderr: &str) -> String {
    let mut text = format!("status: {:?}\n", lived.status);
    if let Some(why) = &lived.not_begun {
        text += &format!("not begun: {why}\n");
    }
    text += &lived.notes;
    text += "standard error:\n";
    text += &stderr.chars().take(4000).collect::<String>();
    text
}
