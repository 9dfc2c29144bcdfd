//! `warmset policies`: the catalog of policies, as all verbs read it.

use crate::Answer;
use crate::console::give;
use crate::options::Answered;
use analyze::policies::table::{self, Listed};
use model::Result;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  warmset policies                  what each does, its assignment and its tests
  warmset policies --words          one a line, as campaigns run them
  warmset policies --format json";

/// Options of `warmset policies`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only a word for each, one a line, that `simulate` and `run` take on machines with a shared
    /// cache
    #[arg(long)]
    words: bool,
    #[command(flatten)]
    answered: Answered,
}

#[derive(Serialize)]
struct Document {
    policies: Vec<Listed>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let policies = table::listed();
    if args.words {
        let words: String = policies.iter().map(|p| format!("{}\n", p.live)).collect();
        give(&words, args.answered.output.as_deref())?;
        return Ok(Answer::Yes);
    }
    let text: String = policies.iter().map(in_words).collect();
    args.answered.give(|_| text, &Document { policies })?;
    Ok(Answer::Yes)
}

fn in_words(row: &Listed) -> String {
    let or_none = |tests: &Option<String>| tests.clone().unwrap_or_else(|| "no test".to_owned());
    let mut text = format!("{}: {}\n", row.policy, row.summary);
    if !row.parameters.is_empty() {
        text += &format!("    parameters: {}\n", row.parameters);
    }
    text += &format!("    assignment: {}\n", row.assignment);
    text += &format!(
        "    hard: {}; soft: {}\n",
        or_none(&row.hard),
        or_none(&row.soft)
    );
    text
}
