//! Hardware prefetchers: whether they are on, and turning them off while something is measured.
//!
//! A register of each processor has a bit for each of its prefetchers that turns it off. Root
//! reaches it through the devices of the module `msr`. Sources: for Intel, "Disclosure of Hardware
//! Prefetcher Control on Some Intel Processors" (2014) and the SDM, volume 4, `MSR 1A4H`; for AMD,
//! the APM, volume 3, CPUID Fn8000_0021_EAX[13] (is there the register?), and the PPR of family 1Ah
//! (57238), `MSRC000_0108` (its bits).
//!
//! What is changed is put back on every way out, as other settings are ([`crate::settings`]): when
//! [`Off`] is dropped; by a guard where the process is killed; by the next process where the guard
//! was killed as well.

use crate::records::{Record, Records};
use crate::settings::Guard;
use model::{CpuSet, Error, Result};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where the registers of processors are: `/dev/cpu/0/msr` and so on.
pub const DEVICES: &str = "/dev/cpu";

/// Are the prefetchers on?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All of them, on all processors.
    On,
    /// None.
    Off,
    /// It cannot be known here, or some are.
    #[default]
    Unknown,
}

impl State {
    /// As profiles have it.
    pub const fn name(self) -> &'static str {
        match self {
            State::On => "on",
            State::Off => "off",
            State::Unknown => "unknown",
        }
    }
}

/// Where a kind of processor has the bits that turn its prefetchers off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    register: u64,
    bits: u64,
}

/// L2 streamer, adjacent line, L1 next line, L1 by instruction.
const INTEL: Control = Control {
    register: 0x1a4,
    bits: 0b1111,
};
/// L1 stream, stride and region, L2 stream, up and down.
const AMD: Control = Control {
    register: 0xc000_0108,
    bits: 0b10_1111,
};

impl Control {
    /// That of the processor that this runs on; `None` where it is not known to have one.
    pub fn here() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Control::of(&vendor(), family(), amd_has_it());
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Intel's since Nehalem; the family is 6 for all but NetBurst and before.
    fn of(vendor: &str, family: u32, amd_has_it: bool) -> Option<Self> {
        match vendor {
            "GenuineIntel" if family == 6 => Some(INTEL),
            "AuthenticAMD" if amd_has_it => Some(AMD),
            _ => None,
        }
    }

    /// Are the prefetchers of these processors on, as far as it may be known?
    pub fn state(self, devices: &Path, cpus: &CpuSet) -> State {
        let bits = |cpu| Some(self.read(&device(devices, cpu)).ok()? & self.bits);
        let all: Option<Vec<u64>> = cpus.iter().map(|cpu| bits(cpu.0)).collect();
        match all {
            Some(all) if all.is_empty() => State::Unknown,
            Some(all) if all.iter().all(|bits| *bits == 0) => State::On,
            Some(all) if all.iter().all(|bits| *bits == self.bits) => State::Off,
            _ => State::Unknown,
        }
    }

    fn read(self, device: &Path) -> io::Result<u64> {
        let mut value = [0; 8];
        File::open(device)?.read_exact_at(&mut value, self.register)?;
        Ok(u64::from_ne_bytes(value))
    }

    fn write(self, device: &Path, value: u64) -> io::Result<()> {
        // Without making or shortening it: it is a device.
        let device = OpenOptions::new().write(true).open(device)?;
        device.write_all_at(&value.to_ne_bytes(), self.register)
    }
}

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__cpuid, CpuidResult};

#[cfg(target_arch = "x86_64")]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 has CPUID; a leaf that it lacks gives numbers, and no fault.
    #[allow(unused_unsafe, reason = "this became a safe function in a later Rust")]
    unsafe {
        __cpuid(leaf)
    }
}

#[cfg(target_arch = "x86_64")]
fn vendor() -> String {
    let leaf = cpuid(0);
    let words = [leaf.ebx, leaf.edx, leaf.ecx];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(target_arch = "x86_64")]
fn family() -> u32 {
    let signature = cpuid(1).eax;
    match signature >> 8 & 0xf {
        0xf => 0xf + (signature >> 20 & 0xff),
        base => base,
    }
}

#[cfg(target_arch = "x86_64")]
fn amd_has_it() -> bool {
    cpuid(0x8000_0000).eax >= 0x8000_0021 && cpuid(0x8000_0021).eax >> 13 & 1 == 1
}

fn device(devices: &Path, cpu: u32) -> PathBuf {
    devices.join(cpu.to_string()).join("msr")
}

/// Prefetchers that are off as long as this lives.
#[derive(Debug)]
pub struct Off {
    control: Control,
    /// Each processor's device, and what its register held.
    before: Vec<(PathBuf, u64)>,
    record: Option<Record>,
    guard: Option<Guard>,
}

/// Turns the prefetchers of these processors off. `control`: where that is done, as
/// [`Control::here`] knows it.
///
/// # Errors
/// It is not known how; no device of a processor's registers, or no right to it; a processor or a
/// hypervisor that does not let it be changed. Nothing is changed then.
pub fn turn_off(control: Option<Control>, devices: &Path, cpus: &CpuSet) -> Result<Off> {
    turn_off_noting(control, devices, cpus, Records::of_this_user)
}

