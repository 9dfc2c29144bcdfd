//! The marks by which processes of a run are known: a variable in their environment, and limits.
//!
//! The engine, the watchdog and its heir find by them what is left of a run. Takes no memory.

use crate::kernel;
use crate::programs::procfs;
use crate::programs::rights::{Limit, Owner};

/// The variable by which processes of a run are known.
pub(crate) const MARK: &str = "WARMSET_RUN";

/// By what the processes of a run are known.
#[derive(Clone, Copy)]
pub(crate) struct Mark<'a> {
    /// What is in their environment.
    pub text: &'a [u8],
    /// Whose limits they have; without a number, all of that run.
    pub owner: Owner,
}

/// Whose process is it, or was it, where nobody has waited for it yet, by its limits?
pub(crate) fn owner_to_the_end(process: i32) -> Option<Owner> {
    let (soft, hard) = procfs::realtime_limit(process)?;
    Limit::owner(soft, hard)
}

/// Whose process is it, by its limits? `None` if it has ended.
pub(crate) fn owner(process: i32) -> Option<Owner> {
    let owner = owner_to_the_end(process)?;
    // One that nobody has waited for yet has its limits still.
    procfs::state(process)
        .is_some_and(|(state, _)| state != b'Z')
        .then_some(owner)
}

/// Sends a signal to every process that carries the mark, and names it. Those that carry it in
/// their environment alone are found `below` a process, where all of them descend from that. Takes
/// no memory. Whoever looks into the environment of a process waits for its memory maps, which a
/// stranger of low priority may keep for long.
pub(crate) fn signal_marked(
    mark: Mark<'_>,
    below: Option<i32>,
    signal: i32,
    mut found: impl FnMut(i32),
) {
    procfs::processes(|process| {
        let is_owned = owner(process).is_some_and(|owner| {
            owner.run == mark.owner.run
                && (mark.owner.number.is_none() || owner.number == mark.owner.number)
        });
        let may_carry = || below.is_none_or(|ancestor| procfs::descends(process, ancestor));
        if is_owned || (may_carry() && procfs::has_in_environment(process, mark.text)) {
            found(process);
            kernel::kill(process, signal);
        }
    });
}
