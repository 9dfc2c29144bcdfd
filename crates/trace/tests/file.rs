//! Trace files: written and read back, cut off anywhere, damaged anywhere.

mod support;

use model::Instant;
use proptest::prelude::*;
use std::io::{self, Write};
use std::path::Path;
use std::sync::LazyLock;
use support::{at_wcet, header, ms, schedule, tasks};
use trace::{Condition, Event, EventKind, FileSink, Header, Reader, Sink, VecSink};

const NAME: &str = "test.wtrace";

fn sample() -> (Header, Vec<Event>) {
    let header = header(
        tasks(&[(2, 3), (3, 8), (1, 7), (5, 7)]),
        "g-edf",
        &[2],
        &[0; 4],
    );
    let events = schedule(&header, ms(600), at_wcet(&header));
    assert!(events.len() > 1000);
    (header, events)
}

fn written(header: &Header, events: &[Event]) -> Vec<u8> {
    let mut sink = FileSink::new(Vec::new(), Path::new(NAME), header).unwrap();
    for event in events {
        sink.record(*event);
    }
    sink.finish().unwrap()
}

fn read(bytes: &[u8]) -> model::Result<(Header, Vec<Event>, Condition)> {
    let mut reader = Reader::new(bytes, Path::new(NAME))?;
    let mut events = VecSink::default();
    let condition = reader.replay(&mut events)?;
    Ok((reader.header().clone(), events.events, condition))
}

#[test]
fn what_is_written_reads_back() {
    let (header, events) = sample();
    let bytes = written(&header, &events);
    let (header_again, again, condition) = read(&bytes).unwrap();
    assert_eq!(header_again.stages, header.stages);
    assert_eq!(header_again.tasks.timings(), header.tasks.timings());
    assert_eq!(again, events);
    assert!(condition.is_whole());
    assert_eq!(condition.events, events.len() as u64);
    // Same input, same bytes.
    assert_eq!(written(&header_again, &again), bytes);
}

#[test]
fn a_trace_that_is_cut_off_gives_back_every_whole_record() {
    let (header, events) = sample();
    let bytes = written(&header, &events);
    let head = written(&header, &[]).len();
    for cut in (head..bytes.len())
        .step_by(97)
        .chain([head, bytes.len() - 1])
    {
        let (_, again, condition) = read(&bytes[..cut]).unwrap();
        assert_eq!(again, events[..again.len()]);
        // All whole blocks, and of the last one every record that lies before the cut.
        let (blocks, rest) = ((cut - head) / 4096, (cut - head) % 4096);
        let records = blocks * 127 + (rest / 32).saturating_sub(1);
        assert_eq!(again.len(), records.min(events.len()), "cut at {cut}");
        assert!(!condition.is_whole(), "cut at {cut}");
        if again.len() < events.len() {
            assert!(!condition.complete, "cut at {cut}");
            assert_eq!(condition.unverified as usize, (rest / 32).saturating_sub(1));
        }
    }
}

#[test]
fn a_head_that_is_cut_off_or_damaged_is_an_error_with_its_cause() {
    let (header, events) = sample();
    let bytes = written(&header, &events);
    let head = written(&header, &[]).len();
    for cut in 0..head {
        let e = read(&bytes[..cut]).unwrap_err().to_string();
        assert!(
            e.contains("not a trace file") || e.contains("cut off within its head"),
            "{cut}: {e}"
        );
    }
    let wrong = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        read(&bytes).unwrap_err().to_string()
    };
    assert_eq!(
        wrong(0),
        "test.wtrace: this is not a trace file; give a file that was written as a trace, such as by `warmset simulate --trace FILE`"
    );
    assert_eq!(
        wrong(8),
        "test.wtrace: the trace has version 6, this program reads version 2; make it again, or read it with the \
         program that wrote it"
    );
    assert!(wrong(40).contains("the head of the trace is damaged"));
}

#[test]
fn damage_within_is_said_and_costs_one_block_only() {
    let (header, events) = sample();
    let bytes = written(&header, &events);
    let head = written(&header, &[]).len();
    for at in [0, 4, 9, 17, 40, 2000, 4095] {
        let mut damaged = bytes.clone();
        damaged[head + 4096 * 2 + at] ^= 1;
        let (_, again, condition) = read(&damaged).unwrap();
        assert_eq!(condition.damaged_blocks, 1, "byte {at}");
        assert_eq!(again[..254], events[..254]);
        assert_eq!(
            (again[254].kind, again[254].argument),
            (EventKind::Lost, 127)
        );
        assert_eq!(again[255..], events[254 + 127..]);
        assert!(!condition.is_whole());
    }
    // A block that is not there at all.
    let mut gap = bytes[..head + 4096].to_vec();
    gap.extend_from_slice(&bytes[head + 4096 * 3..]);
    let (_, again, condition) = read(&gap).unwrap();
    assert_eq!((condition.damaged_blocks, again[127].argument), (2, 254));
    assert_eq!(again[128..], events[127 * 3..]);
}

