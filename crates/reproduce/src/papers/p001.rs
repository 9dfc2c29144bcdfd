//! 001: cache partitions by page colors on one processor.

use super::p001_model;
use crate::entry::{Entry, State};
use crate::reading::{
    Answers, cache_colors, cache_line, cache_size, cache_ways, mean_of_rows, number, row,
};

/// Places in `unpredictability` of the experiments (docs/experiments.md).
const UNPARTITIONED: usize = 1;
const PARTITIONED: usize = 2;
const SINGLE_WRITER: usize = 3;

/// c_max / c_min of a scenario at a size.
fn at_size(size: f64, scenario: usize) -> impl Fn(&Answers) -> Option<f64> {
    move |a| row(a, 0, "size", size)?["unpredictability"][scenario].as_f64()
}

/// Its mean over all sizes.
fn mean(a: &Answers, step: usize, scenario: usize) -> Option<f64> {
    mean_of_rows(a, step, |row| row["unpredictability"][scenario].as_f64())
}

/// 001 §4.1: an iteration of 150 ns that reads two words.
const ESTIMATE: &str = "cache estimate --platform pentium-90";

/// A share in percent.
fn percent(pointer: &'static str) -> impl Fn(&Answers) -> Option<f64> {
    number(0, pointer, 0.01)
}

const FILTER: [&str; 2] = [
    "color experiment filter -o out --runs 3",
    "color experiment filter -o out",
];

fn filter(id: &str, title: &str, place: &str) -> Entry {
    let differs = "on stock Linux, beside whoever else uses the machine (docs/experiments.md)";
    Entry::new(id, title, place, State::Measured(differs.to_owned()))
        .run_sized(FILTER[0], FILTER[1])
}

fn table_1() -> Entry {
    let mut entry = Entry::new(
        "001-tab1",
        "the caches of the four machines",
        "§5.1",
        State::Drawn,
    );
    let machines = [
        ("486", "i486", 16.0, 4.0, 1.0, 64.0),
        ("Pentium, 90 MHz", "pentium-90", 32.0, 2.0, 1.0, 64.0),
        ("Pentium, 133 MHz", "pentium-133", 32.0, 2.0, 1.0, 64.0),
        ("Pentium Pro", "pentium-pro", 32.0, 2.0, 4.0, 16.0),
    ];
    for (step, (name, platform, line, l1_ways, l2_ways, colors)) in machines.into_iter().enumerate()
    {
        let what = |what: &str| format!("{name}, {what}");
        entry = entry
            .run(&format!("platform --platform {platform}"))
            .number(&what("L1"), (8.0, 0.0), "KiB", move |a| {
                cache_size(a, step, 1)
            })
            .number(&what("L1, ways for data"), (l1_ways, 0.0), "", move |a| {
                cache_ways(a, step, 1)
            })
            .number(&what("L1, colors"), (1.0, 0.0), "", move |a| {
                cache_colors(a, step, 1)
            })
            .number(&what("L2"), (256.0, 0.0), "KiB", move |a| {
                cache_size(a, step, 2)
            })
            .number(&what("L2, ways"), (l2_ways, 0.0), "", move |a| {
                cache_ways(a, step, 2)
            })
            .number(&what("L2, line"), (line, 0.0), "B", move |a| {
                cache_line(a, step, 2)
            })
            .number(&what("L2, colors"), (colors, 0.0), "", move |a| {
                cache_colors(a, step, 2)
            });
    }
    entry
}

/// The ratio of unpartitioned to partitioned time at each of the paper's rates, with the rate in
/// hertz.
fn ratios(a: &Answers) -> Option<Vec<(f64, f64)>> {
    let rows = a.get(0, "/seen/rows")?.as_array()?;
    let ratio = |row: &serde_json::Value| {
        let ratio = row["unpartitioned_ns"].as_f64()? / row["partitioned_ns"].as_f64()?;
        Some((row["rate"].as_f64()?, ratio))
    };
    Some(rows.iter().filter_map(ratio).collect())
}

