//! What the program in the kernel and its loader share, as `src/bpf/intf.h` says it: where each
//! field of the plan is, and of the page of a task. It is held against the
//! compiled program when the loader is compiled: `bpf_skel.rs`.
//!
//! Times are nanoseconds since the origin of the run, unless said otherwise.

/// The most processors, scheduling domains, tasks and rings of near processors of a plan.
pub const MAX_CPUS: usize = 64;
/// See [`MAX_CPUS`].
pub const MAX_DOMAINS: usize = 64;
/// See [`MAX_CPUS`].
pub const MAX_TASKS: usize = 256;
/// The most slices of a job.
pub const MAX_PARTS: usize = 8;
/// The most changes of all timetables together.
pub const MAX_CHANGES: usize = 512;
/// See [`MAX_CPUS`].
pub const MAX_LEVELS: usize = 6;
/// The numbers of the kernel's processors are below.
pub const MAX_NUMBER: usize = 1024;

/// What a call of the program returns that has come after the run.
pub const IS_OVER: u32 = 100;

/// No domain.
pub const NOBODY: u32 = u32::MAX;

/// What orders jobs of one class before the tie does (`policy::KeyedBy`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Keyed {
    /// The absolute deadline.
    #[default]
    Deadline = 0,
    /// Nothing.
    Priority = 1,
    /// The release.
    Release = 2,
}

impl From<policy::KeyedBy> for Keyed {
    fn from(by: policy::KeyedBy) -> Self {
        match by {
            policy::KeyedBy::Deadline => Keyed::Deadline,
            policy::KeyedBy::Priority => Keyed::Priority,
            policy::KeyedBy::Release => Keyed::Release,
        }
    }
}

/// One task of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TaskPlan {
    /// When its first job is released.
    pub phase: u64,
    /// The time from release to release.
    pub period: u64,
    /// The relative deadline.
    pub deadline: u64,
    /// How long a job may execute; 0: as long as it needs.
    pub budget: u64,
    /// Of the first k jobs, k · part / whole, rounded up, go to the first domain (002 §4.1); both
    /// are 1 for a task with one domain.
    pub part: u64,
    /// See `part`.
    pub whole: u64,
    /// The domains of its jobs; a second one that there is not is [`NOBODY`].
    pub home: [u32; 2],
    /// Of two jobs with one class and priority that of the lesser tie goes first.
    pub tie: u32,
    /// What orders jobs of one class before the tie does.
    pub keyed: Keyed,
    /// Jobs of a lesser class go before all of others.
    pub class: u32,
    /// How many slices a job has; 0: it is whole.
    pub parts: u32,
    /// Its server, if its domain has any.
    pub server: u32,
    /// Not the time releases its jobs: its trigger does.
    pub triggered: bool,
    /// A program does its jobs, by however many threads.
    pub many: bool,
    /// Where no job of it has a processor, they have those that no job needs.
    pub beyond: bool,
    /// It asks for its jobs.
    pub asks: bool,
}

/// Processors that are scheduled together.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DomainPlan {
    /// Their slots, as bits.
    pub cpus: u64,
    /// How long its timetable of servers is, which begins again and again (002 §4.3); 0: it has no
    /// servers.
    pub period: u64,
    /// The changes of the timetable, in order.
    pub changes: Vec<ChangePlan>,
    /// Who runs is decided in user space, once in so long; 0: the program decides, at every event.
    pub quantum: u64,
}

/// From this time on, after the beginning of the timetable, a processor serves this server, or none
/// ([`NOBODY`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangePlan {
    /// When.
    pub offset: u64,
    /// Which processor.
    pub slot: u32,
    /// Which server.
    pub server: u32,
}

/// One slice of the jobs of a task (002 §4.2). Times count from the release of the job.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PartPlan {
    /// How long it may execute; of no meaning in the last one.
    pub budget: u64,
    /// When it becomes ready, if the slice before it is used up by then.
    pub released: u64,
    /// Its deadline.
    pub due: u64,
    /// Where it runs.
    pub domain: u32,
    /// Of two that are due at once that of the lesser tie goes first.
    pub tie: u32,
}

/// A plan as the program reads it. Processors are named by slots, in the order of the caches that
/// they share; sets of them are bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What `CLOCK_MONOTONIC` reads at time zero; `u64::MAX`: not known yet.
    pub origin: u64,
    /// No job is released then or later.
    pub horizon: u64,
    /// By slot, the number of the processor; all below [`MAX_NUMBER`].
    pub cpus: Vec<u32>,
    /// By slot, sets that widen: the slots behind its nearest shared cache, and so on.
    pub near: Vec<Vec<u64>>,
    /// The domains.
    pub domains: Vec<DomainPlan>,
    /// The tasks.
    pub tasks: Vec<TaskPlan>,
    /// The thread that loads the program; 0: not known yet.
    pub loader: i32,
    /// By task, its thread, of a program its first one; empty as long as there are none.
    pub threads: Vec<i32>,
    /// By task, where its program has the word that says how many jobs it has done, in its own
    /// memory; 0: nowhere. Empty as long as nobody knows.
    pub replies: Vec<u64>,
    /// By task, the slices of its jobs; none: they are whole.
    pub parts: Vec<Vec<PartPlan>>,
}

