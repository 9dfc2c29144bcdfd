//! One event of a schedule: a fixed record of 32 bytes, the same for simulated and real runs.
//!
//! What can happen is what 002 §2.1 (release, preemption, migration, completion, deadline), §2.4 (the seven overheads, Fig.
//! 2.7) and chapter 4 (windows, servers, budgets) speak of.
//!
//! Assumes that the records of one trace are in the order in which things took effect: times never go down, and what
//! happens at one instant stands in the order of cause and effect (completions before releases).

use crate::overhead::Overhead;
use model::{CpuId, Duration, Instant, TaskId};
use std::fmt;

/// What happened. The numbers are those of the file format and never change their meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum EventKind {
    /// A job is released; recorded at the nominal instant. Argument: its absolute deadline.
    Release = 1,
    /// A job runs for the first time.
    Start = 2,
    /// A running job leaves its processor unfinished and stays ready.
    Preemption = 3,
    /// A job runs again where it last ran.
    Resumption = 4,
    /// A job runs again, on another processor than before. Argument: the processor on which it last ran.
    Migration = 5,
    /// A running job is done and leaves its processor. Argument: how long it executed, without overheads; 0 if not known.
    Completion = 6,
    /// A job is known to have missed its deadline: recorded just before its completion, at the latest at the end of the trace.
    /// Argument: the absolute deadline.
    DeadlineMiss = 7,
    /// A job has used up its budget, or that of its slice or quantum. Argument: the budget.
    BudgetExhausted = 8,
    /// An overhead begins on a processor. Argument: which, see [`Overhead`]. The job is the one that it serves, if any.
    OverheadBegin = 9,
    /// That overhead ends. Same argument.
    OverheadEnd = 10,
    /// A processor has no job from now on. With [`Flags::DELIBERATE`]: although one is ready (003 §3.1, phantom tasks).
    Idle = 11,
    /// A server begins to be served by a processor (002 §4.3). Argument: the number of the server, from 0.
    ServerBegin = 12,
    /// It ceases to be. Same argument.
    ServerEnd = 13,
    /// A slice of a split job becomes ready on its processor (002 §4.2). Argument: the absolute deadline of its window.
    /// The first slice has one too, just after the release.
    Window = 14,
    /// A running job gives up its processor by itself and is not ready until it wakes up (real programs only).
    Suspension = 15,
    /// A suspended job is ready again.
    WakeUp = 16,
    /// From here on another policy of the header rules. Argument: its place there, from 0.
    PolicySwitch = 17,
    /// Events of this processor were lost before this record. Argument: how many.
    Lost = 18,
    /// The trace ends here, complete. Its time is the horizon.
    End = 19,
    /// A quantum-driven policy decides now who runs in the quantum that is under way. Real runs only, which come late to the
    /// boundary; the processor is the first of the domain.
    Quantum = 20,
    /// The machine ran nothing on this processor for a while, not even the most urgent thread, which was due then: firmware or
    /// a hypervisor had it, or the kernel did not let go of it. Recorded when it ran again. Argument: for how long. Real runs only.
    Standstill = 21,
}

