//! Whether the kernel that runs has sched_ext, and what to do where not.

use machine::Tree;

/// What the kernel says of sched_ext.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Support {
    /// It has it, and no scheduler is loaded.
    There,
    /// It has it, and another scheduler rules, of this name.
    Taken(String),
    /// It does not have it.
    Missing,
}

/// Looks at the files of a machine.
pub fn look(tree: &Tree) -> Support {
    match tree.text("/sys/kernel/sched_ext/state").as_deref() {
        None => Support::Missing,
        Some("disabled") => Support::There,
        Some(_) => Support::Taken(
            tree.text("/sys/kernel/sched_ext/root/ops")
                .unwrap_or_else(|| "unknown".to_owned()),
        ),
    }
}

/// What gets a kernel with sched_ext.
pub const REMEDY: &str =
    "boot a kernel with CONFIG_SCHED_CLASS_EXT, such as 7.0 of Debian's backports (docs/kernel.md)";
