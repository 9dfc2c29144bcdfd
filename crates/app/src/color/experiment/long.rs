//! How the experiments with the product of matrices are shown (001 §5.4 and §5.5, Figs. 7 and 8).

use ::experiment::flood::Scenario;
use ::experiment::{combined, slices};
use model::Result;
use report::Figure;
use report::lines::{Curves, figure};
use std::fmt::Write as _;

const MATRIX: [Scenario; 4] = slices::SCENARIOS;

/// The tables of Fig. 7.
pub fn matrix_text(seen: &slices::Seen) -> String {
    // Writing into a string cannot fail.
    let mut text = format!(
        "{} products of 64x64 matrices, code and stack in colors {}; {} runs\n",
        seen.products, seen.rest, seen.runs
    );
    type Of = fn(&slices::Row) -> [f64; slices::SCENARIOS.len()];
    let tables: [(&str, Of, f64); 3] = [
        (
            "c_max / c_min: the longest run against the shortest alone",
            |r| r.unpredictability,
            1.0,
        ),
        (
            "the median run against the shortest alone",
            |r| r.typical,
            1.0,
        ),
        (
            "what an interruption costs, in us",
            |r| r.an_interruption_ns,
            1000.0,
        ),
    ];
    for laid in &seen.layouts {
        let _ = writeln!(
            text,
            "\n{} ({}); a product takes {:.1} us alone",
            colors_of(laid),
            laid.partition,
            laid.product_ns / 1000.0
        );
        for (title, of, unit) in tables {
            let _ = write!(text, "\n{title}\n{:>12}", "slice");
            for scenario in MATRIX {
                let _ = write!(text, " {:>13}", scenario.name());
            }
            text.push('\n');
            for row in &laid.rows {
                let _ = write!(text, "{:>12}", row.slice.to_string());
                for value in of(row) {
                    let _ = write!(text, " {:>13.3}", value / unit);
                }
                text.push('\n');
            }
        }
    }
    let _ = writeln!(
        text,
        "\n{} slices were interrupted and done again{}",
        seen.again,
        if seen.witnessed {
            ""
        } else {
            " (this machine does not show interrupts)"
        }
    );
    text.push_str(
        "001 §5.4, Fig. 7, as its text has it: a product takes 10.9 ms, partitioning acts though the colors are fewer than the\nmatrices need, and a single writer is nearly as good with write-back caches as write-through caches are\n",
    );
    text
}

/// Which matrix has which colors.
fn colors_of(laid: &slices::Laid) -> String {
    let [a, b, c] = &laid.matrices;
    match a == b && b == c {
        true => format!("a, b and c in color {a}"),
        false => format!("a in color {a}, b in {b}, c in {c}"),
    }
}

/// Names of places on a logarithmic axis without those that would lie on the one before.
fn apart(ticks: impl Iterator<Item = (f64, String)>) -> Vec<(f64, String)> {
    let mut kept: Vec<(f64, String)> = Vec::new();
    for tick in ticks {
        if kept.last().is_none_or(|last| tick.0 >= 1.2 * last.0) {
            kept.push(tick);
        }
    }
    kept
}

/// Fig. 7: a row for each layout.
pub fn matrix_figure(seen: &slices::Seen) -> Result<Option<Figure>> {
    type Of = fn(&slices::Row) -> [f64; slices::SCENARIOS.len()];
    let curves = |laid: &slices::Laid, title: &str, of: Of| Curves {
        title: format!("{title}, {}", of_colors(laid)),
        description: laid.rows.first().map_or_else(String::new, |row| {
            format!(
                "{title}: with slices of {}, {:.2} unpartitioned, {:.2} partitioned.",
                row.slice,
                of(row)[1],
                of(row)[2]
            )
        }),
        x: "time slice".to_owned(),
        y: "times the shortest alone".to_owned(),
        logarithmic: true,
        ticks: apart(laid.rows.iter().map(|r| {
            (
                r.slice.nanos() as f64,
                r.slice
                    .to_string()
                    .replace("us", " µs")
                    .replace("ms", " ms"),
            )
        })),
        level: None,
        least: 1.0,
        most: None,
        curves: (0..MATRIX.len())
            .map(|s| {
                (
                    s,
                    laid.rows
                        .iter()
                        .map(|r| (r.slice.nanos() as f64, of(r)[s]))
                        .collect(),
                )
            })
            .collect(),
    };
    let charts: Vec<Curves> = seen
        .layouts
        .iter()
        .flat_map(|laid| {
            [
                curves(laid, "Longest run", |r| r.unpredictability),
                curves(laid, "Median run", |r| r.typical),
            ]
        })
        .collect();
    figure(
        "experiment-matrix",
        "A product of matrices, interrupted by floods of the cache",
        "After 001, Fig. 7: processor time of the products when the cache is flooded after each time slice.",
        &MATRIX.map(Scenario::name),
        &charts,
    )
}

