//! 004: colored heaps in a real-time operating system, and what they do for G-EDF and P-EDF.

use crate::entry::{Entry, State};
use crate::reading::{Answers, cache_colors, cache_line, cache_size, cache_ways, processors};
use serde_json::Value;

const MULTICORE: [&str; 2] = [
    "color experiment multicore --quick -o out",
    "color experiment multicore --sets 10 --jobs 200 --repetitions 50 -o out",
];

/// Places in the lists of a row: the scenarios of §IV-B.
const S1: usize = 0;
const S2: usize = 1;
const S3: usize = 2;

/// A number of the experiment: with working sets of the paper's sizes, by scheduler, size and
/// scenario.
fn cell(
    scheduler: &'static str,
    kib: u32,
    key: &'static str,
    scenario: usize,
) -> impl Fn(&Answers) -> Option<f64> {
    move |a| {
        let rows = a.get(0, "/seen/rows")?.as_array()?;
        let wss = format!("{kib}KiB");
        let row = rows.iter().find(|r| {
            r["sizes"] == "paper" && r["policy"] == scheduler && r["wss"] == wss.as_str()
        })?;
        row[key][scenario].as_f64()
    }
}

fn measured(id: &str, title: &str, place: &str) -> Entry {
    let differs = "on stock Linux and this machine's own colored cache; the quick size has one set, \
                   ten jobs and a tenth of the times";
    Entry::new(id, title, place, State::Measured(differs.to_owned()))
        .run_sized(MULTICORE[0], MULTICORE[1])
}

const SIZES: [u32; 4] = [32, 64, 128, 256];

fn figure_10() -> Entry {
    let mut entry = measured(
        "004-fig10",
        "execution times in S2 and S3 against S1, worst and average",
        "§IV-B",
    );
    for (name, scheduler) in SCHEDULERS {
        for kib in SIZES {
            for (word, key) in [("worst", "worst"), ("average", "average")] {
                let what = |s: &str| format!("{name}, {kib} KB, {word} factor of {s}");
                entry = entry
                    .elsewhere(&what("S2"), 1.0, "", cell(scheduler, kib, key, S2))
                    .unprinted(&what("S3"), "", cell(scheduler, kib, key, S3));
            }
        }
    }
    entry.note("The paper prints that factors of S2 are one; those of S3 are in a picture.")
}

/// The tasks that missed a deadline in S1 and in S3, in percent, by working set size (§IV-C).
const MISSED: [(&str, &str, [f64; 4], [f64; 4]); 2] = [
    (
        "P-EDF",
        "p-edf",
        [0.0, 0.0, 0.0, 54.93],
        [57.75, 70.42, 74.65, 93.02],
    ),
    (
        "G-EDF",
        "g-edf",
        [0.0, 0.0, 18.0, 92.0],
        [93.0, 93.02, 93.92, 97.67],
    ),
];

fn figure_11() -> Entry {
    let mut entry = measured(
        "004-fig11",
        "tasks that missed a deadline, by working set size",
        "§IV-C",
    );
    for (name, scheduler, s1, s3) in MISSED {
        for (at, kib) in SIZES.into_iter().enumerate() {
            for (scenario, place, value) in [("S1", S1, s1[at]), ("S3", S3, s3[at])] {
                entry = entry.elsewhere(
                    &format!("{name}, {kib} KB, {scenario}"),
                    value,
                    "%",
                    cell(scheduler, kib, "missed_percent", place),
                );
            }
        }
    }
    entry
}

fn figure_12() -> Entry {
    let mut entry = measured("004-fig12", "time until all jobs were done", "§IV-C");
    for (name, scheduler) in SCHEDULERS {
        for kib in SIZES {
            for (scenario, place) in [("S1", S1), ("S3", S3)] {
                let total_ns = cell(scheduler, kib, "total_ns", place);
                entry = entry.unprinted(&format!("{name}, {kib} KB, {scenario}"), "s", move |a| {
                    Some(total_ns(a)? / 1e9)
                });
            }
        }
    }
    entry.note(
        "The text prints 40 s for S3 under G-EDF at 32 KB and S1 under G-EDF at 128 KB: 200 jobs of \
         a period of 200 ms. The quick size has 10 jobs of 20 ms.",
    )
}

const MODEL: [&str; 2] = [
    "cache multicore --platform i7-2600 --sets 1 --jobs 1 --hasten 50",
    "cache multicore --platform i7-2600 --sets 10 --jobs 20 --hasten 20",
];

/// The row of a scheduler and a size in the model.
fn modelled<'a>(a: &'a Answers, scheduler: &str, kib: u32) -> Option<&'a Value> {
    let rows = a.get(0, "/rows")?.as_array()?;
    let wss = format!("{kib}KiB");
    rows.iter()
        .find(|row| row["policy"] == scheduler && row["wss"] == wss.as_str())
}

