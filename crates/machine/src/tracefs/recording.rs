//! A recording of tracepoints, in buffers of its own.

use super::format::{Field, Format};
use super::ring::{self, Layout};
use super::{TRACEFS, instance, take_away_what_is_left};
use model::{CpuId, Error, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The buffer of each processor: what a busy one fills in some seconds.
const BUFFER_KIB: &str = "4096";
/// So many events are kept, which take 112 MB.
const MOST: usize = 2_000_000;
/// How often buffers are emptied.
const PAUSE: Duration = Duration::from_millis(50);
/// So many fields of an event are kept at most.
pub const MOST_FIELDS: usize = 4;
/// The number of the tracepoint, which all events begin with.
const KIND: &str = "common_type";

/// A tracepoint of the kernel, and what is wanted of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tracepoint {
    /// Its place below `events`, such as `sched/sched_switch`.
    pub name: &'static str,
    /// Which of its events, in the kernel's words; all without it.
    pub filter: Option<&'static str>,
    /// Its fields that are kept, at most [`MOST_FIELDS`] of them; they have to be integers.
    pub fields: &'static [&'static str],
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    /// The processor.
    pub cpu: u32,
    /// Which of the tracepoints that were asked for, counted from 0.
    pub point: usize,
    /// Its fields, in the order in which they were asked for; zero behind them.
    pub values: [i64; MOST_FIELDS],
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// In the order of time.
    pub all: Vec<Record>,
    /// How many the kernel's buffers had no room for.
    pub lost: u64,
    /// Later ones were not kept: there are too many.
    pub cut: bool,
    /// Processors whose buffers were full, of a recording that is read afterwards: what it has of
    /// them ends before the recording does, and is complete up to its last event.
    pub full: BTreeSet<u32>,
}

/// A recording that is going on.
#[derive(Debug)]
pub struct Recording {
    dir: PathBuf,
    points: Vec<Tracepoint>,
    over: Arc<AtomicBool>,
    emptied: Emptied,
}

/// Who empties the buffers, and when.
#[derive(Debug)]
enum Emptied {
    /// Nobody yet.
    Not,
    /// A thread does, while the recording goes on.
    Meanwhile(JoinHandle<io::Result<Recorded>>),
    /// They are read when it is over.
    Afterwards(Box<Reader>),
}

impl Recording {
    /// Can these be recorded here? Makes nothing.
    pub fn knows(point: &Tracepoint) -> bool {
        Path::new(TRACEFS).join("events").join(point.name).is_dir()
    }

    /// Begins to record these tracepoints, on all processors and of all processes. A thread empties
    /// the buffers meanwhile, so that it can go on for long.
    ///
    /// # Errors
    /// No tracefs, no right to it, or a kernel that lacks one of them.
    pub fn begin(points: &[Tracepoint]) -> Result<Self> {
        let mut recording = Recording::made(points)?;
        recording.set("buffer_size_kb", BUFFER_KIB)?;
        let reader = recording.reader()?;
        recording.enable()?;
        let over = Arc::clone(&recording.over);
        let thread = std::thread::Builder::new().name("witness".to_owned());
        let thread = thread.spawn(move || reader.until(&over));
        let thread = thread.map_err(|e| Error::new(format!("cannot start a thread: {e}")))?;
        recording.emptied = Emptied::Meanwhile(thread);
        Ok(recording)
    }

    /// Begins to record these tracepoints on these processors, in buffers of so many KiB each that
    /// are read when it is over: nothing runs for it meanwhile. A buffer that is full takes no more
    /// events; they are counted ([`Recorded::lost`], [`Recorded::full`]).
    ///
    /// # Errors
    /// As [`Recording::begin`]; no memory for the buffers.
    pub fn begin_to_read_afterwards(
        points: &[Tracepoint],
        cpus: &[CpuId],
        kib: u32,
    ) -> Result<Self> {
        let mut recording = Recording::made(points)?;
        recording.set("options/overwrite", "0")?;
        recording.set("tracing_cpumask", &mask(cpus))?;
        for cpu in cpus {
            let size = format!("per_cpu/cpu{}/buffer_size_kb", cpu.0);
            recording.set(&size, &kib.to_string())?;
        }
        let reader = recording.reader()?;
        recording.emptied = Emptied::Afterwards(Box::new(reader));
        recording.enable()?;
        Ok(recording)
    }

