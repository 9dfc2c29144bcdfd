//! 002, §6.4 and Appendix C.2: policies that split tasks, by working set size.

use crate::entry::{Entry, State};
use crate::reading::{Answers, dominates, kept_from, mean_weighted, number, weighted_at};

/// What is not charged.
const OVERHEADS: &str = "the kernel's overheads, which the paper charges as measured and does not print, are left out; cache \
                         delays are those of its tables (docs/observations.md)";

const LOADS: [&str; 2] = ["idle", "load"];

/// The policies of Figs. C.7 to C.15, those of soft scenarios last.
const HARD: [&str; 3] = ["P-EDF", "EDF-WM", "NPS-F-DELTA-1"];
const SOFT: [&str; 5] = ["P-EDF", "C-EDF-L3", "EDF-FM", "EDF-WM", "NPS-F-DELTA-1"];

fn in_part(id: &str, title: &str, place: &str) -> Entry {
    Entry::new(id, title, place, State::InPart(OVERHEADS.to_owned()))
}

/// Adds a study; the paper draws 100 sets a cap (§6.4).
fn study(entry: Entry, name: &str) -> Entry {
    entry.run_sized(
        &format!("study run {name} --sets 1 -o out/{name}"),
        &format!("study run {name} --sets 100 -o out/{name}"),
    )
}

/// Adds W at no working set and at 512 KiB, which the paper shows in a picture only.
fn curves(mut entry: Entry, policies: &[&str], insets: &[&str]) -> Entry {
    for (step, inset) in insets.iter().enumerate() {
        for policy in policies {
            for load in LOADS {
                let name = format!("{policy} {load}");
                let what = format!("({inset}) W of {name} at a working set of 512 KiB");
                // Readers of studies divide what is swept by 1,000.
                entry = entry.unprinted(&what, "", move |a| weighted_at(a, step, &name, 524.288));
            }
        }
    }
    entry
}

fn figure_6_6() -> Entry {
    let entry = in_part(
        "002-fig6.6",
        "NPS-F and C-NPS-F with δ = 1 and δ = 4, by working set size",
        "§6.4.1",
    );
    let mut entry = study(study(entry, "bastoni11-fig6.6a"), "bastoni11-fig6.6b");
    for (step, inset) in ["a", "b"].into_iter().enumerate() {
        for load in LOADS {
            for (upper, lower) in [
                ("NPS-F-DELTA-1", "NPS-F-DELTA-4"),
                ("NPS-F-DELTA-1", "C-NPS-F-L3-DELTA-1"),
            ] {
                let (upper, lower) = (format!("{upper} {load}"), format!("{lower} {load}"));
                let what = format!("({inset}) {upper} is nowhere below {lower}");
                entry = entry.holds(&what, move |a| dominates(a, step, &upper, &lower, 0.01));
            }
        }
    }
    entry.note("Curves count as equal within 0.01.")
}

fn figure_6_7() -> Entry {
    let entry = in_part(
        "002-fig6.7",
        "hard schedulability by working set size",
        "§6.4.2",
    );
    let entry = study(study(entry, "bastoni11-fig6.7a"), "bastoni11-fig6.7b");
    let mut entry = curves(entry, &HARD, &["a", "b"]);
    for (step, inset) in ["a", "b"].into_iter().enumerate() {
        for load in LOADS {
            let (upper, lower) = (format!("EDF-WM {load}"), format!("P-EDF {load}"));
            let what = format!("({inset}) {upper} is nowhere below {lower}");
            entry = entry.holds(&what, move |a| dominates(a, step, &upper, &lower, 0.01));
        }
    }
    entry.note("Curves count as equal within 0.01.")
}

fn figure_6_8() -> Entry {
    let entry = in_part(
        "002-fig6.8",
        "soft schedulability by working set size",
        "§6.4.2",
    );
    let entry = study(study(entry, "bastoni11-fig6.8a"), "bastoni11-fig6.8b");
    curves(entry, &SOFT, &["a", "b"])
        .holds(
            "(a) idle: EDF-WM is above C-EDF-L3, mean over all sizes",
            |a| Some(mean_weighted(a, 0, "EDF-WM idle")? > mean_weighted(a, 0, "C-EDF-L3 idle")?),
        )
        .holds(
            "(b) idle: EDF-fm is below EDF-WM, mean over all sizes",
            |a| Some(mean_weighted(a, 1, "EDF-FM idle")? < mean_weighted(a, 1, "EDF-WM idle")?),
        )
}

fn figure_6_9() -> Entry {
    let kept =
        |step: usize, policy: &'static str| move |a: &Answers| kept_from(a, step, policy, 23.0);
    in_part(
        "002-fig6.9",
        "hard schedulability by utilization, uniform light utilizations, moderate periods",
        "§6.4.2",
    )
    .run_sized(
        "study run bastoni11-fig6.9 --sets 2 -o out/fig6.9",
        "study run bastoni11-fig6.9 -o out/fig6.9",
    )
    .run_sized(
        "study run studies/semi-partitioned.toml --sets 20 -o out/fig6.9-free",
        "study run studies/semi-partitioned.toml -o out/fig6.9-free",
    )
    .unprinted("32 KiB, load: sets that P-EDF keeps from U = 23 on", "", kept(0, "P-EDF load"))
    .unprinted("32 KiB, load: sets that EDF-WM keeps from U = 23 on", "", kept(0, "EDF-WM load"))
    .unprinted("32 KiB, load: sets that NPS-F keeps from U = 23 on", "", kept(0, "NPS-F-DELTA-1 load"))
    .unprinted("for nothing: sets that P-EDF keeps from U = 23 on", "", kept(1, "P-EDF"))
    .unprinted("for nothing: sets that EDF-WM keeps from U = 23 on", "", kept(1, "EDF-WM"))
    .unprinted("for nothing: sets that NPS-F keeps from U = 23 on", "", kept(1, "NPS-F"))
    .holds("32 KiB, idle: NPS-F keeps the most from U = 23 on", move |a| {
        let most = kept(0, "NPS-F-DELTA-1 idle")(a)?;
        Some(most >= kept(0, "EDF-WM idle")(a)? && most >= kept(0, "P-EDF idle")(a)?)
    })
    .note("For nothing: no overheads and no cache delays, the theoretical curves that the paper compares with.")
}

