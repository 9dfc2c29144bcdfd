//! Reading a trace file, also one that was cut off or damaged.

use super::head::{Head, read_head, u32_at, u64_at};
use super::{BATCH, BLOCK, MARKER, RECORDS};
use crate::event::{Event, EventKind};
use crate::header::Header;
use crate::sink::Sink;
use model::{Error, Instant, Result};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// How much of a trace could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Condition {
    /// Events read.
    pub events: u64,
    /// Blocks that are missing or whose checksum is wrong; each holds up to [`RECORDS`] events,
    /// which are lost.
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
        self.complete
            && self.damaged_blocks == 0
            && self.unverified == 0
            && self.trailing_bytes == 0
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
            write!(
                f,
                ", {} bytes behind the last whole record",
                self.trailing_bytes
            )?;
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

    /// How much could be read so far; of the whole trace once [`Reader::next_block`] has returned
    /// `None`.
    pub fn condition(&self) -> Condition {
        self.condition
    }

    /// The next events, in order, or `None` at the end. Where a block is damaged, a
    /// [`EventKind::Lost`] record stands for it.
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

    /// What can be had of a block that was cut off: whole records whose kind exists and whose times
    /// ascend.
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