/// Bytes of a task in a plan.
pub(crate) const TASK: usize = 96;
/// Bytes of a domain in a plan.
pub(crate) const DOMAIN: usize = 32;
/// Bytes of a change in a plan.
pub(crate) const CHANGE: usize = 16;
/// Bytes of a slice in a plan.
pub(crate) const PART: usize = 32;

impl Plan {
    /// Bytes of `struct plan`.
    pub const SIZE: usize = 8 * (3 + MAX_CPUS * MAX_LEVELS)
        + DOMAIN * MAX_DOMAINS
        + CHANGE * MAX_CHANGES
        + (8 + TASK + PART * MAX_PARTS) * MAX_TASKS
        + 4 * (MAX_CPUS + MAX_NUMBER + 2 + MAX_TASKS);

    /// As `struct plan` lies in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::SIZE);
        let long = |bytes: &mut Vec<u8>, word: u64| bytes.extend(word.to_ne_bytes());
        let short = |bytes: &mut Vec<u8>, word: u32| bytes.extend(word.to_ne_bytes());
        long(&mut bytes, self.origin);
        long(&mut bytes, self.horizon);
        short(&mut bytes, self.tasks.len() as u32);
        short(&mut bytes, self.domains.len() as u32);
        let (none, mut first) = (DomainPlan::default(), 0);
        for domain in 0..MAX_DOMAINS {
            let domain = self.domains.get(domain).unwrap_or(&none);
            long(&mut bytes, domain.cpus);
            long(&mut bytes, domain.period);
            short(&mut bytes, first);
            short(&mut bytes, domain.changes.len() as u32);
            long(&mut bytes, domain.quantum);
            first += domain.changes.len() as u32;
        }
        for task in 0..MAX_TASKS {
            let task = self.tasks.get(task).copied().unwrap_or_default();
            let times = [task.phase, task.period, task.deadline, task.budget];
            for word in times.into_iter().chain([task.part, task.whole]) {
                long(&mut bytes, word);
            }
            let (keyed, [first, second]) = (task.keyed as u32, task.home);
            for word in [first, second, task.tie, keyed, task.class, task.parts] {
                short(&mut bytes, word);
            }
            short(&mut bytes, task.server);
            short(&mut bytes, u32::from(task.triggered));
            short(&mut bytes, u32::from(task.many));
            short(&mut bytes, u32::from(task.beyond));
            short(&mut bytes, u32::from(task.asks));
            short(&mut bytes, 0);
        }
        for slot in 0..MAX_CPUS {
            for level in 0..MAX_LEVELS {
                let ring = self.near.get(slot).and_then(|rings| rings.get(level));
                long(&mut bytes, ring.copied().unwrap_or(0));
            }
        }
        for slot in 0..MAX_CPUS {
            short(&mut bytes, self.cpus.get(slot).copied().unwrap_or(0));
        }
        for number in 0..MAX_NUMBER {
            let slot = self.cpus.iter().position(|cpu| *cpu as usize == number);
            short(&mut bytes, slot.map_or(u32::MAX, |slot| slot as u32));
        }
        bytes.extend(self.loader.to_ne_bytes());
        let beyond = self.tasks.iter().filter(|task| task.beyond);
        short(&mut bytes, beyond.count() as u32);
        for task in 0..MAX_TASKS {
            let thread = self.threads.get(task).copied().unwrap_or(0);
            bytes.extend(thread.to_ne_bytes());
        }
        for task in 0..MAX_TASKS {
            long(&mut bytes, self.replies.get(task).copied().unwrap_or(0));
        }
        for task in 0..MAX_TASKS {
            for part in 0..MAX_PARTS {
                let part = self.parts.get(task).and_then(|parts| parts.get(part));
                let part = part.copied().unwrap_or_default();
                for word in [part.budget, part.released, part.due] {
                    long(&mut bytes, word);
                }
                short(&mut bytes, part.domain);
                short(&mut bytes, part.tie);
            }
        }
        for change in self.domains.iter().flat_map(|domain| &domain.changes) {
            long(&mut bytes, change.offset);
            short(&mut bytes, change.slot);
            short(&mut bytes, change.server);
        }
        bytes.resize(Self::SIZE, 0);
        bytes
    }
}

/// Who runs in a quantum, by slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The number of the job.
    pub job: [u64; MAX_CPUS],
    /// Its task; `u64::MAX`: none.
    pub task: [u64; MAX_CPUS],
    /// Bits of slots that are left idle although a job is ready (003 §3.1).
    pub deliberate: u64,
}

