//! The comparison: the paper's values beside ours.

use crate::entry::{Entry, Ours, PaperValue};
use crate::reading::Answers;
use serde::Serialize;

/// What a comparison says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Ours is as near to the paper's as the entry asks for, or what the paper says holds.
    Agrees,
    /// It is not.
    Differs,
    /// The paper measured on another machine: both are shown, nothing is claimed.
    AnotherMachine,
    /// The paper prints no number.
    NotPrinted,
    /// The commands that were run do not give it.
    NotRun,
}

impl Verdict {
    /// The verdict as people read it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "differs",
            Verdict::AnotherMachine => "another machine",
            Verdict::NotPrinted => "no number printed in the paper",
            Verdict::NotRun => "not run",
        }
    }
}

/// One line of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// What is compared.
    pub what: String,
    /// Where in the paper it stands.
    pub place: String,
    /// The unit of the numbers; empty for shares, counts and statements.
    pub unit: &'static str,
    /// The paper's number; none for statements and for what the paper does not print.
    pub paper: Option<f64>,
    /// Our number; none for statements.
    pub ours: Option<f64>,
    /// For statements: whether it holds here.
    pub holds: Option<bool>,
    /// The largest difference that still agrees; none where numbers are not compared.
    pub within: Option<f64>,
    /// What the comparison says.
    pub verdict: Verdict,
}

/// Compares the values of an entry with the answers of its steps, one row a value.
pub fn compare(entry: &Entry, answers: &Answers) -> Vec<Row> {
    let row = |value: &crate::entry::Value| {
        let ours = (value.ours)(answers);
        let number = match ours {
            Some(Ours::Number(number)) => Some(number),
            _ => None,
        };
        let holds = match ours {
            Some(Ours::Holds(holds)) => Some(holds),
            _ => None,
        };
        let (paper, within) = match value.paper {
            PaperValue::Number { value, within } => (Some(value), Some(within)),
            PaperValue::Elsewhere(value) => (Some(value), None),
            PaperValue::Holds | PaperValue::NotPrinted => (None, None),
        };
        let agrees = |yes| {
            if yes {
                Verdict::Agrees
            } else {
                Verdict::Differs
            }
        };
        let verdict = match (&value.paper, number, holds) {
            (_, None, None) => Verdict::NotRun,
            (PaperValue::Number { value, within }, Some(ours), _) => {
                // The tolerance is a decimal number: allow for its rounding.
                agrees((ours - value).abs() <= within + 1e-9)
            }
            (PaperValue::Elsewhere(_), ..) => Verdict::AnotherMachine,
            (PaperValue::Holds, _, Some(holds)) => agrees(holds),
            _ => Verdict::NotPrinted,
        };
        Row {
            what: value.what.clone(),
            place: match value.place.is_empty() {
                true => entry.place.clone(),
                false => value.place.clone(),
            },
            unit: value.unit,
            paper,
            ours: number,
            holds,
            within,
            verdict,
        }
    };
    entry.values.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::State;

    #[test]
    fn numbers_are_held_to_their_tolerance_and_statements_to_their_truth() {
        let entry = Entry::new("000-fig9", "a figure of no paper", "§9", State::Reproduced)
            .number("near", (0.55, 0.02), "", |_| Some(0.57))
            .number("far", (0.55, 0.02), "us", |_| Some(0.58))
            .holds("true", |_| Some(true))
            .holds("false", |_| Some(false))
            .at("§10")
            .elsewhere("measured", 3.0, "us", |_| Some(9.0))
            .unprinted("drawn", "", |_| Some(1.0))
            .number("absent", (1.0, 0.0), "", |_| None);
        let rows = compare(&entry, &Answers::default());
        let verdicts: Vec<Verdict> = rows.iter().map(|r| r.verdict).collect();
        use Verdict::{Agrees, AnotherMachine, Differs, NotPrinted, NotRun};
        let expected = [
            Agrees,
            Differs,
            Agrees,
            Differs,
            AnotherMachine,
            NotPrinted,
            NotRun,
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(
            (rows[2].place.as_str(), rows[3].place.as_str()),
            ("§9", "§10")
        );
    }
}
