//! 002, chapter 6 but for §6.4, and Appendix B.2: schedulability over many task sets.

use super::p002_split;
use crate::entry::{Entry, State};
use crate::reading::{Answers, crossing, dominates, kept_from, mean_weighted, weighted_at};

/// What no study charges.
const OVERHEADS: &str = "the kernel's overheads, which the paper charges as measured, are left out \
                         (docs/studies.md)";

/// How the studies by brute force differ from the paper's.
const COARSE: &str = "By brute force 10 sets are judged at caps by 1 and delays by 500 us; the presets \
                      that end in `-fine` have the paper's grid and take half a day each.";

const POLICIES: [&str; 4] = ["P-EDF", "G-EDF", "C-EDF-L2", "C-EDF-L3"];

/// The insets of Figs. 6.2 to 6.5: light, medium, heavy.
const WEIGHTS: [(&str, &str); 3] = [("a", "light"), ("b", "medium"), ("c", "heavy")];

fn in_part(id: &str, title: &str, place: &str) -> Entry {
    Entry::new(id, title, place, State::InPart(OVERHEADS.to_owned()))
}

/// Quick numbers of sets for each cap: tests of global hard schedulability take their time.
fn quick_sets(is_hard: bool) -> u32 {
    if is_hard { 4 } else { 100 }
}

/// Adds the study of a preset; the paper draws 1,000 sets a cap (§6.3).
fn study(entry: Entry, name: &str, is_hard: bool) -> Entry {
    let quick = quick_sets(is_hard);
    let dir = name
        .trim_start_matches("studies/")
        .trim_end_matches(".toml");
    entry.run_sized(
        &format!("study run {name} --sets {quick} -o out/{dir}"),
        &format!("study run {name} --sets 1000 -o out/{dir}"),
    )
}

/// Adds the studies of a figure's three insets.
fn insets(mut entry: Entry, figure: &str, is_hard: bool) -> Entry {
    for (inset, _) in WEIGHTS {
        entry = study(entry, &format!("bastoni11-fig{figure}{inset}"), is_hard);
    }
    entry
}

/// Adds the brute-force studies of a figure's three insets, which take minutes each.
fn brute_force(mut entry: Entry, figure: &str) -> Entry {
    for (inset, _) in WEIGHTS {
        let name = format!("bastoni11-fig{figure}{inset}-bf");
        entry = entry.run_full(&format!("study run {name} -o out/{name}"));
    }
    entry
}

/// Adds W of every policy in each inset, at two delays, which the paper shows in a picture only.
fn curves(mut entry: Entry) -> Entry {
    for (step, (inset, _)) in WEIGHTS.into_iter().enumerate() {
        for policy in POLICIES {
            for delay in [0.0, 1000.0] {
                let what = format!("({inset}) W of {policy} at D = {delay} us");
                entry = entry.unprinted(&what, "", move |a| weighted_at(a, step, policy, delay));
            }
        }
    }
    entry
}

fn figure_6_1(id: &str, title: &str) -> Entry {
    let share = |policy: &'static str| move |a: &Answers| kept_from(a, 0, policy, 0.0);
    study(
        study(in_part(id, title, "§6.2.2"), "bastoni11-fig6.1a", false),
        "bastoni11-fig6.1b",
        false,
    )
    .holds(
        "(a) D = 500 us: C-EDF-L3 keeps more than C-EDF-L2 and P-EDF",
        move |a| {
            let best = share("C-EDF-L3")(a)?;
            Some(best > share("C-EDF-L2")(a)? && best > share("P-EDF")(a)?)
        },
    )
    .holds("(a) D = 500 us: C-EDF-L3 keeps the most", move |a| {
        Some(share("C-EDF-L3")(a)? >= share("G-EDF")(a)?)
    })
    .number(
        "(b) C-EDF-L3 is better than P-EDF without delay up to D",
        (600.0, 50.0),
        "us",
        |a| crossing(a, 1, "C-EDF-L3", "P-EDF"),
    )
    .note("docs/studies.md: with 100 us of other overheads a job the crossing is at 615 us.")
}

