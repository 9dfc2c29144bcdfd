//! Reads traces of memory accesses as `valgrind --tool=lackey --trace-mem=yes` writes them.
//!
//! A line is a letter (`I` an instruction, `L` a load, `S` a store, `M` a load and a store of the
//! same bytes), an address in hexadecimal, a comma and a number of bytes; a processor may stand in
//! front. Valgrind's own lines (`==`, `--`, `**` and what follows them) and empty lines are passed
//! over. A trace may be compressed with gzip, and of any length: nothing of it is kept.

use crate::access::{Access, Kind};
use flate2::bufread::MultiGzDecoder;
use model::shown::escaped;
use model::{CpuId, Error, Result};
use std::io::{BufRead, BufReader, ErrorKind, Read};

/// Lines are read in pieces of this many bytes.
const PIECE: usize = 1 << 16;
/// No line of a trace is longer.
const LONGEST: usize = 4096;
/// The most bytes of one access: `fxsave` and its successors touch a few thousand.
const LARGEST: u64 = 1 << 16;

/// Accesses, one after the other.
pub struct Reader<'a> {
    source: Box<dyn BufRead + 'a>,
    piece: Vec<u8>,
    at: usize,
    line: u64,
    ended: bool,
}

/// The first two bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

impl<'a> Reader<'a> {
    /// Reads a trace, plain or compressed.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn new(source: impl Read + 'a) -> Result<Self> {
        let mut source = BufReader::with_capacity(PIECE, source);
        let start = source.fill_buf().map_err(|e| unreadable(&e))?;
        let compressed = start.starts_with(&GZIP);
        let source: Box<dyn BufRead + 'a> = match compressed {
            true => Box::new(BufReader::with_capacity(PIECE, MultiGzDecoder::new(source))),
            false => Box::new(source),
        };
        Ok(Reader {
            source,
            piece: Vec::with_capacity(2 * PIECE),
            at: 0,
            line: 0,
            ended: false,
        })
    }

    /// The next access; `None`: the trace is over.
    ///
    /// # Errors
    /// A line that is no access, named by its number; the source cannot be read.
    #[inline]
    pub fn read(&mut self) -> Result<Option<Access>> {
        loop {
            let rest = &self.piece[self.at..];
            let Some(length) = rest.iter().position(|b| *b == b'\n') else {
                if self.more()? {
                    continue;
                }
                if self.at == self.piece.len() {
                    return Ok(None);
                }
                // The last line may lack its end.
                self.piece.push(b'\n');
                continue;
            };
            let text = &rest[..length];
            self.at += length + 1;
            self.line += 1;
            match access(text) {
                Ok(Some(access)) => return Ok(Some(access)),
                Ok(None) => {}
                Err(wrong) => return Err(wrong.error(text).at(format!("line {}", self.line))),
            }
        }
    }

    /// The number of the line that was read last, from 1 on.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads more. False: there is no more.
    fn more(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.piece.drain(..self.at);
        self.at = 0;
        if self.piece.len() > LONGEST {
            return Err(Error::new(format!("a line of more than {LONGEST} bytes"))
                .at(format!("line {}", self.line + 1))
                .remedy("give a trace of accesses: `warmset cache --help` shows one"));
        }
        let start = self.piece.len();
        let got = loop {
            match self.source.fill_buf() {
                Ok(new) => {
                    self.piece.extend_from_slice(new);
                    break new.len();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(unreadable(&e).at(format!("line {}", self.line + 1))),
            }
        };
        self.source.consume(got);
        self.ended = got == 0;
        Ok(self.piece.len() > start)
    }
}

fn unreadable(e: &std::io::Error) -> Error {
    Error::new(format!("cannot read the trace: {e}"))
        .remedy("give a whole trace, plain or compressed by gzip")
}

/// What is wrong with a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    Form,
    Processor,
    Size,
    End,
}

impl Wrong {
    fn error(self, text: &[u8]) -> Error {
        let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
        let shown = escaped(&shown);
        match self {
            Wrong::Form => Error::new(format!("`{shown}` is no access")).remedy(
                "write such as ` L 1ffeff,8` or `2 S 1ffeff,8`, as `valgrind --tool=lackey \
                 --trace-mem=yes` does, with what the program prints kept apart (`--log-file`)",
            ),
            Wrong::Processor => Error::new(format!("`{shown}` has no number of a processor"))
                .remedy("processors are numbered from 0 to 8191"),
            Wrong::Size => Error::new(format!("`{shown}` is an access of an impossible size"))
                .remedy(format!("accesses have from 1 to {LARGEST} bytes")),
            Wrong::End => Error::new(format!("`{shown}` runs beyond the last address"))
                .remedy("addresses are below 2^64"),
        }
    }
}

