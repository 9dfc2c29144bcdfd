//! The binary as its users call it: arguments in, exit status and texts out.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The command that the tests of its crate call, as a [`Command`] without arguments.
#[macro_export]
macro_rules! warmset {
    () => {
        std::process::Command::new(env!("CARGO_BIN_EXE_warmset"))
    };
}

/// What came of a call.
#[derive(Debug)]
pub struct Called {
    /// The exit status.
    pub status: i32,
    /// All of standard output.
    pub out: String,
    /// All of standard error.
    pub err: String,
}

impl Called {
    /// Calls a command and waits for its end.
    ///
    /// # Panics
    /// If it cannot be started, is ended by a signal, or writes what is not UTF-8.
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the command starts");
        Called::from(output)
    }

    /// Calls a command in a directory, with arguments between blanks.
    ///
    /// # Panics
    /// As [`Called::of`].
    pub fn within(mut command: Command, dir: &Path, arguments: &str) -> Self {
        Called::of(command.current_dir(dir).args(arguments.split_whitespace()))
    }

    /// Standard output of a call that must have ended with this status.
    ///
    /// # Panics
    /// If it ended with another status.
    pub fn with_status(self, status: i32) -> String {
        assert_eq!(self.status, status, "{}{}", self.out, self.err);
        self.out
    }

    /// Standard output of a call that answers yes or no.
    ///
    /// # Panics
    /// If it ended with another status than 0 or 1.
    pub fn answer(self) -> String {
        assert!(matches!(self.status, 0 | 1), "{}{}", self.out, self.err);
        self.out
    }

    /// The message of a call that must have been refused: status 2, one line, and no result.
    ///
    /// # Panics
    /// If it was not refused so.
    pub fn refusal(self) -> String {
        assert_eq!(self.status, 2, "{}{}", self.out, self.err);
        assert_eq!(self.out, "", "a refusal prints no result");
        assert_eq!(self.err.trim_end().lines().count(), 1, "{}", self.err);
        self.err
    }

    /// Standard output as a JSON document.
    ///
    /// # Panics
    /// If it is none.
    pub fn json(&self) -> Value {
        let Called { out, err, .. } = self;
        serde_json::from_str(out).unwrap_or_else(|e| panic!("{e}: {out} {err}"))
    }
}

impl From<Output> for Called {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("texts are UTF-8");
        let (out, err) = (text(output.stdout), text(output.stderr));
        let Some(status) = output.status.code() else {
            panic!("{}: {out} {err}", output.status);
        };
        Called { status, out, err }
    }
}
