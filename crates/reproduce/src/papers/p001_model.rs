//! 001: its experiments in a model of its machines, beside those on the machine at hand.

use crate::entry::{Entry, State};
use crate::reading::Answers;
use serde_json::Value;

/// The best and the worst case: places in pairs of the answers.
const BEST: usize = 0;
const WORST: usize = 1;

/// Delays for which the paper prints none, and what the model leaves out.
const ASSUMED: &str = "In a model of the caches, each value with all delays at best and with all at \
worst. The paper prints delays for the Pentium of 90 MHz; those of the machines of 133 MHz are \
assumed to be the same in cycles of their bus. The figure is a picture; of its curves the text \
prints what stands here.";

/// The row of a step in which a key has this value.
fn row<'a>(a: &'a Answers, step: usize, key: &str, value: f64) -> Option<&'a Value> {
    let rows = a.get(step, "/rows")?.as_array()?;
    rows.iter().find(|row| row[key].as_f64() == Some(value))
}

/// c_max / c_min of a scenario in a row.
fn unpredictability(
    step: usize,
    (key, value): (&'static str, f64),
    scenario: &'static str,
    case: usize,
) -> impl Fn(&Answers) -> Option<f64> {
    move |a| row(a, step, key, value)?["unpredictability"][scenario][case].as_f64()
}

/// The same at a size.
fn at(
    step: usize,
    size: f64,
    scenario: &'static str,
    case: usize,
) -> impl Fn(&Answers) -> Option<f64> {
    unpredictability(step, ("size", size), scenario, case)
}

/// c_max / c_min of a scenario in all rows of a step.
fn all(a: &Answers, step: usize, scenario: &str, case: usize) -> Option<Vec<f64>> {
    let rows = a.get(step, "/rows")?.as_array()?;
    let of = |row: &Value| row["unpredictability"][scenario][case].as_f64();
    rows.iter().map(of).collect()
}

/// Does one hold at every place, in the best case and in the worst?
fn everywhere(
    a: &Answers,
    (step, scenario): (usize, &str),
    (other_step, other): (usize, &str),
    holds: impl Fn(f64, f64) -> bool,
) -> Option<bool> {
    let mut yes = true;
    for case in [BEST, WORST] {
        let (left, right) = (
            all(a, step, scenario, case)?,
            all(a, other_step, other, case)?,
        );
        yes &= left.len() == right.len() && left.iter().zip(right).all(|(l, r)| holds(*l, r));
    }
    Some(yes)
}

fn model(id: &str, title: &str, place: &str) -> Entry {
    Entry::new(id, title, place, State::Reproduced)
}

fn filter() -> Entry {
    model(
        "001-fig4-model",
        "a filter beside a cache flooder, in a model of the paper's machines",
        "§5.2",
    )
    .run("cache filter --platform pentium-90")
    .run("cache filter --platform pentium-pro --step 100ns")
    .number(
        "unpartitioned, 1024 coefficients, Pentium, at best",
        (1.35, 0.02),
        "",
        at(0, 1024.0, "unpartitioned", BEST),
    )
    .number(
        "partitioned, 256 coefficients, Pentium, at best",
        (1.10, 0.05),
        "",
        at(0, 256.0, "partitioned", BEST),
    )
    .holds("small problems suffer more than large ones, Pentium", |a| {
        let falls = |case: usize| {
            let curve = all(a, 0, "unpartitioned", case)?;
            Some(curve.windows(2).all(|pair| pair[0] >= pair[1] - 0.001))
        };
        Some(falls(BEST)? && falls(WORST)?)
    })
    .holds(
        "the Pentium Pro loses more than the Pentium, unpartitioned, at every size",
        |a| everywhere(a, (1, "unpartitioned"), (0, "unpartitioned"), |l, r| l > r),
    )
    .holds("a single writer takes most of that away", |a| {
        everywhere(a, (1, "single_writer"), (1, "unpartitioned"), |own, all| {
            own - 1.0 < (all - 1.0) / 2.0
        })
    })
    .number(
        "single writer, 2048 coefficients, Pentium Pro, at worst",
        (1.6, 0.2),
        "",
        at(1, 2048.0, "single_writer", WORST),
    )
    .at("§5.3")
    .note(ASSUMED)
}

fn transforms() -> Entry {
    model(
        "001-fig5-model",
        "a cosine and a Fourier transform likewise",
        "§5.3",
    )
    .run("cache cosine --platform pentium-pro --step 50ns")
    .run("cache fourier --platform pentium-pro --step 50ns")
    .run("cache filter --platform pentium-pro --step 100ns --sizes 16,32,64,128,256,512,1024,2048,4096")
    .unprinted(
        "cosine, 256 points, unpartitioned, at best",
        "",
        at(0, 256.0, "unpartitioned", BEST),
    )
    .unprinted(
        "cosine, 256 points, partitioned, at best",
        "",
        at(0, 256.0, "partitioned", BEST),
    )
    .unprinted(
        "Fourier, 256 points, unpartitioned, at best",
        "",
        at(1, 256.0, "unpartitioned", BEST),
    )
    .unprinted(
        "Fourier, 256 points, partitioned, at best",
        "",
        at(1, 256.0, "partitioned", BEST),
    )
    .holds("both suffer less than the filter at every size", |a| {
        let below = |step: usize| {
            everywhere(a, (step, "unpartitioned"), (2, "unpartitioned"), |l, r| l < r)
        };
        Some(below(0)? && below(1)?)
    })
    .holds("both are better with a partition at every size", |a| {
        let below = |step: usize| {
            everywhere(a, (step, "partitioned"), (step, "unpartitioned"), |l, r| l < r)
        };
        Some(below(0)? && below(1)?)
    })
    .note(ASSUMED)
}

/// c_max / c_min of the product in the shortest slices that were asked for.
fn shortest(step: usize, scenario: &'static str, case: usize) -> impl Fn(&Answers) -> Option<f64> {
    move |a| all(a, step, scenario, case)?.first().copied()
}

const MATRIX: [&str; 3] = [
    "cache matrix --platform pentium-133 --write through",
    "cache matrix --platform pentium-133",
    "cache matrix --platform pentium-pro",
];
/// Floods after short slices are what takes long.
const QUICK: &str = " --slices 400us,1ms";

fn matrix() -> Entry {
    let mut entry = Entry::new(
        "001-fig7-model",
        "a product of matrices in time slices, with a flood after each",
        "§5.4",
        State::InPart(
            "a single writer comes as near to write-through as the paper says in slices of 1 ms, \
             not in shorter ones"
                .to_owned(),
        ),
    );
    for command in MATRIX {
        entry = entry.run_sized(&format!("{command}{QUICK}"), command);
    }
    let millis = |pointer: &'static str| move |a: &Answers| Some(a.number(0, pointer)? / 1e6);
    let between = |paper: f64, best: &'static str, worst: &'static str| {
        move |a: &Answers| Some((a.number(0, best)?..=a.number(0, worst)?).contains(&paper))
    };
    entry = entry
        .elsewhere(
            "a product alone, write-through, at best",
            10.9,
            "ms",
            millis("/alone/optimistic_ns"),
        )
        .elsewhere(
            "a product alone, write-through, at worst",
            10.9,
            "ms",
            millis("/alone/pessimistic_ns"),
        )
        .holds(
            "10.9 ms for a product lie between",
            between(10.9e6, "/alone/optimistic_ns", "/alone/pessimistic_ns"),
        )
        .holds(
            "170 us for a submatrix lie between its best and worst",
            between(
                170e3,
                "/submatrix/optimistic_ns",
                "/submatrix/pessimistic_ns",
            ),
        );
    let machines = [
        "Pentium, write-through",
        "Pentium, write-back",
        "Pentium Pro",
    ];
    for (step, machine) in machines.into_iter().enumerate() {
        for (name, scenario) in [
            ("unpartitioned", "unpartitioned"),
            ("single writer", "single_writer"),
            ("partitioned", "partitioned"),
        ] {
            entry = entry.unprinted(
                &format!("{machine}, shortest slices, {name}, at best"),
                "",
                shortest(step, scenario, BEST),
            );
        }
    }
    entry
        .holds(
            "partitions are better in the shortest slices, on each machine",
            |a| {
                let better = |step: usize, case: usize| {
                    let of = |scenario| shortest(step, scenario, case)(a);
                    Some(of("partitioned")? < of("unpartitioned")?)
                };
                let mut yes = true;
                for step in 0..MATRIX.len() {
                    yes &= better(step, BEST)? && better(step, WORST)?;
                }
                Some(yes)
            },
        )
        .holds(
            "write-back with a single writer behaves nearly as write-through: within a tenth",
            |a| {
                everywhere(
                    a,
                    (1, "single_writer"),
                    (0, "unpartitioned"),
                    |own, through| own <= 1.1 * through,
                )
            },
        )
        .note(ASSUMED)
}

/// The ratio of a rate.
fn ratio(a: &Answers, step: usize, hertz: f64, case: usize) -> Option<f64> {
    row(a, step, "rate", hertz)?["ratio"][case].as_f64()
}

/// The largest ratio, and its rate in hertz.
fn peak(a: &Answers, step: usize, case: usize) -> Option<(f64, f64)> {
    let rows = a.get(step, "/rows")?.as_array()?;
    let pairs = rows
        .iter()
        .filter_map(|row| Some((row["rate"].as_f64()?, row["ratio"][case].as_f64()?)));
    pairs.max_by(|x, y| x.1.total_cmp(&y.1))
}

fn combined() -> Entry {
    model(
        "001-fig8-model",
        "the product, interrupted by the filter at a constant rate",
        "§5.5",
    )
    .run("cache combined --platform pentium-133 --write through")
    .elsewhere(
        "largest ratio of unpartitioned to partitioned time, at best",
        2.8,
        "",
        |a| Some(peak(a, 0, BEST)?.1),
    )
    .elsewhere(
        "the rate at which it is largest, at best",
        5.0,
        "kHz",
        |a| Some(peak(a, 0, BEST)?.0 / 1e3),
    )
    .unprinted("ratio at 5 kHz, at worst", "", |a| {
        ratio(a, 0, 5000.0, WORST)
    })
    .holds("the ratio grows from 2 to 5 kHz", |a| {
        Some(ratio(a, 0, 2000.0, BEST)? < ratio(a, 0, 5000.0, BEST)?)
    })
    .note(ASSUMED)
}

/// The entries in the model.
pub fn entries() -> Vec<Entry> {
    vec![filter(), transforms(), matrix(), combined()]
}
