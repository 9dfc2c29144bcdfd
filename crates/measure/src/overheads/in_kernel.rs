//! What the engine in the kernel took from a processor, cut into overheads by the kernel's own
//! tracepoints.
//!
//! All of it is the kernel's code, as in 002 §2.4: a timer's callback releases jobs and links them
//! to processors; a processor that is called, or whose job is done, chooses what is linked to it
//! and switches. As in [`tiles`](super::tiles), each nanosecond from the interrupt of the timer
//! until the next job goes on belongs to the overhead that ends next:
//!
//! - **release**: from the timer's interrupt to the end of the callback that has released jobs;
//! - **scheduling**: from the end of that callback on the same processor, or else from the interrupt
//!   by which the processor was called, the interrupt of a budget's timer, or the job's call that it
//!   is done; to the switch, or without one, until the job goes on;
//! - **context switch**: from the switch until the new job is back from the kernel;
//! - **IPI latency**: from sending the interrupt on another processor to its arrival;
//! - **tick**: the timer's interrupt, where it does the kernel's tick and no callback of the engine
//!   follows.
//!
//! A job that was preempted goes on where the interrupt had found it, which no tracepoint shows:
//! switches to such jobs are no samples. Nor are switches from a processor without a job, where
//! nothing shows when it was called: the kernel spares the interrupt of one that looks by itself.

use super::tiles::{Cost, Disturbance, Tile};
use machine::tracefs::{Record, Recording, Tracepoint};
use model::{CpuId, OverheadKind};
use std::collections::{BTreeMap, BTreeSet};

/// What is recorded, in the order of [`Point`].
pub const TRACEPOINTS: [Tracepoint; 10] = [
    point("irq_vectors/local_timer_entry", &["vector"]),
    point("irq_vectors/local_timer_exit", &["vector"]),
    point("irq_vectors/reschedule_entry", &["vector"]),
    point("timer/hrtimer_expire_entry", &["function"]),
    point("timer/hrtimer_expire_exit", &["hrtimer"]),
    point(
        "sched/sched_switch",
        &["prev_pid", "next_pid", "prev_state"],
    ),
    point("ipi/ipi_send_cpu", &["cpu", "callback"]),
    point("syscalls/sys_enter_sched_yield", &["common_pid"]),
    point("syscalls/sys_exit_sched_yield", &["common_pid"]),
    point("power/cpu_idle", &["state"]),
];

const fn point(name: &'static str, fields: &'static [&'static str]) -> Tracepoint {
    Tracepoint {
        name,
        filter: None,
        fields,
    }
}

/// The places of [`TRACEPOINTS`].
#[derive(Clone, Copy)]
enum Point {
    TimerEntry,
    TimerExit,
    Called,
    Expires,
    Expired,
    Switch,
    Sends,
    Yields,
    GoesOn,
    Idles,
}

impl Point {
    const ALL: [Point; TRACEPOINTS.len()] = [
        Point::TimerEntry,
        Point::TimerExit,
        Point::Called,
        Point::Expires,
        Point::Expired,
        Point::Switch,
        Point::Sends,
        Point::Yields,
        Point::GoesOn,
        Point::Idles,
    ];
}

/// The first tracepoint that this kernel lacks, or that may not be seen.
pub fn missing() -> Option<&'static str> {
    let lacks = |point: &&Tracepoint| !Recording::knows(point);
    TRACEPOINTS.iter().find(lacks).map(|point| point.name)
}

/// The function by which the kernel calls a timer of a program such as the engine's.
const CALLBACK: &str = "bpf_timer_cb";

/// Its address, from the kernel's list of symbols (`/proc/kallsyms`); `None` where addresses are
/// hidden from this process.
pub fn callback_of(symbols: &str) -> Option<i64> {
    symbols.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (address, _, name) = (words.next()?, words.next()?, words.next()?);
        let address = u64::from_str_radix(address, 16).ok()?;
        (name == CALLBACK && address != 0).then_some(address as i64)
    })
}

/// What is known of a run besides its record.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The threads that do jobs, as the kernel numbers threads.
    pub workers: BTreeSet<i32>,
    /// The address of the function that calls the engine's timers.
    pub callback: i64,
    /// The address of the kernel's tick, if it may be known.
    pub tick: Option<i64>,
}

