//! Files one after the other, as a machine writes them to a port: for each its name, its size, and
//! its bytes.
//!
//! A line `warmset-file NAME SIZE`, then as many bytes. The end is the line `warmset-end`: what has
//! none was cut off.

use model::{Error, Result};
use std::io::{self, BufRead, Write};

const FILE: &str = "warmset-file";
const END: &str = "warmset-end";

/// Writes one file.
///
/// # Errors
/// The port cannot be written.
pub fn write(port: &mut impl Write, name: &str, bytes: &[u8]) -> io::Result<()> {
    writeln!(port, "{FILE} {name} {}", bytes.len())?;
    port.write_all(bytes)
}

/// Writes the end.
///
/// # Errors
/// The port cannot be written.
pub fn finish(port: &mut impl Write) -> io::Result<()> {
    writeln!(port, "{END}")?;
    port.flush()
}

/// Reads all files, with their names.
///
/// # Errors
/// It cannot be read, is no such archive, or was cut off.
pub fn read(source: &mut impl BufRead) -> Result<Vec<(String, Vec<u8>)>> {
    let broken = |why: &str| {
        Error::new(format!("what the guest has brought out {why}"))
            .remedy("look at what it said on its console")
    };
    let mut files = Vec::new();
    loop {
        let mut line = String::new();
        let length = source.read_line(&mut line);
        match length.map_err(|e| broken(&format!("cannot be read: {e}")))? {
            0 => return Err(broken("is cut off")),
            _ if line.trim_end() == END => return Ok(files),
            _ => {}
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [FILE, name, size] = words[..] else {
            return Err(broken("is no archive"));
        };
        let size = size
            .parse()
            .map_err(|_| broken("has a file without a size"))?;
        let mut bytes = vec![0; size];
        source
            .read_exact(&mut bytes)
            .map_err(|e| broken(&format!("is cut off within {name}: {e}")))?;
        files.push((name.to_owned(), bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_read_back_and_a_cut_is_seen() {
        let mut port = Vec::new();
        write(&mut port, "a.wtrace", b"one\ntwo").unwrap();
        write(&mut port, "b", b"").unwrap();
        finish(&mut port).unwrap();
        let files = read(&mut &port[..]).unwrap();
        assert_eq!(files[0], ("a.wtrace".to_owned(), b"one\ntwo".to_vec()));
        assert_eq!(files[1], ("b".to_owned(), Vec::new()));
        for cut in [0, 5, 28, port.len() - 1] {
            let cut = read(&mut &port[..cut]);
            assert!(cut.is_err() || cut.unwrap().len() == 2);
        }
        assert!(read(&mut &b"something else\n"[..]).is_err());
    }
}