// Longer than other functions: one block an entry, no logic.
fn figures() -> Vec<Entry> {
    let illustration = |id: &str, title: &str, place: &str, here: &str| {
        Entry::new(id, title, place, State::Illustration(here.to_owned()))
    };
    let measured = |id: &str, title: &str, place: &str| {
        let differs = "on stock Linux, beside whoever else uses the machine (docs/experiments.md)";
        Entry::new(id, title, place, State::Measured(differs.to_owned()))
    };
    vec![
        illustration(
            "001-fig1",
            "page frames of one color share a bank of the cache",
            "§3.1",
            "`warmset color find` sorts memory so, `warmset color selftest` shows that it acts",
        ),
        Entry::new(
            "001-fig2",
            "free coloring: several physical addresses for one frame",
            "§3.2",
            State::Reproduced,
        )
        .run("cache coloring --platform pentium-pro")
        .number(
            "frames kept from others by half of the colors, plain, of 1024",
            (512.0, 0.0),
            "",
            number(0, "/rows/1/reserved_frames", 1.0),
        )
        .number(
            "frames that free coloring keeps idle",
            (0.0, 0.0),
            "",
            number(0, "/rows/2/idle_frames", 1.0),
        )
        .holds("free coloring separates as plain coloring does", |a| {
            let misses = |row: usize| a.number(0, &format!("/rows/{row}/misses_after_other"));
            Some(misses(1)? == misses(2)? && misses(2)? < misses(0)?)
        })
        .note("In a model of the caches: the wiring of 001 is on no board."),
        Entry::new(
            "001-fig3",
            "expected delays of cache misses on the Pentium, and the estimates of §4.1 from them",
            "§4.1",
            State::Reproduced,
        )
        .run(ESTIMATE)
        .number(
            "only the L1 misses, at best",
            (11.0, 0.5),
            "%",
            percent("/levels/0/longer_at_best"),
        )
        .number(
            "only the L1 misses, at worst",
            (26.0, 1.0),
            "%",
            percent("/levels/0/longer_at_worst"),
        )
        .number("the same, one miss an iteration", (12.0, 0.6), "%", |a| {
            let at_best = percent("/levels/0/longer_at_best")(a)?;
            Some(at_best + percent("/levels/0/next_miss_waits")(a)?)
        })
        .number(
            "both miss, at best",
            (33.0, 0.5),
            "%",
            percent("/levels/1/longer_at_best"),
        )
        .number(
            "on top where two iterations in a row miss",
            (15.0, 0.6),
            "%",
            percent("/levels/1/next_miss_waits"),
        )
        .number(
            "loading 100 words, L1",
            (2.0, 0.1),
            "us",
            number(0, "/levels/0/code_ns", 1e3),
        )
        .number(
            "loading 100 words, L2",
            (4.0, 0.4),
            "us",
            number(0, "/levels/1/code_ns", 1e3),
        ),
        filter(
            "001-fig4",
            "a filter beside a cache flooder, by number of coefficients",
            "§5.2",
        )
        .elsewhere(
            "unpartitioned, many coefficients, Pentium",
            1.35,
            "",
            at_size(8192.0, UNPARTITIONED),
        )
        .elsewhere(
            "partitioned, 256 coefficients, Pentium",
            1.10,
            "",
            at_size(256.0, PARTITIONED),
        )
        .elsewhere(
            "single writer, many coefficients, Pentium Pro",
            1.6,
            "",
            at_size(8192.0, SINGLE_WRITER),
        )
        .at("§5.3")
        .holds(
            "partitioned is below unpartitioned, mean over all sizes",
            |a| Some(mean(a, 0, PARTITIONED)? < mean(a, 0, UNPARTITIONED)?),
        )
        .note("001-fig4-model has it in a model of the paper's machines."),
        measured(
            "001-fig5",
            "a cosine and a Fourier transform likewise",
            "§5.3",
        )
        .run_sized(
            "color experiment cosine -o out --runs 3",
            "color experiment cosine -o out",
        )
        .run_sized(
            "color experiment fourier -o out --runs 3",
            "color experiment fourier -o out",
        )
        .run_sized(FILTER[0], FILTER[1])
        .unprinted("cosine, unpartitioned, mean over all sizes", "", |a| {
            mean(a, 0, UNPARTITIONED)
        })
        .unprinted("cosine, partitioned, mean over all sizes", "", |a| {
            mean(a, 0, PARTITIONED)
        })
        .unprinted("Fourier, unpartitioned, mean over all sizes", "", |a| {
            mean(a, 1, UNPARTITIONED)
        })
        .unprinted("Fourier, partitioned, mean over all sizes", "", |a| {
            mean(a, 1, PARTITIONED)
        })
        .holds("both suffer less than the filter", |a| {
            let filter = mean(a, 2, UNPARTITIONED)?;
            Some(mean(a, 0, UNPARTITIONED)? < filter && mean(a, 1, UNPARTITIONED)? < filter)
        })
        .note("001-fig5-model has it in a model of the paper's machine."),
        illustration(
            "001-fig6",
            "the product of matrices in submatrices of 8×8",
            "§5.4",
            "`workload::matrix` multiplies so",
        ),
        measured(
            "001-fig7",
            "a product of matrices in time slices, with a flood after each",
            "§5.4",
        )
        .run_sized(
            "color experiment matrix -o out --runs 3",
            "color experiment matrix -o out",
        )
        .elsewhere(
            "time of one product, Pentium at 133 MHz",
            10.9,
            "ms",
            number(0, "/seen/product_ns", 1e6),
        )
        .unprinted("slices of 25 us, unpartitioned", "", slice(UNPARTITIONED))
        .unprinted("slices of 25 us, partitioned", "", slice(PARTITIONED))
        .unprinted("slices of 25 us, single writer", "", slice(SINGLE_WRITER))
        .note(
            "The figure is a picture; the text prints no number of it. 001-fig7-model has it in a \
             model of the paper's machines.",
        ),
        measured(
            "001-fig8",
            "the product, interrupted by the filter at a constant rate",
            "§5.5",
        )
        .run_sized(
            "color experiment combined -o out --runs 3",
            "color experiment combined -o out",
        )
        .elsewhere(
            "largest ratio of unpartitioned to partitioned time",
            2.8,
            "",
            |a| {
                ratios(a)?
                    .into_iter()
                    .map(|(_, ratio)| ratio)
                    .reduce(f64::max)
            },
        )
        .elsewhere("the rate at which it is largest", 5.0, "kHz", |a| {
            let all = ratios(a)?;
            let most = all.into_iter().max_by(|x, y| x.1.total_cmp(&y.1))?;
            Some(most.0 / 1e3)
        })
        .note(
            "Products are shorter here; out/combined.txt has rates scaled to that as well. \
             001-fig8-model has it in a model of the paper's machine.",
        ),
    ]
}

