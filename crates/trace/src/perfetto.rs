//! Traces for the Perfetto viewer: its own format, TrackEvent messages in protocol-buffer encoding.
//!
//! Processors and tasks are tracks. On a processor lie the jobs that it runs and, within them,
//! overheads; on a task lie the stretches in which it runs, with releases, completions and misses
//! as instants. A flow links the pieces of a job, so that migrations are arrows; a counter shows
//! how many jobs are ready and do not run.
//!
//! Field numbers: perfetto's `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`,
//! `counter_descriptor.proto`. The encoder is a handful of lines; a code generator and its runtime
//! would be more to build and no less to read.

use crate::event::{Event, EventKind};
use crate::header::Header;
use crate::state::nth;
use model::{Instant, TaskId};

/// Identifiers of tracks.
const PROCESSORS: u64 = 1;
const TASKS: u64 = 2;
const READY: u64 = 3;
const FIRST_PROCESSOR: u64 = 1 << 16;
const FIRST_TASK: u64 = 1 << 32;

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// A protocol-buffer message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
    /// An integer.
    fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }
    /// An integer of eight bytes.
    fn fixed(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    /// Text, or a message within.
    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
}

/// A slice on a processor's track.
#[derive(Clone)]
struct Slice {
    name: String,
    /// Links the pieces of a job.
    flow: Option<u64>,
}

/// Turns events into the bytes of a Perfetto trace.
pub struct Writer {
    names: Vec<String>,
    out: Vec<u8>,
    /// Per processor, the open slices: the job if there is one, then overheads.
    open: Vec<Vec<Slice>>,
    /// Per processor, the task that runs.
    running: Vec<Option<TaskId>>,
    /// Released jobs that are not done and do not run.
    ready: i64,
    told: Option<i64>,
    now: Instant,
    begun: bool,
}

impl Writer {
    /// Starts a trace: names of the tracks.
    pub fn new(header: &Header) -> Self {
        let set = &header.tasks;
        let processors = header.processors();
        let count = processors.iter().next_back().map_or(0, |c| c.index() + 1);
        let mut writer = Writer {
            names: set.ids().map(|t| set.name(t)).collect(),
            out: Vec::new(),
            open: vec![Vec::new(); count],
            running: vec![None; count],
            ready: 0,
            told: None,
            now: Instant::ZERO,
            begun: false,
        };
        writer.track(PROCESSORS, None, "processors", 0);
        for cpu in processors.iter() {
            let id = FIRST_PROCESSOR + u64::from(cpu.0);
            writer.track(id, Some(PROCESSORS), &format!("P{cpu}"), u64::from(cpu.0));
        }
        writer.track(TASKS, None, "tasks", 1);
        for task in set.ids() {
            let (id, name) = (FIRST_TASK + u64::from(task.0), set.name(task));
            writer.track(id, Some(TASKS), &name, u64::from(task.0));
        }
        let mut counter = Message::default();
        // A count, without a unit of its own.
        counter.number(3, 2);
        let mut track = Message::default();
        track
            .number(1, READY)
            .bytes(2, b"ready jobs")
            .bytes(8, &counter.0);
        writer.packet(None, 60, &track);
        writer
    }

    /// The bytes since this was last asked.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
    /// How many bytes wait to be taken.
    pub fn len(&self) -> usize {
        self.out.len()
    }
    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    fn packet(&mut self, time: Option<Instant>, field: u64, content: &Message) {
        let mut packet = Message::default();
        if let Some(time) = time {
            packet.number(8, time.nanos());
        }
        packet.number(10, 1);
        packet.bytes(field, &content.0);
        let mut whole = Message(std::mem::take(&mut self.out));
        whole.bytes(1, &packet.0);
        self.out = whole.0;
    }

    fn track(&mut self, id: u64, parent: Option<u64>, name: &str, rank: u64) {
        let mut track = Message::default();
        track.number(1, id).bytes(2, name.as_bytes());
        if let Some(parent) = parent {
            track.number(5, parent);
        }
        // Children in the order of their ranks; its own rank.
        track.number(11, 3).number(12, rank);
        self.packet(None, 60, &track);
    }

    fn say(&mut self, track: u64, kind: u64, name: Option<&str>, flow: Option<u64>) {
        if !self.begun {
            return;
        }
        let mut event = Message::default();
        event.number(9, kind).number(11, track);
        if let Some(name) = name {
            event.bytes(23, name.as_bytes());
        }
        if let Some(flow) = flow {
            event.fixed(47, flow);
        }
        self.packet(Some(self.now), 11, &event);
    }

    /// Ends the slices of a processor from the outside in, changes the outermost, and begins the
    /// others again.
    fn reopen(&mut self, cpu: usize, change: impl FnOnce(&mut Vec<Slice>)) {
        let track = FIRST_PROCESSOR + cpu as u64;
        for _ in 0..self.open[cpu].len() {
            self.say(track, SLICE_END, None, None);
        }
        change(&mut self.open[cpu]);
        for slice in self.open[cpu].clone() {
            self.say(track, SLICE_BEGIN, Some(&slice.name), slice.flow);
        }
    }