impl Default for Choice {
    /// Nobody runs.
    fn default() -> Self {
        Choice {
            job: [0; MAX_CPUS],
            task: [u64::MAX; MAX_CPUS],
            deliberate: 0,
        }
    }
}

impl Choice {
    /// Bytes of `struct choice`.
    pub const SIZE: usize = 8 * (2 * MAX_CPUS + 2);

    /// Its words, as `struct choice` has them.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let slots = self.job.iter().chain(&self.task).copied();
        slots.chain([self.deliberate, 0])
    }
}

/// Bytes of `struct seen`: the moment, a word of no use, and by task how many jobs have ended.
pub const SEEN: usize = 8 * (2 + MAX_TASKS);

/// What is asked of the program for a task that has a trigger: `struct asking`.
pub fn asking(task: u32, count: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&task.to_ne_bytes());
    bytes[8..].copy_from_slice(&count.to_ne_bytes());
    bytes
}

/// Bytes of what came of the trigger of a task, `struct asked`.
pub const ASKED: usize = 64;
/// Where in it stands how many releases are asked for and have not been.
pub const ASKED_PENDING: usize = 0;
/// Where in it stands how many were asked for.
pub const ASKED_EVENTS: usize = 32;
/// Where in it stands how many of them came too early.
pub const ASKED_DEFERRED: usize = 40;
/// Where in it stands whether thousands of jobs are released and not begun.
pub const ASKED_OVERRUN: usize = 48;

/// Bytes of the page of a task, `struct page`.
pub const PAGE: usize = 64;
/// Where in it the task counts its jobs that are done.
pub const PAGE_DONE: usize = 0;
/// Where in it stands the number of its current job, from 0.
pub const PAGE_NUMBER: usize = 8;
/// Where in it stands when its current job was released.
pub const PAGE_RELEASE: usize = 16;
/// Where in it stands the deadline of its current job.
pub const PAGE_DEADLINE: usize = 24;
/// Where in it stands how many jobs it was given.
pub const PAGE_GIVEN: usize = 32;
/// Where in it stands, counted from 1, the latest job that was chosen at its release. Of a program
/// that asks for its jobs: `u64::MAX` when its first process has ended.
pub const PAGE_CHOSEN: usize = 40;
/// Where in it stands how often a job of a program that asks for them was preempted and went on
/// where it was.
pub const PAGE_PREEMPTIONS: usize = 48;
/// Where in it stands how often on another processor.
pub const PAGE_MIGRATIONS: usize = 56;

/// The longest message of the kernel that is kept.
pub const MESSAGE: usize = 256;

/// How the program came to its end in the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ending {
    /// The kernel's kind of exit; 0: the program is there.
    pub kind: u64,
    /// Why, in the kernel's words.
    pub reason: String,
    /// More of that.
    pub message: String,
}

impl Ending {
    /// Bytes of `struct ending`.
    pub const SIZE: usize = 16 + 2 * MESSAGE;

    /// The kind of a program that the process has unloaded which had loaded it (`SCX_EXIT_UNREG`).
    pub const UNLOADED: u64 = 64;

    /// Reads `struct ending`; `None`: there are too few bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = |at: usize| {
            let bytes = bytes.get(at..at + MESSAGE)?;
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(MESSAGE);
            Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
        };
        Some(Ending {
            kind: u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?),
            reason: text(16)?,
            message: text(16 + MESSAGE)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_the_size_that_is_said() {
        let plan = Plan {
            origin: 1,
            horizon: 2,
            cpus: vec![5, 3],
            near: vec![vec![1, 3], vec![2, 3]],
            domains: vec![DomainPlan {
                cpus: 3,
                ..DomainPlan::default()
            }],
            tasks: vec![TaskPlan {
                tie: 7,
                ..TaskPlan::default()
            }],
            loader: 4,
            threads: vec![9],
            replies: Vec::new(),
            parts: Vec::new(),
        };
        let bytes = plan.to_bytes();
        assert_eq!(bytes.len(), Plan::SIZE);
        // The slot of processor 3 is 1, that of 4 none.
        let parts = (8 + PART * MAX_PARTS) * MAX_TASKS + CHANGE * MAX_CHANGES;
        let slots = Plan::SIZE - parts - 4 * (MAX_NUMBER + 2 + MAX_TASKS);
        assert_eq!(
            bytes[slots + 12..slots + 20],
            [1, 0, 0, 0, 255, 255, 255, 255]
        );
        assert_eq!(bytes[bytes.len() - parts - 4 * MAX_TASKS], 9);
    }

    #[test]
    fn an_ending_reads_back() {
        let mut bytes = vec![0; Ending::SIZE];
        bytes[0] = 3;
        bytes[16..21].copy_from_slice(b"stall");
        let ending = Ending::from_bytes(&bytes).unwrap();
        assert_eq!(
            (ending.kind, &*ending.reason, &*ending.message),
            (3, "stall", "")
        );
        assert_eq!(Ending::from_bytes(&bytes[1..]), None);
    }
}