/// A number of it.
fn of_row(
    scheduler: &'static str,
    kib: u32,
    key: &'static str,
) -> impl Fn(&Answers) -> Option<f64> {
    move |a| modelled(a, scheduler, kib)?[key].as_f64()
}

/// A number of it in S1 or S3.
fn in_scenario(
    scheduler: &'static str,
    kib: u32,
    key: &'static str,
    scenario: usize,
) -> impl Fn(&Answers) -> Option<f64> {
    move |a| modelled(a, scheduler, kib)?[key][scenario].as_f64()
}

/// S1 and S3 in the answers of the model.
const MODEL_S1: usize = 0;
const MODEL_S3: usize = 1;

const SCHEDULERS: [(&str, &str); 2] = [("P-EDF", "p-edf"), ("G-EDF", "g-edf")];

/// Does one hold for each scheduler and size in the model?
fn for_all(a: &Answers, holds: impl Fn(&Value) -> Option<bool>) -> Option<bool> {
    let mut yes = true;
    for (_, scheduler) in SCHEDULERS {
        for kib in SIZES {
            yes &= holds(modelled(a, scheduler, kib)?)?;
        }
    }
    Some(yes)
}

fn in_model(id: &str, title: &str, place: &str) -> Entry {
    let differs = "in a model of the caches of the i7-2600 with delays of an i7-3960X, without its \
                   operating system, where no two misses overlap; 20 jobs of a twentieth of the \
                   times (docs/cache.md); S2 is S1";
    Entry::new(id, title, place, State::InPart(differs.to_owned())).run_sized(MODEL[0], MODEL[1])
}

fn model_10() -> Entry {
    let mut entry = in_model(
        "004-fig10-model",
        "execution times in S3 against S1, worst and average, in a model",
        "§IV-B",
    );
    for (name, scheduler) in SCHEDULERS {
        for kib in SIZES {
            for (word, key) in [("worst", "worst"), ("average", "average")] {
                let what = format!("{name}, {kib} KB, {word} factor of S3");
                entry = entry.unprinted(&what, "", of_row(scheduler, kib, key));
            }
        }
    }
    entry.holds("jobs take longer in S3 than in S1, with every size", |a| {
        for_all(a, |row| {
            Some(row["worst"].as_f64()? > 1.0 && row["average"].as_f64()? > 1.0)
        })
    })
}

fn model_11() -> Entry {
    let mut entry = in_model(
        "004-fig11-model",
        "tasks that missed a deadline, by working set size, in a model",
        "§IV-C",
    );
    for (name, scheduler, s1, s3) in MISSED {
        for (at, kib) in SIZES.into_iter().enumerate() {
            for (word, scenario, value) in [("S1", MODEL_S1, s1[at]), ("S3", MODEL_S3, s3[at])] {
                let what = format!("{name}, {kib} KB, {word}");
                let ours = in_scenario(scheduler, kib, "missed_percent", scenario);
                entry = entry.elsewhere(&what, value, "%", ours);
            }
        }
    }
    entry.holds("no fewer tasks miss in S3 than in S1", |a| {
        for_all(a, |row| {
            let missed = &row["missed_percent"];
            Some(missed[MODEL_S3].as_f64()? >= missed[MODEL_S1].as_f64()?)
        })
    })
}

fn model_12() -> Entry {
    let mut entry = in_model(
        "004-fig12-model",
        "time until all jobs were done, in a model",
        "§IV-C",
    );
    for (name, scheduler) in SCHEDULERS {
        for kib in SIZES {
            for (word, scenario) in [("S1", MODEL_S1), ("S3", MODEL_S3)] {
                let nanos = in_scenario(scheduler, kib, "total_ns", scenario);
                entry = entry.unprinted(&format!("{name}, {kib} KB, {word}"), "ms", move |a| {
                    Some(nanos(a)? / 1e6)
                });
            }
        }
    }
    entry
        .holds("S3 takes no less time than S1", |a| {
            for_all(a, |row| {
                let total = &row["total_ns"];
                Some(total[MODEL_S3].as_f64()? >= total[MODEL_S1].as_f64()?)
            })
        })
        .note(
            "The text prints 40 s where hardly anything is late: 200 jobs of a period of 200 ms. \
             Here that is 200 ms: 20 jobs of 10 ms.",
        )
}

