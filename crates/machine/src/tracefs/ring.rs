//! The pages of the kernel's ring buffer, as `trace_pipe_raw` hands them out.
//!
//! A page begins with the time of its first event and how much of it is filled. Each event has a
//! word with its kind (5 bits) and the time since the one before (27 bits), and then its data.
//! Source: the kernel's `include/linux/ring_buffer.h` and its file `events/header_event`.

use super::format::{Field, field};
use std::io;

/// An event is not longer than what its kind says, in words.
const MOST_WORDS: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// An absolute time has so many bits; the others are those of the time before.
const TIME_BITS: u32 = 59;

/// Of the word that says how much is filled, this is the length.
const FILLED: u64 = (1 << 27) - 1;
/// Events were lost before this page.
const MISSED: u64 = 1 << 31;
/// How many they were stands behind the last event.
const MISSED_STORED: u64 = 1 << 30;

/// Where things lie in a page, as `events/header_page` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    filled: Field,
    data: usize,
}

impl Layout {
    /// # Errors
    /// It is not the description of a page.
    pub fn parse(text: &str) -> io::Result<Self> {
        let unknown =
            || io::Error::other("the kernel's description of its buffers is not understood");
        // The length of `data` is no integer's: its place alone is wanted.
        let data = text
            .lines()
            .find(|line| line.contains(" data;"))
            .and_then(|line| {
                line.split_once("offset:")?
                    .1
                    .split(';')
                    .next()?
                    .trim()
                    .parse()
                    .ok()
            });
        Ok(Layout {
            filled: field(text, "commit").ok_or_else(unknown)?,
            data: data.ok_or_else(unknown)?,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Hands each event of a page to `each`: its time in nanoseconds of the trace's clock, and its
/// data. How many were lost before the page.
///
/// # Errors
/// The page is not one.
pub(super) fn events(page: &[u8], layout: Layout, each: impl FnMut(u64, &[u8])) -> io::Result<u64> {
    walk(page, layout, each)
        .ok_or_else(|| io::Error::other("a page of the kernel's buffers is not understood"))
}

fn walk(page: &[u8], layout: Layout, mut each: impl FnMut(u64, &[u8])) -> Option<u64> {
    let mut time = long(page, 0)?;
    let filled = layout.filled.of(page)?.cast_unsigned();
    let length = usize::try_from(filled & FILLED).ok()?;
    let data = page.get(layout.data..layout.data.checked_add(length)?)?;
    let lost = match (filled & MISSED != 0, filled & MISSED_STORED != 0) {
        (false, _) => 0,
        // At least one.
        (true, false) => 1,
        (true, true) => long(page, layout.data + length)?,
    };
    let mut at = 0;
    while at < data.len() {
        let head = word(data, at)?;
        let (kind, delta) = match cfg!(target_endian = "big") {
            true => (head >> 27, u64::from(head & ((1 << 27) - 1))),
            false => (head & 31, u64::from(head >> 5)),
        };
        at += 4;
        match kind {
            // The rest of the page is empty.
            PADDING if delta == 0 => break,
            // One that was thrown away.
            PADDING => at = at.checked_add(word(data, at)? as usize)?,
            TIME_EXTEND => {
                time = time.checked_add(delta | u64::from(word(data, at)?) << 27)?;
                at += 4;
            }
            TIME_STAMP => {
                let low = (delta | u64::from(word(data, at)?) << 27) & ((1 << TIME_BITS) - 1);
                let mut whole = low | time >> TIME_BITS << TIME_BITS;
                if whole < time {
                    whole = whole.checked_add(1 << TIME_BITS)?;
                }
                time = whole;
                at += 4;
            }
            0 => {
                // The length counts itself.
                let length = word(data, at)? as usize;
                time = time.checked_add(delta)?;
                each(time, data.get(at + 4..at.checked_add(length)?)?);
                at = at.checked_add(length.next_multiple_of(4))?;
            }
            1..=MOST_WORDS => {
                let length = kind as usize * 4;
                time = time.checked_add(delta)?;
                each(time, data.get(at..at + length)?);
                at += length;
            }
            _ => return None,
        }
    }
    Some(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(time: u64, flags: u64, words: &[u32], behind: &[u64]) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        page.extend(((words.len() as u64 * 4) | flags).to_ne_bytes());
        page.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
        page.extend(behind.iter().flat_map(|w| w.to_ne_bytes()));
        page
    }

    fn head(kind: u32, delta: u32) -> u32 {
        match cfg!(target_endian = "big") {
            true => kind << 27 | delta,
            false => kind | delta << 5,
        }
    }

    fn read(page: &[u8]) -> (u64, Vec<(u64, usize)>) {
        let mut all = Vec::new();
        let layout = Layout::parse(HEADER).unwrap();
        let lost = events(page, layout, |time, data| all.push((time, data.len()))).unwrap();
        (lost, all)
    }

    #[test]
    fn every_kind_of_event_moves_time_as_the_kernel_says() {
        let words = [
            head(2, 5),
            0,
            0, // 8 bytes, 5 ns later
            head(TIME_EXTEND, 1),
            2, // 1 + 2 << 27 ns later
            head(0, 0),
            12,
            0,
            0, // 8 bytes, length in a word
            head(PADDING, 1),
            8,
            0, // thrown away
            head(TIME_STAMP, 7),
            1 << 10, // at 7 + 1 << 37, with the high bits of before
            head(1, 3),
            0,
            head(PADDING, 0),
            0,
            0, // nothing behind
        ];
        let base = 3 << TIME_BITS;
        let (lost, all) = read(&page(base, 0, &words, &[]));
        assert_eq!(lost, 0);
        let second = base + 5 + 1 + (2 << 27);
        assert_eq!(
            all,
            [(base + 5, 8), (second, 8), (base + 7 + (1 << 37) + 3, 4)]
        );
    }

    #[test]
    fn what_was_lost_is_counted() {
        let words = [head(1, 0), 0];
        assert_eq!(read(&page(9, MISSED, &words, &[])).0, 1);
        assert_eq!(read(&page(9, MISSED | MISSED_STORED, &words, &[42])).0, 42);
    }

    #[test]
    fn a_page_that_is_cut_off_is_an_error() {
        let layout = Layout::parse(HEADER).unwrap();
        let whole = page(9, 0, &[head(2, 0), 0, 0, head(0, 0), 1 << 20], &[]);
        for length in 0..=whole.len() {
            assert!(
                events(&whole[..length], layout, |_, _| {}).is_err(),
                "{length}"
            );
        }
    }
}
