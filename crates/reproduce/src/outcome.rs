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
    /// How the paper gives its number, where it is a bound.
    pub bound: Option<Bound>,
    /// What the comparison says.
    pub verdict: Verdict,
}

/// Which side of a bound ours has to be on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Ours may not exceed the paper's number.
    AtMost,
    /// Ours may not stay below it.
    AtLeast,
}

impl Bound {
    /// The bound as people read it.
    pub fn words(self) -> &'static str {
        match self {
            Bound::AtMost => "at most",
            Bound::AtLeast => "at least",
        }
    }
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
            PaperValue::Elsewhere(value)
            | PaperValue::AtMost(value)
            | PaperValue::AtLeast(value) => (Some(value), None),
            PaperValue::Holds | PaperValue::NotPrinted => (None, None),
        };
        let bound = match value.paper {
            PaperValue::AtMost(_) => Some(Bound::AtMost),
            PaperValue::AtLeast(_) => Some(Bound::AtLeast),
            _ => None,
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
            (PaperValue::AtMost(bound), Some(ours), _) => agrees(ours <= bound + 1e-9),
            (PaperValue::AtLeast(bound), Some(ours), _) => agrees(ours >= bound - 1e-9),
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
            bound,
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
            .number("absent", (1.0, 0.0), "", |_| None)
            .at_most("below", 1.6, "", |_| Some(1.6))
            .at_most("above", 1.6, "", |_| Some(1.61))
            .at_least("enough", 91.0, "%", |_| Some(99.0))
            .at_least("too few", 91.0, "%", |_| Some(90.9));
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
            Agrees,
            Differs,
            Agrees,
            Differs,
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(
            (rows[2].place.as_str(), rows[3].place.as_str()),
            ("§9", "§10")
        );
        let bounds: Vec<Option<Bound>> = rows[6..10].iter().map(|r| r.bound).collect();
        let [most, least] = [Bound::AtMost, Bound::AtLeast].map(Some);
        assert_eq!(bounds, [None, most, most, least]);
        assert_eq!(rows[7].paper, Some(1.6));
    }
}
