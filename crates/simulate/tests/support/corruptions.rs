//! Corruptions of a trace, one event at a time: taken away, doubled, shifted, told of something
//! else.

use super::{Instance, UNIT};
use trace::{Event, EventKind, Overhead};

/// Does the processor of the first event, which is called idle, work in the kernel all the time
/// until it has a job again?
fn is_never_idle(events: &[Event]) -> bool {
    let (cpu, mut since, mut open) = (events[0].cpu(), events[0].time, 0);
    for e in events.iter().filter(|e| e.cpu() == cpu) {
        if open == 0 && e.time > since {
            return false;
        }
        since = e.time;
        match (e.kind, e.overhead_kind()) {
            (_, Some(Overhead::IpiLatency)) => {}
            (EventKind::OverheadBegin, _) => open += 1,
            (EventKind::OverheadEnd, _) => open -= 1,
            (kind, _) if kind.puts_on() => return true,
            _ => {}
        }
    }
    false
}

/// Every corruption of an event that no correct trace survives, with what it is.
pub fn corruptions(of: &Instance, events: &[Event], i: usize) -> Vec<(&'static str, Vec<Event>)> {
    let e = events[i];
    let end = events[events.len() - 1].time;
    let mut all = Vec::new();
    // What begins at the very end lasts for no time: it may stand or not. Whatever stands has to be
    // right.
    let at_end = e.time == end;
    let begins = at_end
        && matches!(
            e.kind,
            EventKind::Release
                | EventKind::Idle
                | EventKind::Window
                | EventKind::ServerBegin
                | EventKind::ServerEnd
        );
    // What is not told of a processor before its first job, it is idle; nor is the word of one
    // missed that idles for no time.
    let mine = |b: &&Event| b.cpu() == e.cpu();
    let first = !events[..i].iter().filter(mine).any(|b| b.kind.takes_off());
    let now = events[i..].iter().take_while(|b| b.time == e.time);
    let again = now.filter(mine).any(|b| b.kind.puts_on());
    // One that idles on may say again whether it does so on purpose; a flag too many excuses
    // nothing.
    let before = events[..i].iter().rev().take_while(|b| b.time == e.time);
    let goes_on = !before.filter(mine).any(|b| b.kind.takes_off());
    let early =
        e.kind == EventKind::Idle && (first || again || goes_on || is_never_idle(&events[i..]));
    let silent = begins || early;
    if !silent {
        let mut events = events.to_vec();
        events.remove(i);
        all.push(("drop", events));
    }
    let mut doubled = events.to_vec();
    doubled.insert(i, e);
    all.push(("duplicate", doubled));
    let mut with = |what: &'static str, patch: &dyn Fn(&mut [u64; 4])| {
        let mut words = e.to_words();
        patch(&mut words);
        if let Some(event) = Event::from_words(words).filter(|p| *p != e) {
            let mut events = events.to_vec();
            events[i] = event;
            all.push((what, events));
        }
    };
    let cpu = (e.to_words()[3] >> 32) & 0xffff;
    for other in 0..of.m {
        // Under global policies any processor may handle a release; a miss that is known at the end
        // may be told with the processor of its job or without.
        let free = match e.kind {
            EventKind::Release => {
                // Nor is a job that never runs bound to one of the two processors of its task.
                let runs = |b: &Event| b.kind.puts_on() && (b.task, b.job) == (e.task, e.job);
                !of.policy.starts_with("edf") || !events[i..].iter().any(runs)
            }
            EventKind::DeadlineMiss => e.cpu().is_none(),
            // Which processors fall idle at the very end makes no difference. A word that says
            // nothing new here says nothing new of another processor that idles.
            EventKind::Idle => {
                let there = |b: &&Event| b.cpu().is_some_and(|c| u64::from(c.0) == other);
                let mut moves = events[..i].iter().rev().filter(there);
                let last = moves.find(|b| b.kind.puts_on() || b.kind.takes_off());
                at_end || (early && !last.is_some_and(|b| b.kind.puts_on()))
            }
            // A job that stays until the end may as well stay on another processor that is empty
            // until then.
            kind if kind.puts_on() => {
                let leaves = |b: &Event| b.kind.takes_off() && (b.task, b.job) == (e.task, e.job);
                !of.policy.starts_with("edf") && !events[i..].iter().any(leaves)
            }
            _ => false,
        };
        if other != cpu && !free {
            with("other processor", &|w| {
                w[3] = w[3] & !(0xffff << 32) | other << 32
            });
        }
    }
    with("other job", &|w| w[1] += 1);
    with("other argument", &|w| w[2] = w[2].wrapping_add(UNIT));
    with("other task", &|w| w[3] ^= 1);
    if !silent {
        with("later", &|w| w[0] += UNIT / 2);
        with("earlier", &|w| w[0] = w[0].saturating_sub(UNIT / 2));
    }
    all
}
