//! The kernel's tracing, for tests that read it.

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::io;
use std::path::Path;

/// Where programs look for it.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Mounts tracefs where it is not mounted, for this process alone: nothing of the machine is
/// changed.
///
/// Call it before any thread is started: those that are there keep what they see.
///
/// # Errors
/// No right to it, or a kernel without it.
pub fn mounted() -> io::Result<()> {
    if Path::new(TRACEFS).join("instances").is_dir() {
        return Ok(());
    }
    sys::process::own_mounts()?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount("testing", TRACEFS, "tracefs", MountFlags::empty(), None)?;
    Ok(())
}
