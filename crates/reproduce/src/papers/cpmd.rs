//! Cache delays: what 000 §4 with its appendix, and 002 §5.2 with its Appendix A, print twice.

use crate::entry::{Entry, Role, State};
use crate::reading::{Answers, Delay};

/// Tables A.1 to A.4 of 002, which are Tables 1 to 4 of 000, as the papers print them.
const TABLES: &str = include_str!("../../../model/tests/data/002-tables-a1-a4.txt");

/// How a job resumes: as the tables name it, and as documents do.
const RESUMPTIONS: [(&str, &str); 4] = [
    ("preemption", "preemption"),
    ("migration through L2", "L2-migration"),
    ("migration through L3", "L3-migration"),
    ("migration through memory", "memory-migration"),
];

const SHOW: &str = "profile show xeon-l7455";

/// The rows of a table from 1 to 4: the size in KiB and the numbers behind it, in microseconds.
fn rows(number: usize) -> Vec<(u64, Vec<f64>)> {
    let caption = |n: usize| TABLES.find(&format!("Table A.{n}")).unwrap_or(0);
    let from = if number == 1 { 0 } else { caption(number - 1) };
    let cell = |text: &str| text.replace(',', "").parse::<f64>().unwrap_or(f64::NAN);
    TABLES[from..caption(number)]
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| {
            let mut cells = line.split('\t').map(cell);
            (cells.next().unwrap_or_default() as u64, cells.collect())
        })
        .collect()
}

/// The cells of a table: which delay, and what it is called.
fn cells(number: usize) -> Vec<(Delay, String, f64)> {
    let load = if number % 2 == 1 { "load" } else { "idle" };
    let statistics: &[(&str, &str)] = match number {
        1 | 2 => &[("worst", "maximum_ns")],
        _ => &[("average", "average_ns"), ("deviation", "deviation_ns")],
    };
    let mut all = Vec::new();
    for (kib, numbers) in rows(number) {
        for (column, value) in numbers.into_iter().enumerate() {
            let (name, resumption) = RESUMPTIONS[column / statistics.len()];
            let (word, statistic) = statistics[column % statistics.len()];
            let delay = Delay {
                resumption,
                load,
                kib,
                statistic,
            };
            all.push((delay, format!("{name}, {kib} KB, {load}, {word}"), value));
        }
    }
    all
}

/// A table of cache delays: every cell against the built-in profile.
pub fn table(id: &str, number: usize) -> Entry {
    let title = match number {
        1 => "cache delay by working set size: worst case under load",
        2 => "cache delay by working set size: worst case in an idle system",
        3 => "cache delay by working set size: average and deviation under load",
        _ => "cache delay by working set size: average and deviation in an idle system",
    };
    let mut entry = Entry::new(id, title, "App. A", State::Drawn)
        .run(SHOW)
        .note("`measure cpmd` measures the same curves here: see the figure of this table.");
    for (delay, what, value) in cells(number) {
        entry = entry.number(&what, (value, 0.0), "us", move |a| {
            delay.read(a, 0, "/cpmd")
        });
    }
    entry
}

/// A table of mean delays, 3 or 4, by a model of the paper's caches.
pub fn modelled(id: &str, number: usize, quick: &str, differs: &str) -> Entry {
    let load = if number == 3 { "load" } else { "idle" };
    let words = format!("measure cpmd -o out/cpmd --platform xeon-l7455 --model --load {load}");
    let title = match number {
        3 => "cache delay by working set size: average under load, in a model of the machine",
        _ => {
            "cache delay by working set size: average in an idle system, in a model of the machine"
        }
    };
    let mut entry = Entry::new(id, title, "App. A", State::InPart(differs.to_owned()))
        .run_sized(&format!("{words} {quick}"), &words)
        .note(
            "A cell agrees if the model's is within a tenth of it. Two prices of the platform come \
             from cells of Table A.4: 64 KiB through L2 and 256 KiB through L3.",
        );
    for (delay, what, value) in cells(number) {
        if delay.statistic == "average_ns" {
            let near = (value, (value / 10.0).abs());
            entry = entry.number(&what, near, "us", move |a| {
                delay.read(a, 0, "/profile/cpmd")
            });
        }
    }
    entry
}