    /// Buffers of one's own in which nothing is recorded yet.
    fn made(points: &[Tracepoint]) -> Result<Self> {
        take_away_what_is_left();
        let dir = instance()
            .ok_or_else(|| Error::new("this process is not in /proc").remedy("mount it there"))?;
        std::fs::create_dir(&dir).map_err(|e| {
            Error::new(format!("the kernel's record of events cannot be had: {e}"))
                .at(TRACEFS)
                .remedy(format!("as root, `mount -t tracefs nodev {TRACEFS}`"))
        })?;
        // From here on it is taken away again, whatever happens.
        let recording = Recording {
            dir,
            points: points.to_vec(),
            over: Arc::default(),
            emptied: Emptied::Not,
        };
        recording.set("trace_clock", "mono")?;
        for point in points {
            if let Some(filter) = point.filter {
                recording.set(&format!("events/{}/filter", point.name), filter)?;
            }
        }
        Ok(recording)
    }

    fn enable(&self) -> Result<()> {
        let mut points = self.points.iter();
        points.try_for_each(|point| self.set(&format!("events/{}/enable", point.name), "1"))
    }

    /// What empties the buffers, with the formats of all events.
    fn reader(&self) -> Result<Reader> {
        // Formats and pages are the same for all buffers.
        let events = self.dir.join("events");
        let read = |file: &str| -> Result<String> {
            let top = Path::new(TRACEFS).join("events").join(file);
            let own = events.join(file);
            let path = if own.exists() { own } else { top };
            whole(&path).map_err(|e| self.failed("read", &path, &e))
        };
        let page = read("header_page")?;
        let layout = Layout::parse(&page)
            .map_err(|e| self.failed("read", &events.join("header_page"), &e))?;
        let mut formats = Vec::new();
        let mut kind = None;
        for point in &self.points {
            let file = format!("{}/format", point.name);
            let text = read(&file)?;
            let failed = |e: io::Error| self.failed("read", &events.join(&file), &e);
            let fields = &point.fields[..point.fields.len().min(MOST_FIELDS)];
            formats.push(Format::parse(&text, fields).map_err(failed)?);
            kind = Format::parse(&text, &[KIND]).map_err(failed)?.fields.pop();
        }
        let Some(kind) = kind else {
            return Err(Error::new("no event is to be recorded"));
        };
        let dir = self.dir.join("per_cpu");
        let mut pipes = Vec::new();
        for cpu in per_cpu(&dir) {
            let path = dir.join(format!("cpu{cpu}/trace_pipe_raw"));
            let pipe = File::options()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&path)
                .map_err(|e| self.failed("open", &path, &e))?;
            pipes.push((cpu, pipe));
        }
        if pipes.is_empty() {
            let none = io::Error::other("there is no buffer of any processor");
            return Err(self.failed("read", &dir, &none));
        }
        Ok(Reader {
            pipes,
            layout,
            formats,
            kind,
            page: vec![0; 1 << 16],
            found: Recorded::default(),
        })
    }

    fn set(&self, file: &str, text: &str) -> Result<()> {
        let path = self.dir.join(file);
        std::fs::write(&path, text).map_err(|e| self.failed("set", &path, &e))
    }

    fn failed(&self, doing: &str, path: &Path, e: &io::Error) -> Error {
        Error::io(path, doing, e)
            .remedy("run as root, on a kernel that traces events (5.10 or later)")
    }

    /// Ends it. What was recorded.
    ///
    /// # Errors
    /// The buffers could not be read.
    pub fn end(mut self) -> Result<Recorded> {
        self.set("tracing_on", "0")?;
        self.over.store(true, Ordering::Release);
        let dropped = self.dropped();
        let recorded = match std::mem::replace(&mut self.emptied, Emptied::Not) {
            Emptied::Meanwhile(reader) => reader.join().ok(),
            Emptied::Afterwards(reader) => Some(reader.until(&self.over)),
            Emptied::Not => None,
        };
        let mut recorded = match recorded {
            Some(Ok(recorded)) => recorded,
            Some(Err(e)) => return Err(self.failed("read", &self.dir.join("per_cpu"), &e)),
            None => {
                return Err(Error::new(
                    "the reader of the kernel's record has ended before its time",
                ));
            }
        };
        for (cpu, count) in dropped {
            recorded.lost += count;
            recorded.full.insert(cpu);
        }
        Ok(recorded)
    }

    /// How many events found their processor's buffer full, where there are any. Buffers that
    /// overwrite what is old drop none.
    fn dropped(&self) -> Vec<(u32, u64)> {
        let dir = self.dir.join("per_cpu");
        let of = |cpu: u32| {
            let stats = whole(&dir.join(format!("cpu{cpu}/stats"))).ok()?;
            let line = stats
                .lines()
                .find_map(|line| line.strip_prefix("dropped events: "))?;
            let count: u64 = line.trim().parse().ok()?;
            (count > 0).then_some((cpu, count))
        };
        per_cpu(&dir).into_iter().filter_map(of).collect()
    }
}

