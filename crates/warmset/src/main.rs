//! The command line of Warmset: one verb a file in [`verbs`], and what they share.
//!
//! Exit status: 0 it worked or the answer is yes; 1 the answer is no; 2 it could not be done.

mod batch;
mod console;
mod examples;
mod pages;
mod verbs;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// What a verb answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It worked, or the answer is yes.
    Yes,
    /// The answer is no: not schedulable, an invariant broken, a self-test failed.
    No,
}

fn main() -> ExitCode {
    let cli = match verbs::Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage(&e),
    };
    match verbs::run(cli.verb) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(e) => {
            // A closed standard error leaves nowhere to say it; the status still does.
            let _ = writeln!(std::io::stderr(), "warmset: {e}");
            ExitCode::from(2)
        }
    }
}

/// Help and version as they are; a usage error as one sentence.
fn usage(e: &clap::Error) -> ExitCode {
    if !e.use_stderr() {
        // `--help` and `--version`: a closed pipe is no failure.
        let _ = e.print();
        return ExitCode::SUCCESS;
    }
    let text = e.render().to_string();
    if e.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = write!(std::io::stderr(), "{text}");
        return ExitCode::from(2);
    }
    let sentence = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:"))
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect::<Vec<_>>()
        .join("; ");
    let sentence = sentence
        .trim_start_matches("error: ")
        .replace(":; ", ": ")
        .replace("tip: ", "");
    let _ = writeln!(std::io::stderr(), "warmset: {sentence}; see `warmset --help`");
    ExitCode::from(2)
}