/// What §V sums up, as far as it is about numbers of ours.
fn findings() -> Entry {
    let differs = "findings 1 and 2 in the model of 004-fig10-model: there P-EDF misses \
                   deadlines in S1, as times are short, and colors gain no more under G-EDF up \
                   to 64 KB; with the paper's times the factor under P-EDF rises at 256 KB, too \
                   (docs/cache.md); 4 is S2 of 004-fig10; what 3, 5 and 6 discuss has no numbers";
    let factor = |a: &Answers, scheduler, kib| modelled(a, scheduler, kib)?["worst"].as_f64();
    Entry::new(
        "004-sec5",
        "six findings on partitions and schedulers",
        "§V",
        State::InPart(differs.to_owned()),
    )
    .run_sized(MODEL[0], MODEL[1])
    .holds("1: no task misses in S1 under G-EDF up to 64 KB", |a| {
        let missed = |kib| in_scenario("g-edf", kib, "missed_percent", MODEL_S1)(a);
        Some(missed(32)? == 0.0 && missed(64)? == 0.0)
    })
    .holds(
        "1: jobs take longer without colors of their own, with every size",
        |a| for_all(a, |row| Some(row["average"].as_f64()? > 1.0)),
    )
    .holds("2: from 128 KB on colors gain more under P-EDF", move |a| {
        let more = |kib| Some(factor(a, "p-edf", kib)? > factor(a, "g-edf", kib)?);
        Some(more(128)? && more(256)?)
    })
    .holds(
        "2: under P-EDF the factor falls as sets outgrow their colors",
        move |a| Some(factor(a, "p-edf", 256)? < factor(a, "p-edf", 128)?),
    )
}

fn machine(id: &str, title: &str, place: &str, state: State) -> Entry {
    Entry::new(id, title, place, state).run("platform --platform i7-2600")
}

/// The entries of this paper.
// Longer than other functions: one block an entry, no logic.
pub fn entries() -> Vec<Entry> {
    let illustration = |id: &str, title: &str, place: &str, here: &str| {
        Entry::new(id, title, place, State::Illustration(here.to_owned()))
    };
    vec![
        machine(
            "004-fig1",
            "the bits of a physical address that choose set and color",
            "§II-A",
            State::Reproduced,
        )
        .number("sets of the L3", (8192.0, 0.0), "", |a| {
            Some(cache_size(a, 0, 3)? * 1024.0 / cache_ways(a, 0, 3)? / cache_line(a, 0, 3)?)
        })
        .number("bits within a line", (6.0, 0.0), "", |a| {
            Some(cache_line(a, 0, 3)?.log2())
        })
        .number("bits that choose the color", (7.0, 0.0), "", |a| {
            Some(cache_colors(a, 0, 3)?.log2())
        }),
        machine(
            "004-fig2",
            "pages and their colors",
            "§II-A",
            State::Reproduced,
        )
        .number(
            "the next page of the color of page 0",
            (128.0, 0.0),
            "",
            |a| cache_colors(a, 0, 3),
        )
        .number("lines of a page", (64.0, 0.0), "", |a| {
            Some(4096.0 / cache_line(a, 0, 3)?)
        }),
        illustration(
            "004-fig3",
            "wake-up of a thread in EPOS",
            "§III-A",
            "docs/running.md: how a job begins",
        ),
        illustration(
            "004-fig4",
            "the memory management unit in EPOS",
            "§III-B",
            "pages are mapped by Linux",
        ),
        illustration(
            "004-fig5",
            "address spaces and segments in EPOS",
            "§III-B",
            "`partition::pool`",
        ),
        illustration(
            "004-fig6",
            "the switch for page coloring",
            "§III-C",
            "`warmset color serve` (docs/colors.md)",
        ),
        illustration(
            "004-fig7",
            "initialization of colored heaps",
            "§III-D",
            "`heap::alloc` (docs/heaps.md)",
        ),
        illustration(
            "004-fig8",
            "new and delete with a color",
            "§III-D",
            "the headers of `color-c` for C and C++ (docs/heaps.md), tried out by its tests",
        ),
        illustration(
            "004-fig9",
            "the code of a task of the experiments",
            "§IV-A",
            "`experiment::multicore` does the same accesses: 004-fig10 to 004-fig12",
        ),
        figure_10(),
        figure_11(),
        figure_12(),
        model_10(),
        model_11(),
        model_12(),
        machine("004-tab1", "the Intel i7-2600", "§IV-A", State::Drawn)
            .number("hardware threads", (8.0, 0.0), "", |a| processors(a, 0))
            .number("L1 for data", (32.0, 0.0), "KiB", |a| cache_size(a, 0, 1))
            .number("L1, ways", (8.0, 0.0), "", |a| cache_ways(a, 0, 1))
            .number("L2", (256.0, 0.0), "KiB", |a| cache_size(a, 0, 2))
            .number("L2, ways", (8.0, 0.0), "", |a| cache_ways(a, 0, 2))
            .number("L3", (8.0, 0.0), "MiB", |a| {
                Some(cache_size(a, 0, 3)? / 1024.0)
            })
            .number("L3, ways", (16.0, 0.0), "", |a| cache_ways(a, 0, 3)),
        findings(),
    ]
}
