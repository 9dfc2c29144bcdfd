//! How the experiments on cache partitions are shown: tables, pictures and raw samples, the papers'
//! figures beside them.

use ::experiment::flood::{SCENARIOS, Scenario};
use ::experiment::short::{Seen, Task};
use model::Result;
use report::Figure;
use report::lines::{Curves, figure};
use std::fmt::Write as _;

/// From which unpredictability on a flood does harm, and up to which a partition isolates.
const HARM: f64 = 1.5;
const ISOLATES: f64 = 1.15;

fn place(scenario: Scenario) -> usize {
    SCENARIOS.iter().position(|s| *s == scenario).unwrap_or(0)
}

/// Does the partition isolate, where the working set is half of it?
pub fn isolates(seen: &Seen) -> bool {
    seen.at_half().is_some_and(|row| {
        row.unpredictability[place(Scenario::Unpartitioned)] >= HARM
            && row.unpredictability[place(Scenario::Partitioned)] <= ISOLATES
    })
}

fn what(task: Task) -> (&'static str, &'static str) {
    match task {
        Task::Filter => ("filter", "coefficients"),
        Task::Cosine => ("cosine transform", "points"),
        Task::Fourier => ("Fourier transform", "points"),
    }
}

/// The papers' figures.
fn paper(task: Task) -> &'static str {
    match task {
        Task::Filter => {
            "001 §5.2, §5.3, Fig. 4, as its text has it: about 1.35 unpartitioned for many coefficients on the Pentium, 1.10\npartitioned at 256; on the Pentium Pro more, and about 1.6 with a single writer\n"
        }
        Task::Cosine | Task::Fourier => {
            "001 §5.3, Fig. 5 (Pentium Pro): like the filter, by less, for there is more to compute for each access\n"
        }
    }
}

/// The table.
pub fn short_text(seen: &Seen) -> String {
    // Writing into a string cannot fail.
    let (task, unit) = what(seen.task);
    let mut text = format!(
        "{task} in colors {} ({}), its code and stack in {}; {} runs of {} activations; floods of {}, {} in large pages\n",
        seen.data,
        seen.partition,
        seen.rest,
        seen.runs,
        seen.activations,
        seen.flood_lasts.rounded(),
        seen.flood_large,
    );
    for (title, of) in [
        (
            "c_max / c_min: the longest activation that counts against the shortest alone, medians over the runs",
            (|row: &::experiment::short::Row| row.unpredictability)
                as fn(&::experiment::short::Row) -> [f64; SCENARIOS.len()],
        ),
        ("the same of the median activation", |row| row.typical),
    ] {
        let _ = write!(
            text,
            "\n{title}\n{unit:>12} {:>8} {:>10} {:>12}",
            "memory", "c_min", "whole cache"
        );
        for scenario in SCENARIOS {
            let _ = write!(text, " {:>13}", scenario.name());
        }
        text.push('\n');
        for row in &seen.rows {
            let _ = write!(
                text,
                "{:>12} {:>8} {:>7.2} us {:>9.2} us",
                row.size,
                row.wss.to_string(),
                row.min_ns / 1000.0,
                row.whole_ns / 1000.0
            );
            for value in of(row) {
                let _ = write!(text, " {value:>13.2}");
            }
            text.push('\n');
        }
    }
    let sum = |of: fn(&::experiment::short::Row) -> u64| seen.rows.iter().map(of).sum::<u64>();
    let _ = writeln!(
        text,
        "\n{} activations count; left out: {} interrupted{}, {} with a slower machine around them, {} with somebody else on the\nprocessor during the flood, {} with lines lost that nobody here touched",
        sum(|r| r.counted),
        sum(|r| r.interrupted),
        if seen.witnessed {
            ""
        } else {
            " (this machine does not show interrupts)"
        },
        sum(|r| r.disturbed),
        sum(|r| r.held),
        sum(|r| r.emptied),
    );
    text.push_str(
        "whole cache: c_min where the task's memory has all colors; a partition that is smaller than the memory costs the rest\n",
    );
    text.push_str(paper(seen.task));
    text.push_str(&at_half(seen));
    text
}

