//! Which pages a process has touched, as the processor notes it and the kernel tells (proc(5):
//! `clear_refs` and `smaps`).
//!
//! A page table entry says whether the processor has used it since somebody cleared that. Writing 1
//! to `clear_refs` clears it, but a processor that still holds the translation does not note it
//! again; writing 4 makes processors forget translations. So both are written.
//!
//! For pages of files the kernel also counts a note of its own, which any process leaves that used
//! the page and has ended: of them it tells an upper bound.

use model::{Bytes, Error, Result};
use serde::Serialize;
use std::fs;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
pub use sys::memory::Apart;

/// What a process has touched, in whole pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Pages {
    /// Memory of its own: heap, stacks, what it has mapped without a file. Exact.
    #[serde(rename = "own_bytes", serialize_with = "model::size::whole")]
    pub own: Bytes,
    /// Mapped files: the program, libraries. At most so much.
    #[serde(rename = "files_bytes", serialize_with = "model::size::whole")]
    pub files: Bytes,
}

/// The pages of one process.
#[derive(Debug)]
pub struct Touched {
    clear: PathBuf,
    smaps: PathBuf,
}

impl Touched {
    /// Those of the process of this number: one that the caller may look into.
    pub fn of(process: u32) -> Self {
        let proc = PathBuf::from(format!("/proc/{process}"));
        Touched {
            clear: proc.join("clear_refs"),
            smaps: proc.join("smaps"),
        }
    }

    /// From now on no page counts as touched. `false`: the process has ended.
    ///
    /// # Errors
    /// The kernel does not do it, or the caller may not.
    pub fn forget(&self) -> Result<bool> {
        for what in ["1", "4"] {
            match fs::write(&self.clear, what) {
                Ok(()) => {}
                Err(e) if is_gone(&e) && self.has_proc() => return Ok(false),
                Err(e) => {
                    return Err(Error::io(&self.clear, "write", &e).remedy(
                        "measure a program of your own, on a kernel with CONFIG_PROC_PAGE_MONITOR",
                    ));
                }
            }
        }
        Ok(true)
    }

    /// The pages that the process has touched since. `None`: it has ended.
    ///
    /// # Errors
    /// The kernel does not say it.
    pub fn since(&self) -> Result<Option<Pages>> {
        let text = match fs::read_to_string(&self.smaps) {
            Ok(text) => text,
            Err(e) if is_gone(&e) && self.has_proc() => return Ok(None),
            Err(e) => return Err(Error::io(&self.smaps, "read", &e)),
        };
        referenced(&text).map_err(|e| e.at(self.smaps.display()))
    }

    /// Is there a `/proc` that tells such things at all?
    fn has_proc(&self) -> bool {
        PathBuf::from("/proc/self/clear_refs").exists()
    }
}

/// Pages of this process in which one task's memory lies and nothing else: those of an
/// [`Apart`], which lives as long as they are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnPages(Range<usize>);

impl OwnPages {
    /// From the first address to the one behind the last.
    pub fn new(addresses: Range<usize>) -> Self {
        OwnPages(addresses)
    }

    /// From now on none of them counts as touched. Takes some microseconds, and is the calling
    /// thread's alone, unlike `clear_refs`.
    ///
    /// # Errors
    /// The kernel does not do it.
    pub fn forget(&self) -> Result<()> {
        sys::memory::forget_uses(&self.0).map_err(|e| {
            Error::new(format!(
                "the kernel does not forget which pages were touched: {e}"
            ))
            .remedy("this needs Linux 5.4 or later")
        })
    }

    /// What of them was touched since.
    ///
    /// # Errors
    /// The kernel does not say it.
    pub fn since(&self) -> Result<Bytes> {
        let read = |e| Error::io(Path::new(SMAPS), "read", &e);
        let mut file = fs::File::open(SMAPS).map_err(read)?;
        let mut text = Vec::new();
        // The kernel looks through the pages of each mapping that it tells of, and these lie low:
        // no more is read than tells of them.
        let mut part = [0; 4096];
        loop {
            let count = file.read(&mut part).map_err(read)?;
            text.extend_from_slice(&part[..count]);
            let said = referenced_in(&String::from_utf8_lossy(&text), &self.0);
            match said {
                Ok(Some(bytes)) => return Ok(bytes),
                Ok(None) if count > 0 => {}
                Ok(None) => {
                    let addresses = format!("{:x}-{:x}", self.0.start, self.0.end);
                    return Err(wrong(&addresses).at(SMAPS));
                }
                Err(e) => return Err(e.at(SMAPS)),
            }
        }
    }
}

const SMAPS: &str = "/proc/self/smaps";

/// What was referenced of the mappings between these addresses; `None`: the text does not tell of
/// all of them.
fn referenced_in(text: &str, addresses: &Range<usize>) -> Result<Option<Bytes>> {
    let (mut kib, mut is_within, mut end) = (0, false, addresses.start);
    // The last line may not be whole.
    let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    for line in whole.lines() {
        if let Some(rest) = line.strip_prefix("Referenced:").filter(|_| is_within) {
            kib += kibibytes(rest).ok_or_else(|| wrong(line))?;
            if end == addresses.end {
                return Ok(Some(Bytes::from_kib(kib)));
            }
        } else if let Some((from, to)) = span(line) {
            is_within = addresses.start <= from && to <= addresses.end;
            if is_within {
                end = to;
            }
        }
    }
    Ok(None)
}

