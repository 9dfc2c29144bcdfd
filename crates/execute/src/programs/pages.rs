//! The pages that a run shares with a program that was written for it, from the side of the run
//! (000 §3.3).

use model::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use warmset_task::Job;
use warmset_task::page::{Bells, Control, Reply, VERSION};
use warmset_task::shared::{Others, Shared, futex_wake};

/// The page by which sentinels are woken, one word a processor: a program that has done a job rings
/// there.
#[derive(Debug)]
pub(crate) struct SentinelBells {
    pub page: Shared<Bells>,
    file: OwnedFd,
}

fn failed(e: std::io::Error) -> Error {
    Error::new(format!("cannot share memory with programs: {e}"))
        .remedy("it takes Linux 5.1 or later")
}

impl SentinelBells {
    /// New ones, never rung.
    ///
    /// # Errors
    /// No memory to be had.
    pub fn new() -> Result<Self> {
        let (page, file) = Shared::create(Others::Write).map_err(failed)?;
        Ok(SentinelBells { page, file })
    }
}

/// A choice of a task, for its control page. Times are readings of the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// The job's number, from 0.
    pub number: u64,
    pub release: u64,
    pub deadline: u64,
    pub processor: u32,
    /// Its bell.
    pub bell: u32,
    pub now: u64,
    /// The processor that the job was on before, if it was on one.
    pub before: Option<u32>,
}

/// The pages of one task.
#[derive(Debug)]
pub(crate) struct Pages {
    control: Shared<Control>,
    reply: Shared<Reply>,
    files: [OwnedFd; 2],
    saying: Saying,
}

/// What a control page says, and when the job left its processor. Dispatchers have the domain's
/// lock here.
#[derive(Debug, Default)]
struct Saying(Mutex<(Job, u64)>);

impl Saying {
    fn leave(&self, now: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = now;
    }

    fn choose(&self, control: &Control, choice: &Choice) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = said.1;
        let job = &mut said.0;
        job.number = choice.number + 1;
        job.release = choice.release;
        job.deadline = choice.deadline;
        job.processor = choice.processor;
        if let Some(before) = choice.before {
            job.preemption_length = choice.now.saturating_sub(left);
            match before == choice.processor {
                true => job.preemptions += 1,
                false => job.migrations += 1,
            }
        }
        control.bell.store(choice.bell, Ordering::Release);
        control.write(job);
    }
}

/// The control page of a task whose jobs a thread of this process does: the thread reads it where
/// it is.
#[derive(Debug)]
pub(crate) struct Notice {
    control: Arc<Control>,
    saying: Saying,
}

impl Notice {
    /// Written on this page.
    pub fn on(control: Arc<Control>) -> Self {
        Notice {
            control,
            saying: Saying::default(),
        }
    }

    /// Its job was taken off its processor.
    pub fn leave(&self, now: u64) {
        self.saying.leave(now);
    }

    /// Its job is being chosen for a processor.
    pub fn begin(&self) {
        self.control.begin();
    }

    /// Its job was chosen for a processor.
    pub fn choose(&self, choice: &Choice) {
        self.saying.choose(&self.control, choice);
    }
}

impl Pages {
    /// New ones.
    ///
    /// # Errors
    /// No memory to be had.
    pub fn new() -> Result<Self> {
        let (control, control_file) = Shared::<Control>::create(Others::Read).map_err(failed)?;
        let (reply, reply_file) = Shared::create(Others::Write).map_err(failed)?;
        control.version.store(VERSION, Ordering::Release);
        Ok(Pages {
            control,
            reply,
            files: [control_file, reply_file],
            saying: Saying::default(),
        })
    }

    /// What the program gets: its pages and the bells.
    pub fn files<'a>(&'a self, bells: &'a SentinelBells) -> [&'a OwnedFd; 3] {
        [&self.files[0], &self.files[1], &bells.file]
    }

    /// The numbers of these descriptors.
    pub fn numbers(&self, bells: &SentinelBells) -> [RawFd; 3] {
        self.files(bells).map(AsRawFd::as_raw_fd)
    }

    /// Has the program asked for its first job?
    pub fn is_waiting(&self) -> bool {
        self.reply.waiting.load(Ordering::Acquire) != 0
    }

    /// Tells it to do one more job.
    pub fn tell(&self) {
        self.control.told.fetch_add(1, Ordering::Release);
        futex_wake(&self.control.told);
    }

    /// How many jobs it was told to do, and how many it has done; both wrap.
    pub fn counts(&self) -> (u32, u32) {
        let done = self.reply.done.load(Ordering::Acquire);
        (self.control.told.load(Ordering::Acquire), done)
    }

    /// What it reads of its job.
    pub fn say(&self, job: &Job) {
        self.control.write(job);
    }

    /// Where the program has the word that says how many jobs it has done, in its own memory.
    pub fn place(&self) -> u64 {
        self.reply.place.load(Ordering::Acquire)
    }

    /// Has it done all that it was told to do?
    pub fn is_done(&self) -> bool {
        self.reply.done.load(Ordering::Acquire) == self.control.told.load(Ordering::Acquire)
    }

    /// When it began its latest job, as a reading of the clock.
    pub fn began(&self) -> u64 {
        self.reply.began.load(Ordering::Acquire)
    }

    /// The run is over.
    pub fn end(&self) {
        self.control.over.store(1, Ordering::Release);
        // Who sleeps for the next job wakes up, and sees it.
        futex_wake(&self.control.told);
    }

    /// Its job was taken off its processor.
    pub fn leave(&self, now: u64) {
        self.saying.leave(now);
    }

    /// Its job is being chosen for a processor.
    pub fn begin(&self) {
        self.control.begin();
    }

    /// Its job was chosen for a processor.
    pub fn choose(&self, choice: &Choice) {
        self.saying.choose(&self.control, choice);
    }
}
