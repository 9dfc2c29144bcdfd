//! `warmset check --batch`: many task sets from a file or a pipe, one verdict line each (DESIGN, "Task sets").

use crate::{Answer, batch};
use analyze::{TestInfo, registry};
use model::Result;
use model::taskfile::BatchSet;
use std::path::Path;

/// Options of the batch mode.
#[derive(clap::Args, Debug)]
pub struct BatchArgs {
    /// Judge every task set of a batch file, one JSON line each; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "tasks", "platform", "processors", "profile", "cpmd", "hard", "soft", "policy", "explain"
    ])]
    pub batch: Option<String>,
    /// With --batch: the tests to run, such as `GFB,BAK,BCL` [default: all]
    #[arg(long, value_name = "NAMES")]
    pub tests: Option<String>,
}

/// What `--help` says about the batch mode.
pub const HELP: &str = "\
Batch mode: each line of the file is a task set with all times in integer microseconds,
    {\"id\": 7, \"m\": 4, \"tasks\": [{\"wcet\": 4000, \"period\": 33000, \"deadline\": 33000}]}
and each is answered in order by a line such as
    {\"id\":7,\"verdicts\":{\"GFB\":true,\"BAK\":false}}
`true`: the test shows that the guarantee holds; `false`: it does not show it, which refutes the set only where \
the test is exact (docs/tests.md). A test that does not apply to the set answers null. A bad line ends the run with status 2 and its number; the answers \
of the lines before it are already printed. With -o the file appears only if every line was answered.

    warmset check --batch sets.jsonl --tests GFB,BAK,BCL";

/// Answers every line of `batch` on standard output, or into `output`.
///
/// # Errors
/// An unknown test; what [`batch::run`] cannot do.
pub fn run(batch: &str, args: &BatchArgs, output: Option<&Path>) -> Result<Answer> {
    let tests: Vec<&TestInfo> = match args.tests.as_deref() {
        Some(names) => registry::find_list(names).map_err(|e| e.at("--tests"))?,
        None => registry::ALL.iter().collect(),
    };
    batch::run("Judging task sets", batch, output, |set| Ok(judge(set, &tests)))
}

/// The answer to one set.
fn judge(batch: &BatchSet, tests: &[&TestInfo]) -> String {
    let mut answer = format!("{{\"id\":{},\"verdicts\":{{", batch.id);
    for (index, test) in tests.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let verdict = match test.decide_set(&batch.set, batch.m) {
            Ok(true) => "true",
            Ok(false) => "false",
            Err(_) => "null",
        };
        answer.push_str(&format!("{comma}\"{}\":{verdict}", test.name));
    }
    answer.push_str("}}");
    answer
}
