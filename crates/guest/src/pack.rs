//! The first file system of the guest: an archive in the format `newc` of cpio, which the kernel
//! unpacks (initramfs).

use std::io::{self, Write};

/// Bits of the mode of a directory, and of a file that can be started.
const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Writes an archive of files, each with its path from the root, all of which can be started; with
/// the directories that they are in and those that a machine needs.
///
/// # Errors
/// It cannot be written, or a file is larger than 4 GiB.
pub fn initramfs(out: &mut impl Write, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    let mut archive = Archive { out, count: 0 };
    let mut made: Vec<&str> = vec!["proc", "sys", "dev", "tmp", "out"];
    for (name, _) in files {
        let ends = name.match_indices('/').map(|(at, _)| &name[..at]);
        made.extend(ends.filter(|directory| !directory.is_empty()));
    }
    // The kernel makes a directory before what is in it: shorter paths first.
    made.sort_by_key(|directory| (directory.len(), *directory));
    made.dedup();
    for directory in made {
        archive.entry(directory, DIRECTORY, &[])?;
    }
    for (name, bytes) in files {
        archive.entry(name, PROGRAM, bytes)?;
    }
    archive.entry("TRAILER!!!", 0, &[])
}

struct Archive<'a, W> {
    out: &'a mut W,
    count: u32,
}

impl<W: Write> Archive<'_, W> {
    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let size = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.count += 1;
        let named = name.len() as u32 + 1;
        // Number, mode, owner, group, links, time, size, four of devices, length of the name, sum.
        let fields = [self.count, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, named, 0];
        let mut head = "070701".to_owned();
        for field in fields {
            head += &format!("{field:08x}");
        }
        head += name;
        self.out.write_all(head.as_bytes())?;
        self.pad(head.len() + 1, 1)?;
        self.out.write_all(bytes)?;
        self.pad(bytes.len(), 0)
    }

    /// Zeros up to a multiple of four, and `more` before that.
    fn pad(&mut self, length: usize, more: usize) -> io::Result<()> {
        let zeros = length.next_multiple_of(4) - length + more;
        self.out.write_all(&[0; 4][..zeros])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_as_the_format_says() {
        let mut out = Vec::new();
        let files = [("init", "x"), ("lib/a/c", "abcde"), ("lib/b", "")];
        let files = files.map(|(name, bytes)| (name.to_owned(), bytes.as_bytes().to_vec()));
        initramfs(&mut out, &files).unwrap();
        assert!(out.len().is_multiple_of(4));
        assert!(out.starts_with(b"070701"));
        let text = String::from_utf8_lossy(&out);
        // Seven directories, three files, the end.
        assert_eq!(text.matches("070701").count(), 11);
        let place = |name: &str| text.find(&format!("{name}\0")).unwrap();
        assert!(place("lib") < place("lib/a") && place("lib/a") < place("lib/a/c"));
        // The name ends with a zero, and the contents begin at a multiple of four.
        let contents = (place("lib/a/c") + 8).next_multiple_of(4);
        assert_eq!(&out[contents..contents + 5], b"abcde");
    }
}
