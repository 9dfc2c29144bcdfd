//! The first file system of the guest: an archive in the format `newc` of cpio, which the kernel
//! unpacks (initramfs).

use std::io::{self, Write};

/// Bits of the mode of a directory, and of a file that can be started.
const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Writes an archive with `init` as the first program, a few empty directories, and files.
///
/// # Errors
/// It cannot be written, or a file is larger than 4 GiB.
pub fn initramfs(
    out: &mut impl Write,
    init: &[u8],
    files: &[(String, Vec<u8>)],
) -> io::Result<()> {
    let mut archive = Archive { out, count: 0 };
    for name in ["proc", "sys", "dev", "tmp", "out"] {
        archive.entry(name, DIRECTORY, &[])?;
    }
    archive.entry("init", PROGRAM, init)?;
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
        initramfs(&mut out, b"x", &[("cases".to_owned(), b"abcde".to_vec())]).unwrap();
        assert!(out.len().is_multiple_of(4));
        assert!(out.starts_with(b"070701"));
        let text = String::from_utf8_lossy(&out);
        assert_eq!(text.matches("070701").count(), 8);
        // The name ends with a zero, and the contents begin at a multiple of four.
        let at = text.find("cases\0").unwrap();
        let contents = (at + 6).next_multiple_of(4);
        assert_eq!(&out[contents..contents + 5], b"abcde");
    }
}
