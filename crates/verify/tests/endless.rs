//! The longest time that a document can hold stands for no longer one where a set is said to hold.

use std::fmt::Write;

/// A task that takes all but 10 ns of the longest period there is, and pays this delay, as if its
/// execution with it ended there.
fn certificate(delay: u64) -> String {
    let (end, wcet) = (u64::MAX, u64::MAX - 10);
    let mut text = String::from(
        r#"{"schema_version":1,"document":"warmset certificate","guarantee":"hard","rule":"one-delay","processors":[0],"#,
    );
    write!(
        text,
        r#""tasks":[{{"task":"a","wcet_ns":{wcet},"period_ns":{end},"deadline_ns":{end}}}],
        "claims":[{{"policy":"p-edf","says":"yes","costs":{{"delay_ns":{delay}}},"places":[{{
            "processors":[0],"tasks":[0],"inflated_ns":[{end}],
            "proof":{{"by":"DEMAND","until":0,"points":[]}}}}]}}]}}"#
    )
    .unwrap();
    text
}

fn is_verified(delay: u64) -> bool {
    verify::verify(&certificate(delay)).is_ok_and(|report| report.is_verified())
}

#[test]
fn a_yes_that_rests_on_more_than_the_longest_time_is_refused() {
    assert!(is_verified(10), "all of its period is just enough");
    assert!(!is_verified(11));
    assert!(!is_verified(100));
}
