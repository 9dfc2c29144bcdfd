//! What engine and watchdog share: heartbeats, threads, processes, and what has been made in the
//! file system.
//!
//! Plain words in memory that both map. The engine writes, the watchdog reads, after its fork
//! without memory or locks of its own.

use super::Trip;
use super::removal::{IDENTITY, patiently, remove};
use crate::kernel::{self, Thread};
use crate::programs::marks;
use crate::programs::procfs::{self, Identity};
use crate::programs::rights::Owner;
use machine::group::Group;
use model::{Duration, Error, Result};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::ffi::CStr;
use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use sys::memory::Mapping;

/// More processors than one kernel drives.
pub(super) const MAX_BEATS: usize = 1024;
/// More threads than one run has.
const MAX_THREADS: usize = 16_384;

/// More processes than the programs of one run have at a time.
const MAX_PROCESSES: usize = 4096;
/// Room for the paths of what a run has made.
const PATHS: usize = 1 << 17;
/// Room for the path of the record of it, and a zero.
const RECORD: usize = 256;

/// What engine and watchdog share: plain words, all zero at first.
#[repr(C)]
pub struct Board {
    /// 1 once the watchdog watches, or 2 + the error number that keeps it from doing so.
    pub(super) ready: AtomicU32,
    /// The run is over: the watchdog ends.
    pub(super) over: AtomicU32,
    /// Why the run is ended, as [`Trip::code`] has it; 0: it is not.
    pub(super) tripped: AtomicU32,
    /// Is the supervisor's heartbeat watched?
    pub(super) supervised: AtomicU32,
    pub(super) ordinary: AtomicU64,
    /// Is the run being ended? Then nobody decides any more.
    pub(super) ending: AtomicU32,
    /// The reading of the clock at which the run has to be over, or its end; 0: not known yet.
    pub(super) latest: AtomicU64,
    /// How many places have a thread that tells slack, from the first on; 0: slack is not watched.
    pub(super) slack_places: AtomicU32,
    /// Over how long slack is added up, in nanoseconds.
    pub(super) slack_window: AtomicU64,
    /// What sets the processes of this run apart from those of others; see [`Board::mark`].
    pub(super) run: AtomicU64,
    /// The number of the watchdog's process, which processes of programs have in their limits.
    pub(super) number: AtomicU32,
    /// Were programs started, which carry the run's mark?
    programs: AtomicU32,
    /// What the run has made in the file system and takes away again: paths, each with a zero
    /// behind it.
    made: [AtomicU8; PATHS],
    /// Where the record of it is; all zero: nowhere.
    record: [AtomicU8; RECORD],
    /// Processes of programs.
    processes: [Known; MAX_PROCESSES],
    /// How many places of `beats` have been written to, from the first on: the others need not be
    /// looked at. They would take caches from jobs, a line each.
    places: AtomicU32,
    /// Zero: nobody is there.
    beats: [Beat; MAX_BEATS],
    /// Threads at real-time priority; zero: none.
    threads: [AtomicI32; MAX_THREADS],
}

/// A process of a program.
#[repr(C)]
struct Known {
    /// Zero: none.
    process: AtomicI32,
    /// Has it, or its first parent, come from outside? Then it is left alive.
    stays: AtomicU32,
    /// When it was born: numbers of processes are given again.
    born: AtomicU64,
    /// Where it might run before it came.
    home: [AtomicU64; 16],
}

impl Known {
    /// Its number, if it is the one that was meant.
    fn process(&self) -> Option<i32> {
        let process = self.process.load(Ordering::Acquire);
        let known = Identity {
            process,
            born: self.born.load(Ordering::Relaxed),
        };
        (process != 0 && known.exists()).then_some(process)
    }

    /// Lowers all of its threads and those of its descendants; of one that stays, lets them run
    /// where it might run, and go on.
    fn lower(&self) {
        let Some(process) = self.process() else {
            return;
        };
        let stays = self.stays.load(Ordering::Relaxed) != 0;
        let home: kernel::Processors =
            std::array::from_fn(|at| self.home[at].load(Ordering::Relaxed));
        procfs::family(process, &mut |member| {
            procfs::threads(member, |thread| {
                // Each fails only where the thread has gone.
                let _ = Thread(thread).lower();
                if stays {
                    let _ = Thread(thread).free(&home);
                }
            });
            if stays {
                kernel::kill(member, libc::SIGCONT);
            }
        });
    }
}