fn turn_off_noting(
    control: Option<Control>,
    devices: &Path,
    cpus: &CpuSet,
    records: impl FnOnce() -> Result<Records>,
) -> Result<Off> {
    let Some(control) = control else {
        let cause = "how the hardware prefetchers of this processor are turned off is not known";
        return Err(Error::new(cause)
            .at("--prefetchers")
            .remedy("turn them off in the firmware's setup, or leave the option out"));
    };
    let mut before = Vec::new();
    for cpu in cpus.iter() {
        let path = device(devices, cpu.0);
        let value = control.read(&path).map_err(|e| failed(&path, "read", &e))?;
        before.push((path, value));
    }
    let mut off = Off {
        control,
        before,
        record: None,
        guard: None,
    };
    if off
        .before
        .iter()
        .all(|(_, value)| off.goal(*value) == *value)
    {
        off.before.clear();
        return Ok(off);
    }
    // Before the change: whatever happens between the two is restored.
    off.note(&records()?)?;
    for (path, value) in &off.before {
        let goal = off.goal(*value);
        let written = control.write(path, goal);
        written.map_err(|e| failed(path, "change", &e))?;
        let now = control.read(path).map_err(|e| failed(path, "read", &e))?;
        if off.goal(now) != now {
            return Err(Error::new(
                "the processor, or a hypervisor, keeps its hardware prefetchers on",
            )
            .at(path.display())
            .remedy("turn them off in the firmware's setup, or leave `--prefetchers off` out"));
        }
    }
    Ok(off)
}

fn failed(path: &Path, doing: &str, e: &io::Error) -> Error {
    let error = Error::new(format!(
        "cannot {doing} the register that turns hardware prefetchers off: {e}"
    ))
    .at(path.display());
    let without = "or leave `--prefetchers off` out";
    error.remedy(match e.kind() {
        io::ErrorKind::NotFound => {
            format!("`modprobe msr` as root, where the kernel has that module, {without}")
        }
        io::ErrorKind::PermissionDenied => {
            format!("run as root, on a kernel that is not locked down, {without}")
        }
        _ => format!(
            "the processor has no such register, or a hypervisor keeps it: measure on the machine \
             itself, {without}"
        ),
    })
}

/// The kind of records of registers: the number of the register, the bits that were set, and for
/// each processor its device and what its register held before; numbers in hexadecimal.
const KIND: &str = "prefetchers";

/// Writes what each register held to each device: its arguments are the offset and the record, and
/// for each processor its device and the value, in octal as `printf` has it.
const RESTORE: &str = r#"at=$1; record=$2; shift 2; all=yes
while [ $# -gt 1 ]; do
  printf "$2" | dd of="$1" bs=8 count=1 seek="$at" oflag=seek_bytes conv=notrunc 2>/dev/null || all=no
  shift 2
done
[ $all = yes ] && rm -f "$record""#;

impl Off {
    /// What a register holds when the prefetchers are off.
    fn goal(&self, value: u64) -> u64 {
        value | self.control.bits
    }

    /// Leaves word of what is going to be changed: on disk, and with a guard.
    fn note(&mut self, records: &Records) -> Result<()> {
        let Control { register, bits } = self.control;
        let mut fields = vec![format!("{register:x}"), format!("{bits:x}")];
        for (path, value) in &self.before {
            let path = std::path::absolute(path)
                .map_err(|e| Error::io(path, "name the register's device", &e))?;
            fields.extend([path.display().to_string(), format!("{value:x}")]);
        }
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let record = records.write(KIND, &fields)?;
        let octal = |value: u64| -> String {
            let bytes = value.to_ne_bytes();
            bytes.iter().map(|byte| format!("\\{byte:03o}")).collect()
        };
        let mut arguments = vec![
            OsString::from(register.to_string()),
            record.path().as_os_str().to_owned(),
        ];
        for (path, value) in &self.before {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            arguments.extend([path.into_os_string(), octal(*value).into()]);
        }
        let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        self.guard = Guard::post_to(RESTORE, &arguments);
        self.record = Some(record);
        Ok(())
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        let mut is_restored = true;
        for (path, value) in self.before.iter().rev() {
            if let Err(e) = self.control.write(path, *value) {
                is_restored = false;
                // Nothing is left but to say it; a closed standard error leaves not even that.
                let _ = writeln!(
                    io::stderr(),
                    "warmset: {}: could not put the register of the prefetchers back to {value:#x}: {e}",
                    path.display()
                );
            }
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        if let (Some(record), true) = (self.record.take(), is_restored) {
            record.done();
        }
    }
}

/// Puts back what processes that were killed have changed and nobody has restored. Returns a line
/// for each processor.
pub(crate) fn restore_from(records: &Records) -> Vec<String> {
    let mut told = Vec::new();
    for left in records.left(KIND) {
        let number = |text: &String| u64::from_str_radix(text, 16).ok();
        let (Some(register), Some(bits)) = (
            left.fields.first().and_then(number),
            left.fields.get(1).and_then(number),
        ) else {
            left.done();
            continue;
        };
        let control = Control { register, bits };
        let mut is_restored = true;
        for pair in left.fields[2..].chunks_exact(2) {
            let (path, Some(before)) = (Path::new(&pair[0]), number(&pair[1])) else {
                continue;
            };
            // Somebody has restored it, or given it a value of his own.
            if control.read(path).is_ok_and(|now| now != before | bits) {
                continue;
            }
            match control.write(path, before) {
                Ok(()) => told.push(format!(
                    "{}: the hardware prefetchers are as they were before a process that was killed",
                    path.display()
                )),
                // The next one tries again.
                Err(e) => {
                    is_restored = false;
                    told.push(format!(
                        "{}: a process that was killed had turned the hardware prefetchers off, and \
                         they cannot be turned on again: {e}",
                        path.display()
                    ));
                }
            }
        }
        if is_restored {
            left.done();
        }
    }
    told
}

#[cfg(test)]
mod tests;
