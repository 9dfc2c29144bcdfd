//! Asking the running kernel what it permits, by trying it. Each attempt is undone at once and harms nothing.
//!
//! Apart from reading files, so that everything else can be tested on saved trees: a test gives its own [`Probes`].

use crate::realtime;
use model::{Bytes, CpuSet, Duration};

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Outcome {
    /// It worked.
    Worked,
    /// The kernel refused, with this error number.
    Refused(i32),
    /// Nobody tried.
    #[default]
    Untried,
}

/// What the running kernel answered. The default is that nobody asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Probes {
    /// The affinity mask of this process.
    pub affinity: Option<CpuSet>,
    /// The base page size.
    pub page_size: Option<Bytes>,
    /// The length of a tick: the resolution of the coarse clock.
    pub tick: Option<Duration>,
    /// The signature of the hypervisor, as the processor gives it.
    pub hypervisor: Option<String>,
    /// Running a thread under `SCHED_FIFO`.
    pub realtime: Outcome,
    /// Locking a page.
    pub lock: Outcome,
    /// Loading a BPF program of two instructions.
    pub bpf: Outcome,
    /// Opening a hardware counter (cycles of this thread, user mode).
    pub hardware_counter: Outcome,
    /// Opening a software counter (time of this thread).
    pub software_counter: Outcome,
    /// Reading the frame number of an own page: `Some(false)` where the kernel hides it.
    pub frame_number: Option<bool>,
}

impl Probes {
    /// Asks the running kernel.
    pub fn ask() -> Self {
        Probes {
            affinity: realtime::affinity().ok(),
            page_size: page_size(),
            tick: tick(),
            hypervisor: hypervisor(),
            realtime: try_realtime(),
            lock: try_lock(),
            bpf: try_bpf(),
            hardware_counter: try_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
            software_counter: try_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK),
            frame_number: try_pagemap(),
        }
    }
}

/// The outcome of a system call: negative is a failure.
fn outcome(result: i64) -> Outcome {
    match result {
        0.. => Outcome::Worked,
        _ => Outcome::Refused(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

/// The outcome of a system call that gives a file, which is closed.
fn outcome_of_file(fd: i64) -> Outcome {
    let outcome = outcome(fd);
    if let Ok(fd @ 0..) = i32::try_from(fd) {
        // Safety: the descriptor was just opened here and nobody else has it.
        unsafe { libc::close(fd) };
    }
    outcome
}

fn page_size() -> Option<Bytes> {
    // Safety: asks for a constant.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).ok().filter(|s| *s > 0).map(Bytes::new)
}

/// The coarse clock advances with the tick, and its resolution says how often.
fn tick() -> Option<Duration> {
    let mut resolution = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // Safety: `resolution` lives through the call.
    let done = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut resolution) };
    if done != 0 || resolution.tv_sec != 0 {
        return None;
    }
    let nanos = u64::try_from(resolution.tv_nsec).ok()?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// Twelve letters in the hypervisor's own leaf of CPUID.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // Safe in newer compilers.
fn hypervisor() -> Option<String> {
    const PRESENT: u32 = 1 << 31;
    // Safety: every x86-64 processor has CPUID with leaf 1.
    let features = unsafe { std::arch::x86_64::__cpuid(1) };
    if features.ecx & PRESENT == 0 {
        return None;
    }
    // Safety: the bit above says that a hypervisor answers this leaf.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0x4000_0000) };
    let letters: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .iter()
        .flat_map(|r| r.to_le_bytes())
        .filter(|b| b.is_ascii_graphic())
        .collect();
    Some(match &letters[..] {
        b"KVMKVMKVM" => "KVM".to_owned(),
        b"MicrosoftHv" => "Hyper-V".to_owned(),
        b"VMwareVMware" => "VMware".to_owned(),
        b"XenVMMXenVMM" => "Xen".to_owned(),
        b"TCGTCGTCGTCG" => "QEMU without acceleration".to_owned(),
        [] => "one that does not name itself".to_owned(),
        other => String::from_utf8_lossy(other).into_owned(),
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    None
}

/// On a thread of its own that ends at once: a priority belongs to a thread.
fn try_realtime() -> Outcome {
    let attempt = || {
        // Safety: an all-zero `sched_param` is valid on every C library that adds fields to it.
        let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
        param.sched_priority = 1;
        // Safety: `param` lives through the call; 0 is the calling thread.
        outcome(i64::from(unsafe {
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &param)
        }))
    };
    // Where no thread is to be had, nothing is known of it.
    let thread = std::thread::Builder::new().spawn(attempt);
    thread.map_or_else(|_| Outcome::default(), |t| t.join().unwrap_or_default())
}

fn try_lock() -> Outcome {
    let page = [0_u8; 1];
    // Safety: locks and unlocks the page of a local variable, which changes no contents.
    let locked = outcome(i64::from(unsafe { libc::mlock(page.as_ptr().cast(), 1) }));
    if locked == Outcome::Worked {
        // Safety: as above.
        unsafe { libc::munlock(page.as_ptr().cast(), 1) };
    }
    locked
}

/// A program that returns 0, for raw tracepoints: what reading the scheduler's events needs.
fn try_bpf() -> Outcome {
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
    let license = c"GPL";
    let load = Load {
        program_type: RAW_TRACEPOINT,
        count: PROGRAM.len() as u32,
        instructions: PROGRAM.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // Safety: `load` and what it points to live through the call, which reads no more than the size given.
    outcome_of_file(unsafe {
        libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, size_of::<Load>()) as i64
    })
}

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;

/// A counter of the calling thread in user mode, never started.
fn try_counter(kind: u32, config: u64) -> Outcome {
    /// `struct perf_event_attr` in its first published size of 64 bytes, which every kernel accepts.
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
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    // Safety: `attributes` lives through the call; this thread, any processor, no group, no flags.
    outcome_of_file(unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, 0_u64) as i64
    })
}

/// Does `/proc/self/pagemap` give a frame number for a page that is present?
fn try_pagemap() -> Option<bool> {
    use std::io::{Read, Seek, SeekFrom};
    const PRESENT: u64 = 1 << 63;
    const FRAME: u64 = (1 << 55) - 1;
    let page = page_size()?.get();
    let here = Box::new(1_u64);
    // Written just now, so that it is present.
    let address = &raw const *here as u64;
    let mut file = std::fs::File::open("/proc/self/pagemap").ok()?;
    file.seek(SeekFrom::Start(address / page * 8)).ok()?;
    let mut entry = [0; 8];
    file.read_exact(&mut entry).ok()?;
    let entry = u64::from_ne_bytes(entry);
    (entry & PRESENT != 0).then_some(entry & FRAME != 0)
}