/// The addresses of a mapping, from the line that begins it.
fn span(line: &str) -> Option<(usize, usize)> {
    let (from, to) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    Some((address(from)?, address(to)?))
}

/// A number such as `12 kB`.
fn kibibytes(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// A process that has ended has no memory, or is not there.
fn is_gone(e: &std::io::Error) -> bool {
    e.kind() == ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH)
}

/// What was referenced; `None` where there is no memory at all.
fn referenced(text: &str) -> Result<Option<Pages>> {
    if text.is_empty() {
        return Ok(None);
    }
    let (mut own, mut files) = (0, 0);
    let mut of_file = None;
    let mut is_told = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Referenced:") {
            let kib = kibibytes(rest).ok_or_else(|| wrong(line))?;
            is_told = true;
            match of_file.ok_or_else(|| wrong(line))? {
                true => files += kib,
                false => own += kib,
            }
        } else if let Some(inode) = inode(line) {
            of_file = Some(inode != "0");
        }
    }
    match is_told {
        true => Ok(Some(Pages {
            own: Bytes::from_kib(own),
            files: Bytes::from_kib(files),
        })),
        false => Err(wrong(text.lines().next().unwrap_or_default())),
    }
}

/// The number of the file of a mapping, 0 without one, from the line that begins it: `FROM-TO
/// RIGHTS OFFSET DEVICE INODE [PATH]`.
fn inode(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    span(words.next()?)?;
    words.nth(3)
}

fn wrong(line: &str) -> Error {
    Error::new(format!("`{line}` does not say what was referenced"))
        .remedy("this needs a kernel with CONFIG_PROC_PAGE_MONITOR")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime;

    const SMAPS: &str = "\
55d0c0a00000-55d0c0a02000 r-xp 00000000 fe:00 4242                       /usr/bin/a b
Size:                  8 kB
Referenced:            4 kB
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]
Referenced:           12 kB
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
Referenced:          256 kB
THPeligible:           0
";

    #[test]
    fn what_was_referenced_is_told_of_the_mappings_between_addresses() {
        let within = |from: usize, to: usize| referenced_in(SMAPS, &(from..to));
        let (heap, last) = (0x55d0_c100_0000, 0x7f00_0000_0000);
        assert_eq!(
            within(last, last + 0x10_0000).unwrap(),
            Some(Bytes::from_kib(256))
        );
        assert_eq!(
            within(heap, last + 0x10_0000).unwrap(),
            Some(Bytes::from_kib(268))
        );
        // It is told of as a whole alone.
        assert_eq!(within(heap, heap + 0x1000).unwrap(), None);
    }

    /// Some pages of a mapping, again and again, with memory locked as in a run.
    #[test]
    fn pages_of_ones_own_are_told_exactly() {
        let page = 4096;
        let mut memory = Apart::new(64 * page, 0_u8).unwrap();
        let pages = OwnPages::new(memory.addresses());
        assert_eq!(pages.since().unwrap(), Bytes::new(64 * page as u64));
        for count in [0, 1, 17, 64, 3] {
            pages.forget().unwrap();
            for at in 0..count {
                std::hint::black_box(&mut memory.values()[(at * 5 % 64) * page]).clone_from(&1);
            }
            let touched = pages.since().unwrap();
            assert_eq!(touched, Bytes::new((count * page) as u64), "{count}");
        }
    }

    /// Fresh pages are in a list of the processor that has touched them first.
    #[test]
    fn pages_are_forgotten_wherever_they_were_touched_first() {
        let everywhere = || {
            let cpus = realtime::affinity().unwrap();
            for first in cpus.iter() {
                for then in cpus.iter() {
                    realtime::pin_to(first).unwrap();
                    let memory = Apart::new(3 * 4096, 0_u8).unwrap();
                    realtime::pin_to(then).unwrap();
                    let pages = OwnPages::new(memory.addresses());
                    pages.forget().unwrap();
                    assert_eq!(
                        pages.since().unwrap(),
                        Bytes::new(0),
                        "{first}, then {then}"
                    );
                }
            }
        };
        std::thread::spawn(everywhere).join().unwrap();
    }

    #[test]
    fn what_was_referenced_is_told_apart_by_whether_it_is_of_a_file() {
        let pages = referenced(SMAPS).unwrap().unwrap();
        assert_eq!(pages.own, Bytes::from_kib(268));
        assert_eq!(pages.files, Bytes::from_kib(4));
        assert_eq!(referenced("").unwrap(), None, "a process that has ended");
        for wrong in [
            "Size: 4 kB\n",
            "Referenced: 4 kB\n",
            "1-2 rw-p 0 00:00 0\nReferenced: many kB\n",
            "1-2 rw-p 0 00:00 0\nReferenced: 4\n",
        ] {
            let e = referenced(wrong).unwrap_err().to_string();
            assert!(e.contains("does not say what was referenced"), "{e}");
        }
    }
}