/// Typical slow-down by slices of 25 us.
fn slice(scenario: usize) -> impl Fn(&Answers) -> Option<f64> {
    move |a| row(a, 0, "slice_ns", 25_000.0)?["typical"][scenario].as_f64()
}

/// The numbered expectations of §4.1 and findings of §5.2.
fn observations() -> Vec<Entry> {
    let estimate =
        |id: &str, title: &str| Entry::new(id, title, "§4.1", State::Reproduced).run(ESTIMATE);
    vec![
        estimate(
            "001-obs4.1.1",
            "first-level penalties stay below second-level ones",
        )
        .number(
            "absolute cost of a miss, L2 by L1, at best",
            (3.0, 0.2),
            "",
            |a| {
                Some(
                    a.number(0, "/levels/1/optimistic_ns")?
                        / a.number(0, "/levels/0/optimistic_ns")?,
                )
            },
        )
        .note("The paper says three times; its Figure 3 has 8 and 25 ns a word."),
        estimate(
            "001-obs4.1.2",
            "worst-case delays on the Pentium are 30 to 40 % in the working phase",
        )
        .holds("both levels miss, at best", |a| {
            let longer = percent("/levels/1/longer_at_best")(a)?;
            Some((30.0..=40.0).contains(&longer))
        }),
        filter(
            "001-obs5.2.1",
            "small problems suffer more than large ones",
            "§5.2",
        )
        .holds(
            "unpartitioned: up to 64 coefficients more than from 2048 on",
            |a| {
                let mean = |least: f64, most: f64| {
                    mean_of_rows(a, 0, |row| {
                        let size = row["size"].as_f64()?;
                        let value = row["unpredictability"][UNPARTITIONED].as_f64()?;
                        (least..=most).contains(&size).then_some(value)
                    })
                };
                Some(mean(0.0, 64.0)? > mean(2048.0, 8192.0)?)
            },
        ),
        filter(
            "001-obs5.2.2",
            "unpartitioned, large problems lose about a third",
            "§5.2",
        )
        .elsewhere(
            "unpartitioned, many coefficients, Pentium",
            1.35,
            "",
            at_size(8192.0, UNPARTITIONED),
        ),
        filter(
            "001-obs5.2.3",
            "partitioned, the penalty is that of the first level",
            "§5.2",
        )
        .elsewhere(
            "partitioned, 256 coefficients, Pentium",
            1.10,
            "",
            at_size(256.0, PARTITIONED),
        ),
        filter(
            "001-obs5.2.4",
            "caches that write back lose more without partitions",
            "§5.2",
        )
        .unprinted(
            "unpartitioned, many coefficients",
            "",
            at_size(8192.0, UNPARTITIONED),
        )
        .note("A comparison of machines: this one is one of them."),
    ]
}

/// The entries of this paper.
pub fn entries() -> Vec<Entry> {
    let mut all = figures();
    all.extend(p001_model::entries());
    all.push(table_1());
    all.extend(observations());
    all
}