/// Figs. 6.2 to 6.5.
fn figures() -> Vec<Entry> {
    let mut all = vec![
        figure_6_1(
            "002-fig6.1",
            "schedulability at one delay, and weighted over all",
        ),
        figure_6_1(
            "002-ex6.2.2",
            "the delay up to which C-EDF-L3 is better than P-EDF without delay",
        ),
    ];
    for (figure, guarantee, shape) in [
        ("6.2", "hard", "uniform"),
        ("6.3", "hard", "bimodal"),
        ("6.4", "soft", "uniform"),
        ("6.5", "soft", "bimodal"),
    ] {
        let is_hard = guarantee == "hard";
        let title =
            format!("{guarantee} weighted schedulability, {shape} utilizations, moderate periods");
        let entry = in_part(&format!("002-fig{figure}"), &title, "§6.3");
        let mut entry = curves(insets(entry, figure, is_hard));
        if is_hard {
            entry = brute_force(entry, figure).note(&format!(
                "The quick size leaves out the curves by brute force. {COARSE}"
            ));
        }
        all.push(entry);
    }
    all
}

/// Figs. 6.2 and 6.3 together, inset by inset, for the observations about them.
fn hard(id: &str, title: &str) -> Entry {
    insets(insets(in_part(id, title, "§6.3"), "6.2", true), "6.3", true)
}

/// Figs. 6.4 and 6.5 together, inset by inset.
fn soft(id: &str, title: &str) -> Entry {
    insets(
        insets(in_part(id, title, "§6.3"), "6.4", false),
        "6.5",
        false,
    )
}

/// The names of the six insets of two figures.
fn named(first: &str, second: &str) -> Vec<String> {
    let of = |figure: &str| WEIGHTS.map(|(inset, _)| format!("Fig. {figure} ({inset})"));
    [of(first), of(second)].concat()
}

/// Adds one statement an inset: W of `upper` is at least that of `lower` at every delay.
fn dominated(
    mut entry: Entry,
    insets: &[String],
    upper: &'static str,
    lower: &'static str,
) -> Entry {
    for (step, inset) in insets.iter().enumerate() {
        entry = entry.holds(
            &format!("{inset}: {upper} is nowhere below {lower}"),
            move |a| dominates(a, step, upper, lower, 0.01),
        );
    }
    entry
}

fn observations_6_3() -> Vec<Entry> {
    let hard_insets = named("6.2", "6.3");
    let soft_insets = named("6.4", "6.5");
    let first = hard(
        "002-obs6.3.1",
        "G-EDF is never preferable for hard real time on that machine",
    );
    let second = hard(
        "002-obs6.3.2",
        "pessimistic analysis strongly impacts C-EDF",
    );
    let second = dominated(second, &hard_insets, "P-EDF", "C-EDF-L2");
    let third = hard(
        "002-obs6.3.3",
        "among the others C-EDF-L2 is superior for hard real time",
    );
    let third = dominated(third, &hard_insets, "C-EDF-L2", "C-EDF-L3");
    let fifth = soft("002-obs6.3.5", "bin packing hardly limits clusters of six");
    let fifth = dominated(fifth, &soft_insets, "C-EDF-L3", "G-EDF");
    let mut sixth = soft("002-obs6.3.6", "C-EDF is superior for soft real time");
    for (step, inset) in soft_insets.iter().enumerate() {
        for other in ["P-EDF", "G-EDF"] {
            let what = format!("{inset}: C-EDF-L3 is above {other}, mean over all delays");
            sixth = sixth.holds(&what, move |a| {
                Some(mean_weighted(a, step, "C-EDF-L3")? > mean_weighted(a, step, other)?)
            });
        }
    }
    let slack = "Curves count as equal within 0.01. ";
    vec![
        observation_6_3_1(dominated(first, &hard_insets, "P-EDF", "G-EDF")).note(&format!(
            "{slack}The paper says it of most curves by brute force, which are run with --full. {COARSE}"
        )),
        dominated(second, &hard_insets, "P-EDF", "C-EDF-L3").note(slack.trim_end()),
        dominated(third, &hard_insets, "C-EDF-L2", "G-EDF").note(slack.trim_end()),
        observation_6_3_4(),
        fifth
            .holds(
                "Fig. 6.4 (c): C-EDF-L2 is above P-EDF, mean over all delays",
                |a| Some(mean_weighted(a, 2, "C-EDF-L2")? > mean_weighted(a, 2, "P-EDF")?),
            )
            .holds(
                "Fig. 6.5 (c): C-EDF-L2 is above P-EDF, mean over all delays",
                |a| Some(mean_weighted(a, 5, "C-EDF-L2")? > mean_weighted(a, 5, "P-EDF")?),
            )
            .holds(
                "Fig. 6.4 (a): P-EDF is above C-EDF-L3, mean over all delays",
                |a| Some(mean_weighted(a, 0, "P-EDF")? > mean_weighted(a, 0, "C-EDF-L3")?),
            )
            .note(&format!(
                "{slack}Without overheads G-EDF is optimal for soft real time: they decide the order in \
                 Fig. 6.4 (a), and keep G-EDF from its lead in the others."
            )),
        sixth
            .holds(
                "Fig. 6.5 (a): C-EDF-L3 at D = 200 us is as high as P-EDF at 0",
                |a| Some(weighted_at(a, 3, "C-EDF-L3", 200.0)? + 0.01 >= weighted_at(a, 3, "P-EDF", 0.0)?),
            )
            .holds(
                "Fig. 6.5 (a): C-EDF-L2 at D = 200 us is as high as P-EDF at 0",
                |a| Some(weighted_at(a, 3, "C-EDF-L2", 200.0)? + 0.01 >= weighted_at(a, 3, "P-EDF", 0.0)?),
            )
            .note(&format!(
                "{slack}That C-EDF is above G-EDF rests on G-EDF's overheads, which are left out."
            )),
    ]
}