const QUICK: &str = "measure cpmd -o out/cpmd --quick";
const FULL: &str =
    "measure cpmd -o out/cpmd --samples 5000 --write-ratio 0,1/128,1/64,1/16,1/4,1/2,1";

/// A figure of these tables, measured here.
pub fn figure(id: &str, place: &str, title: &str, tables: &[usize]) -> Entry {
    let differs = "stock Linux, another machine, hardware prefetchers on (docs/measuring.md)";
    let mut entry = Entry::new(id, title, place, State::Measured(differs.to_owned()))
        .run_sized(QUICK, FULL)
        .run("report --profile xeon-l7455 --figures out/figures -o out/index.html")
        .which(Role::Draws)
        .note(
            "The quick size measures working sets up to twice the level-2 cache. The paper's own \
             curves are drawn in out/figures.",
        );
    for number in tables {
        for (delay, what, value) in cells(*number) {
            let is_shown =
                matches!(delay.kib, 4 | 64 | 256 | 1024) && delay.statistic != "deviation_ns";
            if is_shown {
                entry = entry
                    .elsewhere(&what, value, "us", move |a| {
                        delay.read(a, 0, "/profile/cpmd")
                    })
                    .at("App. A");
            }
        }
    }
    entry
}

/// A figure of samples by preemption length.
pub fn scatter(id: &str, place: &str, title: &str) -> Entry {
    let average = Delay {
        resumption: "preemption",
        load: "load",
        kib: 64,
        statistic: "average_ns",
    };
    let differs = "the samples of this machine; the picture is in out/figures, and shows the kinds of \
                   migration that this machine has";
    Entry::new(id, title, place, State::Measured(differs.to_owned()))
        .run_sized(
            "measure cpmd -o out/cpmd --wss 64KiB --load load --max-preemption 25ms --samples 200",
            "measure cpmd -o out/cpmd --wss 64KiB --load load --max-preemption 50ms --samples 5000",
        )
        .run("report out/cpmd --figures out/figures")
        .unprinted(
            "preemption, 64 KB, load, average over all lengths",
            "us",
            move |a| average.read(a, 0, "/profile/cpmd"),
        )
        .note("The paper: samples converge to about 50 us for preemptions longer than 10 ms.")
}

fn read(
    a: &Answers,
    resumption: &'static str,
    load: &'static str,
    kib: u64,
    max: bool,
) -> Option<f64> {
    let delay = Delay {
        resumption,
        load,
        kib,
        statistic: if max { "maximum_ns" } else { "average_ns" },
    };
    delay.read(a, 0, "/cpmd")
}

/// The sizes of the tables, in KiB.
fn sizes() -> Vec<u64> {
    rows(1).into_iter().map(|(kib, _)| kib).collect()
}

