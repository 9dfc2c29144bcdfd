//! Tests that may find out that this machine cannot run them. They are reported as ignored, with
//! the reason; none reads as a pass.
//!
//! A file of such tests has `harness = false` in its `Cargo.toml` and names its tests in
//! [`tests!`](crate::tests). A test returns nothing, or an [`Outcome`] whose error is the reason.
//! `make test` lists all reasons at its end and counts them.

use libtest_mimic::{Arguments, Completion, Trial};
use std::fmt;
use std::process::ExitCode;

/// Why a test could not run, or could not show all that it is there for.
#[derive(Debug)]
pub struct NotRun(String);

impl NotRun {
    /// This is the reason: what is missing, so that a reader knows what to change.
    pub fn because(reason: impl fmt::Display) -> Self {
        // A report has one line a test.
        NotRun(reason.to_string().replace('\n', " "))
    }
}

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a test returns that may find out that it cannot run. Defects are panics.
pub type Outcome = Result<(), NotRun>;

/// What a test function may return.
pub trait Report: Sized {
    /// The same as an outcome: a test that returns nothing could run.
    fn outcome(self) -> Outcome;

    /// The same for the test runner.
    fn completion(self) -> Completion {
        match self.outcome() {
            Ok(()) => Completion::Completed,
            Err(why) => Completion::ignored_with(why.0),
        }
    }
}

impl Report for () {
    fn outcome(self) -> Outcome {
        Ok(())
    }
}

impl Report for Outcome {
    fn outcome(self) -> Outcome {
        self
    }
}

/// A test by its name.
pub fn trial<R: Report>(name: &str, test: impl FnOnce() -> R + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || Ok(test().completion()))
}

/// Runs tests with the arguments of the command line, as the usual harness does.
pub fn run(trials: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs tests one after the other: each needs the machine, or a state of this process, for itself.
pub fn run_alone(trials: Vec<Trial>) -> ExitCode {
    let arguments = Arguments {
        test_threads: Some(1),
        ..Arguments::from_args()
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The `main` of a file of tests. With `alone:` in front they run one after the other; what stands
/// behind `first:` is done before any thread is started, and if it fails the tests have to say so.
#[macro_export]
macro_rules! tests {
    (first: $first:expr, alone: $($name:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            let _ = $first;
            $crate::run_alone(vec![$($crate::trial(stringify!($name), $name)),+])
        }
    };
    (alone: $($name:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::run_alone(vec![$($crate::trial(stringify!($name), $name)),+])
        }
    };
    ($($name:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::run(vec![$($crate::trial(stringify!($name), $name)),+])
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_could_not_run_is_ignored_and_says_why() {
        let reported = Err::<(), _>(NotRun::because("two\nlines")).completion();
        let Completion::Ignored { reason } = reported else {
            panic!("it counts as run")
        };
        assert_eq!(reason.as_deref(), Some("two lines"));
        assert!(matches!(Ok(()).completion(), Completion::Completed));
        assert!(matches!(().completion(), Completion::Completed));
    }
}
