//! The kernel's own record of who was on which processor: its tracepoint `sched_switch`, through tracefs.
//!
//! Recorded in buffers of their own that nobody else writes to (an instance), gone when the recording ends: nothing of the
//! machine's tracing is changed. Only switches to and from threads of real-time priority are kept. Source: the kernel's
//! `Documentation/trace/{ftrace,events}.rst`.

use crate::process::Process;
use model::{Error, Result};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where it is mounted.
pub const TRACEFS: &str = "/sys/kernel/tracing";
/// Where buffers of one's own are made, a directory each.
const INSTANCES: &str = "instances";
/// The buffer of each processor: what a busy one fills in some seconds.
const BUFFER_KIB: &str = "4096";
/// Which switches: the kernel counts priorities from above, ordinary threads from 100 on. (Its filter by process would follow
/// what starts later, but loses threads that come to an idle processor.)
const REAL_TIME: &str = "prev_prio < 100 || next_prio < 100";
/// So many switches are kept, which take 48 MB.
const MOST: usize = 2_000_000;
/// How often buffers are emptied.
const PAUSE: Duration = Duration::from_millis(50);

/// One thread leaves a processor, another comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// `CLOCK_MONOTONIC` in nanoseconds, to the microsecond.
    pub time: u64,
    /// The processor.
    pub cpu: u32,
    /// Who leaves, as the kernel numbers threads; 0: nobody.
    pub prev: i32,
    /// Who comes.
    pub next: i32,
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Switches {
    /// In the order of each processor.
    pub all: Vec<Switch>,
    /// How many the kernel's buffers had no room for.
    pub lost: u64,
    /// Those after the last one were not kept: there are too many.
    pub cut: bool,
}

impl Switches {
    /// Takes a line of the kernel's text; others than those of the tracepoint say nothing.
    fn take(&mut self, line: &str) {
        if let Some((_, lost)) = line.split_once("[LOST ") {
            self.lost += lost.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(1);
        } else if let Some(switch) = switch_of(line) {
            match self.all.len() < MOST {
                true => self.all.push(switch),
                false => self.cut = true,
            }
        }
    }
}

/// `  name-12 [001] d..2. 34.567890: sched_switch: prev_comm=a prev_pid=12 … ==> next_comm=b next_pid=34 …`; a name may hold anything.
fn switch_of(line: &str) -> Option<Switch> {
    let (head, what) = line.split_once(": sched_switch: ")?;
    let (seconds, micros) = head.rsplit(' ').next()?.split_once('.')?;
    let cpu = head.rsplit_once('[')?.1.split_once(']')?.0;
    let (prev, next) = what.rsplit_once(" ==> ")?;
    let number = |text: &str, key: &str| -> Option<i32> {
        text.rsplit_once(key)?.1.split(' ').next()?.trim().parse().ok()
    };
    Some(Switch {
        time: seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1_000,
        cpu: cpu.parse().ok()?,
        prev: number(prev, " prev_pid=")?,
        next: number(next, " next_pid=")?,
    })
}

/// A recording that is going on.
#[derive(Debug)]
pub struct Recording {
    dir: PathBuf,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<io::Result<Switches>>>,
}

impl Recording {
    /// Begins to record whenever a thread of real-time priority comes or goes, whosever it is.
    ///
    /// # Errors
    /// No tracefs, no right to it, or a kernel that cannot.
    pub fn begin() -> Result<Self> {
        take_away_what_is_left();
        let dir =
            instance().ok_or_else(|| Error::new("this process is not in /proc").remedy("mount it there"))?;
        std::fs::create_dir(&dir).map_err(|e| {
            Error::new(format!("the kernel's record of switches cannot be had: {e}"))
                .at(TRACEFS)
                .remedy(format!("as root, `mount -t tracefs nodev {TRACEFS}`"))
        })?;
        // From here on it is taken away again, whatever happens.
        let mut recording = Recording {
            dir,
            over: Arc::default(),
            reader: None,
        };
        for (file, text) in [
            ("trace_clock", "mono"),
            ("buffer_size_kb", BUFFER_KIB),
            ("events/sched/sched_switch/filter", REAL_TIME),
            ("events/sched/sched_switch/enable", "1"),
        ] {
            recording
                .write(file, text)
                .map_err(|e| recording.failed("set", file, &e))?;
        }
        let pipe = std::fs::File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(recording.dir.join("trace_pipe"))
            .map_err(|e| recording.failed("open", "trace_pipe", &e))?;
        let over = Arc::clone(&recording.over);
        let reader = std::thread::Builder::new().name("witness".to_owned());
        let reader = reader.spawn(move || read(pipe, &over));
        recording.reader = Some(reader.map_err(|e| Error::new(format!("cannot start a thread: {e}")))?);
        Ok(recording)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        std::fs::write(self.dir.join(file), text)
    }