/// What happened on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The processor's timer interrupts what runs.
    TimerEntry,
    /// The timer's interrupt is over.
    TimerExit,
    /// A function of a timer begins.
    Expires(Function),
    /// The one that began last ends.
    Expired,
    /// The engine has released a job, in the callback that is under way.
    Released,
    /// Another processor sends the interrupt that makes this one choose anew.
    Sent,
    /// That interrupt arrives.
    Called,
    /// Who leaves, and who comes.
    Switch(Who, Who),
    /// This thread, which does jobs, asks for its next job.
    Yields(i32),
    /// This thread is back from that.
    GoesOn(i32),
    /// The processor goes to rest, or rests on: there was nothing to choose.
    Rests,
}

/// Whose function a timer calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// The engine's.
    Engine,
    /// The kernel's tick.
    Tick,
    /// Another one.
    Other,
}

/// Who has a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// A thread that does jobs.
    Worker(i32),
    /// Nobody.
    Nobody,
    /// Another thread.
    Other,
}

/// States of a thread that waits; above them is one that was preempted.
const WAITS: i64 = 0xff;
/// The state of a processor that rests no more.
const AWAKE: i64 = 0xffff_ffff;

/// What an event of the kernel says, and of which processor.
pub fn mark(record: &Record, known: &Known) -> Option<(CpuId, Mark)> {
    let here = CpuId(record.cpu);
    let [first, second, third, _] = record.values;
    let thread = |value: i64| i32::try_from(value).unwrap_or(-1);
    let who = |value: i64| match thread(value) {
        0 => Who::Nobody,
        thread if known.workers.contains(&thread) => Who::Worker(thread),
        _ => Who::Other,
    };
    let is_worker = || known.workers.contains(&thread(first));
    let mark = match Point::ALL.get(record.point)? {
        Point::TimerEntry => Mark::TimerEntry,
        Point::TimerExit => Mark::TimerExit,
        Point::Called => Mark::Called,
        Point::Expires if first == known.callback => Mark::Expires(Function::Engine),
        Point::Expires if known.tick == Some(first) => Mark::Expires(Function::Tick),
        Point::Expires => Mark::Expires(Function::Other),
        Point::Expired => Mark::Expired,
        // A thread that waits for something leaves by itself.
        Point::Switch if third & WAITS != 0 => Mark::Switch(Who::Other, who(second)),
        Point::Switch => Mark::Switch(who(first), who(second)),
        // One that has a function to call makes nobody choose.
        Point::Sends if second == 0 => {
            return Some((CpuId(u32::try_from(first).ok()?), Mark::Sent));
        }
        Point::Yields if is_worker() => Mark::Yields(thread(first)),
        Point::GoesOn if is_worker() => Mark::GoesOn(thread(first)),
        Point::Idles if first & 0xffff_ffff != AWAKE => Mark::Rests,
        _ => return None,
    };
    Some((here, mark))
}

/// A function of a timer that is under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    function: Function,
    /// From when on what it does is part of no other overhead.
    from: u64,
    released: bool,
}

/// Since when a processor is about to choose.
#[derive(Clone, Copy, Debug)]
struct Choosing {
    since: u64,
    /// The job's thread that asks for its next job.
    by: Option<i32>,
    /// From the sending of the interrupt to its arrival.
    call: Option<u32>,
}

/// The timer's interrupt.
#[derive(Clone, Copy, Debug)]
struct Interrupt {
    since: u64,
    is_tick: bool,
    is_ours: bool,
}

/// Cuts the marks of one processor.
#[derive(Clone, Debug, Default)]
pub struct Tiler {
    tiles: Vec<Tile>,
    calls: Vec<u32>,
    interrupt: Option<Interrupt>,
    /// When the interrupt began after which the engine's callbacks may come.
    before: Option<u64>,
    /// The end of a tick after which no callback of the engine has come yet.
    tick: Option<Tile>,
    running: Vec<Running>,
    sent: Option<u64>,
    choosing: Option<Choosing>,
    /// The thread that was switched to, and when.
    switched: Option<(i32, u64)>,
    /// What has come between, since the last mark that ends or begins something.
    disturbed: Option<Disturbance>,
    senseless: u64,
}