/// How much of the cache the matrices have.
fn of_colors(laid: &slices::Laid) -> String {
    let partition = laid.partition.to_string();
    let partition = partition.replace("KiB", " KiB").replace("MiB", " MiB");
    format!("96 KiB of matrices in a partition of {partition}")
}

/// Every run of Fig. 7.
pub fn matrix_csv(seen: &slices::Seen) -> String {
    let mut text = "partition_bytes,slice_us,scenario,run,ns\n".to_owned();
    for laid in &seen.layouts {
        for s in &laid.samples {
            let _ = writeln!(
                text,
                "{},{},{},{},{:.0}",
                laid.partition.get(),
                s.slice.nanos() / 1000,
                MATRIX[s.scenario].name(),
                s.run,
                s.ns
            );
        }
    }
    text
}

fn number(value: f64, decimals: usize) -> String {
    match value.is_finite() {
        true => format!("{value:.decimals$}"),
        false => "-".to_owned(),
    }
}

/// The tables of Fig. 8.
pub fn combined_text(seen: &combined::Seen) -> String {
    let mut text = format!(
        "a product of 64x64 matrices in colors {}, code and stack in {}, {:.1} us alone, interrupted by a filter of {} coefficients ({}),\nwhich has colors {} when partitioned and the matrices' otherwise; medians of {} runs\n",
        seen.data,
        seen.rest,
        seen.product_ns / 1000.0,
        seen.coefficients,
        seen.filter_wss,
        seen.filter,
        seen.runs
    );
    for (title, rows) in [
        ("rates as in the paper", &seen.rows),
        (
            "rates to scale: as many activations for a product as in the paper",
            &seen.higher,
        ),
    ] {
        let _ = writeln!(
            text,
            "\n{title}\n{:>10} {:>10} {:>13} {:>13} {:>6} {:>13} {:>13}",
            "rate",
            "as in 001",
            "partitioned",
            "unpartitioned",
            "ratio",
            "filter, part.",
            "unpart."
        );
        for r in rows {
            let _ = writeln!(
                text,
                "{:>6} kHz {:>6} Hz {:>11} us {:>10} us {:>6} {:>10} us {:>10} us",
                number(r.rate / 1e3, 0),
                number(r.paper_rate, 0),
                number(r.partitioned_ns / 1e3, 2),
                number(r.unpartitioned_ns / 1e3, 2),
                number(r.ratio(), 2),
                number(r.filter_partitioned_ns / 1e3, 2),
                number(r.filter_unpartitioned_ns / 1e3, 2)
            );
        }
    }
    text.push_str(
        "\nas in 001: the rate that gave as many activations for a product there\n001 §5.5, Fig. 8: the ratio is 2.8 at most, at 5 kHz; less below, where the cache is emptied less often, and above, where\ninterrupts and the first level take their share in both schemes; - means that the filter left the product no time\n",
    );
    text
}

