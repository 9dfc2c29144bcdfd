//! Overheads by number of tasks: 002 §5.1 with its Appendices B.1 and C.1, and Table 2 of 003.

use crate::entry::{Entry, State};
use crate::reading::Answers;
use serde_json::Value;

const DIFFERS: &str = "stock Linux, an engine in user space, another machine \
                       (docs/measuring-overheads.md)";
const QUICK: &str = "measure overheads -o out/overheads --quick";
const FULL: &str = "measure overheads -o out/overheads";

/// The figures of an appendix, in order: what each shows, and how documents call it.
const KINDS: [(&str, &str); 6] = [
    ("scheduling overhead", "scheduling"),
    ("timer re-arming overhead", "timer-rearming"),
    ("tick overhead", "tick"),
    ("context-switch overhead", "context-switch"),
    ("release overhead", "release"),
    ("IPI latency", "ipi-latency"),
];

/// Table 2 of 003, in microseconds: averages and worst cases of tick, scheduling, context switch
/// and, where it is not part of the tick, release.
const TABLE_2_OF_003: [(&str, &str, &[f64], &[f64]); 2] = [
    (
        "G-EDF",
        "g-edf",
        &[0.916, 3.358, 0.953, 4.592],
        &[1.498, 11.478, 1.532, 8.922],
    ),
    (
        "the cache-aware scheduler",
        "ca-edf",
        &[9.221, 2.052, 0.972],
        &[17.547, 6.278, 1.507],
    ),
];

/// Which number of a point.
#[derive(Clone, Copy)]
enum Which {
    Worst,
    Average,
}

/// The largest value of a policy over all numbers of tasks, in microseconds: engine and kernel
/// together, else the engine's part.
fn largest(a: &Answers, policy: &str, cost: &str, which: Which) -> Option<f64> {
    let field = match which {
        Which::Worst => "maximum_ns",
        Which::Average => "average_ns",
    };
    let curves = a.get(0, "/curves")?.as_array()?;
    let of = |code: &str| {
        let curves = curves.iter().filter(|curve| {
            let name = curve["policy"].as_str().unwrap_or_default();
            name.split(':').next() == Some(policy)
                && curve["cost"] == cost
                && curve["code"] == code
                && curve["utilization"] == "light"
        });
        let points = curves.flat_map(|curve| curve["curve"]["points"].as_array());
        let values = points
            .flatten()
            .filter_map(|point: &Value| point[field].as_f64());
        values.reduce(f64::max)
    };
    of("both").or_else(|| of("own")).map(|ns| ns / 1e3)
}

fn entry(id: &str, title: &str, place: &str) -> Entry {
    Entry::new(id, title, place, State::Measured(DIFFERS.to_owned())).run_sized(QUICK, FULL)
}

/// Worst and average of one overhead under some policies.
fn with_values(mut entry: Entry, cost: &'static str, policies: &[&'static str]) -> Entry {
    for policy in policies {
        let policy = *policy;
        for (word, which) in [("worst", Which::Worst), ("average", Which::Average)] {
            let what =
                format!("{cost} under {policy}, {word}, the largest of all numbers of tasks");
            entry = entry.unprinted(&what, "us", move |a| largest(a, policy, cost, which));
        }
    }
    entry
}

/// Figs. 5.2, 5.3, B.1 to B.6 and C.1 to C.6 of 002.
pub fn figures() -> Vec<Entry> {
    let first = entry(
        "002-fig5.2",
        "worst-case scheduling and release overheads of P-, G- and C-EDF by number of tasks",
        "§5.1.1",
    )
    .elsewhere("scheduling under G-EDF, worst: up to", 200.0, "us", |a| {
        largest(a, "g-edf", "scheduling", Which::Worst)
    })
    .elsewhere(
        "scheduling under P-EDF, worst: less than",
        30.0,
        "us",
        |a| largest(a, "p-edf", "scheduling", Which::Worst),
    )
    .note(
        "The command holds the paper's statements against what it measured. With two processors \
         there are no clusters that C-EDF could have.",
    );
    let second = entry(
        "002-fig5.3",
        "the same under semi-partitioned policies, P-EDF and C-EDF",
        "§5.1.2",
    );
    let second = with_values(second, "scheduling", &["p-edf", "edf-wm", "nps-f"]);
    let second = with_values(second, "release", &["p-edf", "edf-wm", "nps-f"])
        .note("EDF-fm is measured in the full size. C-NPS-F: `--policy c-nps-f`.");
    let mut all = vec![first, second];
    for (appendix, words, policies) in [
        ("B", "P-, G- and C-EDF", ["p-edf", "g-edf"]),
        ("C", "semi-partitioned policies", ["edf-wm", "nps-f"]),
    ] {
        for (n, (title, cost)) in KINDS.into_iter().enumerate() {
            let one = entry(
                &format!("002-fig{appendix}.{}", n + 1),
                &format!("measured {title} under {words}, worst and average"),
                &format!("App. {appendix}.1"),
            );
            all.push(with_values(one, cost, &policies));
        }
    }
    all
}

/// Table 2 of 003.
pub fn table() -> Entry {
    let sized = |sets: &str| {
        format!(
            "measure overheads -o out/overheads --policy g-edf,ca-edf --tasks 8,16 --sets {sets}"
        )
    };
    let mut entry = Entry::new(
        "003-tab2",
        "average and worst kernel overheads under both",
        "§4.2",
        State::Measured(DIFFERS.to_owned()),
    )
    .run_sized(&sized("1"), &sized("10"))
    .note(
        "The paper discards the top 1 % of its samples; here outliers are removed as in 002 §5.1.",
    );
    let costs = ["tick", "scheduling", "context-switch", "release"];
    for (name, policy, averages, worst) in TABLE_2_OF_003 {
        for (word, which, values) in [
            ("average", Which::Average, averages),
            ("worst", Which::Worst, worst),
        ] {
            for (cost, value) in costs.into_iter().zip(values.iter().copied()) {
                entry = entry.elsewhere(
                    &format!("{cost} under {name}, {word}"),
                    value,
                    "us",
                    move |a| largest(a, policy, cost, which),
                );
            }
        }
    }
    entry
}
