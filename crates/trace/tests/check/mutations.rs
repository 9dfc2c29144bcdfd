//! Every way in which one event of a correct trace is corrupted.

use model::{CpuId, Instant};
use trace::{Event, EventKind, Flags, Header};

/// One corruption of one event.
pub struct Mutation {
    pub what: &'static str,
    pub events: Vec<Event>,
}

fn with(events: &[Event], at: usize, event: Event) -> Vec<Event> {
    let mut events = events.to_vec();
    events[at] = event;
    events
}

/// The event with other fields, through its bytes, as a damaged or lying recorder would write it.
fn patched(event: &Event, patch: impl Fn(&mut [u64; 4])) -> Option<Event> {
    let mut words = event.to_words();
    patch(&mut words);
    Event::from_words(words).filter(|e| e != event)
}

/// Every corruption of event `i`. Those that leave a correct trace are left out, each for the
/// reason given.
pub fn mutations(header: &Header, events: &[Event], i: usize) -> Vec<Mutation> {
    let end = events.last().unwrap().time;
    let e = events[i];
    let m = header.processors().len() as u64;
    let n = header.tasks.len() as u64;
    let mut all = Vec::new();
    let mut push = |what: &'static str, events: Vec<Event>| all.push(Mutation { what, events });

    // A release at the very end may be left out, or stand there, and so may the word of a processor
    // that falls idle then.
    let lasts = e.time < end || !matches!(e.kind, EventKind::Release | EventKind::Idle);
    // Without its end a trace is unfinished, not wrong:
    // `a_trace_without_its_end_is_said_to_have_none`.
    if e.kind != EventKind::End && lasts {
        let mut dropped = events.to_vec();
        dropped.remove(i);
        push("drop", dropped);
    }
    let mut doubled = events.to_vec();
    doubled.insert(i, e);
    push("duplicate", doubled);

    // Swapping two neighbors: what they say, each at the other's time. Two releases or two
    // decisions of one instant on different processors may stand in either order.
    if let Some(next) = events.get(i + 1) {
        let order_matters = e.time != next.time
            || (e.task == next.task
                && e.job == next.job
                && e.kind.has_job()
                && next.kind.has_job())
            || e.cpu() == next.cpu()
                && e.kind != EventKind::Release
                && next.kind != EventKind::Release
            || (e.kind == EventKind::Completion && next.kind == EventKind::Release)
            || next.kind == EventKind::End;
        if order_matters {
            let mut swapped = events.to_vec();
            swapped.swap(i, i + 1);
            push("swap", swapped.clone());
            swapped[i].time = e.time;
            swapped[i + 1].time = next.time;
            if e.time != next.time {
                push("swap what happened", swapped);
            }
        }
    }
    for (what, by) in [
        ("1 ns late", 1),
        ("1 ns early", -1),
        ("1 ms late", 1_000_000),
        ("1 ms early", -1_000_000),
    ] {
        let Some(time) = e.time.nanos().checked_add_signed(by) else {
            continue;
        };
        // A trace may end earlier, as long as nothing stands behind its end.
        if e.kind == EventKind::End && by < 0 && time >= events[i - 1].time.nanos() {
            continue;
        }
        let mut moved = e;
        moved.time = Instant::from_nanos(time);
        push(what, with(events, i, moved));
        // The same, with the record in its new place in the order of time.
        let mut sorted = with(events, i, moved);
        sorted.sort_by_key(|e| e.time);
        if e.kind != EventKind::End {
            push(what, sorted);
        }
    }
    let mut field = |what: &'static str, patch: &dyn Fn(&mut [u64; 4])| {
        if let Some(event) = patched(&e, patch) {
            push(what, with(events, i, event));
        }
    };
    // Any processor of the domain may handle a release.
    let cpu = (e.to_words()[3] >> 32) & 0xffff;
    for other in 0..=m {
        let same_domain = |a: u64, b: u64| match &header.stages[0].assignment {
            Some(model::Assignment::Clustered(c)) => c
                .clusters
                .iter()
                .any(|c| c.contains(CpuId(a as u32)) && c.contains(CpuId(b as u32))),
            _ => true,
        };
        if e.kind == EventKind::Release && same_domain(cpu, other) {
            continue;
        }
        // A switch of one processor to idle that is told of another idle one stands for a lost
        // event there: caught below.
        field("other processor", &|w| {
            w[3] = w[3] & !(0xffff << 32) | other << 32
        });
    }
    // The miss of a job that is unfinished at the end may be told without its processor.
    if e.kind != EventKind::DeadlineMiss {
        field("no processor", &|w| w[3] |= 0xffff << 32);
    }
    for other in 0..=n {
        field("other task", &|w| w[3] = w[3] & !0xffff_ffff | other);
    }
    field("no task", &|w| w[3] |= 0xffff_ffff);
    for by in [1_u64, 2, u64::MAX] {
        field("other job", &|w| w[1] = w[1].wrapping_add(by));
        field("other argument", &|w| w[2] = w[2].wrapping_add(by));
        field("other argument by 1 ms", &|w| {
            w[2] = w[2].wrapping_add(by.wrapping_mul(1_000_000))
        });
    }
    for kind in EventKind::ALL {
        // An overhead may last until the end, if nothing else is heard of the processor.
        let heard = events[i + 1..]
            .iter()
            .any(|later| later.cpu() == e.cpu() && later.kind != EventKind::Release);
        if kind == EventKind::OverheadBegin && !heard {
            continue;
        }
        field("other kind", &|w| {
            w[3] = w[3] & !(0xff << 48) | (kind as u64) << 48
        });
    }
    for bit in 0..8 {
        // A processor that idles with nothing ready may be said to do so on purpose: that excuses
        // nothing.
        if e.kind == EventKind::Idle && 1 << bit == Flags::DELIBERATE.0 {
            continue;
        }
        field("other flags", &|w| w[3] ^= 1 << (56 + bit));
    }
    all
}
