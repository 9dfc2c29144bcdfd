//! Whether there is address space for a run (`ulimit -v`).
//!
//! A thread that finds none where it begins, and an allocation that fails, end the process without
//! a sentence. So it is asked for before anything is started, and given back at once.

use crate::remedies::MORE_THREADS;
use model::{Error, Result};
use sys::memory::{Mapping, Use};

/// The largest stack of a thread, what guards it, and the stack of its signal handlers.
const THREAD: usize = 640 << 10;
/// What the threads of a run allocate besides the buffers of their events.
const REST: usize = 8 << 20;

/// Is there room for so many more threads, and so many bytes of buffers?
///
/// # Errors
/// There is not.
pub(crate) fn look(threads: usize, buffers: usize) -> Result<()> {
    let size = threads
        .saturating_mul(THREAD)
        .saturating_add(buffers)
        .saturating_add(REST);
    // Given back at once.
    match Mapping::private(size, Use::Reserve).is_ok() {
        true => Ok(()),
        false => Err(Error::new(format!(
            "there is no address space for {threads} threads and their buffers ({} MiB)",
            size >> 20
        ))
        .remedy(MORE_THREADS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_room_for_is_refused() {
        look(3, 1 << 20).unwrap();
        let e = look(1 << 40, 0).unwrap_err().to_string();
        assert!(
            e.contains("no address space for 1099511627776 threads"),
            "{e}"
        );
    }
}
