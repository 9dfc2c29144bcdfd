//! Trace files: a head that explains the trace, then blocks of records, each with its checksum.
//!
//! All numbers are little-endian. The head is `WARMTRC\n`, version (u32), length of the JSON text
//! (u32), a CRC-32 (u32), the text, and zeros up to a multiple of 4096. The CRC-32 of the head is
//! that of all its bytes but its own four, the zeros included. A block has 4096 bytes: `WBLK`, the
//! CRC-32 of all behind it (u32), its number from 0 (u64), how many records it holds (u32, at most
//! 127), twelve zeros, then the records ([`Event::to_bytes`]).
//!
//! So no bit of a file can flip unnoticed: each is part of a magic, of a checksum, or of what a
//! checksum covers. Version 1 had a checksum of the text only.
//!
//! A block is written whole, so a file can be read while it grows, and one that was cut off gives
//! back every whole record.

use crate::event::Event;
use crate::header::Header;
use crate::sink::Sink;
use model::files::Aside;
use model::{Error, Result};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

mod reader;
pub use reader::{Condition, Reader};

mod head;
use head::head_of;

/// The version of the format that this program writes and reads.
pub const VERSION: u32 = 2;
/// The customary ending of a trace file's name.
pub const EXTENSION: &str = "wtrace";

const MAGIC: &[u8; 8] = b"WARMTRC\n";
const MARKER: &[u8; 4] = b"WBLK";
const PREFIX: usize = 20;
const BLOCK: usize = 4096;
/// Records of a full block.
pub const RECORDS: usize = BLOCK / Event::SIZE - 1;
/// Blocks that are handed to the system at once.
const BATCH: usize = 64;

/// Writes events to a file, or to anything that takes bytes.
///
/// The first error is kept and ends the writing; [`FileSink::finish`] returns it. What is dropped
/// unfinished is written as far as it goes, without its end: a reader says that such a trace is not
/// complete.
pub struct FileSink<W: Write> {
    out: Option<W>,
    buffer: Vec<u8>,
    /// Records in the block that is being filled.
    filled: usize,
    /// Number of the block that is being filled.
    number: u64,
    error: Option<io::Error>,
    path: PathBuf,
}

impl FileSink<File> {
    /// Starts a trace under its own name, so that it can be read while it grows and after a crash.
    /// It takes the place of what was there by the rules of [`Aside`], its head complete.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn create(path: &Path, header: &Header) -> Result<Self> {
        let head = head_of(path, header)?;
        let mut aside = Aside::create(path)?;
        aside
            .write_all(&head)
            .map_err(|e| Error::io(path, "write the trace", &e))?;
        Ok(FileSink::behind_head(aside.appear()?, path))
    }
}

impl<W: Write> FileSink<W> {
    /// Starts a trace; `path` is what errors name.
    ///
    /// # Errors
    /// The head cannot be written.
    pub fn new(mut out: W, path: &Path, header: &Header) -> Result<Self> {
        let head = head_of(path, header)?;
        out.write_all(&head)
            .map_err(|e| Error::io(path, "write the trace", &e))?;
        Ok(FileSink::behind_head(out, path))
    }

    /// Goes on behind a head that is written.
    fn behind_head(out: W, path: &Path) -> Self {
        let mut sink = FileSink {
            out: Some(out),
            buffer: Vec::with_capacity(BATCH * BLOCK),
            filled: 0,
            number: 0,
            error: None,
            path: path.to_owned(),
        };
        sink.open_block();
        sink
    }

    fn open_block(&mut self) {
        self.buffer.resize(self.buffer.len() + Event::SIZE, 0);
        self.filled = 0;
    }

    /// Completes the block that is being filled, however full.
    fn seal(&mut self) {
        let start = self.buffer.len() - (self.filled + 1) * Event::SIZE;
        self.buffer.resize(start + BLOCK, 0);
        let block = &mut self.buffer[start..];
        block[..4].copy_from_slice(MARKER);
        block[8..16].copy_from_slice(&self.number.to_le_bytes());
        block[16..20].copy_from_slice(&(self.filled as u32).to_le_bytes());
        let sum = crc32fast::hash(&block[8..]);
        block[4..8].copy_from_slice(&sum.to_le_bytes());
        self.number += 1;
        if self.buffer.len() >= BATCH * BLOCK {
            self.write_out();
        }
        self.open_block();
    }

    fn write_out(&mut self) {
        if let (Some(out), None) = (&mut self.out, &self.error) {
            self.error = out.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    /// Hands everything recorded so far to the system, so that a reader sees it.
    pub fn flush(&mut self) {
        if self.filled > 0 {
            self.seal();
        }
        // What is left in the buffer is the room for the head of the next block.
        self.buffer.truncate(self.buffer.len() - Event::SIZE);
        self.write_out();
        if let (Some(out), None) = (&mut self.out, &self.error) {
            self.error = out.flush().err();
        }
        self.open_block();
    }

    /// Writes what is left and gives the writer back.
    ///
    /// # Errors
    /// The first thing that failed since the start; the trace holds what was written before it.
    pub fn finish(mut self) -> Result<W> {
        self.flush();
        let place = self.path.clone();
        match (self.error.take(), self.out.take()) {
            (None, Some(out)) => Ok(out),
            (Some(e), _) => Err(Error::io(place, "write the trace", &e)),
            (None, None) => Err(Error::new("the trace is finished already").at(place.display())),
        }
    }
}

impl<W: Write> Sink for FileSink<W> {
    #[inline]
    fn record(&mut self, event: Event) {
        self.buffer.extend_from_slice(&event.to_bytes());
        self.filled += 1;
        if self.filled == RECORDS {
            self.seal();
        }
    }
}

impl<W: Write> Drop for FileSink<W> {
    fn drop(&mut self) {
        if self.out.is_some() {
            self.flush();
        }
    }
}
