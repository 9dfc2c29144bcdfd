//! The thread that puts events in order and hands them to the sink of a run, which may write files.
//!
//! How long that takes nobody knows, so it is not for the thread that takes the events, which is
//! made an ordinary one where jobs leave it no time. This thread stays behind all jobs, and what it
//! has not come to waits in a queue. When the queue is [half full](Taken), it goes before jobs as
//! well, a piece at a time, until it has emptied it.

use crate::behind::Seat;
use crate::collect::Collector;
use crate::course::{AT_ONCE, BETWEEN, EVERY};
use machine::realtime;
use model::watch::Watch;
use model::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use trace::queue::{Inlet, Outlet, queue};
use trace::{Event, Sink};

/// What the thread and the run share.
#[derive(Debug, Default)]
struct Desk {
    seat: Seat,
    /// Of the run, so many are over.
    seconds: AtomicU64,
    over: AtomicBool,
}

/// What the thread works with.
pub(crate) struct Written<'a, S, F> {
    pub collector: Collector,
    pub sink: &'a mut S,
    pub flush: F,
}

/// The thread, as the run knows it. When this goes, the thread comes to its end.
pub(crate) struct Writer<'scope, 'a, S, F> {
    desk: Held,
    thread: ScopedJoinHandle<'scope, Written<'a, S, F>>,
}

/// What the run has of the desk. When this goes, no more events come.
struct Held(Arc<Desk>);

/// Where events wait for the thread.
pub(crate) struct Taken {
    inlet: Inlet,
    /// The room of half a queue.
    half: u64,
    /// Records that were no events: the program does not write such.
    pub unreadable: u64,
}

impl Taken {
    /// Takes a record as it stands in the ring.
    pub fn take(&mut self, record: &[u8]) {
        let bytes = record.first_chunk::<{ Event::SIZE }>();
        let event = bytes.and_then(Event::from_bytes);
        // There is room: one asks before.
        if !event.is_some_and(|event| self.inlet.push(event)) {
            self.unreadable += 1;
        }
    }

    /// Is there room for so many?
    pub fn has_room(&mut self, count: usize) -> bool {
        self.inlet.has_room(count as u64)
    }

    /// Is less than half of the room left?
    pub fn presses(&mut self) -> bool {
        !self.inlet.has_room(self.half)
    }
}

impl<'scope, 'a: 'scope, S, F> Writer<'scope, 'a, S, F>
where
    S: Sink + Send,
    F: FnMut(&mut S) + Send + 'scope,
{
    /// Starts the thread. `room`: how many events may wait for it.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        room: usize,
        watch: &'a dyn Watch,
        mut written: Written<'a, S, F>,
    ) -> Result<(Self, Taken)> {
        let (inlet, mut outlet) = queue(room);
        let desk = Arc::new(Desk::default());
        let its = AtDesk(Arc::clone(&desk));
        let write = move || {
            its.0.seat.take();
            its.0.write(&mut outlet, watch, &mut written);
            drop(its);
            written
        };
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .stack_size(1 << 20)
            .spawn_scoped(scope, write)
            .map_err(|e| Error::new(format!("cannot start a thread for events: {e}")))?;
        let taken = Taken {
            inlet,
            half: room as u64 / 2,
            unreadable: 0,
        };
        let desk = Held(desk);
        Ok((Writer { desk, thread }, taken))
    }

    /// Lets it finish what there is. Returns what it has worked with.
    pub fn end(self) -> Written<'a, S, F> {
        let Writer { desk, thread } = self;
        drop(desk);
        // As if the calling thread had written.
        let panicked = |panic| std::panic::resume_unwind(panic);
        thread.join().unwrap_or_else(panicked)
    }
}

impl<S, F> Writer<'_, '_, S, F> {
    /// So much of the run is over.
    pub fn is_at(&self, seconds: u64) {
        self.desk.0.seconds.store(seconds, Ordering::Release);
    }

    /// Much waits for it.
    pub fn press(&self) {
        self.desk.0.seat.press();
    }

    /// Has it ended before it was told to? It has panicked, then.
    pub fn is_gone(&self) -> bool {
        self.thread.is_finished()
    }
}

/// What the thread has of it. When this goes, so does the thread.
struct AtDesk(Arc<Desk>);

impl Drop for AtDesk {
    fn drop(&mut self) {
        self.0.seat.leave();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        // Whatever runs still, the run does not wait for it.
        self.0.seat.press();
    }
}

impl Desk {
    fn write<S: Sink, F: FnMut(&mut S)>(
        &self,
        outlet: &mut Outlet,
        watch: &dyn Watch,
        written: &mut Written<'_, S, F>,
    ) {
        let Written {
            collector,
            sink,
            flush,
        } = written;
        let mut seconds = 0;
        loop {
            // Whoever says that it is over puts nothing in any more.
            let over = self.over.load(Ordering::Acquire);
            loop {
                let taken = outlet.take(AT_ONCE as u64, |event| collector.take(event));
                let handed = collector.hand_on(AT_ONCE, *sink);
                if taken == 0 && handed == 0 {
                    break;
                }
                // It may be over since.
                if self.seat.is_pressed() && !self.over.load(Ordering::Acquire) {
                    realtime::sleep(BETWEEN);
                }
            }
            let now = self.seconds.load(Ordering::Acquire);
            // It may take long: nothing for a thread that goes before jobs.
            if now > seconds && (over || !self.seat.is_pressed()) {
                watch.advance(now - seconds);
                seconds = now;
                flush(sink);
            }
            if over {
                return;
            }
            self.seat.rest();
            realtime::sleep(EVERY);
        }
    }
}