#[test]
fn a_trace_can_be_read_while_it_is_written() {
    let (header, events) = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let mut sink = FileSink::create(&path, &header).unwrap();
    let read_so_far = || {
        let mut reader = Reader::open(&path).unwrap();
        let mut so_far = VecSink::default();
        let condition = reader.replay(&mut so_far).unwrap();
        assert!(!condition.complete && condition.damaged_blocks == 0);
        so_far.events
    };
    assert_eq!(read_so_far(), []);
    for (i, event) in events.iter().enumerate() {
        sink.record(*event);
        if i % 300 == 5 {
            sink.flush();
            assert_eq!(read_so_far(), events[..=i]);
        }
    }
    // As if the writer had died: what it had recorded is there.
    drop(sink);
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(
        reader.replay(&mut trace::NullSink).unwrap().events,
        events.len() as u64
    );
}

#[test]
fn a_full_disk_is_an_error_at_the_end() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (header, events) = sample();
    let mut sink = FileSink::new(Full(8192), Path::new(NAME), &header).unwrap();
    for event in events.iter().cycle().take(50_000) {
        sink.record(*event);
    }
    let e = sink.finish().err().unwrap().to_string();
    assert!(
        e.starts_with("test.wtrace: cannot write the trace:")
            && e.ends_with("; free space, or choose another path")
    );
}

#[test]
fn a_condition_reads_as_a_sentence() {
    let (header, events) = sample();
    let bytes = written(&header, &events);
    let (_, _, condition) = read(&bytes[..bytes.len() - 4096 * 2 - 1001]).unwrap();
    insta::assert_snapshot!(condition, @"1365 events, cut off before its end (still being written, or the writer died), the last 95 recovered from an unfinished block without checksum, 23 bytes behind the last whole record");
}

#[test]
fn an_unknown_kind_of_event_is_damage_even_under_a_good_checksum() {
    let (header, events) = sample();
    let mut bytes = written(&header, &events[..10]);
    let head = bytes.len() - 4096;
    bytes[head + 32 * 5 + 30] = 77;
    let sum = crc32fast::hash(&bytes[head + 8..]);
    bytes[head + 4..head + 8].copy_from_slice(&sum.to_le_bytes());
    let (_, again, condition) = read(&bytes).unwrap();
    assert_eq!((again.len(), condition.damaged_blocks), (5, 1));
    assert_eq!(again[4], Event::lost_anywhere(Instant::ZERO, 127));
}

/// A head of version 1, whose checksum was that of its text alone.
#[test]
fn a_trace_of_the_first_version_is_refused_with_a_remedy() {
    let (header, events) = sample();
    let mut bytes = written(&header, &events);
    bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
    assert_eq!(
        read(&bytes).unwrap_err().to_string(),
        "test.wtrace: the trace has version 1, this program reads version 2; make it again, or read it with the \
         program that wrote it"
    );
}

/// Every bit of the head, the filling behind its text included.
#[test]
fn no_bit_of_the_head_flips_unnoticed() {
    let (header, events) = sample();
    let mut bytes = written(&header, &events[..10]);
    let head = written(&header, &[]).len();
    // The text does not fill the head, or there would be no filling to test.
    assert_eq!(bytes[head - 1], 0);
    for bit in 0..head * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&bytes).is_err(), "bit {} of byte {}", bit % 8, bit / 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    read(&bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Behind the head a flipped bit costs a block, which the condition counts and a lost event
    /// stands for.
    #[test]
    fn no_bit_of_a_block_flips_unnoticed(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        static SAMPLE: LazyLock<(usize, Vec<u8>)> = LazyLock::new(|| {
            let (header, events) = sample();
            (written(&header, &[]).len(), written(&header, &events))
        });
        let (head, mut bytes) = SAMPLE.clone();
        let place = head + at.index(bytes.len() - head);
        bytes[place] ^= 1_u8 << bit;
        let (_, events, condition) = read(&bytes).unwrap();
        prop_assert_eq!(condition.damaged_blocks, 1);
        prop_assert!(!condition.is_whole());
        prop_assert!(events.iter().any(|e| e.kind == EventKind::Lost));
    }
}