    /// The window begins: what is under way begins with it.
    fn begin(&mut self) {
        self.begun = true;
        for cpu in 0..self.open.len() {
            for slice in self.open[cpu].clone() {
                let track = FIRST_PROCESSOR + cpu as u64;
                self.say(track, SLICE_BEGIN, Some(&slice.name), slice.flow);
            }
            if let Some(task) = self.running[cpu] {
                self.say(
                    FIRST_TASK + u64::from(task.0),
                    SLICE_BEGIN,
                    Some(&format!("P{cpu}")),
                    None,
                );
            }
        }
    }

    fn tell_ready(&mut self) {
        if self.begun && self.told != Some(self.ready) {
            self.told = Some(self.ready);
            let mut event = Message::default();
            let value = self.ready.max(0) as u64;
            event.number(9, COUNTER).number(11, READY).number(30, value);
            self.packet(Some(self.now), 11, &event);
        }
    }

    /// Takes an event; only those `inside` the window are written.
    pub fn event(&mut self, header: &Header, event: &Event, inside: bool) {
        if event.time != self.now {
            self.tell_ready();
            self.now = event.time;
        }
        if inside && !self.begun {
            self.begin();
        }
        let task = event.task;
        let cpu = event.cpu().map_or(0, |c| c.index());
        let known = event.task.index() < header.tasks.len() || !event.kind.has_job();
        if !known || cpu >= self.open.len() {
            return;
        }
        let track = FIRST_TASK + u64::from(task.0);
        match event.kind {
            EventKind::Release => {
                self.ready += 1;
                self.say(track, INSTANT, Some("release"), None);
            }
            EventKind::Start | EventKind::Resumption | EventKind::Migration => {
                self.ready -= 1;
                let slice = Slice {
                    name: format!("{}·{}", self.names[task.index()], nth(event.job)),
                    flow: Some(
                        (u64::from(task.0) + 1) << 40
                            | (event.job.wrapping_add(1) & ((1 << 40) - 1)),
                    ),
                };
                self.reopen(cpu, |open| open.insert(0, slice));
                self.running[cpu] = Some(task);
                self.say(track, SLICE_BEGIN, Some(&format!("P{cpu}")), None);
            }
            EventKind::Preemption | EventKind::Suspension | EventKind::Completion => {
                if self.running[cpu].take() == Some(task) {
                    self.reopen(cpu, |open| {
                        open.remove(0);
                    });
                    self.say(track, SLICE_END, None, None);
                }
                if event.kind == EventKind::Preemption {
                    self.ready += 1;
                }
                if event.kind == EventKind::Completion {
                    self.say(track, INSTANT, Some("completion"), None);
                }
            }
            EventKind::WakeUp => self.ready += 1,
            EventKind::DeadlineMiss => self.say(track, INSTANT, Some("deadline missed"), None),
            EventKind::BudgetExhausted => self.say(track, INSTANT, Some("budget exhausted"), None),
            EventKind::Window => self.say(track, INSTANT, Some("window"), None),
            EventKind::OverheadBegin | EventKind::OverheadEnd => self.overhead(event, cpu),
            EventKind::ServerBegin | EventKind::ServerEnd => {
                let what = if event.kind == EventKind::ServerBegin {
                    "begins"
                } else {
                    "ends"
                };
                let name = format!("N{} {what}", nth(event.argument));
                self.say(FIRST_PROCESSOR + cpu as u64, INSTANT, Some(&name), None);
            }
            EventKind::PolicySwitch => {
                let policy = usize::try_from(event.argument)
                    .ok()
                    .and_then(|stage| header.stages.get(stage));
                let name = policy.map_or("?", |stage| stage.policy.as_str());
                self.say(PROCESSORS, INSTANT, Some(name), None);
            }
            EventKind::Lost => {
                let name = format!("{} events lost", event.argument);
                self.say(PROCESSORS, INSTANT, Some(&name), None);
            }
            EventKind::Standstill => self.say(track, INSTANT, Some("stood still until now"), None),
            EventKind::Idle | EventKind::Quantum | EventKind::End => {}
        }
    }

    fn overhead(&mut self, event: &Event, cpu: usize) {
        let Some(overhead) = event.overhead_kind() else {
            return;
        };
        let track = FIRST_PROCESSOR + cpu as u64;
        let begins = event.kind == EventKind::OverheadBegin;
        if !overhead.occupies_processor() {
            let name = if begins {
                "interrupt sent"
            } else {
                "interrupt arrives"
            };
            self.say(track, INSTANT, Some(name), None);
        } else if begins {
            self.open[cpu].push(Slice {
                name: overhead.name().to_owned(),
                flow: None,
            });
            self.say(track, SLICE_BEGIN, Some(overhead.name()), None);
        } else if self.open[cpu]
            .last()
            .is_some_and(|s| s.name == overhead.name() && s.flow.is_none())
        {
            self.open[cpu].pop();
            self.say(track, SLICE_END, None, None);
        }
    }

    /// The window ends: what is under way ends with it, at the last event or at `to` if that is
    /// earlier.
    pub fn close(&mut self, to: Instant) {
        self.tell_ready();
        self.now = self.now.min(to);
        for cpu in 0..self.open.len() {
            self.reopen(cpu, Vec::clear);
            if let Some(task) = self.running[cpu].take() {
                self.say(FIRST_TASK + u64::from(task.0), SLICE_END, None, None);
            }
        }
    }
}
