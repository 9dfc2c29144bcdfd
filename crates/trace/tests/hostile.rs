//! Nothing that a file can hold makes the readers of traces panic or run on: damaged files, and
//! events that make no sense.

mod support;

use model::assignment::{Serve, Slice, Slices, Slots, Timetable, Turn, Turns};
use model::{Assignment, CpuId, Duration, Instant};
use proptest::prelude::*;
use std::path::Path;
use support::{at_wcet, check, header, ms, schedule, tasks};
use trace::{
    Event, EventKind, FileSink, Header, Reader, Sink, Statistics, VecSink, Viewer, csv, perfetto,
};

/// A header for every kind of rule.
fn headers() -> Vec<Header> {
    let set = || tasks(&[(2, 4), (1, 5), (2, 8)]);
    let with = |policy: &str, assignment: Option<Assignment>| {
        let mut header = header(set(), policy, &[1, 1], &[0, 1, 0]);
        if let Some(assignment) = assignment {
            header.stages[0].assignment = Some(assignment);
        }
        header.stages[0].quantum = matches!(policy, "pd2" | "ca-edf:cache=1MiB").then_some(ms(1));
        header
    };
    let cpus = vec![CpuId(0), CpuId(1)];
    let turn = Turn {
        first: CpuId(0),
        second: CpuId(1),
        part: 1,
        whole: 3,
    };
    let slice = |cpu| Slice {
        cpu: CpuId(cpu),
        budget: ms(1),
        window: ms(2),
    };
    let serve = |start, end, server| Serve {
        start: ms(start),
        end: ms(end),
        server,
    };
    vec![
        with("p-edf", None),
        with("p-rm", None),
        with("pd2", None),
        with("ca-edf:cache=1MiB", None),
        with("something-else", None),
        with(
            "edf-fm",
            Some(Assignment::Turns(Turns {
                cpus: cpus.clone(),
                tasks: vec![turn, Turn::fixed(CpuId(0)), Turn::fixed(CpuId(1))],
            })),
        ),
        with(
            "edf-wm",
            Some(Assignment::Slices(Slices {
                cpus,
                tasks: vec![vec![slice(0), slice(1)], vec![slice(1)], vec![slice(0)]],
            })),
        ),
        with(
            "nps-f",
            Some(Assignment::Slots(Slots {
                slot: ms(3),
                server_of: vec![0, 1, 1],
                timetables: vec![
                    Timetable {
                        cpu: CpuId(0),
                        turns: vec![serve(0, 2, 0), serve(2, 3, 1)],
                    },
                    Timetable {
                        cpu: CpuId(1),
                        turns: vec![serve(0, 2, 1)],
                    },
                ],
            })),
        ),
    ]
}

