//! What the page holds and what it must never hold.

use super::*;
use crate::svg::Figure;

#[test]
fn an_empty_report_is_a_page_and_nothing_more() {
    let html = page(&ReportData::default());
    assert!(html.starts_with("<!DOCTYPE html>") && !html.contains("<section"));
}

#[test]
fn what_comes_from_files_cannot_become_markup() {
    let evil = "<script>alert(1)</script>";
    let data = ReportData {
        title: evil.to_owned(),
        lead: evil.to_owned(),
        answer: vec![(evil.to_owned(), evil.to_owned())],
        numbers: Numbers {
            caption: evil.to_owned(),
            header: vec![evil.to_owned()],
            rows: vec![vec![evil.to_owned()]],
        },
        warnings: vec![evil.to_owned()],
        machine: vec![(evil.to_owned(), format!("`{evil}`"))],
        next: vec![(evil.to_owned(), evil.to_owned())],
        provenance: vec![(
            evil.to_owned(),
            Provenance {
                source: evil.to_owned(),
                command: evil.to_owned(),
                ..Provenance::default()
            },
        )],
        program: evil.to_owned(),
        ..ReportData::default()
    };
    assert!(!page(&data).contains("<script"));
}

#[test]
fn numbers_keep_their_units() {
    assert_eq!(held("12.5 µs and 3 samples"), "12.5\u{a0}µs and 3 samples");
    assert_eq!(coded("`a b` 17 %."), "<code>a b</code> 17\u{a0}%.");
}

#[test]
fn nothing_is_fetched() {
    let html = page(&ReportData {
        answer: vec![("a".to_owned(), "b".to_owned())],
        ..ReportData::default()
    });
    for source in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(source), "{source}");
    }
}

#[test]
fn columns_of_numbers_are_set_to_the_right() {
    let rows = [
        vec!["a".to_owned(), "−1 µs".to_owned()],
        vec!["1".to_owned(), "–".to_owned()],
    ];
    let html = table("t", &["x".to_owned(), "y".to_owned()], &rows);
    assert!(html.contains("<th scope=\"row\">a</th><td class=\"n\">−1\u{a0}µs</td>"));
}

#[test]
fn policy_names_are_not_broken_and_units_are_written_one_way() {
    assert_eq!(
        coded("under P-EDF, (G-FP-DM) in 17.8ms: e-mail"),
        "under <span class=\"name\">P-EDF</span>, (<span class=\"name\">G-FP-DM</span>) in \
         17.8\u{a0}ms: e-mail"
    );
    assert_eq!(
        coded("`--for 20ms` of 32MiB"),
        "<code>--for 20ms</code> of 32\u{a0}MiB"
    );
}

/// A task set that many policies judge.
fn judged() -> Judged {
    let verdict = |n: usize| Verdict {
        policy: format!("POLICY-{n}"),
        passes: Some(n.is_multiple_of(2)),
        refuted: false,
        test: "test".to_owned(),
        reason: "it takes 17ms".to_owned(),
        inflated: Some(1.5),
        largest_delay: None,
        growth: None,
        lost: vec![("cpmd".to_owned(), 0.01), ("tick".to_owned(), 0.02)],
        asked: "Yes: first fit.".to_owned(),
    };
    Judged {
        title: "Control".to_owned(),
        about: "A set.".to_owned(),
        answer: "POLICY-0 comes first.".to_owned(),
        findings: vec!["More.".to_owned()],
        tasks: Tasks {
            facts: ["task", "WCET"].map(str::to_owned).to_vec(),
            policies: (0..8)
                .map(|n| (format!("POLICY-{n}"), "exact".to_owned()))
                .collect(),
            rows: vec![(0..10).map(|n| format!("≤ {n} ms")).collect()],
        },
        verdicts: (0..8).map(verdict).collect(),
        figures: Vec::new(),
        command: String::new(),
    }
}

/// A heap of nineteen things to unfold hides what they hold.
#[test]
fn what_policies_say_stands_in_tables_and_nothing_is_to_be_unfolded() {
    let html = page(&ReportData {
        judged: vec![judged()],
        ..ReportData::default()
    });
    assert!(!html.contains("<details"), "{html}");
    let tables = html.matches("<table").count();
    assert_eq!(tables, 2);
    assert!(html.contains("<small>Yes: first fit.</small>"));
    assert!(html.contains("<small>cpmd 0.0100<br>tick 0.0200</small>"));
    // For those who hear the page: tables have names, columns and rows have headers, and what is
    // moved sideways can be reached by keyboard.
    assert_eq!(html.matches("<caption>").count(), tables);
    assert_eq!(
        html.matches("role=\"region\" tabindex=\"0\" aria-label=\"")
            .count(),
        tables
    );
    for row in html.split("<tr").skip(1) {
        let first = row.split_once('>').unwrap().1;
        assert!(first.starts_with("<th scope=\""), "{first}");
    }
    assert!(
        !html.contains("<th>") && !html.contains("<th class"),
        "every header has a scope"
    );
}

#[test]
fn the_answer_stands_before_the_numbers_and_both_before_the_rest() {
    let html = page(&ReportData {
        answer: vec![("Control".to_owned(), "P-EDF comes first.".to_owned())],
        numbers: Numbers {
            caption: "What it costs".to_owned(),
            header: vec!["after a".to_owned(), "average".to_owned()],
            rows: vec![vec!["preemption".to_owned(), "17.8 µs".to_owned()]],
        },
        warnings: vec!["It was hot.".to_owned()],
        judged: vec![judged()],
        ..ReportData::default()
    });
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    let order = [
        at("<p class=\"answer\"><strong>Control:</strong>"),
        at("What it costs"),
        at("It was hot."),
        at("id=\"examples\""),
    ];
    assert!(order.is_sorted(), "{order:?}");
    let top = &html[order[0]..order[1]];
    assert!(!top.contains("<li>"), "{top}");
}

#[test]
fn what_is_wider_than_a_phone_says_that_it_can_be_moved() {
    let rows = |columns: usize| vec![vec!["1".to_owned(); columns]];
    let header = |columns: usize| vec!["x".to_owned(); columns];
    let narrow = table("t", &header(3), &rows(3));
    let wide = table("t", &header(9), &rows(9));
    assert!(!narrow.contains("Swipe sideways") && wide.contains("Swipe sideways"));
    let figure = |width: f64| Shown {
        figures: vec![Figure {
            id: "f".to_owned(),
            title: "A \"title\"".to_owned(),
            description: String::new(),
            caption: String::new(),
            width,
            height: 10.0,
            shapes: Vec::new(),
        }],
        command: String::new(),
    };
    let wide = figures(&[figure(760.0)]);
    assert!(
        wide.contains("Swipe sideways") && wide.contains("min-width:646px"),
        "{wide}"
    );
    assert!(
        wide.contains("aria-label=\"A &quot;title&quot;\""),
        "{wide}"
    );
    assert!(!figures(&[figure(470.0)]).contains("Swipe"));
    // The hint is there on narrow screens only.
    assert!(
        CSS.contains(".swipe{display:none")
            && CSS.contains("40rem){body{font-size:15px}.swipe{display:block}")
    );
}
