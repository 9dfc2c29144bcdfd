//! A plan whose parts are measured one by one: what is done is kept, whatever ends it.

use measure::journal::{Head, Journal};
use model::watch::{Silent, Watch};
use model::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(PartialEq, Serialize, Deserialize)]
struct Title(String);

impl Head for Title {
    fn difference(&self, _: &Self) -> &'static str {
        "title"
    }
}

const NAME: &str = "journal.jsonl";

/// Measures the parts 1 to 4, of which each is its own record, and goes on where it was ended.
fn go(
    dir: &Path,
    resume: bool,
    watch: &dyn Watch,
    one: impl FnMut(&u32) -> Result<Option<u32>>,
) -> Result<Vec<u32>> {
    let (journal, records) = Journal::open(dir, NAME, &Title("four".to_owned()), resume)?;
    let (_, records) = journal.go_through(
        ("part", &[1, 2, 3, 4]),
        records,
        |record, part| record == part,
        ("measuring", watch),
        one,
    )?;
    Ok(records)
}

#[test]
fn what_is_left_is_measured_and_what_was_done_is_not_measured_again() {
    let dir = tempfile::tempdir().unwrap();
    let until = |last| move |part: &u32| Ok((*part <= last).then_some(*part));
    assert_eq!(go(dir.path(), false, &Silent, until(2)).unwrap(), [1, 2]);
    let mut measured = Vec::new();
    let all = go(dir.path(), true, &Silent, |part| {
        measured.push(*part);
        Ok(Some(*part))
    });
    assert_eq!(all.unwrap(), [1, 2, 3, 4]);
    assert_eq!(measured, [3, 4]);
}

#[test]
fn an_error_keeps_what_was_done_before_and_nothing_if_that_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let fails_at = |bad| {
        move |part: &u32| match *part == bad {
            true => Err(Error::new("the processor is gone")),
            false => Ok(Some(*part)),
        }
    };
    let e = go(dir.path(), false, &Silent, fails_at(1)).unwrap_err();
    assert!(e.to_string().contains("the processor is gone"), "{e}");
    assert!(!dir.path().join(NAME).exists());
    go(dir.path(), false, &Silent, fails_at(3)).unwrap_err();
    let all = go(dir.path(), true, &Silent, fails_at(9)).unwrap();
    assert_eq!(all, [1, 2, 3, 4]);
}

/// Says at once that it is enough.
struct Stopped;

impl Watch for Stopped {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        true
    }
}

#[test]
fn a_measurement_that_is_stopped_at_once_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let e = go(dir.path(), false, &Stopped, |part| Ok(Some(*part))).unwrap_err();
    assert!(
        e.to_string().contains("before the first part was done"),
        "{e}"
    );
    assert!(!dir.path().join(NAME).exists());
}

#[test]
fn records_of_another_plan_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let other = |part: &u32| Ok((*part <= 2).then_some(part + 1));
    go(dir.path(), false, &Silent, other).unwrap();
    let e = go(dir.path(), true, &Silent, |part| Ok(Some(*part))).unwrap_err();
    assert!(e.to_string().contains("parts that the plan has not"), "{e}");
}