impl Tiler {
    /// Takes a mark. Marks come in the order of time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn add(&mut self, time: u64, mark: Mark) {
        match mark {
            Mark::TimerEntry => self.enter(time),
            Mark::TimerExit => self.exit(time),
            Mark::Expires(function) => self.expire(time, function),
            Mark::Expired => self.expired(time),
            Mark::Released => match self.running.iter_mut().rev().find(is_ours) {
                Some(running) => running.released = true,
                None => self.senseless += 1,
            },
            Mark::Sent => {
                self.sent.get_or_insert(time);
            }
            Mark::Called => self.called(time),
            Mark::Switch(from, to) => self.switch(time, from, to),
            Mark::Yields(thread) => {
                self.no_callback();
                self.disturbed = None;
                self.choosing = Some(Choosing {
                    since: time,
                    by: Some(thread),
                    call: None,
                });
            }
            Mark::GoesOn(thread) => self.goes_on(time, thread),
            Mark::Rests => {
                self.no_callback();
                self.choosing = None;
            }
        }
    }

    /// The tiles so far.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// From sending an interrupt to its arrival here, where it led to a switch between jobs.
    pub fn calls(&self) -> &[u32] {
        &self.calls
    }

    /// How many marks made no sense where they came: some were lost.
    pub fn senseless(&self) -> u64 {
        self.senseless
    }

    /// No callback of the engine belongs to the last interrupt of the timer any more.
    fn no_callback(&mut self) {
        self.before = None;
        self.tiles.extend(self.tick.take());
    }

    fn enter(&mut self, time: u64) {
        self.no_callback();
        // Within a callback it belongs to nothing of that.
        if self.running.is_empty() {
            self.before = Some(time);
            if self.choosing.is_some_and(|c| c.by.is_none()) {
                // It went back to its job, or is late for another reason.
                self.choosing = None;
            }
        }
        self.disturbed = Some(Disturbance::Interrupt);
        self.interrupt = Some(Interrupt {
            since: time,
            is_tick: false,
            is_ours: false,
        });
    }

    fn exit(&mut self, time: u64) {
        match self.interrupt.take() {
            // A record may begin within one.
            None => self.senseless += u64::from(!self.tiles.is_empty()),
            Some(interrupt) if interrupt.is_tick && !interrupt.is_ours => {
                self.tick = Some(Tile {
                    cost: Cost::Overhead(OverheadKind::Tick),
                    begun: interrupt.since,
                    own: None,
                    whole: time.saturating_sub(interrupt.since),
                    disturbed: None,
                });
            }
            Some(_) => {}
        }
    }

    fn expire(&mut self, time: u64, function: Function) {
        let mut from = time;
        if let Some(interrupt) = &mut self.interrupt {
            interrupt.is_tick |= function == Function::Tick;
            interrupt.is_ours |= function == Function::Engine;
        }
        if function == Function::Engine {
            // What the interrupt did before is part of what it was for.
            self.tick = None;
            match self.before.take() {
                Some(before) => {
                    from = before;
                    self.disturbed = None;
                }
                // It was put off, and something else ran in between.
                None => {
                    self.disturbed.get_or_insert(Disturbance::Preemption);
                }
            }
        }
        self.running.push(Running {
            function,
            from,
            released: false,
        });
    }

    fn expired(&mut self, time: u64) {
        let Some(running) = self.running.pop() else {
            self.senseless += u64::from(!self.tiles.is_empty());
            return;
        };
        if running.function != Function::Engine {
            return;
        }
        let since = match running.released {
            true => {
                self.push(OverheadKind::Release, running.from, time);
                time
            }
            false => running.from,
        };
        // Another callback may follow in the same interrupt.
        self.before = Some(since);
        let earlier = self.choosing.filter(|_| !running.released);
        self.choosing = earlier.or(Some(Choosing {
            since,
            by: None,
            call: None,
        }));
    }

    fn called(&mut self, time: u64) {
        let call = (self.sent.take()).map(|sent| time.saturating_sub(sent));
        let call = call.map(|call| u32::try_from(call).unwrap_or(u32::MAX));
        match &mut self.choosing {
            Some(choosing) if choosing.by.is_some() => choosing.call = choosing.call.max(call),
            // If a callback was here before, it was not for this processor, which has gone on.
            _ => {
                self.disturbed = None;
                self.choosing = Some(Choosing {
                    since: time,
                    by: None,
                    call,
                });
            }
        }
    }

    fn switch(&mut self, time: u64, from: Who, to: Who) {
        self.no_callback();
        // One that comes to a processor that looks by itself has no interrupt.
        self.sent = None;
        let between_jobs = match (from, to) {
            (_, Who::Worker(_)) => from != Who::Other,
            (Who::Worker(_), Who::Nobody) => true,
            _ => false,
        };
        if let Some(choosing) = self.choosing.take().filter(|_| between_jobs) {
            self.push(OverheadKind::Scheduling, choosing.since, time);
            self.calls.extend(choosing.call);
        }
        self.disturbed = None;
        self.switched = match to {
            Who::Worker(thread) => Some((thread, time)),
            _ => None,
        };
    }

    fn goes_on(&mut self, time: u64, thread: i32) {
        self.no_callback();
        let (switched, choosing) = (self.switched.take(), self.choosing.take());
        match (switched, choosing) {
            (Some((to, since)), None) if to == thread => {
                self.push(OverheadKind::ContextSwitch, since, time);
            }
            (_, Some(choosing)) if choosing.by == Some(thread) => {
                self.push(OverheadKind::Scheduling, choosing.since, time);
            }
            _ => {}
        }
        self.disturbed = None;
    }

    fn push(&mut self, kind: OverheadKind, begun: u64, until: u64) {
        self.tiles.push(Tile {
            cost: Cost::Overhead(kind),
            begun,
            own: None,
            whole: until.saturating_sub(begun),
            disturbed: self.disturbed.take(),
        });
    }
}

