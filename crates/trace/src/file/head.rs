//! The head of a trace file: what the trace is of, with its length and check sum.

use super::{BLOCK, MAGIC, PREFIX, VERSION};
use crate::header::Header;
use model::{Error, Result};
use std::io::{self, Read};
use std::path::Path;

/// The longest head that is read: the largest task set, with an assignment and charges for each of
/// its tasks.
const MAX_HEAD: u32 = 64 << 20;

/// Why a head does not read.
pub(super) enum Head {
    Io(io::Error),
    Bad(Error),
}

pub(super) fn read_head(source: &mut impl Read) -> std::result::Result<Header, Head> {
    let not_a_trace = || {
        Head::Bad(Error::new("this is not a trace file").remedy(
            "give a file that was written as a trace, such as by `warmset simulate --trace FILE`",
        ))
    };
    let cut_off = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => Head::Bad(
            Error::new("the trace is cut off within its head")
                .remedy("nothing can be recovered: run it again"),
        ),
        _ => Head::Io(e),
    };
    let mut prefix = [0; PREFIX];
    source.read_exact(&mut prefix).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => not_a_trace(),
        _ => Head::Io(e),
    })?;
    if &prefix[..8] != MAGIC {
        return Err(not_a_trace());
    }
    let version = u32_at(&prefix, 8);
    if version != VERSION {
        return Err(Head::Bad(
            Error::new(format!(
                "the trace has version {version}, this program reads version {VERSION}"
            ))
            .remedy("make it again, or read it with the program that wrote it"),
        ));
    }
    let length = u32_at(&prefix, 12);
    let damaged = || {
        Head::Bad(
            Error::new("the head of the trace is damaged")
                .remedy("nothing can be told about its events: run it again"),
        )
    };
    if length > MAX_HEAD {
        return Err(damaged());
    }
    let length = length as usize;
    let behind = (PREFIX + length).next_multiple_of(BLOCK) - PREFIX;
    let mut rest = Vec::new();
    source
        .take(behind as u64)
        .read_to_end(&mut rest)
        .map_err(Head::Io)?;
    if rest.len() < behind {
        return Err(cut_off(io::ErrorKind::UnexpectedEof.into()));
    }
    if head_sum(&prefix, &rest) != u32_at(&prefix, PREFIX - 4) {
        return Err(damaged());
    }
    rest.truncate(length);
    let text = String::from_utf8(rest).map_err(|_| damaged())?;
    Header::from_json(&text).map_err(Head::Bad)
}

/// The bytes of a head.
pub(super) fn head_of(path: &Path, header: &Header) -> Result<Vec<u8>> {
    let text = header.to_json()?;
    let length = u32::try_from(text.len())
        .ok()
        .filter(|l| *l <= MAX_HEAD)
        .ok_or_else(|| {
            Error::new("the head of the trace is too long")
                .at(path.display())
                .remedy("use fewer tasks, or shorter names")
        })?;
    let mut head = Vec::with_capacity((PREFIX + text.len()).next_multiple_of(BLOCK));
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&length.to_le_bytes());
    head.extend_from_slice(&[0; 4]);
    head.extend_from_slice(text.as_bytes());
    head.resize(head.len().next_multiple_of(BLOCK), 0);
    let sum = head_sum(&head[..PREFIX], &head[PREFIX..]);
    head[PREFIX - 4..PREFIX].copy_from_slice(&sum.to_le_bytes());
    Ok(head)
}

/// The checksum of a head: of its first bytes but the checksum itself, and of the text with the
/// zeros behind it.
fn head_sum(prefix: &[u8], rest: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&prefix[..PREFIX - 4]);
    sum.update(rest);
    sum.finalize()
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