/// The access of a line; `None`: the line holds none.
fn access(line: &[u8]) -> std::result::Result<Option<Access>, Wrong> {
    let mut rest = blank(line);
    // Valgrind's remarks, and those of its log.
    if rest.is_empty()
        || rest.starts_with(b"==")
        || rest.starts_with(b"--")
        || rest.starts_with(b"**")
    {
        return Ok(None);
    }
    let mut cpu = CpuId(0);
    if rest[0].is_ascii_digit() {
        let (number, after) = decimal(rest).ok_or(Wrong::Processor)?;
        if number > u64::from(model::CpuSet::MAX_CPU) || !after.starts_with(b" ") {
            return Err(Wrong::Processor);
        }
        cpu = CpuId(number as u32);
        rest = blank(after);
    }
    let kind = match rest.first() {
        Some(b'I') => Kind::Instruction,
        Some(b'L') => Kind::Read,
        Some(b'S') => Kind::Write,
        Some(b'M') => Kind::Modify,
        _ => return Err(Wrong::Form),
    };
    let after = &rest[1..];
    if !matches!(after.first(), Some(b' ' | b'\t')) {
        return Err(Wrong::Form);
    }
    let (address, after) = hexadecimal(blank(after)).ok_or(Wrong::Form)?;
    let after = after.strip_prefix(b",").ok_or(Wrong::Form)?;
    let (size, after) = decimal(after).ok_or(Wrong::Form)?;
    if !blank(after).is_empty() {
        return Err(Wrong::Form);
    }
    if !(1..=LARGEST).contains(&size) {
        return Err(Wrong::Size);
    }
    address.checked_add(size - 1).ok_or(Wrong::End)?;
    Ok(Some(Access {
        cpu,
        kind,
        address,
        size: size as u32,
    }))
}

/// Without what is blank in front; a carriage return at the end of a line is blank, too.
fn blank(text: &[u8]) -> &[u8] {
    let first = text.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\r'));
    &text[first.unwrap_or(text.len())..]
}

/// A number and what follows it; `None`: no digit, or too large.
fn decimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut number = 0_u64;
    for digit in &text[..digits] {
        number = number
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    (digits > 0).then(|| (number, &text[digits..]))
}

/// As [`decimal`], to the base of 16, with or without `0x`.
fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let mut number = 0_u64;
    let mut digits = 0;
    for byte in text {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => break,
        };
        if number >> 60 != 0 {
            return None;
        }
        number = number << 4 | u64::from(digit);
        digits += 1;
    }
    (digits > 0).then(|| (number, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const TRACE: &str = "\
==123== Lackey, an example Valgrind tool
I  04001090,3
 S 1ffeffe7e0,8
 L 04222caf,10
 M 0x0421c7cc,4
3 L ABC,1\r
12  I  0,1

==123== done";

    fn all(text: &[u8]) -> Result<Vec<Access>> {
        let mut reader = Reader::new(text)?;
        let mut read = Vec::new();
        while let Some(access) = reader.read()? {
            read.push(access);
        }
        Ok(read)
    }

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn traces_of_lackey_are_read_with_and_without_processors() {
        let access = |cpu, kind, address, size| Access {
            cpu: CpuId(cpu),
            kind,
            address,
            size,
        };
        let expected = [
            access(0, Kind::Instruction, 0x0400_1090, 3),
            access(0, Kind::Write, 0x1f_feff_e7e0, 8),
            access(0, Kind::Read, 0x0422_2caf, 10),
            access(0, Kind::Modify, 0x0421_c7cc, 4),
            access(3, Kind::Read, 0xabc, 1),
            access(12, Kind::Instruction, 0, 1),
        ];
        assert_eq!(all(TRACE.as_bytes()).unwrap(), expected);
        assert_eq!(all(&compressed(TRACE.as_bytes())).unwrap(), expected);
        // Two compressed pieces one after the other are one trace.
        let twice = [compressed(b" L 1,1\n"), compressed(b" L 2,1\n")].concat();
        assert_eq!(all(&twice).unwrap().len(), 2);
    }

    /// Pieces end anywhere in a line.
    #[test]
    fn long_traces_are_read_in_pieces() {
        let text: String = (0..50_000).map(|n| format!(" L {n:x},8\n")).collect();
        let read = all(text.as_bytes()).unwrap();
        assert!(read.iter().map(|a| a.address).eq(0..50_000));
    }

    #[test]
    fn what_is_no_access_is_named_by_its_line() {
        for (text, says) in [
            ("I  1,1\nhello\n", "line 2: `hello` is no access"),
            (" L 1\n", "is no access"),
            (" L ,1\n", "is no access"),
            (" L 1,1 2\n", "is no access"),
            (" L 1,0\n", "impossible size"),
            (" L 1,65537\n", "impossible size"),
            (" L 1,99999999999999999999\n", "is no access"),
            (" L ffffffffffffffff,2\n", "runs beyond the last address"),
            (" L 1ffffffffffffffff,2\n", "is no access"),
            ("8192 L 1,1\n", "no number of a processor"),
            ("3L 1,1\n", "no number of a processor"),
            ("LL 1,1\n", "is no access"),
            ("\x1b[2J\n", "`\\u{1b}[2J` is no access"),
        ] {
            let told = all(text.as_bytes()).unwrap_err().to_string();
            assert!(told.contains(says), "{text}: {told}");
        }
        let long = vec![b'L'; 3 * PIECE];
        let told = all(&long).unwrap_err().to_string();
        assert!(told.contains("line 1: a line of more than"), "{told}");
    }

    #[test]
    fn a_compressed_trace_that_ends_early_is_refused() {
        let text: String = (0..9999).map(|n| format!(" L {n:x},8\n")).collect();
        let whole = compressed(text.as_bytes());
        let told = all(&whole[..whole.len() / 2]).unwrap_err().to_string();
        assert!(told.contains("cannot read the trace"), "{told}");
    }
}
