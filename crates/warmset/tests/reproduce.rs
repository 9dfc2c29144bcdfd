//! `warmset reproduce`: the index, and entries that are quick run and agree.

use serde_json::Value;
use testing::command::Called;
use testing::warmset;

fn warmset(args: &[&str]) -> Called {
    Called::of(warmset!().args(args))
}

fn document(args: &[&str]) -> (i32, Value) {
    let called = warmset(&[args, &["--format", "json"]].concat());
    (called.status, called.json())
}

/// The rows that have this verdict.
fn with<'a>(document: &'a Value, verdict: &str) -> Vec<&'a str> {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter()
        .filter(|row| row["verdict"] == verdict)
        .filter_map(|row| row["what"].as_str())
        .collect()
}

/// Where the papers' own numbers are against their words (see the entry's note).
const AGAINST: &str = "preemptions cost less than migrations through L2, at every size";

#[test]
fn what_is_computed_from_the_papers_agrees_with_them() {
    let (_, list) = document(&["reproduce", "list"]);
    let mut run = 0;
    for item in list["items"].as_array().expect("items") {
        let id = item["id"].as_str().expect("an id");
        if item["state"] != "reproduced" && item["state"] != "drawn" {
            continue;
        }
        let (status, answer) = document(&["reproduce", id]);
        let differs = with(&answer, "differs");
        match id {
            "000-obs3" | "002-obs5.2.3" => {
                assert_eq!((status, differs), (1, vec![AGAINST]), "{id}")
            }
            // The text rounds memory and L3 together, the table does not.
            "002-ex6.4" => assert_eq!(
                (status, differs),
                (1, vec!["migration through memory"]),
                "{id}"
            ),
            _ => assert_eq!((status, differs), (0, vec![]), "{id}"),
        }
        assert!(!with(&answer, "agrees").is_empty(), "{id}");
        assert_eq!(with(&answer, "not-run"), [""; 0], "{id}");
        run += 1;
    }
    assert!(run > 25, "{run}");
}

/// In models of the papers' machines: which values of an entry that is reproduced in part differ
/// from the paper's, in its quick size. An entry whose list changes has another remark to give.
#[test]
fn what_is_in_part_differs_where_it_is_known_to() {
    for (id, wanted) in DIFFERING {
        let (status, answer) = document(&["reproduce", id]);
        assert_eq!(answer["state"], "in-part", "{id}");
        assert!(!answer["remark"].as_str().unwrap().is_empty(), "{id}");
        let differs = with(&answer, "differs");
        assert_eq!((status, &differs[..]), (1, wanted), "{id}");
        let agrees = with(&answer, "agrees").len();
        assert!(agrees > 0, "{id}: nothing agrees");
    }
}

/// Delays under load (`002-tabA.3-model`) take too long for a test.
const DIFFERING: [(&str, &[&str]); 7] = [
    (
        "001-fig4-model",
        &[
            "unpartitioned, 8192 coefficients, Pentium, at best",
            "at 100 kHz 4 coefficients have it, too",
        ],
    ),
    (
        "001-fig8-model",
        &[
            "largest ratio, at worst",
            "the rate at which it is largest, at best",
            "the rate at which it is largest, at worst",
        ],
    ),
    (
        "002-tabA.4-model",
        &[
            "preemption, 4 KB, idle, average",
            "migration through L2, 4 KB, idle, average",
            "migration through L3, 4 KB, idle, average",
            "migration through memory, 4 KB, idle, average",
            "preemption, 64 KB, idle, average",
            "migration through memory, 64 KB, idle, average",
            "preemption, 256 KB, idle, average",
            "migration through memory, 256 KB, idle, average",
        ],
    ),
    ("003-fig3", &["estimate of U after U2"]),
    (
        "003-fig4",
        &[
            "random patterns: estimates that are off by less than 10 %",
            "random patterns: estimates that are off by less than 5 %",
        ],
    ),
    (
        "003-fig5",
        &[
            "tasks whose rate is lower, at most",
            "tasks whose rate is higher, at most",
        ],
    ),
    (
        "003-tab1",
        &[
            "G-EDF, longest",
            "cache-aware, mean",
            "cache-aware, longest",
        ],
    ),
];

#[test]
fn a_study_is_run_in_a_quick_size_and_says_what_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("fig5");
    let (status, answer) = document(&["reproduce", "ospert10-fig5", "-o", to.to_str().unwrap()]);
    assert_eq!((status, with(&answer, "differs")), (0, vec![]));
    assert_eq!(
        (&answer["id"], &answer["size"]),
        (&"000-fig5".into(), &"quick".into())
    );
    assert!(answer["remark"].as_str().unwrap().contains("left out"));
    assert!(to.join("000-fig5.json").is_file() && to.join("fig5/weighted.svg").is_file());
    let text = std::fs::read_to_string(to.join("000-fig5.txt")).unwrap();
    assert!(
        text.contains("W of P-EDF at D = 0") && text.contains("agrees"),
        "{text}"
    );
}

#[test]
fn the_list_is_filtered_by_paper_and_state() {
    let (status, list) = document(&["reproduce", "list", "--paper", "004", "--state", "in-part"]);
    let ids: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| &i["id"])
        .collect();
    assert_eq!(status, 0);
    assert!(
        ids.contains(&&"004-sec5".into()) && !ids.contains(&&"004-fig8".into()),
        "{ids:?}"
    );
    let Called {
        status, out: text, ..
    } = warmset(&["reproduce", "list", "--paper", "003"]);
    assert_eq!(status, 0);
    assert!(
        text.contains("003-fig2") && text.contains("reproduced by `warmset simulate"),
        "{text}"
    );
}

#[test]
fn what_is_not_there_is_one_sentence() {
    for (item, said) in [
        ("002-fig64", "did you mean `002-fig6"),
        (
            "002-figB.99",
            "nothing in the papers is called `002-figB.99`",
        ),
    ] {
        let Called { status, out, err } = warmset(&["reproduce", item]);
        assert_eq!(
            (status, out.as_str(), err.lines().count()),
            (2, "", 1),
            "{item}: {err}"
        );
        assert!(err.contains(said), "{err}");
    }
    let Called { status, out, .. } = warmset(&["reproduce", "004-fig8"]);
    assert_eq!(status, 0);
    assert!(out.contains("an illustration"), "{out}");
}