fn is_ours(running: &&mut Running) -> bool {
    running.function == Function::Engine
}

/// Cuts all marks, which are in the order of time, by processor.
pub fn cut(marks: &[(u64, CpuId, Mark)]) -> BTreeMap<CpuId, Tiler> {
    let mut tilers: BTreeMap<CpuId, Tiler> = BTreeMap::new();
    for (time, cpu, mark) in marks {
        tilers.entry(*cpu).or_default().add(*time, *mark);
    }
    tilers
}

#[cfg(test)]
mod tests {
    use super::*;
    use Function::{Engine, Other, Tick};
    use Mark::*;

    fn tiles(marks: &[(u64, Mark)]) -> Vec<(OverheadKind, u64, u64, bool)> {
        let mut tiler = Tiler::default();
        for (time, mark) in marks {
            tiler.add(*time, *mark);
        }
        assert_eq!(tiler.senseless(), 0);
        let kind = |tile: &Tile| match tile.cost {
            Cost::Overhead(kind) => kind,
            Cost::Look => unreachable!(),
        };
        let of = |tile: &Tile| {
            let counts = tile.disturbed.is_none();
            (kind(tile), tile.begun, tile.whole, counts)
        };
        tiler.tiles().iter().map(of).collect()
    }

    const A: Who = Who::Worker(70);
    const B: Who = Who::Worker(71);

