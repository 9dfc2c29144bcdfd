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
use std::io::ErrorKind;
use std::path::PathBuf;

/// What a process has touched, in whole pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Pages {
    /// Memory of its own: heap, stacks, what it has mapped without a file. Exact.
    #[serde(rename = "own_bytes", serialize_with = "bytes")]
    pub own: Bytes,
    /// Mapped files: the program, libraries. At most so much.
    #[serde(rename = "files_bytes", serialize_with = "bytes")]
    pub files: Bytes,
}

fn bytes<S: serde::Serializer>(size: &Bytes, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_u64(size.get())
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
            let number = rest.trim().strip_suffix("kB").map(str::trim);
            let kib: u64 = number
                .and_then(|n| n.parse().ok())
                .ok_or_else(|| wrong(line))?;
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
    let (from, to) = words.next()?.split_once('-')?;
    let is_address = |text: &str| u64::from_str_radix(text, 16).is_ok();
    (is_address(from) && is_address(to)).then(|| words.nth(3))?
}

fn wrong(line: &str) -> Error {
    Error::new(format!("`{line}` does not say what was referenced"))
        .remedy("this needs a kernel with CONFIG_PROC_PAGE_MONITOR")
}

#[cfg(test)]
mod tests {
    use super::*;

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
