//! Which tracepoints are recorded, and what each of their events says.
//!
//! Source: the kernel's `include/trace/events/{sched,timer,irq}.h` and, for the interrupts of
//! x86-64's own controller, `arch/x86/include/asm/trace/irq_vectors.h`. What a kernel lacks is not
//! recorded: interrupts of other architectures' controllers are not seen.

use machine::tracefs::{Record, Recording, Tracepoint};
use model::CpuId;
use serde::{Deserialize, Serialize};

/// What takes a processor from the thread that it runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The processor's own timer: the tick, and timers of threads.
    Timer,
    /// Another processor asks this one to choose anew.
    Reschedule,
    /// Another processor asks this one to call a function.
    FunctionCall,
    /// The kernel's work that waits for an interrupt.
    Work,
    /// A device, by the number of its interrupt.
    Device(i64),
    /// What the kernel has put off until interrupts are over, by its number.
    Soft(i64),
}

impl Source {
    /// Is it part of what tasks are charged: the tick, the release, the IPI? All others are not.
    pub const fn is_charged(self) -> bool {
        matches!(self, Source::Timer | Source::Reschedule)
    }

    /// For sentences: `timer interrupt`, `softirq RCU`.
    pub fn name(self) -> String {
        /// As `include/linux/interrupt.h` numbers them.
        const SOFT: [&str; 10] = [
            "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
            "RCU",
        ];
        let soft = |number: i64| usize::try_from(number).ok().and_then(|n| SOFT.get(n));
        match self {
            Source::Timer => "timer interrupt".to_owned(),
            Source::Reschedule => "reschedule interrupt".to_owned(),
            Source::FunctionCall => "function-call interrupt".to_owned(),
            Source::Work => "irq-work interrupt".to_owned(),
            Source::Device(number) => format!("interrupt {number}"),
            Source::Soft(number) => match soft(number) {
                Some(name) => format!("softirq {name}"),
                None => format!("softirq {number}"),
            },
        }
    }
}

/// What an event says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// One thread leaves, another comes; 0: nobody.
    Switch(i32, i32),
    /// A thread is woken up, to run on this processor.
    Wakes(i32, CpuId),
    /// A timer is set, to fire at a moment of its clock.
    Arms(i64, i64),
    /// It fires, at this moment of its clock.
    Fires(i64, i64),
    /// It is not going to fire.
    Disarms(i64),
    /// An interrupt begins.
    Enters(Source),
    /// The one that began last is over.
    Exits,
}

/// A tracepoint by its name, the fields that are kept, and what its events say of them.
type Point = (&'static str, &'static [&'static str], fn(&[i64]) -> Said);

fn thread(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(0)
}

const POINTS: [Point; 19] = [
    ("sched/sched_switch", &["prev_pid", "next_pid"], |v| {
        Said::Switch(thread(v[0]), thread(v[1]))
    }),
    ("sched/sched_waking", &["pid", "target_cpu"], |v| {
        Said::Wakes(thread(v[0]), CpuId(u32::try_from(v[1]).unwrap_or(0)))
    }),
    ("timer/hrtimer_start", &["hrtimer", "expires"], |v| {
        Said::Arms(v[0], v[1])
    }),
    ("timer/hrtimer_expire_entry", &["hrtimer", "now"], |v| {
        Said::Fires(v[0], v[1])
    }),
    ("timer/hrtimer_cancel", &["hrtimer"], |v| {
        Said::Disarms(v[0])
    }),
    ("irq_vectors/local_timer_entry", &["vector"], |_| {
        Said::Enters(Source::Timer)
    }),
    ("irq_vectors/local_timer_exit", &["vector"], |_| Said::Exits),
    ("irq_vectors/reschedule_entry", &["vector"], |_| {
        Said::Enters(Source::Reschedule)
    }),
    ("irq_vectors/reschedule_exit", &["vector"], |_| Said::Exits),
    ("irq_vectors/call_function_entry", &["vector"], |_| {
        Said::Enters(Source::FunctionCall)
    }),
    ("irq_vectors/call_function_exit", &["vector"], |_| {
        Said::Exits
    }),
    (
        "irq_vectors/call_function_single_entry",
        &["vector"],
        |_| Said::Enters(Source::FunctionCall),
    ),
    ("irq_vectors/call_function_single_exit", &["vector"], |_| {
        Said::Exits
    }),
    ("irq_vectors/irq_work_entry", &["vector"], |_| {
        Said::Enters(Source::Work)
    }),
    ("irq_vectors/irq_work_exit", &["vector"], |_| Said::Exits),
    ("irq/irq_handler_entry", &["irq"], |v| {
        Said::Enters(Source::Device(v[0]))
    }),
    ("irq/irq_handler_exit", &["irq"], |_| Said::Exits),
    ("irq/softirq_entry", &["vec"], |v| {
        Said::Enters(Source::Soft(v[0]))
    }),
    ("irq/softirq_exit", &["vec"], |_| Said::Exits),
];

/// What would be recorded here: all of it that this kernel has, in the order of [`POINTS`].
pub fn known() -> Vec<Tracepoint> {
    kept(Recording::knows)
}

fn kept(knows: impl Fn(&Tracepoint) -> bool) -> Vec<Tracepoint> {
    let point = |(name, fields, _): &Point| Tracepoint {
        name,
        filter: None,
        fields,
    };
    // Switches are what all else hangs on: without them beginning fails, and says why.
    let points = POINTS.iter().map(point).enumerate();
    let kept = points.filter(|(place, point)| *place == 0 || knows(point));
    kept.map(|(_, point)| point).collect()
}

/// All of them, whatever this kernel has.
#[cfg(test)]
pub(super) fn all() -> Vec<Tracepoint> {
    kept(|_| true)
}

/// What an event of a recording of these tracepoints says.
pub fn said(points: &[Tracepoint], record: &Record) -> Option<Said> {
    let name = points.get(record.point)?.name;
    let (_, _, says) = POINTS.iter().find(|point| point.0 == name)?;
    Some(says(&record.values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_by_what_the_kernel_has() {
        let points = kept(|point| !point.name.starts_with("irq_vectors/"));
        assert_eq!(points.len(), 9);
        let of = |point: &str, values| {
            let place = points.iter().position(|p| p.name == point).unwrap();
            let record = Record {
                time: 0,
                cpu: 0,
                point: place,
                values,
            };
            said(&points, &record).unwrap()
        };
        assert_eq!(of("sched/sched_switch", [7, 0, 0, 0]), Said::Switch(7, 0));
        assert_eq!(
            of("sched/sched_waking", [7, 1, 0, 0]),
            Said::Wakes(7, CpuId(1))
        );
        assert_eq!(
            of("irq/softirq_entry", [9, 0, 0, 0]),
            Said::Enters(Source::Soft(9))
        );
        assert_eq!(of("irq/irq_handler_exit", [3, 0, 0, 0]), Said::Exits);
        // Without switches nothing can be said: they are asked for all the same.
        assert_eq!(kept(|_| false)[0].name, "sched/sched_switch");
    }

    #[test]
    fn what_interrupts_has_a_name_and_may_be_charged() {
        assert_eq!(Source::Soft(9).name(), "softirq RCU");
        assert_eq!(Source::Soft(77).name(), "softirq 77");
        assert_eq!(Source::Device(36).name(), "interrupt 36");
        assert!(Source::Timer.is_charged() && !Source::Soft(1).is_charged());
        assert!(!Source::Device(36).is_charged());
    }
}
