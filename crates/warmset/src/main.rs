//! The command line of Warmset: one verb a file in [`verbs`], and what they share.
//!
//! Exit status: 0 it worked or the answer is yes; 1 the answer is no; 2 it could not be done; 130
//! (143) it was stopped by Ctrl-C (SIGTERM), and what was done by then is kept.

#![forbid(unsafe_code)]

mod command;
mod console;
mod options;
mod scheduling_options;
mod verbs;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use model::shown;
use std::io::Write;
use std::process::ExitCode;

/// What a verb answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It worked, or the answer is yes.
    Yes,
    /// The answer is no: not schedulable, an invariant broken, a self-test failed.
    No,
    /// A program that was run in our place ended with this status.
    Program(u8),
}

/// Where memory runs out, one sentence and status 2.
#[global_allocator]
static ALLOCATOR: machine::allocator::Answering = machine::allocator::Answering;

fn main() -> ExitCode {
    // Before anything needs more of it.
    let provided = machine::stack::provide()
        .and_then(|()| machine::allocator::provide())
        .and_then(|()| console::answer_to_full_files());
    match provided {
        Ok(()) => answer(),
        Err(e) => failed(&e),
    }
}

/// Runs the verb of the command line. A function of its own: its variables are on the stack only
/// when that may grow.
#[inline(never)]
fn answer() -> ExitCode {
    let cli = match verbs::Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage(&e),
    };
    match verbs::run(cli.verb) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Program(status)) => ExitCode::from(status),
        Err(e) => failed(&e),
    }
}

/// Says what went wrong; the status that tells so.
fn failed(e: &model::Error) -> ExitCode {
    say(&format!("warmset: {e}\n"));
    ExitCode::from(console::stopped_status().unwrap_or(2))
}

/// Says why the program ends: nothing that goes wrong at its end adds another sentence.
fn say(sentence: &str) {
    machine::allocator::conclude();
    // A closed standard error leaves nowhere to say it; the status still does.
    let _ = std::io::stderr().write_all(sentence.as_bytes());
}

/// Help and version as they are; a usage error as one sentence.
fn usage(e: &clap::Error) -> ExitCode {
    if !e.use_stderr() {
        // `--help` and `--version`: a closed pipe is no failure.
        let printed = e.print().and_then(|()| std::io::stdout().flush());
        return match printed {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                failed(&model::Error::io("standard output", "write", &e))
            }
            _ => ExitCode::SUCCESS,
        };
    }
    let text = e.render().to_string();
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        say(&text);
        return ExitCode::from(2);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let sentence = negative(e, &words).unwrap_or_else(|| {
        let lines: Vec<&str> = text
            .lines()
            .take_while(|line| !line.starts_with("Usage:"))
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
            // How to pass an option as a value is never what was meant.
            .filter(|line| !line.starts_with("tip: to pass"))
            .collect();
        lines
            .join("; ")
            .trim_start_matches("error: ")
            .replace(":; ", ": ")
            .replace("tip: ", "")
    });
    let help = help_of(&words);
    let sentence = shown::sentence(&sentence);
    say(&format!("warmset: {sentence}; see `{help} --help`\n"));
    ExitCode::from(2)
}

/// A value such as `-1` looks like an option to the parser: said as what it is, with the option
/// that it was meant for.
fn negative(e: &clap::Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(argument)) = e.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_number = |text: &str| {
        text.strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    };
    if e.kind() != ErrorKind::UnknownArgument || !is_number(argument) {
        return None;
    }
    // The parser names the first letter only, as if it were a short option.
    let at = words
        .iter()
        .position(|w| w.starts_with(argument.as_str()))?;
    let value = &words[at];
    match at.checked_sub(1).map(|before| &words[before]) {
        Some(option) if option.starts_with('-') && !is_number(option) => Some(format!(
            "`{option}` takes no negative number, and `{value}` is one"
        )),
        _ => Some(format!(
            "a negative number such as `{value}` has no meaning here"
        )),
    }
}

/// The verb that these words name, as far as they name one: whose help is worth reading.
fn help_of(words: &[String]) -> String {
    let mut name = "warmset".to_owned();
    let mut command = verbs::Cli::command();
    for word in words {
        let Some(next) = command.find_subcommand(word).cloned() else {
            break;
        };
        name = format!("{name} {word}");
        command = next;
    }
    name
}
