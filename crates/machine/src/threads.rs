//! Threads that are not to be had: a sentence, where the standard library's shortest way panics.

use crate::realtime;
use model::{CpuId, CpuSet, Error, Result};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts a thread of a scope. `name` says what it does; the kernel keeps its first 15 bytes.
///
/// # Errors
/// No thread is to be had.
pub fn within<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, work)
        .map_err(|e| {
            Error::new(format!("cannot start a thread ({name}): {e}"))
                .remedy("allow more threads and memory (`ulimit -u`, `ulimit -v`, pids.max)")
        })
}

/// Does something on a thread of its own that stays on a processor: the caller's affinity stays.
///
/// # Errors
/// No thread is to be had; the processor cannot be used; what is done fails, or panics.
pub fn on_processor<T: Send>(
    cpu: CpuId,
    name: &str,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = within(scope, name, || {
            realtime::pin(&CpuSet::from_iter([cpu]))?;
            work()
        })?;
        thread.join().unwrap_or_else(|_| {
            Err(Error::new(format!(
                "{name} broke off: a defect of this program"
            )))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_on_a_processor_is_returned_and_a_panic_is_an_error() {
        let cpu = realtime::affinity().unwrap().iter().next().unwrap();
        let here = on_processor(cpu, "asking", realtime::affinity).unwrap();
        assert_eq!(here, CpuSet::from_iter([cpu]));
        let e = on_processor::<()>(cpu, "asking", || panic!("on purpose")).unwrap_err();
        assert!(e.to_string().contains("asking broke off"), "{e}");
    }
}
