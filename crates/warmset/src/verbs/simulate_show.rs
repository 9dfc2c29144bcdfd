//! A simulation for people: how it ended, and what `warmset trace stats` says of a trace of it.

use app::simulate::Simulated;
use model::table::Look;
use simulate::Ending;
use std::fmt::Write;

/// The table. `brute_force`: the simulation was to stop at the first miss.
pub fn table(s: &Simulated, brute_force: bool, look: Look) -> String {
    let mut text = format!("{} on {}: ", s.policy, s.platform);
    // Writing to a string cannot fail.
    let _ = match s.ending {
        Ending::Horizon => writeln!(text, "{} simulated", s.end),
        Ending::Miss => writeln!(text, "stopped at the first miss, after {}", s.end),
        Ending::Interrupted => writeln!(text, "interrupted after {}", s.end),
    };
    let _ = match &s.first_miss {
        Some(miss) => writeln!(
            text,
            "the first deadline missed is that of job {} of {}, at {}",
            miss.job, miss.task, miss.deadline
        ),
        None if brute_force => {
            writeln!(
                text,
                "no deadline missed: brute force found no reason against it"
            )
        }
        None => writeln!(text, "no deadline missed"),
    };
    text += &s.added_up.text(look);
    text
}
