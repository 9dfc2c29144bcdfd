//! A queue of events between two threads, without locks: neither ever waits for the other.
//!
//! It is made of words that are atomic each: the writer writes the four words of an event and then,
//! with release order, how many events there are; the reader reads that with acquire order and only
//! then the words. No word is read while it may be written.

use crate::event::Event;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keeps what two threads write apart, on processors that fetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Apart(pub AtomicU64);

struct Queue {
    slots: Box<[[AtomicU64; 4]]>,
    /// Events ever written. Only the writer writes it.
    written: Apart,
    /// Events ever read. Only the reader writes it.
    read: Apart,
}

impl Queue {
    fn slot(&self, number: u64) -> &[AtomicU64; 4] {
        &self.slots[(number % self.slots.len() as u64) as usize]
    }
}

/// Puts events in. Can be sent to another thread, and belongs to one at a time.
pub struct Inlet {
    queue: Arc<Queue>,
    written: u64,
    /// What the reader had read when this was last looked at.
    read: u64,
}

/// Takes events out. Can be sent to another thread, and belongs to one at a time.
pub struct Outlet {
    queue: Arc<Queue>,
}

/// A queue with room for so many events; one at least.
pub fn queue(capacity: usize) -> (Inlet, Outlet) {
    let slots = (0..capacity.max(1)).map(|_| Default::default()).collect();
    let queue = Arc::new(Queue {
        slots,
        written: Apart::default(),
        read: Apart::default(),
    });
    let inlet = Inlet {
        queue: Arc::clone(&queue),
        written: 0,
        read: 0,
    };
    (inlet, Outlet { queue })
}

impl Inlet {
    /// Is there room for so many events? It looks at what has been read only where the room known
    /// so far is too small.
    #[inline]
    pub fn has_room(&mut self, count: u64) -> bool {
        let capacity = self.queue.slots.len() as u64;
        if self.written + count - self.read > capacity {
            self.read = self.queue.read.0.load(Ordering::Acquire);
        }
        self.written + count - self.read <= capacity
    }

    /// Puts an event in. Returns whether there was room for it. Never allocates.
    #[inline]
    pub fn push(&mut self, event: Event) -> bool {
        let has_room = self.has_room(1);
        if has_room {
            self.put(event);
        }
        has_room
    }

    /// The same where there is room, as [`has_room`](Self::has_room) has said.
    #[inline]
    pub(crate) fn put(&mut self, event: Event) {
        let slot = self.queue.slot(self.written).iter();
        for (slot, word) in slot.zip(event.to_words()) {
            slot.store(word, Ordering::Relaxed);
        }
        self.written += 1;
        self.queue.written.0.store(self.written, Ordering::Release);
    }

    /// Reads the place of the next event, so that it is in the caches when there is something to
    /// write.
    #[inline]
    pub(crate) fn foresee(&self) -> u64 {
        self.queue.slot(self.written)[0].load(Ordering::Relaxed)
    }
}

impl Outlet {
    /// Takes out the events that are in the queue, the oldest first, and no more than so many.
    /// Returns how many; whoever writes finds their places free when all have been taken.
    pub fn take(&mut self, most: u64, mut each: impl FnMut(Event)) -> u64 {
        let written = self.queue.written.0.load(Ordering::Acquire);
        let read = self.queue.read.0.load(Ordering::Relaxed);
        let until = written.min(read.saturating_add(most));
        for number in read..until {
            let slot = self.queue.slot(number);
            let words = [0, 1, 2, 3].map(|i: usize| slot[i].load(Ordering::Relaxed));
            // What has been put in is an event: its kind exists.
            if let Some(event) = Event::from_words(words) {
                each(event);
            }
        }
        self.queue.read.0.store(until, Ordering::Release);
        until - read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuId, Instant};

    fn event(number: u64) -> Event {
        Event::idle(Instant::from_nanos(number), CpuId(1))
    }

    #[test]
    fn events_come_out_as_they_went_in_and_none_beyond_the_room() {
        let (mut inlet, mut outlet) = queue(3);
        let mut out = Vec::new();
        assert_eq!(outlet.take(9, |e| out.push(e)), 0);
        assert_eq!(
            [0, 1, 2, 3].map(|n| inlet.push(event(n))),
            [true, true, true, false]
        );
        assert!(!inlet.has_room(1));
        assert_eq!(outlet.take(2, |e| out.push(e)), 2);
        assert!(inlet.has_room(2) && !inlet.has_room(3));
        assert!(inlet.push(event(4)));
        assert_eq!(outlet.take(u64::MAX, |e| out.push(e)), 2);
        assert_eq!(out, [0, 1, 2, 4].map(event));
    }

    #[test]
    fn two_threads_lose_nothing() {
        const COUNT: u64 = 100_000;
        // Whoever yields beside a busy program waits for a whole slice of it: not before it has
        // waited for the other end for longer than that takes while both run.
        fn wait(tries: &mut u32) {
            *tries += 1;
            match tries.is_multiple_of(2_000) {
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
        let (mut inlet, mut outlet) = queue(7);
        let mut next = 0;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut tries = 0;
                for number in 0..COUNT {
                    while !inlet.push(event(number)) {
                        wait(&mut tries);
                    }
                }
            });
            let mut tries = 0;
            while next < COUNT {
                let taken = outlet.take(5, |e| {
                    assert_eq!(e, event(next));
                    next += 1;
                });
                if taken == 0 {
                    wait(&mut tries);
                }
            }
        });
    }
}
