//! 001: cache partitions by page colors on one processor.

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
            State::NotYet(
                "needs address lines wired for it on the board; no software stands for it"
                    .to_owned(),
            ),
        ),
        Entry::new(
            "001-fig3",
            "expected delays of cache misses on the Pentium, and the estimates of §4.1 from them",
            "§4.1",
            State::NotYet("no command computes penalties of single misses".to_owned()),
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
        ),
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
        }),
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
        .note("The figure is a picture; the text prints no number of it."),
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
        .note("Products are shorter here; out/combined.txt has rates scaled to that as well."),
    ]
}

/// Typical slow-down by slices of 25 us.
fn slice(scenario: usize) -> impl Fn(&Answers) -> Option<f64> {
    move |a| row(a, 0, "slice_ns", 25_000.0)?["typical"][scenario].as_f64()
}

/// The numbered expectations of §4.1 and findings of §5.2.
fn observations() -> Vec<Entry> {
    let not_yet = |id: &str, title: &str, missing: &str| {
        Entry::new(id, title, "§4.1", State::NotYet(missing.to_owned()))
    };
    vec![
        not_yet(
            "001-obs4.1.1",
            "first-level penalties stay below second-level ones",
            "the filter experiment tells them apart (columns `first-level` and `unpartitioned`); \
             nothing computes the estimates",
        ),
        not_yet(
            "001-obs4.1.2",
            "worst-case delays on the Pentium are 30 to 40 % in the working phase",
            "an estimate for one machine; the filter experiment measures ours",
        ),
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
    all.push(table_1());
    all.extend(observations());
    all
}
