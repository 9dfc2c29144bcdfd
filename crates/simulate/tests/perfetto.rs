//! The export for Perfetto, read back by a decoder of its own against Perfetto's schema:
//! `trace.proto`, `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`,
//! `counter_descriptor.proto`. Every field has the number and the wire type of the schema, every
//! track is described before it is used and stands under its parent, times never go back, slices
//! nest and end, flows bind the pieces of a job, and the counter counts the ready jobs.

use crate::support::{Instance, Random, instance};
use simulate::Costs;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use trace::{Event, EventKind, perfetto};

/// A field as it stands on the wire.
#[derive(Clone, Debug)]
enum Wire {
    Varint(u64),
    Fixed64(u64),
    Bytes(Vec<u8>),
}

impl Wire {
    fn varint(&self) -> u64 {
        match self {
            Wire::Varint(value) => *value,
            other => panic!("a varint, not {other:?}"),
        }
    }
    fn bytes(&self) -> &[u8] {
        match self {
            Wire::Bytes(bytes) => bytes,
            other => panic!("bytes, not {other:?}"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint goes on");
        *bytes = rest;
        assert!(shift < 70, "a varint of more than ten bytes");
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// The fields of a message, in order; nothing may be left over.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Wire)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let wire = match key & 7 {
            0 => Wire::Varint(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Wire::Fixed64(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Wire::Bytes(value.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, wire));
    }
    fields
}

#[derive(Default, Debug)]
struct Track {
    name: String,
    parent: Option<u64>,
    is_counter: bool,
    /// Open slices: name and flow.
    open: Vec<(String, Option<u64>)>,
}

#[derive(Default)]
struct Read {
    tracks: BTreeMap<u64, Track>,
    now: u64,
    /// By flow, where its slices begin, in order: time and track.
    flows: HashMap<u64, Vec<(u64, u64)>>,
    /// The counter's values with their times.
    ready: Vec<(u64, i64)>,
    instants: BTreeMap<String, usize>,
}

impl Read {
    fn of(bytes: &[u8]) -> Self {
        let mut read = Read::default();
        for (number, packet) in fields(bytes) {
            assert_eq!(number, 1, "Trace.packet");
            read.packet(&fields(packet.bytes()));
        }
        for track in read.tracks.values() {
            assert!(track.open.is_empty(), "slices of {track:?} never end");
        }
        read
    }

    fn packet(&mut self, fields: &[(u64, Wire)]) {
        let (mut time, mut sequence) = (None, None);
        for (number, wire) in fields {
            match number {
                8 => time = Some(wire.varint()),
                10 => sequence = Some(wire.varint()),
                11 => {
                    let time = time.expect("TracePacket.timestamp before the event");
                    assert!(
                        time >= self.now,
                        "time goes back from {} to {time}",
                        self.now
                    );
                    self.now = time;
                    self.event(&self::fields(wire.bytes()));
                }
                60 => self.describe(&self::fields(wire.bytes())),
                other => panic!("TracePacket has field {other}"),
            }
        }
        assert_eq!(sequence, Some(1), "trusted_packet_sequence_id: one writer");
    }

    fn describe(&mut self, fields: &[(u64, Wire)]) {
        let (mut id, mut track) = (0, Track::default());
        for (number, wire) in fields {
            match number {
                1 => id = wire.varint(),
                2 => track.name = String::from_utf8(wire.bytes().to_vec()).unwrap(),
                5 => track.parent = Some(wire.varint()),
                8 => {
                    // CounterDescriptor.unit = UNIT_COUNT.
                    let counter = self::fields(wire.bytes());
                    assert!(
                        matches!(counter.as_slice(), [(3, Wire::Varint(2))]),
                        "{counter:?}"
                    );
                    track.is_counter = true;
                }
                11 => assert_eq!(wire.varint(), 3, "ChildTracksOrdering.EXPLICIT"),
                12 => assert!(
                    wire.varint() <= i32::MAX as u64,
                    "sibling_order_rank is an int32"
                ),
                other => panic!("TrackDescriptor has field {other}"),
            }
        }
        assert!(id != 0 && !track.name.is_empty(), "{track:?}");
        if let Some(parent) = track.parent {
            assert!(
                self.tracks.contains_key(&parent),
                "{track:?} comes before its parent"
            );
        }
        assert!(
            self.tracks.insert(id, track).is_none(),
            "track {id} is described twice"
        );
    }

    fn event(&mut self, fields: &[(u64, Wire)]) {
        let (mut kind, mut id, mut name, mut value, mut flow) = (0, 0, None, None, None);
        for (number, wire) in fields {
            match number {
                9 => kind = wire.varint(),
                11 => id = wire.varint(),
                23 => name = Some(String::from_utf8(wire.bytes().to_vec()).unwrap()),
                30 => value = Some(wire.varint() as i64),
                47 => match wire {
                    Wire::Fixed64(id) => flow = Some(*id),
                    other => panic!("flow_ids are fixed64, not {other:?}"),
                },
                other => panic!("TrackEvent has field {other}"),
            }
        }
        let now = self.now;
        let track = self
            .tracks
            .get_mut(&id)
            .expect("a track that was described");
        assert_eq!(track.is_counter, kind == 4, "{track:?}");
        match kind {
            1 => {
                if let Some(flow) = flow {
                    self.flows.entry(flow).or_default().push((now, id));
                }
                track.open.push((name.expect("a slice has a name"), flow));
            }
            2 => {
                assert_eq!(
                    (name, flow),
                    (None, None),
                    "an end has neither name nor flow"
                );
                track.open.pop().expect("an end without a begin");
            }
            3 => {
                *self
                    .instants
                    .entry(name.expect("an instant has a name"))
                    .or_default() += 1
            }
            4 => self
                .ready
                .push((now, value.expect("a counter has a value"))),
            other => panic!("TrackEvent.Type {other}"),
        }
    }

    /// The track of a name under one of the two groups.
    fn track(&self, group: &str, name: &str) -> u64 {
        let is_group = |id: &u64| {
            self.tracks
                .get(id)
                .is_some_and(|t| t.name == group && t.parent.is_none())
        };
        let mut found = self
            .tracks
            .iter()
            .filter(|(_, t)| t.name == name && t.parent.as_ref().is_some_and(is_group));
        *found
            .next()
            .unwrap_or_else(|| panic!("a track {name} under {group}"))
            .0
    }
}

fn exported(of: &Instance, costs: Option<&Costs>) -> (Vec<Event>, Read) {
    let (_, _, events) = of.simulate(&of.scenario(), costs);
    let header = of.header(&of.scenario());
    let mut writer = perfetto::Writer::new(&header);
    let mut bytes = Vec::new();
    for event in &events {
        writer.event(&header, event, true);
        bytes.extend(writer.take());
    }
    writer.close(model::Instant::from_nanos(u64::MAX));
    bytes.extend(writer.take());
    (events, Read::of(&bytes))
}

#[test]
fn exports_follow_the_schema_and_say_what_the_trace_says() {
    let mut random = Random::new(0x9e37_0077_e110);
    let (mut migrations, mut overheads) = (0, 0);
    for round in 0..60 {
        let policy = ["g-edf", "c-edf:size=2", "edf-wm", "edf-fm", "nps-f", "pd2"][round % 6];
        let of = instance(&mut random, policy);
        let kinds = of.platform().resumptions().len();
        let costs = Costs {
            release: 20,
            scheduling: 30,
            context_switch: 10,
            ipi_latency: 25,
            timer_transfer: 15,
            tick: 5,
            cpmd: vec![vec![120; kinds]; of.tasks.len()],
            ..Costs::default()
        };
        let costs = (round % 2 == 0).then_some(&costs);
        let (events, read) = exported(&of, costs);
        let context = || format!("round {round}: {of:#?}");
        // Processors and tasks are tracks, and jobs that migrate have slices of one flow on both
        // processors.
        for cpu in 0..of.m {
            read.track("processors", &format!("P{cpu}"));
        }
        let mut flow_of: HashMap<(u32, u64), BTreeSet<u64>> = HashMap::new();
        for e in &events {
            let Some(cpu) = e.cpu().filter(|_| e.kind.puts_on()) else {
                continue;
            };
            let track = read.track("processors", &format!("P{cpu}"));
            read.track("tasks", &format!("T{}", e.task.0 + 1));
            let here =
                |(_, slices): &(&u64, &Vec<(u64, u64)>)| slices.contains(&(e.time.nanos(), track));
            let flows: Vec<u64> = read
                .flows
                .iter()
                .filter(here)
                .map(|(flow, _)| *flow)
                .collect();
            assert!(
                !flows.is_empty(),
                "{e} has no slice with a flow: {}",
                context()
            );
            let of_job = flow_of
                .entry((e.task.0, e.job))
                .or_insert_with(|| flows.iter().copied().collect());
            of_job.retain(|flow| flows.contains(flow));
            assert!(
                !of_job.is_empty(),
                "{e} is not bound to what was before: {}",
                context()
            );
            migrations += usize::from(e.kind == EventKind::Migration);
        }
        // One flow a job.
        let ran: BTreeSet<(u32, u64)> = events
            .iter()
            .filter(|e| e.kind == EventKind::Start)
            .map(|e| (e.task.0, e.job))
            .collect();
        assert_eq!(read.flows.len(), ran.len(), "{}", context());
        // Releases, completions and misses are instants.
        for (kind, name) in [
            (EventKind::Release, "release"),
            (EventKind::Completion, "completion"),
            (EventKind::DeadlineMiss, "deadline missed"),
        ] {
            let told = read.instants.get(name).copied().unwrap_or(0);
            assert_eq!(
                told,
                events.iter().filter(|e| e.kind == kind).count(),
                "{name}: {}",
                context()
            );
        }
        // The counter, at the end of every instant at which it changes: released, not done, and on
        // no processor.
        let (mut ready, mut told) = (0_i64, read.ready.iter().peekable());
        let mut last = None;
        for (at, e) in events.iter().enumerate() {
            ready += match e.kind {
                EventKind::Release | EventKind::Preemption => 1,
                kind if kind.puts_on() => -1,
                _ => 0,
            };
            overheads += usize::from(e.kind == EventKind::OverheadBegin);
            if events.get(at + 1).is_none_or(|next| next.time > e.time) && last != Some(ready) {
                last = Some(ready);
                assert_eq!(told.next(), Some(&(e.time.nanos(), ready)), "{}", context());
            }
        }
        assert_eq!(told.next(), None, "{}", context());
    }
    assert!(
        migrations > 100 && overheads > 1_000,
        "{migrations}, {overheads}"
    );
}
