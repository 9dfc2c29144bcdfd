//! The stack of the first thread (`ulimit -s`), which grows up to a limit that is read as it grows.

use model::{Error, Result};

/// What a command needs of it, and more.
const LEAST: libc::rlim_t = 1 << 20;

/// Sees to it that the stack of the first thread may grow as far as a command needs. A larger limit
/// stays as it is.
///
/// # Errors
/// Its hard limit is lower, and this process has no right to raise that.
pub fn provide() -> Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // Safety: the place is valid; the limit lives through the calls.
    let provided = unsafe {
        libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0
            && (limit.rlim_cur >= LEAST || {
                let more = libc::rlimit {
                    rlim_cur: LEAST,
                    rlim_max: limit.rlim_max.max(LEAST),
                };
                libc::setrlimit(libc::RLIMIT_STACK, &more) == 0
            })
    };
    match provided {
        true => Ok(()),
        false => Err(
            Error::new(format!("the stack may have {} KiB only", limit.rlim_max >> 10))
                .remedy(format!("allow more: `ulimit -s {}`", LEAST >> 10)),
        ),
    }
}
