//! Calls that show what the kernel permits: a BPF program and a counter of the processor, made and
//! never used.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The descriptor that a call has answered, or its error.
fn made(answer: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(answer) {
        // SAFETY: the kernel made the descriptor in this call, so that nobody else owns it.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Loads a program of two instructions that returns 0, for raw tracepoints (bpf(2)).
///
/// # Errors
/// The kernel refuses: no right to it (`EPERM`), or no BPF (`ENOSYS`).
pub fn load_bpf() -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: libc::c_long = 5;
    const RAW_TRACEPOINT: u32 = 17;
    /// `mov64 r0, 0` and `exit` (linux/bpf.h).
    const PROGRAM: [u64; 2] = [0xb7, 0x95];
    /// The part of `union bpf_attr` that loading reads.
    #[repr(C)]
    struct Load {
        program_type: u32,
        count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
    }
    let program = PROGRAM;
    let license = c"GPL";
    let load = Load {
        program_type: RAW_TRACEPOINT,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: `load`, the program and the license live through the call, which reads no more than
    // the sizes given and writes nothing.
    made(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const load,
            size_of::<Load>(),
        )
    })
}

/// Opens a counter of the calling thread in user mode, which is never started (perf_event_open(2)).
/// `kind` and `config`: `PERF_TYPE_…` and `PERF_COUNT_…`.
///
/// # Errors
/// The kernel refuses: no right to it (`EACCES`, `EPERM`), or no such counter (`ENOENT`,
/// `EOPNOTSUPP`).
pub fn open_counter(kind: u32, config: u64) -> io::Result<OwnedFd> {
    const DISABLED: u64 = 1;
    open(kind, config, 0, DISABLED)
}

/// Opens a counter of the calling thread in user mode. `read_format`: `PERF_FORMAT_…`; `more`:
/// flags of `struct perf_event_attr` besides.
pub(crate) fn open(kind: u32, config: u64, read_format: u64, more: u64) -> io::Result<OwnedFd> {
    /// `struct perf_event_attr` in its first published size of 64 bytes, which every kernel
    /// accepts.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup: u32,
        breakpoint_type: u32,
        config1: u64,
    }
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format,
        flags: more | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    // SAFETY: the attributes live through the call and say their size; this thread, any processor,
    // no group, no flags.
    made(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1,
            -1,
            0_u64,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a machine permits differs; that the kernel understands the question does not.
    #[test]
    fn the_kernel_understands_what_it_is_asked() {
        let misunderstood = [libc::EFAULT, libc::EINVAL, libc::E2BIG].map(Some);
        for answer in [load_bpf(), open_counter(1, 1)] {
            if let Err(e) = answer {
                assert!(!misunderstood.contains(&e.raw_os_error()), "{e}");
            }
        }
    }
}