/// Whether a preemption costs less than a migration of this kind in an idle system, at every size
/// up to `largest` KiB, average and worst.
fn preempts_cheaper(a: &Answers, migration: &'static str, largest: u64) -> Option<bool> {
    for kib in sizes().into_iter().filter(|kib| *kib <= largest) {
        for max in [false, true] {
            if read(a, "preemption", "idle", kib, max)? >= read(a, migration, "idle", kib, max)? {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// The smallest and the largest delay under load at a size, over the ways to resume.
fn range_under_load(a: &Answers, kib: u64, max: bool) -> Option<(f64, f64)> {
    let of = |(_, resumption): &(&str, &'static str)| read(a, resumption, "load", kib, max);
    let all: Option<Vec<f64>> = RESUMPTIONS.iter().map(of).collect();
    let all = all?;
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    Some((least, all.into_iter().fold(0.0, f64::max)))
}

/// How the schedule-sensitive method is run, in short and in full.
pub const SCHEDULED_QUICK: &str =
    "measure cpmd --method schedule-sensitive -o out/scheduled --quick";
/// See [`SCHEDULED_QUICK`].
pub const SCHEDULED: &str = "measure cpmd --method schedule-sensitive -o out/scheduled";
/// What differs from the paper's.
pub const SCHEDULED_DIFFERS: &str = "stock Linux, an engine in user space, another machine, \
                                     interrupts on (docs/measuring-scheduled.md)";

/// Does Observation 5 hold here? `None`: it cannot be told.
pub fn observation_5(a: &Answers) -> Option<bool> {
    let observations = a.get(0, "/observations")?.as_array()?;
    let found = observations.iter().find(|o| o["id"] == "observation-5")?;
    match found["holds"].as_str()? {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Observations 1 to 5 of 000 §4.2; 002 §5.2.2 has them as 5.2.1 to 5.2.5.
// Longer than other functions: one block an entry, no logic.
pub fn observations(id: impl Fn(u32) -> String, place: &str) -> Vec<Entry> {
    let spread = |kib| {
        move |a: &Answers| {
            let average = read(a, "preemption", "load", kib, false)?;
            let delay = Delay {
                resumption: "preemption",
                load: "load",
                kib,
                statistic: "deviation_ns",
            };
            Some(delay.read(a, 0, "/cpmd")? / average)
        }
    };
    let drawn = |n: u32, title: &str| Entry::new(&id(n), title, place, State::Drawn).run(SHOW);
    vec![
        drawn(
            1,
            "delays are predictable only as long as the working set fits the L2 cache",
        )
        .holds(
            "3072 KB under load: the deviation exceeds the average",
            move |a| Some(spread(3072)(a)? > 1.0),
        )
        .holds("64 KB under load: it does not", move |a| {
            Some(spread(64)(a)? < 1.0)
        })
        .note("Computed from Table 3 of 000 (A.3 of 002); `measure cpmd` tells both for this machine."),
        drawn(2, "under load preemptions and migrations cost about the same")
            .holds(
                "256 KB, worst case: every way to resume costs more than 1 ms",
                |a| Some(range_under_load(a, 256, true)?.0 > 1000.0),
            )
            .number("1024 KB, worst case, the costliest way", (5.0, 1.0), "ms", |a| {
                Some(range_under_load(a, 1024, true)?.1 / 1e3)
            })
            .number("1024 KB, average, the costliest way", (1.0, 0.25), "ms", |a| {
                Some(range_under_load(a, 1024, false)?.1 / 1e3)
            })
            .holds("4 to 512 KB, average: no way costs 1.2 times another", |a| {
                for kib in sizes().into_iter().filter(|kib| *kib <= 512) {
                    let (least, most) = range_under_load(a, kib, false)?;
                    if most > 1.2 * least {
                        return Some(false);
                    }
                }
                Some(true)
            })
            .note("Computed from Tables 1 and 3 of 000 (A.1 and A.3 of 002)."),
        drawn(
            3,
            "in an idle system preemptions cost less than migrations; L3 and memory cost alike",
        )
        .holds(
            "preemptions cost less than migrations through L3, at every size",
            |a| preempts_cheaper(a, "L3-migration", u64::MAX),
        )
        .holds(
            "preemptions cost less than migrations through memory, at every size",
            |a| preempts_cheaper(a, "memory-migration", u64::MAX),
        )
        .holds(
            "preemptions cost less than migrations through L2, up to 1024 KB",
            |a| preempts_cheaper(a, "L2-migration", 1024),
        )
        .holds(
            "preemptions cost less than migrations through L2, at every size",
            |a| preempts_cheaper(a, "L2-migration", u64::MAX),
        )
        .number("largest worst case through L3 or memory", (3.0, 0.5), "ms", |a| {
            read(a, "L3-migration", "idle", 3072, true).map(|us| us / 1e3)
        })
        .note(
            "Computed from Tables 2 and 4 of 000 (A.2 and A.4 of 002). Their own numbers are \
                 against the word \"always\" at 2048 and 8192 KB, where a migration through L2 cost \
                 less than a preemption.",
        ),
        scatter(
            &id(4),
            place,
            "delay depends on preemption length, unless all affinity is lost",
        ),
        Entry::new(
            &id(5),
            "delays do not depend on the number of tasks",
            place,
            State::Measured(SCHEDULED_DIFFERS.to_owned()),
        )
        .run_sized(SCHEDULED_QUICK, SCHEDULED)
        .holds("no conclusive trend, or one by less than a fifth", observation_5),
    ]
}