/// Adds the studies by brute force, and one statement an inset about them.
fn observation_6_3_1(entry: Entry) -> Entry {
    let mut entry = brute_force(brute_force(entry, "6.2"), "6.3");
    for (step, inset) in named("6.2", "6.3").into_iter().enumerate() {
        let what = format!("{inset}: P-EDF is nowhere below G-EDF by brute force");
        // The studies by brute force come behind the six others.
        entry = entry.holds(&what, move |a| {
            dominates(a, step + 6, "P-EDF", "G-EDF-BF", 0.01)
        });
    }
    entry
}

fn observation_6_3_4() -> Entry {
    let entry = hard(
        "002-obs6.3.4",
        "conservative analysis underestimates global schedulers where utilizations vary",
    );
    let mut entry = brute_force(brute_force(entry, "6.2"), "6.3");
    for (step, inset) in named("6.2", "6.3").into_iter().enumerate() {
        let gap = move |a: &Answers| {
            // The studies by brute force come behind the six others.
            let exact = weighted_at(a, step + 6, "G-EDF-BF", 500.0)?;
            Some(exact - weighted_at(a, step, "G-EDF", 500.0)?)
        };
        let what = format!("{inset}: gap between brute force and tests, G-EDF, D = 500 us");
        entry = entry.unprinted(&what, "", gap);
    }
    entry.note(&format!(
        "The paper: small in Fig. 6.2 (a) and (c), large in the others. {COARSE}"
    ))
}

/// Figs. B.7 to B.18: every distribution under short, moderate and long periods.
fn appendices() -> Vec<Entry> {
    let mut all = Vec::new();
    for (first, guarantee, figures) in [(7, "hard", ["6.2", "6.3"]), (13, "soft", ["6.4", "6.5"])] {
        for (s, (shape, figure)) in ["uniform", "bimodal"].iter().zip(figures).enumerate() {
            for (w, (inset, weight)) in WEIGHTS.into_iter().enumerate() {
                let is_hard = guarantee == "hard";
                let preset = format!("bastoni11-fig{figure}{inset}");
                let title =
                    format!("{guarantee} weighted schedulability, {weight} {shape} utilizations");
                let id = format!("002-figB.{}", first + 3 * s + w);
                let mut entry = in_part(&id, &title, "App. B.2");
                entry = study(entry, &format!("studies/{preset}-short.toml"), is_hard);
                entry = study(entry, &preset, is_hard);
                entry = study(entry, &format!("studies/{preset}-long.toml"), is_hard);
                all.push(curves(entry).note("(a) short, (b) moderate, (c) long periods."));
            }
        }
    }
    all
}

/// The entries of this chapter.
pub fn entries() -> Vec<Entry> {
    let mut all = figures();
    all.extend(observations_6_3());
    all.extend(p002_split::section());
    all.extend(appendices());
    all.extend(p002_split::figures());
    all
}