    fn failed(&self, doing: &str, file: &str, e: &io::Error) -> Error {
        Error::io(self.dir.join(file), doing, e)
            .remedy("run as root, on a kernel that traces events (5.10 or later)")
    }

    /// Ends it. What was recorded.
    ///
    /// # Errors
    /// The buffers could not be read.
    pub fn end(mut self) -> Result<Switches> {
        self.write("tracing_on", "0")
            .map_err(|e| self.failed("set", "tracing_on", &e))?;
        self.over.store(true, Ordering::Release);
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(Ok(switches))) => Ok(switches),
            Some(Ok(Err(e))) => Err(self.failed("read", "trace_pipe", &e)),
            _ => Err(Error::new(
                "the reader of the kernel's record has ended before its time",
            )),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Each fails only where tracefs has gone.
        let _ = self.write("events/sched/sched_switch/enable", "0");
        self.over.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// How the names of buffers begin; the process follows.
const PREFIX: &str = "warmset-";

/// The directory of the buffers of this process's recording, which is taken away at its end.
pub fn instance() -> Option<PathBuf> {
    let name = format!("{PREFIX}{}", Process::this()?);
    Some(Path::new(TRACEFS).join(INSTANCES).join(name))
}

/// Takes away the buffers of recordings whose process was killed.
pub fn take_away_what_is_left() {
    let Ok(instances) = std::fs::read_dir(Path::new(TRACEFS).join(INSTANCES)) else {
        return;
    };
    for instance in instances.flatten() {
        let name = instance.file_name();
        let process = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        let process = process.and_then(|p| p.parse::<Process>().ok());
        if process.is_some_and(Process::has_ended) {
            // Somebody else may be faster.
            let _ = std::fs::remove_dir(instance.path());
        }
    }
}

/// Empties the buffers until the recording is over.
fn read(mut pipe: std::fs::File, over: &AtomicBool) -> io::Result<Switches> {
    let mut switches = Switches::default();
    let mut buffer = vec![0u8; 1 << 16];
    // The line that the last read has broken off.
    let mut rest = Vec::new();
    loop {
        // Seen before the buffers are found empty: nothing is left then.
        let last = over.load(Ordering::Acquire);
        match pipe.read(&mut buffer) {
            Ok(0) => {}
            Ok(got) => {
                rest.extend_from_slice(&buffer[..got]);
                let whole = rest.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                for line in rest[..whole].split(|b| *b == b'\n') {
                    switches.take(&String::from_utf8_lossy(line));
                }
                rest.drain(..whole);
                continue;
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
        if last {
            return Ok(switches);
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_whatever_threads_are_called() {
        let mut switches = Switches::default();
        for line in [
            "# tracer: nop",
            "          <idle>-0       [001] d..2.  1234.000567: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=camera next_pid=77 next_prio=59",
            "   a [0] next_pid=5-78   [000] d..2.  1234.100000: sched_switch: prev_comm=a prev_pid=9 b prev_pid=78 prev_prio=59 prev_state=S ==> next_comm=x next_pid=3 next_pid=0 next_prio=120",
            "CPU:1 [LOST 42 EVENTS]",
            "          camera-77      [001] d.h3.  1234.000570: sched_wakeup: comm=x pid=3 prio=120 target_cpu=000",
            "",
        ] {
            switches.take(line);
        }
        let switch = |time, cpu, prev, next| Switch {
            time,
            cpu,
            prev,
            next,
        };
        assert_eq!(
            switches.all,
            [
                switch(1_234_000_567_000, 1, 0, 77),
                switch(1_234_100_000_000, 0, 78, 0)
            ]
        );
        assert_eq!((switches.lost, switches.cut), (42, false));
    }
}