    #[test]
    fn a_release_and_what_follows_are_cut_without_a_gap() {
        let found = tiles(&[
            (100, TimerEntry),
            (104, TimerExit),
            (110, Expires(Engine)),
            (113, Released),
            (114, Released),
            (120, Expired),
            (131, Switch(A, B)),
            (140, GoesOn(71)),
        ]);
        let expected = [
            (OverheadKind::Release, 100, 20, true),
            (OverheadKind::Scheduling, 120, 11, true),
            (OverheadKind::ContextSwitch, 131, 9, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_end_of_a_job_is_scheduling_with_a_switch_and_without_one() {
        let found = tiles(&[
            (10, Yields(70)),
            (17, Switch(A, Who::Nobody)),
            (50, TimerEntry),
            (51, TimerExit),
            (52, Expires(Engine)),
            (53, Released),
            (57, Expired),
            (60, Switch(Who::Nobody, A)),
            (66, GoesOn(70)),
            (90, Yields(70)),
            (95, GoesOn(70)),
        ]);
        let expected = [
            (OverheadKind::Scheduling, 10, 7, true),
            (OverheadKind::Release, 50, 7, true),
            (OverheadKind::Scheduling, 57, 3, true),
            (OverheadKind::ContextSwitch, 60, 6, true),
            (OverheadKind::Scheduling, 90, 5, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_processor_that_is_called_chooses_from_then_on() {
        let mut tiler = Tiler::default();
        for (time, mark) in [
            (10, Sent),
            (12, Sent),
            (30, Called),
            (37, Switch(A, B)),
            // Whose thread an ordinary one interrupts is no decision of the engine.
            (60, Sent),
            (62, Called),
            (63, Switch(B, Who::Other)),
            (70, Switch(Who::Other, B)),
            // Nor is what comes of a call long after it was of no use.
            (80, Called),
            (81, Rests),
            (99, Switch(Who::Nobody, A)),
        ] {
            tiler.add(time, mark);
        }
        assert_eq!(tiler.calls(), [20]);
        assert_eq!(tiler.tiles().len(), 1);
        let tile = tiler.tiles()[0];
        assert_eq!((tile.begun, tile.whole), (30, 7));
    }

    #[test]
    fn ticks_stand_alone_or_are_part_of_what_the_interrupt_was_for() {
        let tick = |from: u64| {
            [
                (from, TimerEntry),
                (from + 1, Expires(Tick)),
                (from + 3, Expired),
                (from + 4, TimerExit),
            ]
        };
        let mut marks = tick(100).to_vec();
        marks.extend(tick(200));
        marks.extend([(206, Expires(Engine)), (207, Released), (209, Expired)]);
        marks.extend([(300, TimerEntry), (301, Expires(Other)), (302, Expired)]);
        marks.push((303, TimerExit));
        let expected = [
            (OverheadKind::Tick, 100, 4, true),
            (OverheadKind::Release, 200, 9, true),
        ];
        assert_eq!(tiles(&marks), expected);
    }

    #[test]
    fn a_budget_that_ends_is_scheduling_from_its_interrupt_on() {
        let found = tiles(&[
            (100, TimerEntry),
            (101, TimerExit),
            (103, Expires(Engine)),
            (109, Expired),
            (115, Switch(A, B)),
        ]);
        assert_eq!(found, [(OverheadKind::Scheduling, 100, 15, true)]);
    }

    #[test]
    fn what_is_interrupted_does_not_count() {
        let found = tiles(&[
            (10, Yields(70)),
            (12, TimerEntry),
            (13, TimerExit),
            (17, Switch(A, B)),
            (20, TimerEntry),
            (21, TimerExit),
            (25, GoesOn(71)),
            // The callback was put off until another thread had run.
            (40, TimerEntry),
            (41, TimerExit),
            (43, Switch(B, Who::Other)),
            (50, Expires(Engine)),
            (51, Released),
            (55, Expired),
        ]);
        let expected = [
            (OverheadKind::Scheduling, 10, 7, false),
            (OverheadKind::ContextSwitch, 17, 8, false),
            (OverheadKind::Release, 50, 5, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn events_are_told_apart_by_threads_and_functions() {
        let known = Known {
            workers: [70].into(),
            callback: -500,
            tick: Some(-600),
        };
        let by = |point: Point, values: [i64; 3]| {
            let [first, second, third] = values;
            let record = Record {
                time: 0,
                cpu: 1,
                point: point as usize,
                values: [first, second, third, 0],
            };
            mark(&record, &known)
        };
        let of = |point: Point, values: [i64; 2]| by(point, [values[0], values[1], 0]);
        let here = |mark: Mark| Some((CpuId(1), mark));
        assert_eq!(of(Point::Expires, [-500, 0]), here(Expires(Engine)));
        assert_eq!(of(Point::Expires, [-600, 0]), here(Expires(Tick)));
        assert_eq!(of(Point::Expires, [-700, 0]), here(Expires(Other)));
        assert_eq!(of(Point::Switch, [70, 0]), here(Switch(A, Who::Nobody)));
        assert_eq!(of(Point::Switch, [9, 70]), here(Switch(Who::Other, A)));
        assert_eq!(
            by(Point::Switch, [70, 0, 2]),
            here(Switch(Who::Other, Who::Nobody))
        );
        assert_eq!(by(Point::Switch, [70, 9, 256]), here(Switch(A, Who::Other)));
        assert_eq!(of(Point::Idles, [1, 0]), here(Rests));
        assert_eq!(of(Point::Idles, [AWAKE, 0]), None);
        assert_eq!(of(Point::Sends, [3, 0]), Some((CpuId(3), Sent)));
        assert_eq!(of(Point::Sends, [3, -900]), None);
        assert_eq!(of(Point::Yields, [70, 0]), here(Yields(70)));
        assert_eq!(of(Point::GoesOn, [9, 0]), None);
        for (index, point) in Point::ALL.into_iter().enumerate() {
            assert_eq!(point as usize, index);
        }
        assert_eq!(TRACEPOINTS[Point::Sends as usize].name, "ipi/ipi_send_cpu");
        let symbols = "ffffffff814204b0 t hrtimer_wakeup\nffffffff814352e0 t bpf_timer_cb\n";
        assert_eq!(callback_of(symbols), Some(0xffff_ffff_8143_52e0_u64 as i64));
        assert_eq!(callback_of("0000000000000000 t bpf_timer_cb"), None);
    }
}
