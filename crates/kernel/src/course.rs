//! The time in which jobs run: events are taken, and what can end the run is looked after, until it
//! is over or cannot go on.

use crate::behind::Behind;
use crate::collect::SETTLED;
use crate::company::Company;
use crate::engine::{clock, refused};
use crate::hearing::Hearing;
use crate::intf::Plan;
use crate::loaded::Loaded;
use crate::worker::Shared;
use crate::writer::{Taken, Writer};
use execute::Ending;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use machine::realtime;
use model::watch::Watch;
use model::{Duration, Error, Instant, Result, TaskId, TaskSet};
use std::cell::RefCell;
use std::sync::atomic::Ordering;

/// How often events are taken.
pub(crate) const EVERY: Duration = Duration::from_millis(20);
/// So many are taken, or handed on, before it is looked whether jobs wait for that.
pub(crate) const AT_ONCE: usize = 64;
/// How long jobs have the processor before more is done, if they wait for it.
pub(crate) const BETWEEN: Duration = Duration::from_millis(1);
/// So often before it looks whether the run is over.
const MOST_TIMES: u32 = 64;

/// What came of it.
pub(crate) struct Course {
    /// When it was over.
    pub end: Instant,
    /// Why.
    pub ending: Ending,
    /// A task whose thread has left the class, which has ended it.
    pub gone: Option<TaskId>,
    /// Records that were no events.
    pub unreadable: u64,
}

/// What it goes by.
pub(crate) struct Going<'a> {
    pub loaded: &'a Loaded<'a>,
    pub plan: &'a Plan,
    pub watch: &'a dyn Watch,
    pub shared: &'a Shared,
}

impl Going<'_> {
    /// Has something failed that no run goes on without?
    fn has_failed(&self) -> Result<bool> {
        Ok(self.shared.panicked.load(Ordering::Acquire) > 0
            || self.shared.failed.load(Ordering::Acquire)
            || self.loaded.gone()?.is_some()
            || self.loaded.ending()?.is_some())
    }

    /// Sleeps for a while, and no longer than until the beginning or the end of the run. Returns
    /// whether it is over.
    fn sleep(&self) -> bool {
        let now = clock();
        let left = self
            .plan
            .horizon
            .saturating_sub(now.saturating_sub(self.plan.origin));
        let wait = match now >= self.plan.origin {
            true if left == 0 => return true,
            true => left.min(EVERY.nanos()),
            false => (self.plan.origin - now).clamp(1, EVERY.nanos()),
        };
        realtime::sleep(Duration::from_nanos(wait));
        false
    }

    /// Takes events until the run is over.
    ///
    /// # Errors
    /// They cannot be read; a program failed, or what hears triggers; a thread may not come in.
    pub fn on<S, F>(
        &self,
        hearing: Option<&Hearing<'_>>,
        company: &Company,
        writer: &Writer<'_, '_, S, F>,
        taken: Taken,
    ) -> Result<Course> {
        let taken = RefCell::new(taken);
        let mut ring = RingBufferBuilder::new();
        let unreadable = |e: libbpf_rs::Error| {
            Error::new(format!("cannot read the events of the program: {e}"))
                .at("--engine kernel")
                .remedy("run it from user space")
        };
        ring.add(self.loaded.events(), |record| {
            taken.borrow_mut().take(record);
            0
        })
        .map_err(unreadable)?;
        let ring = ring.build().map_err(unreadable)?;
        let behind = Behind::all(&self.plan.cpus);
        let horizon = Instant::from_nanos(self.plan.horizon);
        self.watch
            .begin("running", self.plan.horizon / 1_000_000_000);
        let mut ending = Ending::Horizon;
        while !self.sleep() {
            behind.comes();
            for _ in 0..MOST_TIMES {
                let is_empty = take(&ring, &taken, writer).map_err(unreadable)?;
                if is_empty {
                    break;
                }
                if behind.is_pressed() || !taken.borrow_mut().has_room(AT_ONCE) {
                    realtime::sleep(BETWEEN);
                }
            }
            writer.is_at(self.now().nanos() / 1_000_000_000);
            if self.shared.refused.load(Ordering::Acquire) > 0 {
                return Err(refused());
            }
            if let Some(e) = hearing.and_then(Hearing::failure) {
                return Err(e);
            }
            if let Some(e) = company.failure() {
                return Err(e);
            }
            if company.has_ended() {
                ending = Ending::ProgramsEnded;
            }
            if self.watch.stopped() {
                ending = Ending::Interrupted;
            }
            if ending != Ending::Horizon || writer.is_gone() || self.has_failed()? {
                break;
            }
            behind.rest();
        }
        drop(behind);
        // No job is released at the horizon or later, and nobody decides: it is no part of the
        // trace.
        let end = self.now().min(horizon);
        // All that was stamped before the end is in the ring by then.
        realtime::sleep(SETTLED);
        while !take(&ring, &taken, writer).map_err(unreadable)? && !writer.is_gone() {
            if !taken.borrow_mut().has_room(AT_ONCE) {
                realtime::sleep(BETWEEN);
            }
        }
        let unreadable = taken.borrow().unreadable;
        Ok(Course {
            end,
            ending,
            // From now on threads may leave.
            gone: self.loaded.gone()?,
            unreadable,
        })
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(clock().saturating_sub(self.plan.origin))
    }
}

/// Takes some events, if there is room for them. Returns whether no more are there.
///
/// # Errors
/// They cannot be read.
fn take<S, F>(
    ring: &RingBuffer<'_>,
    taken: &RefCell<Taken>,
    writer: &Writer<'_, '_, S, F>,
) -> libbpf_rs::Result<bool> {
    let (presses, has_room) = {
        let mut taken = taken.borrow_mut();
        (taken.presses(), taken.has_room(AT_ONCE))
    };
    if presses {
        writer.press();
    }
    if !has_room {
        return Ok(false);
    }
    let count = ring.consume_raw_n(AT_ONCE);
    match usize::try_from(count) {
        Ok(count) => Ok(count < AT_ONCE),
        Err(_) => Err(libbpf_rs::Error::from_raw_os_error(-count)),
    }
}

pub(crate) fn left(set: &TaskSet, task: TaskId) -> Error {
    Error::new(
        "its thread has left the scheduling class SCHED_EXT during the run, which has ended there",
    )
    .at(format!("task {}", set.name(task)))
    .remedy("leave the classes of threads as they are during a run (chrt, sched_setscheduler)")
}
