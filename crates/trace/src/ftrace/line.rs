//! One line of text.

use super::{Leaves, Thread, What};
use model::{CpuId, Error, Instant, Result};

type Read<'t> = Option<(Option<Instant>, CpuId, What<'t>)>;

/// An event of the scheduler, if the line is one; where events were lost, without a time.
pub(super) fn read(line: &str) -> Result<Read<'_>> {
    if let Some(lost) = lost(line).or_else(|| lost_by_perf(line)) {
        return Ok(Some(lost));
    }
    // A remark, or an event that is none of these.
    if line.starts_with('#') {
        return Ok(None);
    }
    for name in [
        "sched_switch: ",
        "sched_waking: ",
        "sched_wakeup: ",
        "sched_wakeup_new: ",
    ] {
        let Some(at) = line.find(name) else {
            continue;
        };
        let (head, body) = (&line[..at], line[at + name.len()..].trim());
        let head = head.strip_suffix("sched:").unwrap_or(head);
        let (time, cpu) = time_and_cpu(head)?;
        let what = match name {
            "sched_switch: " => switch(body),
            name => wake(body, name == "sched_waking: "),
        };
        let what = what.ok_or_else(|| {
            let name = name.trim_end_matches([':', ' ']);
            Error::new(format!("this event `{name}` does not read"))
                .remedy("give the text unchanged")
        })?;
        return Ok(Some((Some(time), cpu, what)));
    }
    Ok(None)
}

/// `CPU:1 [LOST 123 EVENTS]` of the kernel, `CPU:1 [123 EVENTS DROPPED]` of trace-cmd. A count that
/// is not told is one at least.
fn lost(line: &str) -> Option<(Option<Instant>, CpuId, What<'_>)> {
    let rest = line.trim().strip_prefix("CPU:")?;
    let (cpu, rest) = rest.split_once(" [")?;
    if !rest.contains("LOST") && !rest.contains("DROPPED") {
        return None;
    }
    let mut words = rest.split(|c: char| !c.is_ascii_digit());
    let count = words.find_map(|word| word.parse().ok()).unwrap_or(1);
    Some((None, CpuId(cpu.trim().parse().ok()?), What::Lost(count)))
}

/// `comm pid [cpu] seconds: PERF_RECORD_LOST lost 123`, as `perf script --show-lost-events` prints
/// it; or `PERF_RECORD_LOST_SAMPLES`.
fn lost_by_perf(line: &str) -> Option<(Option<Instant>, CpuId, What<'_>)> {
    let (head, rest) = line.split_once(": PERF_RECORD_LOST")?;
    // This cannot stand in the name of a thread, which is shorter.
    let count = rest.rsplit_once("lost ")?.1.trim().parse().ok()?;
    let (_, cpu) = time_and_cpu(head).ok()?;
    Some((None, cpu, What::Lost(count)))
}

/// What stands before the name of an event: `comm-pid [cpu] flags seconds:`, or as perf prints it
/// `comm pid [cpu] seconds:`.
fn time_and_cpu(head: &str) -> Result<(Instant, CpuId)> {
    let bad = |what: &str| {
        Error::new(format!("the event has no {what}"))
            .remedy("give the text unchanged, with processors and times")
    };
    let head = head.trim_end();
    let time = head.strip_suffix(':').unwrap_or(head);
    let time = time.rsplit([' ', '\t']).next().unwrap_or_default();
    let time = seconds(time).ok_or_else(|| bad("time in seconds"))?;
    // The name of a thread may have brackets, too: the last ones are those of the processor.
    let cpu = head.rfind('[').and_then(|begin| {
        let inside = &head[begin + 1..];
        inside[..inside.find(']')?].trim().parse().ok()
    });
    Ok((time, CpuId(cpu.ok_or_else(|| bad("processor"))?)))
}

/// Decimal seconds; what is finer than a nanosecond is no such time.
fn seconds(text: &str) -> Option<Instant> {
    let (whole, fraction) = text.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let ns: u64 = format!("{fraction:0<9}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    Some(Instant::from_nanos(
        whole.checked_mul(1_000_000_000)?.checked_add(ns)?,
    ))
}

fn switch(body: &str) -> Option<What<'_>> {
    let (from, to) = body.split_once(" ==> ")?;
    let (from, state) = match from.strip_prefix("prev_comm=") {
        Some(_) => {
            let (thread, state) = from.rsplit_once(" prev_state=")?;
            (named(thread, "prev_")?, state)
        }
        None => {
            let (thread, state) = from.rsplit_once(' ')?;
            (short(thread)?, state)
        }
    };
    let to = match to.starts_with("next_comm=") {
        true => named(to, "next_")?,
        false => short(to)?,
    };
    Some(What::Switch {
        from,
        leaves: leaves(state.trim())?,
        to,
    })
}

/// `R`, `R+`: it could go on, or was preempted. Of several letters (`D|W`) the first one counts.
fn leaves(state: &str) -> Option<Leaves> {
    Some(match state.chars().next()? {
        'R' => Leaves::Ready,
        'S' | 'I' => Leaves::Sleeps,
        'X' | 'Z' | 'x' => Leaves::Ends,
        'D' | 'T' | 't' | 'P' | 'K' | 'W' => Leaves::Blocked,
        _ => return None,
    })
}

fn wake(body: &str, first: bool) -> Option<What<'_>> {
    let (thread, target) = match body.starts_with("comm=") {
        true => {
            let (thread, target) = body.rsplit_once(" target_cpu=")?;
            let thread = thread.strip_suffix(" success=1").unwrap_or(thread);
            (named(thread, "")?, target)
        }
        false => {
            let (thread, target) = body.rsplit_once(" CPU:")?;
            let end = thread.rfind(']')?;
            (short(&thread[..=end])?, target)
        }
    };
    Some(What::Wake {
        thread,
        target: CpuId(target.trim().parse().ok()?),
        first,
    })
}

/// `comm=… pid=… prio=…`, each key with this in front.
fn named<'t>(text: &'t str, with: &str) -> Option<Thread<'t>> {
    let rest = text.strip_prefix(with)?.strip_prefix("comm=")?;
    let (rest, prio) = rest.rsplit_once(&format!(" {with}prio="))?;
    let (comm, pid) = rest.rsplit_once(&format!(" {with}pid="))?;
    Some(Thread {
        comm,
        pid: pid.trim().parse().ok()?,
        prio: prio.trim().parse().ok()?,
    })
}

/// `comm:pid [prio]`.
fn short(text: &str) -> Option<Thread<'_>> {
    let (rest, prio) = text.trim().strip_suffix(']')?.rsplit_once(" [")?;
    let (comm, pid) = rest.rsplit_once(':')?;
    Some(Thread {
        comm,
        pid: pid.trim().parse().ok()?,
        prio: prio.trim().parse().ok()?,
    })
}
