//! One event of a schedule: a fixed record of 32 bytes, the same for simulated and real runs.
//!
//! What can happen is what 002 §2.1 (release, preemption, migration, completion, deadline), §2.4
//! (the seven overheads, Fig. 2.7) and chapter 4 (windows, servers, budgets) speak of.
//!
//! Assumes that the records of one trace are in the order in which things took effect: times never
//! go down, and what happens at one instant stands in the order of cause and effect (completions
//! before releases).

use model::Overhead;
use model::{CpuId, Duration, Instant, TaskId};
use std::fmt;

mod kind;
pub use kind::{EventKind, Flags};

mod making;

/// One event: 32 bytes. Made by the constructor of its kind; the meaning of `argument` is on
/// [`EventKind`].
///
/// Jobs of a task count from 0 (the papers' T_i^1 is job 0). [`Event::NO_TASK`] stands where an
/// event is about no job.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Event {
    /// When.
    pub time: Instant,
    /// Which job of the task, from 0.
    pub job: u64,
    /// What the kind says.
    pub argument: u64,
    /// The task, or [`Event::NO_TASK`].
    pub task: TaskId,
    processor: u16,
    /// What happened.
    pub kind: EventKind,
    /// What else is to be said.
    pub flags: Flags,
}

const _: () = assert!(size_of::<Event>() == Event::SIZE);

impl Event {
    /// Bytes of a record.
    pub const SIZE: usize = 32;
    /// The task of an event that is about no job.
    pub const NO_TASK: TaskId = TaskId(u32::MAX);
    /// The processor number of an event that happens on none (in the file format).
    const NO_PROCESSOR: u16 = u16::MAX;
    /// For how long, of a standstill.
    pub const fn length(&self) -> Duration {
        Duration::from_nanos(self.argument)
    }
    /// The processor, if it happened on one.
    pub const fn cpu(&self) -> Option<CpuId> {
        if self.processor == Self::NO_PROCESSOR {
            None
        } else {
            Some(CpuId(self.processor as u32))
        }
    }
    /// The argument of a release, a miss or a window: an absolute deadline.
    pub const fn deadline(&self) -> Instant {
        Instant::from_nanos(self.argument)
    }
    /// The overhead that begins or ends, where this is such an event with a number that means one.
    pub fn overhead_kind(&self) -> Option<Overhead> {
        match self.kind {
            EventKind::OverheadBegin | EventKind::OverheadEnd => {
                Overhead::from_number(self.argument)
            }
            _ => None,
        }
    }

    /// As it is written to a file: little-endian, `time job argument task processor kind flags`.
    pub fn to_bytes(&self) -> [u8; Event::SIZE] {
        let mut bytes = [0; Event::SIZE];
        bytes[..8].copy_from_slice(&self.time.nanos().to_le_bytes());
        bytes[8..16].copy_from_slice(&self.job.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.argument.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.task.0.to_le_bytes());
        bytes[28..30].copy_from_slice(&self.processor.to_le_bytes());
        bytes[30] = self.kind as u8;
        bytes[31] = self.flags.0;
        bytes
    }

    /// Reads what [`Event::to_bytes`] wrote; `None` for a kind that does not exist.
    pub fn from_bytes(bytes: &[u8; Event::SIZE]) -> Option<Self> {
        let [a, b, c, d] = Self::words_of(bytes);
        Self::from_words([a, b, c, d])
    }

    fn words_of(bytes: &[u8; Event::SIZE]) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*chunk);
        }
        words
    }

    /// As four words, the same bits as [`Event::to_bytes`].
    pub const fn to_words(&self) -> [u64; 4] {
        [
            self.time.nanos(),
            self.job,
            self.argument,
            self.task.0 as u64
                | (self.processor as u64) << 32
                | (self.kind as u64) << 48
                | (self.flags.0 as u64) << 56,
        ]
    }

    /// Reads what [`Event::to_words`] wrote; `None` for a kind that does not exist.
    pub fn from_words([time, job, argument, rest]: [u64; 4]) -> Option<Self> {
        Some(Event {
            time: Instant::from_nanos(time),
            job,
            argument,
            task: TaskId(rest as u32),
            processor: (rest >> 32) as u16,
            kind: EventKind::from_number((rest >> 48) as u8)?,
            flags: Flags((rest >> 56) as u8),
        })
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `4.2ms P1 release T3^2 deadline 11ms`, with tasks by number from 1 and jobs from 1, as the
/// papers write them.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.time)?;
        if let Some(cpu) = self.cpu() {
            write!(f, "{cpu:?} ")?;
        }
        write!(f, "{}", self.kind)?;
        if self.task != Self::NO_TASK {
            let task = u64::from(self.task.0) + 1;
            write!(f, " T{task}^{}", u128::from(self.job) + 1)?;
        }
        match self.kind {
            EventKind::Release | EventKind::DeadlineMiss | EventKind::Window => {
                write!(f, " deadline {}", self.deadline())
            }
            EventKind::Migration => write!(f, " from P{}", self.argument),
            EventKind::Completion if self.argument > 0 => {
                write!(f, " executed {}", Duration::from_nanos(self.argument))
            }
            EventKind::BudgetExhausted | EventKind::Standstill => {
                write!(f, " of {}", Duration::from_nanos(self.argument))
            }
            EventKind::OverheadBegin | EventKind::OverheadEnd => match self.overhead_kind() {
                Some(overhead) => write!(f, " {overhead}"),
                None => write!(f, " number {}", self.argument),
            },
            EventKind::ServerBegin | EventKind::ServerEnd => {
                write!(f, " N{}", u128::from(self.argument) + 1)
            }
            EventKind::PolicySwitch | EventKind::Lost => write!(f, " {}", self.argument),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_from_its_number_and_from_bytes() {
        let at = Instant::from_nanos(0x0123_4567_89ab_cdef);
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_number(kind as u8), Some(kind));
            let event = Event::new(kind, at, Some(CpuId(8191)), TaskId(7), 1 << 40, u64::MAX)
                .flagged(Flags::CUT);
            assert_eq!(Event::from_bytes(&event.to_bytes()), Some(event));
            assert_eq!(Event::from_words(event.to_words()), Some(event));
            assert_eq!(Event::words_of(&event.to_bytes()), event.to_words());
        }
        assert_eq!(EventKind::from_number(0), None);
        assert_eq!(EventKind::from_number(22), None);
        for overhead in Overhead::ALL {
            assert_eq!(Overhead::from_number(overhead as u64), Some(overhead));
        }
    }

    #[test]
    fn an_event_reads_as_the_papers_write_it() {
        let at = Instant::from_nanos(4_200_000);
        let deadline = Instant::from_nanos(11_000_000);
        let release = Event::release(at, CpuId(1), TaskId(2), 1, deadline);
        assert_eq!(release.to_string(), "4.2ms P1 release T3^2 deadline 11ms");
        let migration = Event::resumption(at, CpuId(0), CpuId(1), TaskId(2), 1);
        assert_eq!(migration.to_string(), "4.2ms P1 migration T3^2 from P0");
        let tick = Event::overhead_begin(at, CpuId(1), Overhead::Tick, None);
        assert_eq!(tick.to_string(), "4.2ms P1 overhead-begin tick");
        let standstill = Event::standstill(at, CpuId(1), Duration::from_millis(3));
        assert_eq!(standstill.to_string(), "4.2ms P1 standstill of 3ms");
    }
}