/// Fig. 8, at the paper's rates and to scale.
pub fn combined_figure(seen: &combined::Seen) -> Result<Option<Figure>> {
    let legend = [
        "partitioned",
        "unpartitioned",
        "ratio",
        "001: the largest ratio",
    ];
    // 001 §5.5: a slowdown of 2.8 at most, at 5 kHz.
    let paper = (5.0, 2.8);
    let panel = |title: &str, rows: &[combined::Row], ratio: bool, with_paper: bool| {
        let points = |of: fn(&combined::Row) -> f64| -> Vec<(f64, f64)> {
            rows.iter()
                .map(|r| (r.rate / 1e3, of(r)))
                .filter(|p| p.1.is_finite())
                .collect()
        };
        Curves {
            title: title.to_owned(),
            description: rows
                .iter()
                .filter(|r| r.ratio().is_finite())
                .max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
                .map_or_else(String::new, |r| {
                    format!(
                        "{title}: at most {:.2} times as long, at {:.0} kHz.",
                        r.ratio(),
                        r.rate / 1e3
                    )
                }),
            x: "activations of the filter, kHz".to_owned(),
            y: match ratio {
                true => "unpartitioned / partitioned".to_owned(),
                false => "time of a product, µs".to_owned(),
            },
            logarithmic: true,
            // The axis ends where the filter leaves the product no time.
            ticks: apart(
                rows.iter()
                    .filter(|r| r.partitioned_ns.is_finite() || r.unpartitioned_ns.is_finite())
                    .map(|r| (r.rate / 1e3, format!("{:.0}", r.rate / 1e3))),
            ),
            level: None,
            least: match ratio {
                true => {
                    let ratios = rows
                        .iter()
                        .map(combined::Row::ratio)
                        .filter(|r| r.is_finite());
                    (ratios.fold(1.0, f64::min) * 20.0).floor() / 20.0
                }
                false => 0.0,
            },
            most: None,
            curves: match ratio {
                true if with_paper => vec![(2, points(combined::Row::ratio)), (3, vec![paper])],
                true => vec![(2, points(combined::Row::ratio))],
                false => vec![
                    (0, points(|r| r.partitioned_ns / 1e3)),
                    (1, points(|r| r.unpartitioned_ns / 1e3)),
                ],
            },
        }
    };
    figure(
        "experiment-combined",
        "A product of matrices beside a filter",
        "After 001, Fig. 8. Above: rates as in the paper; below: higher ones, at which a product meets more activations.",
        &legend,
        &[
            panel("Rates as in the paper", &seen.rows, false, false),
            panel("Ratio", &seen.rows, true, true),
            panel("Higher rates", &seen.higher, false, false),
            panel("Ratio, higher rates", &seen.higher, true, false),
        ],
    )
}

/// Every measurement of Fig. 8.
pub fn combined_csv(seen: &combined::Seen) -> String {
    let mut text = "rate_hz,scheme,run,product_ns,filter_ns,interrupted_periods\n".to_owned();
    for s in &seen.samples {
        let _ = writeln!(
            text,
            "{:.0},{},{},{},{:.1},{}",
            s.rate,
            if s.partitioned {
                "partitioned"
            } else {
                "unpartitioned"
            },
            s.run,
            number(s.product_ns, 1),
            s.filter_ns,
            s.interrupted
        );
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use combined::{Row, Seen};
    use model::Bytes;
    use partition::Colors;

    /// A run of the combined experiment with these rows.
    pub fn combined_seen(rows: Vec<Row>, higher: Vec<Row>) -> Seen {
        Seen {
            data: Colors::first(3),
            rest: Colors::new(),
            filter: Colors::new(),
            coefficients: 24_576,
            filter_wss: Bytes::from_kib(192),
            product_ns: 70_000.0,
            runs: 1,
            rows,
            higher,
            samples: Vec::new(),
        }
    }

    #[test]
    fn the_axis_has_no_rates_at_which_nothing_was_done() {
        let row = |rate: f64, product_ns: f64| Row {
            rate,
            paper_rate: rate / 100.0,
            partitioned_ns: product_ns,
            unpartitioned_ns: 2.0 * product_ns,
            filter_partitioned_ns: 6_000.0,
            filter_unpartitioned_ns: 8_000.0,
        };
        let seen = combined_seen(
            vec![row(2e3, 70e3), row(5e3, 71e3)],
            vec![row(50e3, 100e3), row(100e3, 200e3), row(700e3, f64::NAN)],
        );
        let svg = combined_figure(&seen).unwrap().unwrap().to_svg();
        assert!(svg.contains(">100<") && !svg.contains(">700<"), "{svg}");
    }
}
