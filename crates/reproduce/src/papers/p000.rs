//! 000: cache-related preemption and migration delays, and what they do to schedulability.

use super::cpmd;
use crate::entry::{Entry, State};
use crate::reading::{crossing, crossing_of, dominates, weighted_at};

/// The study of Fig. 5, and the numbers that §5 reads off it.
fn figure_5(id: &str, title: &str) -> Entry {
    let missing = "the kernel's overheads, which the paper charges as measured, are left out";
    Entry::new(id, title, "§5", State::InPart(missing.to_owned()))
        .run_sized(
            "study run ospert10-fig5 --sets 100 -o out/fig5",
            "study run ospert10-fig5 --sets 1000 -o out/fig5",
        )
        .number("W of P-EDF at D = 0", (0.55, 0.03), "", |a| {
            weighted_at(a, 0, "P-EDF", 0.0)
        })
        .number("G-EDF falls below 0.55 at D", (725.0, 40.0), "us", |a| {
            crossing_of(a, 0, "G-EDF", 0.55)
        })
        .number(
            "G-EDF falls below our W of P-EDF at D",
            (725.0, 40.0),
            "us",
            |a| crossing(a, 0, "G-EDF", "P-EDF"),
        )
        .holds("G-EDF dominates P-EDF at equal delay", |a| {
            dominates(a, 0, "G-EDF", "P-EDF", 0.0)
        })
        .note("docs/studies.md says what moves these numbers. The paper reads them off its figure.")
}

/// The entries of this paper.
pub fn entries() -> Vec<Entry> {
    let mut all = vec![
        Entry::new(
            "000-fig1",
            "how one sample of a cache delay is taken",
            "§3",
            State::Illustration(
                "`warmset measure cpmd` takes its samples so (docs/measuring.md)".to_owned(),
            ),
        ),
        cpmd::figure(
            "000-fig2",
            "§4.2",
            "cache delay by working set size, worst and average, under load and idle",
            &[1, 2, 3, 4],
        ),
        cpmd::scatter(
            "000-fig3",
            "§4.2",
            "cache delay by preemption length under load",
        ),
        Entry::new(
            "000-fig4",
            "worst-case cache delay by number of tasks, by the schedule-sensitive method",
            "§4.2",
            State::Measured(cpmd::SCHEDULED_DIFFERS.to_owned()),
        )
        .run_sized(cpmd::SCHEDULED_QUICK, cpmd::SCHEDULED),
        figure_5("000-fig5", "weighted soft schedulability by cache delay"),
        figure_5(
            "000-ex5",
            "the delay up to which G-EDF is better than P-EDF without delay",
        ),
    ];
    all.extend((1..=4).map(|n| cpmd::table(&format!("000-tab{n}"), n)));
    all.extend(cpmd::observations(|n| format!("000-obs{n}"), "§4.2"));
    all
}