impl EventKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [EventKind; 21] = [
        EventKind::Release,
        EventKind::Start,
        EventKind::Preemption,
        EventKind::Resumption,
        EventKind::Migration,
        EventKind::Completion,
        EventKind::DeadlineMiss,
        EventKind::BudgetExhausted,
        EventKind::OverheadBegin,
        EventKind::OverheadEnd,
        EventKind::Idle,
        EventKind::ServerBegin,
        EventKind::ServerEnd,
        EventKind::Window,
        EventKind::Suspension,
        EventKind::WakeUp,
        EventKind::PolicySwitch,
        EventKind::Lost,
        EventKind::End,
        EventKind::Quantum,
        EventKind::Standstill,
    ];

    /// The kind of a number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        EventKind::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    /// Its name in CSV and pictures: `deadline-miss`.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Release => "release",
            EventKind::Start => "start",
            EventKind::Preemption => "preemption",
            EventKind::Resumption => "resumption",
            EventKind::Migration => "migration",
            EventKind::Completion => "completion",
            EventKind::DeadlineMiss => "deadline-miss",
            EventKind::BudgetExhausted => "budget-exhausted",
            EventKind::OverheadBegin => "overhead-begin",
            EventKind::OverheadEnd => "overhead-end",
            EventKind::Idle => "idle",
            EventKind::ServerBegin => "server-begin",
            EventKind::ServerEnd => "server-end",
            EventKind::Window => "window",
            EventKind::Suspension => "suspension",
            EventKind::WakeUp => "wake-up",
            EventKind::PolicySwitch => "policy-switch",
            EventKind::Lost => "lost",
            EventKind::End => "end",
            EventKind::Quantum => "quantum",
            EventKind::Standstill => "standstill",
        }
    }

    /// Is it about one job of one task?
    pub const fn has_job(self) -> bool {
        matches!(
            self,
            EventKind::Release
                | EventKind::Start
                | EventKind::Preemption
                | EventKind::Resumption
                | EventKind::Migration
                | EventKind::Completion
                | EventKind::DeadlineMiss
                | EventKind::BudgetExhausted
                | EventKind::Window
                | EventKind::Suspension
                | EventKind::WakeUp
        )
    }

    /// Does it put a job on a processor?
    pub const fn puts_on(self) -> bool {
        matches!(
            self,
            EventKind::Start | EventKind::Resumption | EventKind::Migration
        )
    }

    /// Does it take a job off its processor?
    pub const fn takes_off(self) -> bool {
        matches!(
            self,
            EventKind::Preemption | EventKind::Completion | EventKind::Suspension
        )
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What else is to be said of an event: bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// Nothing.
    pub const NONE: Flags = Flags(0);
    /// Of a completion: the job was cut short because its budget was used up.
    pub const CUT: Flags = Flags(1);
    /// Of an idle processor: left idle on purpose, with a job ready.
    pub const DELIBERATE: Flags = Flags(2);
    /// Every bit that has a meaning.
    pub const KNOWN: Flags = Flags(3);

    /// Are all bits of `other` set?
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// One event: 32 bytes. Made by the constructor of its kind; the meaning of `argument` is on [`EventKind`].
///
/// Jobs of a task count from 0 (the papers' T_i^1 is job 0). [`Event::NO_TASK`] stands where an event is about no job.
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

    const fn new(
        kind: EventKind,
        time: Instant,
        cpu: Option<CpuId>,
        task: TaskId,
        job: u64,
        argument: u64,
    ) -> Self {
        Event {
            time,
            job,
            argument,
            task,
            processor: match cpu {
                // Linux numbers at most 8192 processors (`CpuSet::MAX_CPU`).
                Some(cpu) => cpu.0 as u16,
                None => Self::NO_PROCESSOR,
            },
            kind,
            flags: Flags::NONE,
        }
    }

    /// Job `job` of `task` is released, `cpu` handles the release; `deadline` is absolute.
    pub const fn release(time: Instant, cpu: CpuId, task: TaskId, job: u64, deadline: Instant) -> Self {
        Self::new(EventKind::Release, time, Some(cpu), task, job, deadline.nanos())
    }
    /// The job runs for the first time.
    pub const fn start(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::Start, time, Some(cpu), task, job, 0)
    }
    /// The job leaves its processor unfinished and stays ready.
    pub const fn preemption(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::Preemption, time, Some(cpu), task, job, 0)
    }
    /// The job runs again; a migration when it last ran elsewhere.
    pub const fn resumption(time: Instant, from: CpuId, to: CpuId, task: TaskId, job: u64) -> Self {
        if from.0 == to.0 {
            Self::new(EventKind::Resumption, time, Some(to), task, job, 0)
        } else {
            Self::new(EventKind::Migration, time, Some(to), task, job, from.0 as u64)
        }
    }
    /// The job is done, having executed for `executed` without overheads (zero: not known).
    pub const fn completion(time: Instant, cpu: CpuId, task: TaskId, job: u64, executed: Duration) -> Self {
        Self::new(
            EventKind::Completion,
            time,
            Some(cpu),
            task,
            job,
            executed.nanos(),
        )
    }
    /// The job has missed its absolute `deadline`. `cpu`: where it runs, if anywhere.
    pub const fn deadline_miss(
        time: Instant,
        cpu: Option<CpuId>,
        task: TaskId,
        job: u64,
        deadline: Instant,
    ) -> Self {
        Self::new(EventKind::DeadlineMiss, time, cpu, task, job, deadline.nanos())
    }
    /// The job has used up `budget`.
    pub const fn budget_exhausted(
        time: Instant,
        cpu: CpuId,
        task: TaskId,
        job: u64,
        budget: Duration,
    ) -> Self {
        Self::new(
            EventKind::BudgetExhausted,
            time,
            Some(cpu),
            task,
            job,
            budget.nanos(),
        )
    }
    /// An overhead begins on `cpu`, on behalf of a job if there is one.
    pub const fn overhead_begin(
        time: Instant,
        cpu: CpuId,
        overhead: Overhead,
        job: Option<(TaskId, u64)>,
    ) -> Self {
        Self::overhead(EventKind::OverheadBegin, time, cpu, overhead, job)
    }
    /// The overhead ends.
    pub const fn overhead_end(
        time: Instant,
        cpu: CpuId,
        overhead: Overhead,
        job: Option<(TaskId, u64)>,
    ) -> Self {
        Self::overhead(EventKind::OverheadEnd, time, cpu, overhead, job)
    }
    const fn overhead(
        kind: EventKind,
        time: Instant,
        cpu: CpuId,
        overhead: Overhead,
        job: Option<(TaskId, u64)>,
    ) -> Self {
        let (task, job) = match job {
            Some(job) => job,
            None => (Self::NO_TASK, 0),
        };
        Self::new(kind, time, Some(cpu), task, job, overhead as u64)
    }
    /// `cpu` has no job from now on.
    pub const fn idle(time: Instant, cpu: CpuId) -> Self {
        Self::new(EventKind::Idle, time, Some(cpu), Self::NO_TASK, 0, 0)
    }
    /// A server begins to be served by `cpu`.
    pub const fn server_begin(time: Instant, cpu: CpuId, server: u32) -> Self {
        Self::new(
            EventKind::ServerBegin,
            time,
            Some(cpu),
            Self::NO_TASK,
            0,
            server as u64,
        )
    }
    /// A server ceases to be served by `cpu`.
    pub const fn server_end(time: Instant, cpu: CpuId, server: u32) -> Self {
        Self::new(
            EventKind::ServerEnd,
            time,
            Some(cpu),
            Self::NO_TASK,
            0,
            server as u64,
        )
    }
    /// A slice of a split job becomes ready on `cpu`, to be done by the absolute `deadline` of its window.
    pub const fn window(time: Instant, cpu: CpuId, task: TaskId, job: u64, deadline: Instant) -> Self {
        Self::new(EventKind::Window, time, Some(cpu), task, job, deadline.nanos())
    }
    /// The job gives up its processor by itself.
    pub const fn suspension(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::Suspension, time, Some(cpu), task, job, 0)
    }
    /// The job is ready again.
    pub const fn wake_up(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::WakeUp, time, Some(cpu), task, job, 0)
    }
    /// The policy at this place of the header rules from now on.
    pub const fn policy_switch(time: Instant, place: u32) -> Self {
        Self::new(
            EventKind::PolicySwitch,
            time,
            None,
            Self::NO_TASK,
            0,
            place as u64,
        )
    }
    /// `count` events of `cpu` were lost before this one.
    pub const fn lost(time: Instant, cpu: CpuId, count: u64) -> Self {
        Self::new(EventKind::Lost, time, Some(cpu), Self::NO_TASK, 0, count)
    }
    /// Up to `count` events of all processors were lost before this one: a part of the file is damaged.
    pub const fn lost_anywhere(time: Instant, count: u64) -> Self {
        Self::new(EventKind::Lost, time, None, Self::NO_TASK, 0, count)
    }
    /// The trace ends.
    pub const fn end(time: Instant) -> Self {
        Self::new(EventKind::End, time, None, Self::NO_TASK, 0, 0)
    }

    /// `cpu` ran nothing for `length`, until now.
    pub const fn standstill(time: Instant, cpu: CpuId, length: Duration) -> Self {
        Self::new(
            EventKind::Standstill,
            time,
            Some(cpu),
            Self::NO_TASK,
            0,
            length.nanos(),
        )
    }
    /// For how long, of a standstill.
    pub const fn length(&self) -> Duration {
        Duration::from_nanos(self.argument)
    }
    /// A quantum-driven policy decides who runs in this quantum; `cpu` is the first processor of its domain.
    pub const fn quantum(time: Instant, cpu: CpuId) -> Self {
        Self::new(EventKind::Quantum, time, Some(cpu), Self::NO_TASK, 0, 0)
    }

    /// The same event with more flags.
    #[must_use]
    pub const fn flagged(mut self, flags: Flags) -> Self {
        self.flags = self.flags.with(flags);
        self
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
            EventKind::OverheadBegin | EventKind::OverheadEnd => Overhead::from_number(self.argument),
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

/// `4.2ms P1 release T3^2 deadline 11ms`, with tasks by number from 1 and jobs from 1, as the papers write them.
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
            let event =
                Event::new(kind, at, Some(CpuId(8191)), TaskId(7), 1 << 40, u64::MAX).flagged(Flags::CUT);
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