/// What is written at a place in the order of processors, on a line of its own.
#[repr(C, align(64))]
pub(super) struct Beat {
    /// Counts signs of life of its dispatcher; 0: there is none.
    pub(super) count: AtomicU64,
    /// The reading of the clock at which the leader there has to decide; 0: nothing is due.
    pub(super) due: AtomicU64,
    /// Counts how often nothing at real-time priority wanted the processor.
    pub(super) slack: AtomicU64,
}

impl Board {
    /// What is written at a place.
    #[inline]
    fn at(&self, place: usize) -> Option<&Beat> {
        if place >= self.places.load(Ordering::Relaxed) as usize && place < MAX_BEATS {
            self.places.fetch_max(place as u32 + 1, Ordering::Relaxed);
        }
        self.beats.get(place)
    }
    /// The places that have been written to, and maybe more before them.
    pub(super) fn beats(&self) -> &[Beat] {
        let places = self.places.load(Ordering::Relaxed) as usize;
        &self.beats[..places.min(MAX_BEATS)]
    }
    /// The dispatcher at this place is alive and well.
    #[inline]
    pub fn beat(&self, place: usize) {
        if let Some(beat) = self.at(place) {
            beat.count.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// At this reading of the clock the leader at this place has to decide something; none: it has
    /// nothing to decide, or there is no leader.
    #[inline]
    pub fn due(&self, place: usize, at: Option<u64>) {
        if let Some(beat) = self.at(place) {
            beat.due.store(at.unwrap_or(0), Ordering::Relaxed);
        }
    }
    /// Nothing at real-time priority wanted the processor at this place.
    pub fn slack(&self, place: usize) {
        if let Some(beat) = self.at(place) {
            beat.slack.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// From now on the first so many places have to tell slack, at one of them at least, within
    /// every window of this length.
    pub fn watch_slack(&self, places: usize, window: Duration) {
        self.slack_window.store(window.nanos(), Ordering::Relaxed);
        self.slack_places.store(places as u32, Ordering::Release);
    }
    /// At this reading of the clock the run has to be over, or its end if that has begun.
    pub fn latest(&self, at: u64) {
        self.latest.store(at, Ordering::Release);
    }
    /// The run is being ended: nobody has to decide any more. Its end has to be over within this.
    pub fn ends(&self, within: Duration) {
        self.ending.store(1, Ordering::Release);
        self.latest(kernel::monotonic().saturating_add(within.nanos()));
    }
    /// The dispatcher at this place has ended.
    pub fn rest(&self, place: usize) {
        if let Some(beat) = self.at(place) {
            beat.count.store(0, Ordering::Relaxed);
        }
    }
    /// An ordinary thread, which has to come back here again and again, got to run.
    pub fn ordinary(&self) {
        self.ordinary.fetch_add(1, Ordering::Relaxed);
        self.supervised.store(1, Ordering::Relaxed);
    }
    /// What every program of this run carries in its environment, followed by the number of its
    /// task; from now on the watchdog kills what carries it when the run goes wrong.
    pub fn mark(&self) -> String {
        self.programs.store(1, Ordering::Release);
        format!("{}:", self.run.load(Ordering::Acquire))
    }
    /// Were programs started?
    pub(crate) fn has_programs(&self) -> bool {
        self.programs.load(Ordering::Acquire) != 0
    }
    /// The number that processes of programs have in their limits.
    pub(crate) fn number(&self) -> u32 {
        self.number.load(Ordering::Acquire)
    }
    /// A process belongs to a program: all of its threads are lowered when something goes wrong.
    /// One that came from outside may run at `home` then, and goes on; others are killed.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn know(&self, known: Identity, home: Option<&kernel::Processors>) -> Result<()> {
        let Identity { process, born } = known;
        // The keeper alone writes here.
        let is_free = |k: &&Known| k.process.load(Ordering::Relaxed) == 0;
        let Some(known) = self.processes.iter().find(is_free) else {
            return Err(Error::new(format!(
                "programs have more than {MAX_PROCESSES} processes at a time"
            ))
            .remedy("let them start fewer"));
        };
        known
            .stays
            .store(u32::from(home.is_some()), Ordering::Relaxed);
        known.born.store(born, Ordering::Relaxed);
        for (word, bits) in known.home.iter().zip(home.copied().unwrap_or_default()) {
            word.store(bits, Ordering::Relaxed);
        }
        known.process.store(process, Ordering::Release);
        Ok(())
    }
    /// A process is not this run's any more.
    pub(crate) fn forget(&self, known: Identity) {
        let is_it = |k: &&Known| {
            k.process.load(Ordering::Relaxed) == known.process
                && k.born.load(Ordering::Relaxed) == known.born
        };
        if let Some(known) = self.processes.iter().find(is_it) {
            known.process.store(0, Ordering::Release);
        }
    }
    /// The run makes or has made this, and takes it away at its end: device and inode in 16 digits
    /// of base 16 each, a path, and a zero. False: there is no room to remember it.
    pub(crate) fn made(&self, text: &[u8]) -> bool {
        let is_zero = |at: &usize| self.made[*at].load(Ordering::Relaxed) == 0;
        // Behind the last one there are two zeros, or all is zero.
        let end = (0..PATHS - 1).find(|at| is_zero(at) && (*at == 0 || is_zero(&(at - 1))));
        let Some(from) = end.filter(|from| from + text.len() + 2 < PATHS) else {
            return false;
        };
        // The first byte last: until then there is nothing.
        for (word, byte) in self.made[from..].iter().zip(text).rev() {
            word.store(*byte, Ordering::Release);
        }
        true
    }
    /// There is a record of it at this path: whoever takes away what is in it holds its lock.
    pub(crate) fn has_record(&self, path: &Path) {
        // A longer one is not remembered: then the watchdog takes away what it knows without it.
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() < self.record.len() {
            for (word, byte) in self.record.iter().zip(bytes).rev() {
                word.store(*byte, Ordering::Release);
            }
        }
    }
    /// Takes away what the run has made, if it is still what is there and nobody else has done so.
    /// Waits for a second for what is still in use. Takes no memory.
    pub(crate) fn take_away(&self) {
        let path: [u8; RECORD] = std::array::from_fn(|at| self.record[at].load(Ordering::Acquire));
        if path[0] == 0 {
            patiently(|| self.take_away_what_is_noted());
            return;
        }
        // Who has the lock takes everything away, and the record last.
        let Ok(path) = CStr::from_bytes_until_nul(&path) else {
            return;
        };
        let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        else {
            return;
        };
        if rustix::fs::flock(&file, FlockOperation::LockExclusive).is_ok()
            && rustix::fs::fstat(&file).is_ok_and(|there| there.st_nlink > 0)
        {
            patiently(|| self.take_away_what_is_noted());
            // Where it cannot be removed the next run finds it, and nothing of what it names.
            let _ = rustix::fs::unlink(path);
        }
    }
    /// False: something of it is still there.
    fn take_away_what_is_noted(&self) -> bool {
        let mut all = true;
        let mut text = [0u8; IDENTITY + libc::PATH_MAX as usize];
        let mut len = 0;
        for byte in &self.made {
            match byte.load(Ordering::Acquire) {
                0 if len == 0 => return all,
                0 => {
                    text[len] = 0;
                    all &= remove(&text[..=len]);
                    len = 0;
                }
                byte if len + 1 < text.len() => {
                    text[len] = byte;
                    len += 1;
                }
                _ => return all,
            }
        }
        all
    }
    /// Lowers all processes of programs that are known.
    pub(crate) fn lower_programs(&self) {
        for known in &self.processes {
            known.lower();
        }
    }
    /// Kills all programs that carry the mark, below the engine's process if that is still there.
    /// Takes no memory.
    pub(super) fn kill_programs(&self, engine: Option<i32>) -> usize {
        if self.programs.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let mut text = Text::EMPTY;
        // It is long enough for any number.
        let _ = write!(
            text,
            "{}={}:",
            marks::MARK,
            self.run.load(Ordering::Acquire)
        );
        let mark = marks::Mark {
            text: text.bytes(),
            owner: Owner {
                run: self.number(),
                number: None,
            },
        };
        let mut found = 0;
        marks::signal_marked(mark, engine, libc::SIGKILL, |_| found += 1);
        // Whoever has put the mark out of its environment was seen when it was born.
        for known in self
            .processes
            .iter()
            .filter(|k| k.stays.load(Ordering::Relaxed) == 0)
        {
            let Some(process) = known.process() else {
                continue;
            };
            if procfs::state(process).is_some_and(|(state, _)| state != b'Z') {
                found += 1;
                kernel::kill(process, libc::SIGKILL);
            }
        }
        found
    }
    /// Kills them until a look finds none; gives up after some seconds on what the kernel itself
    /// cannot end.
    pub(crate) fn kill_all_programs(&self) {
        for _ in 0..2_000 {
            if self.kill_programs(None) == 0 {
                return;
            }
            kernel::sleep_until(kernel::monotonic() + 1_000_000);
        }
    }
    /// No thread of the run is at real-time priority any more, and no ordinary thread comes back
    /// here.
    pub fn unsupervised(&self) {
        self.latest.store(0, Ordering::Release);
        self.supervised.store(0, Ordering::Relaxed);
    }
    /// The calling thread will be raised: whoever is entered here is lowered when something goes
    /// wrong.
    ///
    /// # Errors
    /// There are too many.
    pub fn enter(&self) -> Result<Entry<'_>> {
        let tid = Thread::current().0;
        let free = |slot: &&AtomicI32| {
            slot.compare_exchange(0, tid, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        match self.threads.iter().find(free) {
            Some(slot) => Ok(Entry(slot)),
            None => Err(
                Error::new(format!("a run has at most {MAX_THREADS} threads"))
                    .remedy("give fewer tasks"),
            ),
        }
    }
    /// Has the run come to its end, and begun to end its watchdog?
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) != 0
    }
    /// Why the watchdog ended the run, if it did.
    pub fn tripped(&self) -> Option<Trip> {
        Trip::of(self.tripped.load(Ordering::Acquire))
    }
    /// Makes every thread that is entered an ordinary one.
    pub fn lower_all(&self) {
        self.lower_programs();
        for slot in &self.threads {
            let tid = slot.load(Ordering::Relaxed);
            if tid != 0 {
                // It fails only where the thread has gone.
                let _ = Thread(tid).lower();
            }
        }
    }
}

/// A short text, without memory of its own.
pub(super) struct Text {
    pub(super) bytes: [u8; 256],
    pub(super) len: usize,
}

impl Text {
    pub(super) const EMPTY: Self = Text {
        bytes: [0; 256],
        len: 0,
    };
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let into = self.bytes.get_mut(self.len..self.len + text.len());
        into.ok_or(std::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// The calling thread's entry on the board; taken out when dropped, which is before the thread
/// ends.
pub struct Entry<'a>(&'a AtomicI32);

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A board in memory that is shared with forked processes.
pub(super) struct Shared(Mapping);

impl Shared {
    pub(super) fn map() -> io::Result<Self> {
        Mapping::shared(size_of::<Board>()).map(Shared)
    }
}

/// A handle to a board, for threads of the engine, and the control group of the run's programs.
#[derive(Clone)]
pub struct BoardRef(pub(super) Arc<Shared>, pub(super) Option<Arc<Group>>);

impl BoardRef {
    /// One that no watchdog reads.
    ///
    /// # Errors
    /// No memory can be had.
    pub(crate) fn alone() -> io::Result<Self> {
        Ok(BoardRef(Arc::new(Shared::map()?), None))
    }

    /// The control group of the run's programs, where there can be one.
    pub(crate) fn group(&self) -> Option<&Group> {
        self.1.as_deref()
    }
}

impl std::ops::Deref for BoardRef {
    type Target = Board;
    fn deref(&self) -> &Board {
        // SAFETY: mapped for as long as this lives, as large as a board and aligned to a page; all
        // zero is a valid board, of atomic words that processes change at any time.
        unsafe { &*self.0.0.base().cast() }
    }
}

#[cfg(test)]
mod tests;