/// The processors that have a buffer, ascending; none where there is no such directory.
fn per_cpu(dir: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut cpus: Vec<u32> = entries
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("cpu")?
                .parse()
                .ok()
        })
        .collect();
    cpus.sort_unstable();
    cpus
}

/// A set of processors as the kernel reads it: words of 32 bits in hexadecimal, the highest first.
fn mask(cpus: &[CpuId]) -> String {
    let most = cpus.iter().map(|cpu| cpu.0).max().unwrap_or(0);
    let words: Vec<String> = (0..=most / 32)
        .rev()
        .map(|word| {
            let of_word = cpus.iter().filter(|cpu| cpu.0 / 32 == word);
            let bits = of_word.fold(0_u32, |bits, cpu| bits | 1 << (cpu.0 % 32));
            format!("{bits:08x}")
        })
        .collect();
    words.join(",")
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Each fails only where tracefs has gone.
        for point in &self.points {
            let _ = self.set(&format!("events/{}/enable", point.name), "0");
        }
        self.over.store(true, Ordering::Release);
        // Who reads has the buffers open, which could not be removed then.
        match std::mem::replace(&mut self.emptied, Emptied::Not) {
            Emptied::Meanwhile(reader) => drop(reader.join()),
            Emptied::Afterwards(reader) => drop(reader),
            Emptied::Not => {}
        }
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// A file that the kernel writes out at the first read only.
fn whole(path: &Path) -> io::Result<String> {
    let mut bytes = vec![0; 1 << 16];
    let got = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(got);
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// What empties the buffers of all processors.
#[derive(Debug)]
struct Reader {
    pipes: Vec<(u32, File)>,
    layout: Layout,
    formats: Vec<Format>,
    kind: Field,
    page: Vec<u8>,
    found: Recorded,
}

impl Reader {
    fn until(mut self, over: &AtomicBool) -> io::Result<Recorded> {
        loop {
            // Seen before the buffers are found empty: nothing is left then.
            let last = over.load(Ordering::Acquire);
            for at in 0..self.pipes.len() {
                while self.takes_page(at)? {}
            }
            if last {
                self.found.all.sort_by_key(|record| record.time);
                return Ok(self.found);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes a page of a processor's buffer, if there is one with anything in it.
    fn takes_page(&mut self, at: usize) -> io::Result<bool> {
        let (cpu, pipe) = &mut self.pipes[at];
        let cpu = *cpu;
        let got = match pipe.read(&mut self.page) {
            Ok(0) => return Ok(false),
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        };
        let (formats, kind, found) = (&self.formats, self.kind, &mut self.found);
        let lost = ring::events(&self.page[..got], self.layout, |time, event| {
            let kind = kind.of(event);
            let point = formats.iter().position(|f| Some(i64::from(f.id)) == kind);
            let Some(point) = point else { return };
            let mut values = [0; MOST_FIELDS];
            for (value, field) in values.iter_mut().zip(&formats[point].fields) {
                *value = field.of(event).unwrap_or(0);
            }
            match found.all.len() < MOST {
                true => found.all.push(Record {
                    time,
                    cpu,
                    point,
                    values,
                }),
                false => found.cut = true,
            }
        })?;
        self.found.lost += lost;
        Ok(true)
    }
}
