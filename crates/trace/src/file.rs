//! Trace files: a head that explains the trace, then blocks of records, each with its checksum.
//!
//! All numbers are little-endian. The head is `WARMTRC\n`, version (u32), length of the JSON text (u32), a CRC-32 (u32), the
//! text, and zeros up to a multiple of 4096. The CRC-32 of the head is that of all its bytes but its own four, the zeros
//! included. A block has 4096 bytes: `WBLK`, the CRC-32 of all behind it (u32), its number from 0 (u64), how many records it
//! holds (u32, at most 127), twelve zeros, then the records ([`Event::to_bytes`]).
//!
//! So no bit of a file can flip unnoticed: each is part of a magic, of a checksum, or of what a checksum covers. Version 1
//! had a checksum of the text only.
//!
//! A block is written whole, so a file can be read while it grows, and one that was cut off gives back every whole record.

use crate::event::{Event, EventKind};
use crate::header::Header;
use crate::sink::Sink;
use model::files::Aside;
use model::{Error, Instant, Result};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

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
/// The longest head that is read: the largest task set, with an assignment and charges for each of
/// its tasks.
const MAX_HEAD: u32 = 64 << 20;

/// Writes events to a file, or to anything that takes bytes.
///
/// The first error is kept and ends the writing; [`FileSink::finish`] returns it. What is dropped unfinished is written as
/// far as it goes, without its end: a reader says that such a trace is not complete.
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

/// How much of a trace could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Condition {
    /// Events read.
    pub events: u64,
    /// Blocks that are missing or whose checksum is wrong; each holds up to [`RECORDS`] events, which are lost.
    pub damaged_blocks: u64,
    /// Events at the end, in a block that was cut off: whole records, but without a checksum.
    pub unverified: u64,
    /// Bytes at the very end that are no whole record.
    pub trailing_bytes: u64,
    /// Does it reach its end record?
    pub complete: bool,
}

impl Condition {
    /// Is everything there, verified?
    pub fn is_whole(&self) -> bool {
        self.complete && self.damaged_blocks == 0 && self.unverified == 0 && self.trailing_bytes == 0
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events", self.events)?;
        if !self.complete {
            write!(
                f,
                ", cut off before its end (still being written, or the writer died)"
            )?;
        }
        if self.unverified > 0 {
            write!(
                f,
                ", the last {} recovered from an unfinished block without checksum",
                self.unverified
            )?;
        }
        if self.trailing_bytes > 0 {
            write!(f, ", {} bytes behind the last whole record", self.trailing_bytes)?;
        }
        if self.damaged_blocks > 0 {
            write!(
                f,
                ", {} damaged block{} with up to {} events lost",
                self.damaged_blocks,
                if self.damaged_blocks == 1 { "" } else { "s" },
                self.damaged_blocks * RECORDS as u64
            )?;
        }
        Ok(())
    }
}

/// Reads a trace block by block.
pub struct Reader<R: Read> {
    source: R,
    path: PathBuf,
    header: Header,
    block: Box<[u8; BLOCK]>,
    events: Vec<Event>,
    /// Number of the block that comes next.
    number: u64,
    last: Instant,
    condition: Condition,
    done: bool,
}

impl Reader<BufReader<File>> {
    /// Opens a trace file and reads its head.
    ///
    /// # Errors
    /// Not there, not a trace, another version, a damaged head.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, "read the trace", &e))?;
        Reader::new(BufReader::with_capacity(BATCH * BLOCK, file), path)
    }
}