/// What §6.4 reads off Fig. 5.5 (b).
fn example_6_4() -> Entry {
    let value = |at: usize| number(0, &format!("/values/{at}/value_ns"), 1e3);
    let named = |name: &'static str| {
        move |a: &Answers| {
            let values = a.get(0, "/values")?.as_array()?;
            let of = |v: &serde_json::Value| {
                let curve = v["curve"].as_str().unwrap_or_default();
                curve.starts_with(name) && curve.contains("idle") && v["statistic"] == "maximum"
            };
            value(values.iter().position(of)?)(a)
        }
    };
    Entry::new(
        "002-ex6.4",
        "the delays that a working set of 64 KB stands for in an idle system",
        "§6.4",
        State::Drawn,
    )
    .run("profile show xeon-l7455 --wss 64KiB")
    .number("preemption", (1.0, 0.5), "us", named("preemption"))
    .number(
        "migration through L2",
        (17.0, 0.5),
        "us",
        named("L2-migration"),
    )
    .number(
        "migration through L3",
        (60.0, 1.0),
        "us",
        named("L3-migration"),
    )
    .number(
        "migration through memory",
        (60.0, 1.0),
        "us",
        named("memory-migration"),
    )
    .note("§6.4 has 60 us for L3 and memory together; its own Table A.2 has 51.33 us for memory.")
}

/// What `study observe` answers to a statement; `None` where it cannot tell.
fn answered(a: &Answers, step: usize, statement: &str) -> Option<bool> {
    let statements = a.get(step, "/settings/0/statements")?.as_array()?;
    let one = statements
        .iter()
        .find(|one| one["statement"] == statement)?;
    match one["answer"].as_str()? {
        "reproduced" => Some(true),
        "cannot-tell" => None,
        _ => Some(false),
    }
}

/// Adds all scenarios of §6.4, or one of them, and the observations on them.
fn observed(entry: Entry, number: &str) -> Entry {
    let one = "bastoni11-6.4-hard-uniform-heavy-short";
    entry
        .run_sized(
            &format!("study run {one} --sets 1 -o out/6.4/{one}"),
            "study run bastoni11-6.4 --sets 100 -o out/6.4",
        )
        .run(&format!("study observe out/6.4 --only {number}"))
        .note(
            "The quick size has one of 54 scenarios, of which no statement about all can be told. \
             docs/observations.md says how each sentence is read.",
        )
}

fn observations() -> Vec<Entry> {
    let titles = [
        "δ = 1 leads to higher schedulability than δ = 4",
        "C-NPS-F is almost never preferable to NPS-F",
        "EDF-WM performs best for hard real time",
        "EDF-WM outperforms C-EDF for soft real time",
        "EDF-fm usually performs better than C-EDF for soft real time",
        "NPS-F is inferior in most scenarios",
    ];
    let observation = |(n, title): (usize, &&str)| {
        let number = format!("6.4.{}", n + 1);
        let place = if n < 2 { "§6.4.1" } else { "§6.4.2" };
        let entry = in_part(&format!("002-obs{number}"), title, place);
        observed(entry, &number).holds("it holds on our results", move |a| answered(a, 1, &number))
    };
    titles.iter().enumerate().map(observation).collect()
}

fn principles() -> Entry {
    let entry = in_part(
        "002-sec6.4.3",
        "eight principles for semi-partitioned policies",
        "§6.4.3",
    );
    let mut entry = observed(entry, "6.4.3");
    for n in [1, 2, 3, 4, 6, 7, 8] {
        let number = format!("6.4.3 ({n})");
        let what = format!("principle {n} holds on our results");
        entry = entry.holds(&what, move |a| answered(a, 1, &number));
    }
    entry
}

/// Figs. C.7 to C.24: every distribution under short, moderate and long periods.
pub(super) fn figures() -> Vec<Entry> {
    let mut all = Vec::new();
    for (first, guarantee, policies) in [(7, "hard", &HARD[..]), (16, "soft", &SOFT[..])] {
        for (s, shape) in ["uniform", "bimodal", "exponential"].iter().enumerate() {
            for (w, weight) in ["light", "medium", "heavy"].iter().enumerate() {
                let figure = format!("C.{}", first + 3 * s + w);
                let title = format!(
                    "{guarantee} schedulability by working set size, {weight} {shape} utilizations"
                );
                let mut entry = in_part(&format!("002-fig{figure}"), &title, "App. C.2");
                for inset in ["a", "b", "c"] {
                    entry = study(entry, &format!("bastoni11-fig{figure}{inset}"));
                }
                let entry = curves(entry, policies, &["a", "b", "c"]);
                all.push(entry.note("(a) short, (b) moderate, (c) long periods."));
            }
        }
    }
    all
}

/// Figures, observations and principles of §6.4.
pub(super) fn section() -> Vec<Entry> {
    let mut all = vec![
        example_6_4(),
        figure_6_6(),
        figure_6_7(),
        figure_6_8(),
        figure_6_9(),
    ];
    all.extend(observations());
    all.push(principles());
    all
}
