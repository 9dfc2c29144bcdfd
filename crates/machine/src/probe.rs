//! Asking the running kernel what it permits, by trying it. Each attempt is undone at once and
//! harms nothing.
//!
//! Apart from reading files, so that everything else can be tested on saved trees: a test gives its
//! own [`Probes`].

use crate::realtime;
use model::{Bytes, CpuSet, Duration};
use rustix::time::{ClockId, clock_getres};
use sys::memory::{Mapping, Use};

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

/// The hypervisor that executes no instruction by hardware.
pub const EMULATION: &str = "QEMU without acceleration";

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

impl Outcome {
    fn of<T>(answer: std::io::Result<T>) -> Self {
        match answer {
            Ok(_) => Outcome::Worked,
            Err(e) => Outcome::Refused(e.raw_os_error().unwrap_or(0)),
        }
    }
}

fn page_size() -> Option<Bytes> {
    Some(Bytes::new(rustix::param::page_size() as u64))
}

/// The coarse clock advances with the tick, and its resolution says how often.
fn tick() -> Option<Duration> {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    if resolution.tv_sec != 0 {
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
    // SAFETY: every x86-64 processor has CPUID with leaf 1.
    let features = unsafe { std::arch::x86_64::__cpuid(1) };
    if features.ecx & PRESENT == 0 {
        return None;
    }
    // SAFETY: the bit above says that a hypervisor answers this leaf.
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
        b"TCGTCGTCGTCG" => EMULATION.to_owned(),
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
    let attempt = || Outcome::of(sys::scheduling::set(0, libc::SCHED_FIFO, 1));
    // Where no thread is to be had, nothing is known of it.
    let thread = std::thread::Builder::new().spawn(attempt);
    thread.map_or_else(|_| Outcome::default(), |t| t.join().unwrap_or_default())
}

fn try_lock() -> Outcome {
    // The page goes, locked or not, with the mapping.
    Outcome::of(Mapping::private(1, Use::Write).and_then(|page| page.lock()))
}

/// A program that returns 0, for raw tracepoints: what reading the scheduler's events needs.
fn try_bpf() -> Outcome {
    Outcome::of(sys::probe::load_bpf())
}

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;

/// A counter of the calling thread in user mode, never started.
fn try_counter(kind: u32, config: u64) -> Outcome {
    Outcome::of(sys::probe::open_counter(kind, config))
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
