//! Who was on which processor: the tracepoint `sched_switch`.

use super::recording::{Recorded, Tracepoint};

/// Switches to and from threads of real-time priority. The kernel counts priorities from above,
/// ordinary threads from 100 on. (Its filter by process would follow what starts later, but loses
/// threads that come to an idle processor.)
pub const SWITCHES: Tracepoint = Tracepoint {
    name: "sched/sched_switch",
    filter: Some("prev_prio < 100 || next_prio < 100"),
    fields: &["prev_pid", "next_pid"],
};

/// One thread leaves a processor, another comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    /// The processor.
    pub cpu: u32,
    /// Who leaves, as the kernel numbers threads; 0: nobody.
    pub prev: i32,
    /// Who comes.
    pub next: i32,
}

/// What was recorded of [`SWITCHES`] alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Switches {
    /// In the order of time.
    pub all: Vec<Switch>,
    /// How many the kernel's buffers had no room for.
    pub lost: u64,
    /// Those after the last one were not kept: there are too many.
    pub cut: bool,
}

impl From<Recorded> for Switches {
    fn from(recorded: Recorded) -> Self {
        let of = |r: &super::Record| Switch {
            time: r.time,
            cpu: r.cpu,
            prev: r.values[0] as i32,
            next: r.values[1] as i32,
        };
        Switches {
            all: recorded.all.iter().map(of).collect(),
            lost: recorded.lost,
            cut: recorded.cut,
        }
    }
}
