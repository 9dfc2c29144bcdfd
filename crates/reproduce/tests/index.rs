//! The index is complete, and its entries are well formed.

use reproduce::{PAPERS, PaperValue, State, all, find};
use std::collections::BTreeSet;

/// `{prefix}{first}` to `{prefix}{last}`.
fn series(prefix: &str, first: u32, last: u32) -> Vec<String> {
    (first..=last).map(|n| format!("{prefix}{n}")).collect()
}

/// What the papers contain, from the captions in their texts: every `Figure`, `Table`, `Example`
/// and `Observation` with a number, numbered lists of expectations and findings in 001, and three
/// passages without a number that sum up or compute (`sec`, `ex5`, `ex6…`). What is both measured
/// here and computed in a model of the paper's machine has two entries.
fn expected() -> BTreeSet<String> {
    let figures_of_002 = [
        ("002-fig2.", 7),
        ("002-fig3.", 2),
        ("002-fig4.", 3),
        ("002-fig5.", 9),
        ("002-fig6.", 9),
        ("002-figB.", 18),
        ("002-figC.", 24),
        ("002-tabA.", 4),
        ("002-obs5.2.", 5),
        ("002-obs6.3.", 6),
        ("002-obs6.4.", 6),
    ];
    let mut all = [
        series("000-fig", 1, 5),
        series("000-tab", 1, 4),
        series("000-obs", 1, 5),
        series("001-fig", 1, 8),
        series("001-tab", 1, 1),
        series("001-obs4.1.", 1, 2),
        series("001-obs5.2.", 1, 4),
        series("003-fig", 1, 6),
        series("003-tab", 1, 3),
        series("004-fig", 1, 12),
        series("004-tab", 1, 1),
    ]
    .concat();
    for (prefix, last) in figures_of_002 {
        all.extend(series(prefix, 1, last));
    }
    let others = [
        "000-ex5",
        "002-ex4.1.1",
        "002-ex4.2.1",
        "002-ex4.3.1",
        "002-ex6.2.2",
        "002-ex6.4",
        "002-sec6.4.3",
        "004-sec5",
        "001-fig4-model",
        "001-fig5-model",
        "001-fig7-model",
        "001-fig8-model",
        "004-fig10-model",
        "004-fig11-model",
        "004-fig12-model",
        "001-sec2.2",
        "001-sec5.4",
        "002-tabA.3-model",
        "002-tabA.4-model",
        "003-ex3.2.1",
        "003-ex3.2.2",
    ];
    all.extend(others.map(str::to_owned));
    all.into_iter().collect()
}

#[test]
fn every_table_figure_example_and_observation_has_one_entry() {
    let entries = all();
    let ids: BTreeSet<String> = entries.iter().map(|e| e.id.clone()).collect();
    assert_eq!(ids.len(), entries.len(), "an id comes twice");
    let expected = expected();
    let missing: Vec<&String> = expected.difference(&ids).collect();
    let unknown: Vec<&String> = ids.difference(&expected).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{missing:?} {unknown:?}"
    );
}

#[test]
fn entries_are_well_formed() {
    for entry in all() {
        let id = &entry.id;
        let kind = id.split_once('-').map_or("", |(_, kind)| kind);
        assert!(PAPERS.iter().any(|p| p.number == entry.paper()), "{id}");
        assert!(
            ["fig", "tab", "ex", "obs", "sec"]
                .iter()
                .any(|k| kind.starts_with(k)),
            "{id}"
        );
        assert!(
            !entry.title.is_empty() && !entry.title.contains('\n'),
            "{id}"
        );
        assert!(!entry.place.is_empty(), "{id}");
        // Whoever reads a state has to find out by which command, or what is missing.
        let has_steps = !entry.steps.is_empty();
        match &entry.state {
            State::Reproduced | State::Drawn => {
                assert!(has_steps && !entry.values.is_empty(), "{id}")
            }
            State::InPart(text) => assert!(has_steps && !text.is_empty(), "{id}"),
            State::Measured(_) => assert!(has_steps, "{id}"),
            State::Tested(text) | State::Illustration(text) => {
                assert!(
                    !has_steps && entry.values.is_empty() && !text.is_empty(),
                    "{id}"
                );
            }
        }
        assert!(State::WORDS.contains(&entry.state.word()), "{id}");
        // A number that another machine gave is compared with nothing.
        if matches!(entry.state, State::Measured(_)) {
            let is_compared = |v: &reproduce::Value| {
                use PaperValue::{AtLeast, AtMost, Number};
                matches!(v.paper, Number { .. } | AtMost(_) | AtLeast(_))
            };
            assert!(!entry.values.iter().any(is_compared), "{id}");
        }
    }
}

#[test]
fn old_names_find_their_entry_and_slips_the_nearest() {
    let id = |name: &str| find(name).map(|e| e.id);
    assert_eq!(id("002-FIG6.4").unwrap(), "002-fig6.4");
    assert_eq!(id("ospert10-fig5").unwrap(), "000-fig5");
    assert_eq!(id("bastoni11-fig6.3b-bf").unwrap(), "002-fig6.3");
    assert_eq!(id("matrix").unwrap(), "001-fig7");
    assert_eq!(id("multicore").unwrap(), "004-fig10");
    let e = id("002-fig64").unwrap_err().to_string();
    assert!(e.contains("did you mean `002-fig6"), "{e}");
}