/// What half of the partition shows.
fn at_half(seen: &Seen) -> String {
    seen.at_half().map_or_else(String::new, |row| {
        let of = |scenario: Scenario| row.unpredictability[place(scenario)];
        format!(
            "with {} of {}: {:.2} partitioned and {:.2} unpartitioned ({:.2} alone; {:.2} where nothing happens for as long)\n",
            row.wss,
            seen.partition,
            of(Scenario::Partitioned),
            of(Scenario::Unpartitioned),
            of(Scenario::Alone),
            of(Scenario::Waiting),
        )
    })
}

/// The answer to the question whether a partition isolates.
pub fn isolation_text(seen: &Seen) -> String {
    format!(
        "{}\nisolates: {} (at most {ISOLATES} partitioned where it is at least {HARM} unpartitioned)\n",
        short_text(seen),
        if isolates(seen) { "yes" } else { "no" },
    )
}

/// The figure of 001 §5.2 that its text names for many coefficients. Of Fig. 5 it names none.
fn in_paper(task: Task) -> Option<(f64, String)> {
    match task {
        Task::Filter => Some((1.35, "001, Pentium, unpartitioned: 1.35".to_owned())),
        Task::Cosine | Task::Fourier => None,
    }
}

/// Both tables as curves: what is compared in the paper, and what explains it.
pub fn short_figure(seen: &Seen) -> Result<Option<Figure>> {
    const SHOWN: [Scenario; 6] = [
        Scenario::Alone,
        Scenario::Unpartitioned,
        Scenario::Partitioned,
        Scenario::SingleWriter,
        Scenario::Waiting,
        Scenario::Translations,
    ];
    let (task, unit) = what(seen.task);
    let curves = |of: fn(&::experiment::short::Row) -> [f64; SCENARIOS.len()],
                  title: &str,
                  scenarios: &[Scenario],
                  level: Option<(f64, String)>| Curves {
        title: title.to_owned(),
        description: seen.at_half().map_or_else(String::new, |row| {
            format!(
                "{title}: at {} {unit}, {:.2} unpartitioned and {:.2} partitioned.",
                row.size,
                of(row)[place(Scenario::Unpartitioned)],
                of(row)[place(Scenario::Partitioned)]
            )
        }),
        x: unit.to_owned(),
        y: "times the shortest alone".to_owned(),
        logarithmic: true,
        ticks: seen
            .rows
            .iter()
            .step_by(if seen.rows.len() > 8 { 2 } else { 1 })
            .map(|r| (r.size as f64, r.size.to_string()))
            .collect(),
        level,
        least: 1.0,
        most: None,
        curves: scenarios
            .iter()
            .map(|scenario| {
                let place_in_legend = SHOWN.iter().position(|s| s == scenario).unwrap_or(0);
                (
                    place_in_legend,
                    seen.rows
                        .iter()
                        .map(|r| (r.size as f64, of(r)[place(*scenario)]))
                        .filter(|p| p.1.is_finite())
                        .collect(),
                )
            })
            .collect(),
    };
    figure(
        &format!("experiment-{}", task.replace(' ', "-")),
        &format!("A {task} beside a flooder of the cache"),
        "After 001, Figs. 4 and 5. Left: the longest activation, right: the median one, medians over the runs.",
        &SHOWN.map(Scenario::name),
        &[
            curves(
                |r| r.unpredictability,
                "Longest activation",
                &SHOWN[..4],
                in_paper(seen.task),
            ),
            curves(|r| r.typical, "Median activation", &SHOWN, None),
        ],
    )
}

/// Every activation.
pub fn short_csv(seen: &Seen) -> String {
    let mut text = format!(
        "{},scenario,run,ns,longest_step_ns,sentinel_ns,interrupted,disturbed,held,emptied\n",
        what(seen.task).1
    );
    for s in &seen.samples {
        let _ = writeln!(
            text,
            "{},{},{},{:.0},{:.0},{:.0},{},{},{},{}",
            s.size,
            SCENARIOS[s.scenario].name(),
            s.run,
            s.ns,
            s.step_ns,
            s.sentinel_ns,
            u8::from(s.interrupted),
            u8::from(s.disturbed),
            u8::from(s.held),
            u8::from(s.emptied)
        );
    }
    text
}