impl<R: Read> Reader<R> {
    /// Reads the head of a trace; `path` is what errors name.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(mut source: R, path: &Path) -> Result<Self> {
        let header = read_head(&mut source).map_err(|e| match e {
            Head::Io(e) => Error::io(path, "read the trace", &e),
            Head::Bad(e) => e.at(path.display()),
        })?;
        Ok(Reader {
            source,
            path: path.to_owned(),
            header,
            block: Box::new([0; BLOCK]),
            events: Vec::with_capacity(RECORDS + 1),
            number: 0,
            last: Instant::ZERO,
            condition: Condition::default(),
            done: false,
        })
    }

    /// The head.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How much could be read so far; of the whole trace once [`Reader::next_block`] has returned `None`.
    pub fn condition(&self) -> Condition {
        self.condition
    }

    /// The next events, in order, or `None` at the end. Where a block is damaged, a [`EventKind::Lost`] record stands for it.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn next_block(&mut self) -> Result<Option<&[Event]>> {
        self.events.clear();
        while self.events.is_empty() && !self.done {
            let length = self
                .fill()
                .map_err(|e| Error::io(&self.path, "read the trace", &e))?;
            if length < BLOCK {
                self.done = true;
                self.recover(length);
            } else {
                self.decode();
            }
        }
        self.condition.events += self.events.len() as u64;
        if let Some(last) = self.events.last() {
            self.last = last.time;
            self.condition.complete = last.kind == EventKind::End;
        }
        Ok((!self.events.is_empty()).then_some(&self.events[..]))
    }

    /// Hands every event to a sink and says how much there was.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn replay(&mut self, sink: &mut impl Sink) -> Result<Condition> {
        while let Some(events) = self.next_block()? {
            for event in events {
                sink.record(*event);
            }
        }
        Ok(self.condition)
    }

    /// Reads up to a block; fewer bytes at the end of the file.
    fn fill(&mut self) -> io::Result<usize> {
        let mut length = 0;
        while length < BLOCK {
            match self.source.read(&mut self.block[length..]) {
                Ok(0) => break,
                Ok(n) => length += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(length)
    }

    fn lose(&mut self, blocks: u64) {
        self.condition.damaged_blocks += blocks;
        self.events
            .push(Event::lost_anywhere(self.last, blocks * RECORDS as u64));
    }

    fn decode(&mut self) {
        let block = &self.block[..];
        let count = u32_at(block, 16) as usize;
        let number = u64_at(block, 8);
        let sound = &block[..4] == MARKER
            && u32_at(block, 4) == crc32fast::hash(&block[8..])
            && count <= RECORDS
            && number >= self.number;
        if !sound {
            self.number += 1;
            return self.lose(1);
        }
        if number > self.number {
            self.lose(number - self.number);
        }
        self.number = number + 1;
        let (records, _) = self.block[Event::SIZE..].as_chunks::<{ Event::SIZE }>();
        let read = self.events.len();
        self.events
            .extend(records[..count].iter().map_while(Event::from_bytes));
        if self.events.len() - read < count {
            // A kind that this version does not know, although the checksum holds.
            self.lose(1);
        }
    }

    /// What can be had of a block that was cut off: whole records whose kind exists and whose times ascend.
    fn recover(&mut self, length: usize) {
        let block = &self.block[..length];
        let usable = length >= Event::SIZE
            && &block[..4] == MARKER
            && u64_at(block, 8) == self.number
            && u32_at(block, 16) as usize <= RECORDS;
        let (mut count, mut last) = (0, self.last);
        if usable {
            let (records, _) = block[Event::SIZE..].as_chunks::<{ Event::SIZE }>();
            for event in records
                .iter()
                .take(u32_at(block, 16) as usize)
                .map_while(Event::from_bytes)
            {
                if event.time < last {
                    break;
                }
                last = event.time;
                self.events.push(event);
                count += 1;
            }
        }
        self.condition.unverified = count as u64;
        self.condition.trailing_bytes = match usable {
            // All that it says it holds is there: what follows is filling.
            true if count == u32_at(&self.block[..], 16) as usize => 0,
            true => (length - Event::SIZE * (count + 1)) as u64,
            false => length as u64,
        };
    }
}

/// Why a head does not read.
enum Head {
    Io(io::Error),
    Bad(Error),
}

fn read_head(source: &mut impl Read) -> std::result::Result<Header, Head> {
    let not_a_trace =
        || {
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
fn head_of(path: &Path, header: &Header) -> Result<Vec<u8>> {
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

/// The checksum of a head: of its first bytes but the checksum itself, and of the text with the zeros behind it.
fn head_sum(prefix: &[u8], rest: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&prefix[..PREFIX - 4]);
    sum.update(rest);
    sum.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