/// An event of which most fields could be right.
fn any_event() -> impl Strategy<Value = Event> {
    let time = prop_oneof![20 => 0_u64..12, 1 => Just(u64::MAX / 1_000_000), 1 => Just(1 << 40)];
    let job = prop_oneof![20 => 0_u64..4, 1 => Just(u64::MAX)];
    let argument = prop_oneof![
        10 => 0_u64..3,
        10 => (0_u64..16).prop_map(|n| n * 1_000_000),
        1 => Just(u64::MAX),
    ];
    let task = prop_oneof![20 => 0_u64..4, 5 => Just(u64::from(u32::MAX))];
    let cpu = prop_oneof![20 => 0_u64..3, 2 => Just(0xffff_u64)];
    (
        time,
        job,
        argument,
        task,
        cpu,
        0..EventKind::ALL.len(),
        0_u64..4,
    )
        .prop_filter_map("a kind", |(time, job, argument, task, cpu, kind, flags)| {
            let kind = EventKind::ALL[kind] as u64;
            Event::from_words([
                time.saturating_mul(1_000_000),
                job,
                argument,
                task | cpu << 32 | kind << 48 | flags << 56,
            ])
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn events_that_make_no_sense_are_survived(
        mut events in prop::collection::vec(any_event(), 1..60),
        sorted in any::<bool>(),
    ) {
        if sorted {
            events.sort_by_key(|e| e.time);
        }
        for header in headers() {
            let verdict = check(&header, &events);
            prop_assert_eq!(verdict.events + verdict.unchecked, events.len() as u64);
            let mut statistics = Statistics::new(&header, true);
            let mut viewer = Viewer::new(
                &header,
                Instant::from_nanos(2_000_000),
                Instant::from_nanos(9_000_000),
            );
            let mut writer = perfetto::Writer::new(&header);
            let mut text = String::new();
            for event in &events {
                statistics.record(*event);
                viewer.record(*event);
                writer.event(&header, event, event.time > Instant::from_nanos(3_000_000));
                csv::row(event, &[], &mut text);
            }
            writer.close(Instant::from_nanos(u64::MAX));
            for row in statistics.take_rows() {
                row.csv("T", &mut text);
            }
            prop_assert!(
                !statistics.summary().to_string().is_empty() && !viewer.finish().text().is_empty()
            );
        }
    }

    #[test]
    fn damaged_files_are_survived(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let header = header(tasks(&[(2, 3), (3, 8)]), "g-edf", &[2], &[0; 2]);
        let mut sink = FileSink::new(Vec::new(), Path::new("x"), &header).unwrap();
        for event in schedule(&header, ms(200), at_wcet(&header)) {
            sink.record(event);
        }
        let mut bytes = sink.finish().unwrap();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(mut reader) = Reader::new(&bytes[..], Path::new("x")) {
            let mut events = VecSink::default();
            reader.replay(&mut events).unwrap();
            check(reader.header(), &events.events);
        }
    }
}

/// Just enough of protocol buffers to look into a Perfetto trace: fields by number, with their
/// varint or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => all.push((key >> 3, varint(&mut bytes), &[][..])),
            1 => {
                bytes = &bytes[8..];
                all.push((key >> 3, 0, &[]));
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                all.push((key >> 3, 0, &bytes[..length]));
                bytes = &bytes[length..];
            }
            other => panic!("wire type {other}"),
        }
    }
    all
}

#[test]
fn slices_of_a_perfetto_trace_begin_and_end_in_pairs() {
    let header = header(
        tasks(&[(2, 3), (3, 8), (1, 7), (5, 7)]),
        "g-edf",
        &[2],
        &[0; 4],
    );
    let mut writer = perfetto::Writer::new(&header);
    for event in schedule(&header, ms(24), at_wcet(&header)) {
        writer.event(
            &header,
            &event,
            event.time >= Instant::ZERO + Duration::from_millis(4),
        );
    }
    writer.close(Instant::from_nanos(u64::MAX));
    let bytes = writer.take();
    let (mut names, mut depth, mut last) = (Vec::new(), std::collections::BTreeMap::new(), 0);
    for (_, _, packet) in fields(&bytes) {
        let packet = fields(packet);
        let find = |number: u64| packet.iter().find(|f| f.0 == number);
        if let Some(descriptor) = find(60) {
            let name = fields(descriptor.2)
                .into_iter()
                .find(|f| f.0 == 2)
                .unwrap()
                .2;
            names.push(String::from_utf8(name.to_vec()).unwrap());
        }
        if let Some(event) = find(11) {
            let time = find(8).unwrap().1;
            assert!(time >= last && time >= 4_000_000);
            last = time;
            let event = fields(event.2);
            let value = |number: u64| event.iter().find(|f| f.0 == number).unwrap().1;
            let open: &mut i32 = depth.entry(value(11)).or_default();
            match value(9) {
                1 => *open += 1,
                2 => *open -= 1,
                _ => {}
            }
            assert!((0..=1).contains(open), "slices of one track overlap");
        }
    }
    assert_eq!(
        names,
        [
            "processors",
            "P0",
            "P1",
            "tasks",
            "T1",
            "T2",
            "T3",
            "T4",
            "ready jobs"
        ]
    );
    assert!(
        depth.len() == 7 && depth.values().all(|open| *open == 0),
        "{depth:?}"
    );
}
