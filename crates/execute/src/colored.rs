//! Memory of page colors for a run: working sets in it, and the stacks of its threads (001 §5.1;
//! 004 §IV-B).
//!
//! A thread puts colored pages in the place of the part of its stack that it has not used yet, and
//! goes on there: what it had put on its stack before stays where it was. When it comes back,
//! ordinary pages are put there again.

use crate::kernel::Thread;
use model::{Result, TaskId};
use partition::client::Memory;
use partition::geometry::PAGE;
use rustix::mm::{MapFlags, ProtFlags};
use std::fmt::Debug;
use std::hint::black_box;
use std::sync::Arc;
use workload::walk::{LINE, Line, Store};

/// A thread of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// It carries decisions out.
    Dispatcher,
    /// It does the jobs of a task.
    Worker(TaskId),
}

/// Gives the threads of a run what they run in.
pub trait Provider: Debug + Send + Sync {
    /// Memory for the stack of a thread, at most half of which it gets to use; `None`: any will do.
    fn stack(&self, who: Who) -> Option<Memory>;
    /// All threads are at their places, and nothing has begun: the kernel's numbers of the workers,
    /// task by task.
    ///
    /// # Errors
    /// The run must not begin.
    fn ready(&self, workers: &[i32]) -> Result<()>;
}

/// A working set in colored memory.
#[derive(Debug)]
pub struct Colored {
    memory: Arc<Memory>,
    lines: usize,
}

impl Colored {
    /// Over as many lines of memory that nobody else writes to; fewer where there are not as many.
    pub fn new(memory: Arc<Memory>, lines: usize) -> Self {
        let lines = lines.min(memory.bytes().len() / LINE as usize);
        Colored { memory, lines }
    }
}

impl Store for Colored {
    fn lines(&mut self) -> &mut [Line] {
        if self.memory.access() != partition::ledger::Access::Full {
            return &mut [];
        }
        // SAFETY: within the memory, which begins at a page; any bytes are a line; the only writer
        // is this value, and it is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base().cast::<Line>(), self.lines) }
    }
}

/// Bytes of a stack that are skipped: frames of this function and what the kernel may put below
/// them.
const SKIP: usize = 3 * PAGE;

/// Does `body` on colored pages in this thread's stack, where its provider has some.
pub fn on_its_stack<T>(
    provider: Option<&Arc<dyn Provider>>,
    who: Who,
    body: impl FnOnce() -> T,
) -> T {
    let Some(memory) = provider.and_then(|p| p.stack(who)) else {
        return body();
    };
    let here = 0u8;
    let top = (&raw const here as usize - SKIP) & !(PAGE - 1);
    let Some(room) = unused_stack(top) else {
        return body();
    };
    let size = memory.size().min(room) / PAGE * PAGE;
    // SAFETY: pages of this thread's own stack, below all that it has used: nothing in them is
    // needed.
    let placed = unsafe { memory.place(size, (top - size) as *mut u8) };
    if !placed {
        return body();
    }
    let done = deeper(body);
    // Stacks are used again by later threads, which are to have no colors unless they are given
    // some. SAFETY: the pages that were placed, below all frames that are left; nothing in them is
    // needed.
    let ordinary = unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let place = (top - size) as *mut std::ffi::c_void;
        rustix::mm::mmap_anonymous(place, size, ProtFlags::READ | ProtFlags::WRITE, flags)
    };
    debug_assert!(
        ordinary.is_ok(),
        "it takes the place of mappings that are there"
    );
    done
}

/// Goes down into the colored pages.
#[inline(never)]
fn deeper<T>(body: impl FnOnce() -> T) -> T {
    let space = [0u8; SKIP + PAGE];
    black_box(&space);
    let done = body();
    black_box(&space);
    done
}

/// How many bytes of this thread's stack lie below an address, without its guard.
fn unused_stack(top: usize) -> Option<usize> {
    top.checked_sub(sys::thread::stack_end()? + PAGE)
}

/// The kernel's numbers of threads.
pub(crate) fn numbers(threads: impl Iterator<Item = Thread>) -> Vec<i32> {
    threads.map(|t| t.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Bytes;
    use partition::client::Connection;
    use partition::ledger::{Access, Holder};
    use partition::protocol::Request;
    use partition::server::Server;
    use partition::tile::Tile;
    use partition::{Color, Colors};
    use std::sync::Mutex;

    fn client(tiles: usize) -> (Arc<Server>, Connection) {
        let tiles = (0..tiles).map(|_| Tile::fresh(Color(0)).unwrap()).collect();
        let server = Arc::new(Server::new(1, tiles));
        let mut client = server.attach().unwrap();
        let grant = Request::Grant {
            holder: Holder::Pid(std::process::id()),
            colors: Colors::first(1).into(),
            pages: None,
            access: Access::Full,
        };
        client.ask(&grant).unwrap();
        (server, client)
    }

    #[test]
    fn a_working_set_is_walked_in_the_memory_that_was_given() {
        let (_server, mut client) = client(2);
        let memory = Arc::new(
            client
                .map_pages(&Colors::first(1), Bytes::from_kib(100))
                .unwrap(),
        );
        let store = Colored::new(Arc::clone(&memory), 1000);
        let mut walk =
            workload::walk::Walk::over(Box::new(store), 1.0, model::Pattern::Sequential, 1);
        workload::Units::units(&mut walk, 1000, &std::sync::atomic::AtomicBool::new(false));
        // Each line says where the next one is, and that it was written once.
        let line = |at: usize| &memory.bytes()[at * 64..at * 64 + 8];
        assert_eq!(line(0), [1, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(line(999), [0, 0, 0, 0, 1, 0, 0, 0]);
        assert!(memory.bytes()[64_000..].iter().all(|b| *b == 0));
    }

    #[derive(Debug)]
    struct Stacks(Mutex<Vec<Memory>>);
    impl Provider for Stacks {
        fn stack(&self, _: Who) -> Option<Memory> {
            self.0.lock().unwrap().pop()
        }
        fn ready(&self, _: &[i32]) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_thread_goes_on_on_colored_pages_and_comes_back() {
        let (_server, mut client) = client(1);
        let memory = client.map(&Colors::first(1), Bytes::from_kib(64)).unwrap();
        let provider: Arc<dyn Provider> = Arc::new(Stacks(Mutex::new(vec![memory])));
        let seen = std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || {
                let before = 17u64;
                let inside = on_its_stack(Some(&provider), Who::Dispatcher, || {
                    let local = black_box(5u64);
                    let at = &raw const local as usize;
                    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
                    let mapping = maps.lines().find(|line| {
                        let range = line.split(' ').next().unwrap();
                        let (from, to) = range.split_once('-').unwrap();
                        let number = |text| usize::from_str_radix(text, 16).unwrap();
                        (number(from)..number(to)).contains(&at)
                    });
                    mapping.unwrap().contains("warmset-color") && local == 5
                });
                // A second time there is none left: any stack will do.
                let again = on_its_stack(Some(&provider), Who::Dispatcher, || 1);
                (inside, black_box(before), again)
            })
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(seen, (true, 17, 1));
    }
}
