//! The stack of the first thread (`ulimit -s`), which grows up to a limit that is read as it grows.

use model::{Error, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a command needs of it, and more.
const LEAST: u64 = 1 << 20;

/// Sees to it that the stack of the first thread may grow as far as a command needs. A larger limit
/// stays as it is.
///
/// # Errors
/// Its hard limit is lower, and this process has no right to raise that.
pub fn provide() -> Result<()> {
    let limit = getrlimit(Resource::Stack);
    // `None` is no limit.
    let suffices = limit.current.is_none_or(|current| current >= LEAST);
    let more = Rlimit {
        current: Some(LEAST),
        maximum: limit.maximum.map(|most| most.max(LEAST)),
    };
    let provided = suffices || setrlimit(Resource::Stack, more).is_ok();
    match provided {
        true => Ok(()),
        false => Err(Error::new(format!(
            "the stack may have {} KiB only",
            limit.maximum.unwrap_or(u64::MAX) >> 10
        ))
        .remedy(format!("allow more: `ulimit -s {}`", LEAST >> 10))),
    }
}
