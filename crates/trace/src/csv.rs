//! Events as comma-separated values (RFC 4180), one a line.

use crate::event::{Event, EventKind, Flags};
use std::fmt::Write as _;

/// The names of the columns, with a line end.
///
/// `what` names what `value` is, where the event has one: `deadline_ns`, `from_processor`,
/// `executed_ns`, `budget_ns`, `overhead`, `server`, `stage`, `count`. Jobs and servers count from
/// 1, as in the papers; processors as the system counts them.
pub const HEAD: &str = "time_ns,processor,event,task,job,what,value,note\n";

/// A name as a field: quoted if it has to be. Characters that act on a terminal are escaped, line
/// ends too.
pub fn field(name: &str) -> String {
    let name = model::shown::escaped(name);
    if name.contains(['"', ',']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.into_owned()
    }
}

/// One event with a line end; `names` are fields, in the order of the set.
pub fn row(event: &Event, names: &[String], out: &mut String) {
    // Writing into a string cannot fail.
    let _ = write!(out, "{},", event.time.nanos());
    if let Some(cpu) = event.cpu() {
        let _ = write!(out, "{cpu}");
    }
    let _ = write!(out, ",{},", event.kind);
    match names.get(event.task.index()) {
        Some(name) => {
            let _ = write!(out, "{name},{},", crate::state::nth(event.job));
        }
        None => out.push_str(",,"),
    }
    let what = match event.kind {
        EventKind::Release | EventKind::DeadlineMiss | EventKind::Window => "deadline_ns",
        EventKind::Migration => "from_processor",
        EventKind::Completion => "executed_ns",
        EventKind::BudgetExhausted => "budget_ns",
        EventKind::Standstill => "length_ns",
        EventKind::OverheadBegin | EventKind::OverheadEnd => "overhead",
        EventKind::ServerBegin | EventKind::ServerEnd => "server",
        EventKind::PolicySwitch => "stage",
        EventKind::Lost => "count",
        _ => "",
    };
    let _ = write!(out, "{what},");
    match event.kind {
        _ if what.is_empty() => {}
        EventKind::OverheadBegin | EventKind::OverheadEnd => match event.overhead_kind() {
            Some(overhead) => out.push_str(overhead.name()),
            None => {
                let _ = write!(out, "{}", event.argument);
            }
        },
        EventKind::ServerBegin | EventKind::ServerEnd => {
            let _ = write!(out, "{}", crate::state::nth(event.argument));
        }
        _ => {
            let _ = write!(out, "{}", event.argument);
        }
    }
    out.push(',');
    if event.flags.has(Flags::CUT) {
        out.push_str("cut");
    }
    if event.flags.has(Flags::DELIBERATE) {
        out.push_str("deliberate");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuId, Instant, TaskId};

    #[test]
    fn events_are_rows() {
        let names = [field("camera"), field("a \"b\", c")];
        let mut out = String::from(HEAD);
        let at = Instant::from_nanos(1_500);
        for event in [
            Event::release(at, CpuId(3), TaskId(1), 0, Instant::from_nanos(9_000)),
            Event::resumption(at, CpuId(0), CpuId(3), TaskId(0), 4),
            Event::overhead_begin(at, CpuId(3), model::Overhead::Tick, None),
            Event::idle(at, CpuId(3)).flagged(Flags::DELIBERATE),
            Event::end(at),
        ] {
            row(&event, &names, &mut out);
        }
        insta::assert_snapshot!(out, @r#"
        time_ns,processor,event,task,job,what,value,note
        1500,3,release,"a ""b"", c",1,deadline_ns,9000,
        1500,3,migration,camera,5,from_processor,0,
        1500,3,overhead-begin,,,overhead,tick,
        1500,3,idle,,,,,deliberate
        1500,,end,,,,,
        "#);
    }
}
