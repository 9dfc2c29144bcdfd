//! `warmset profile compare`: do two measurements of the same thing agree?

use crate::Answer;
use crate::options::Answered;
use measure::agree::{Comparison, Quantity, Stated, Verdict};
use model::Result;
use model::table::{Look, Table};
use std::fmt::Write;

/// Options of `warmset profile compare`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A figure agrees where its two intervals overlap. Both profiles agree where no figure differs beyond doubt, and no more lie \
apart than chance explains among so many (docs/profiles.md).

Exit status: 0 they agree; 1 they do not; 2 they cannot be compared.

Examples:
  warmset profile compare morning/profile.toml evening/profile.toml
  warmset profile compare morning evening --all")]
pub struct Args {
    /// A profile: a file, a directory that a measurement wrote, a built-in one or `this-machine`
    first: String,
    /// Another one
    second: String,
    /// Show all figures, those that agree too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    answered: Answered,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
    let compared = app::profile::compare(&args.first, &args.second)?;
    args.answered
        .give(|look| text(&compared, args.all, look), &compared)?;
    Ok(match compared.agree {
        true => Answer::Yes,
        false => Answer::No,
    })
}

fn text(compared: &Comparison, all: bool, look: Look) -> String {
    let shown = |q: &&Quantity| all || q.verdict != Verdict::Agree;
    let rows: Vec<&Quantity> = compared.quantities.iter().filter(shown).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text += &table(&rows).text(look);
        text += "\nTimes in µs, each with its interval of 95 %.\n";
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}", answer(compared));
    if compared.without_interval > 0 {
        let _ = writeln!(
            text,
            "{} more figures have no interval in one of them.",
            compared.without_interval
        );
    }
    for (which, names) in [
        ("first", &compared.only_first),
        ("second", &compared.only_second),
    ] {
        if !names.is_empty() {
            let _ = writeln!(text, "Only in the {which}: {}.", names.join("; "));
        }
    }
    text
}

fn answer(compared: &Comparison) -> String {
    let all = compared.quantities.len() as u64;
    let agree = all - compared.apart;
    let begins = match compared.agree {
        true => "The two agree",
        false => "The two do not agree",
    };
    format!(
        "{begins}: of {all} figures {agree} agree within the intervals that both state; {} lie apart, {} of \
         them beyond doubt; by chance up to {} would lie apart.",
        compared.apart, compared.differ, compared.allowed
    )
}

fn table(rows: &[&Quantity]) -> Table {
    let mut table = Table::new(3, 0);
    table.row([
        "curve",
        "at",
        "figure",
        "first",
        "second",
        "difference",
        "they",
    ]);
    for q in rows {
        let they = match q.verdict {
            Verdict::Agree => "agree",
            Verdict::Apart => "lie apart",
            Verdict::Differ => "differ",
        };
        table.row([
            q.curve.clone(),
            q.at.clone(),
            q.figure.to_string(),
            stated(&q.first),
            stated(&q.second),
            difference(q),
            they.to_owned(),
        ]);
    }
    table
}

fn stated(of: &Stated) -> String {
    let micros = |ns: i64| format!("{:.2}", ns as f64 / 1e3);
    match of.low_ns == of.high_ns {
        true => micros(of.value_ns),
        false => format!(
            "{} ({} to {})",
            micros(of.value_ns),
            micros(of.low_ns),
            micros(of.high_ns)
        ),
    }
}

/// In percent of the first, where that says something.
fn difference(q: &Quantity) -> String {
    let by = q.second.value_ns.saturating_sub(q.first.value_ns) as f64;
    match q.first.value_ns > 0 {
        true => format!("{:+.0} %", 100.0 * by / q.first.value_ns as f64),
        false => format!("{:+.2}", by / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::agree::Figure;

    #[test]
    fn the_answer_comes_with_what_lies_apart() {
        let of = |value_ns, reach| Stated {
            value_ns,
            low_ns: value_ns - reach,
            high_ns: value_ns + reach,
            groups: Some(3),
        };
        let quantity = |second, verdict| Quantity {
            curve: "release, g-edf, engine and kernel".to_owned(),
            at: "4-30 tasks".to_owned(),
            figure: Figure::Average,
            first: of(9_000, 500),
            second,
            p: Some(0.01),
            verdict,
        };
        let mut compared = Comparison {
            agree: false,
            quantities: vec![
                quantity(of(9_100, 0), Verdict::Agree),
                quantity(of(18_000, 1_000), Verdict::Differ),
            ],
            apart: 1,
            allowed: 1,
            differ: 1,
            without_interval: 2,
            only_first: vec!["tick period".to_owned()],
            only_second: Vec::new(),
        };
        insta::assert_snapshot!(text(&compared, false, Look::PLAIN));
        compared.agree = true;
        let all = text(&compared, true, Look::PLAIN);
        assert!(
            all.contains("9.10") && all.contains("The two agree: of 2 figures 1 agree"),
            "{all}"
        );
    }
}
