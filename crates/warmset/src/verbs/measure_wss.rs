//! `warmset measure wss`: the working set of one program.

use crate::console::Console;
use crate::options::Answered;
use crate::{Answer, command};
use app::measure::wss::{self, Options, WorkingSet};
use model::table::{Look, Table};
use model::{Duration, Result};
use std::fmt::Write;

pub const HELP: &str = "\
The program runs as it would alone; what it prints goes to standard error. In each window the kernel notes which pages it \
touches (/proc/PID/clear_refs and smaps). The working set is the most memory of its own (heap, stacks) that was touched in a \
window other than the first, in which the program is loaded; where that takes longer, `--skip` leaves more of it out. Of its code \
and libraries an upper bound is told beside it.

A page counts in whole, whatever part of it is used: an upper bound of the lines that a cache would hold. What the kernel does for \
the program and other processes that it starts do not count. A window that the program does not live through is left out. The \
program gets no large pages.

Examples:
  warmset measure wss --every 33ms -- ./decode clip.mkv
  warmset measure wss --for 2s --format json -- dd if=/dev/zero of=/dev/null bs=1M";

/// Options of `warmset measure wss`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// How long a window is: such as the period of the program's jobs
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    every: Duration,
    /// For how long it is measured at most; the program is then told to end [default: until it ends]
    #[arg(long = "for", value_name = "TIME")]
    most: Option<Duration>,
    /// For how long the program loads: windows that begin earlier are left out, and the first one
    /// in any case
    #[arg(long, value_name = "TIME", default_value = "0s")]
    skip: Duration,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<String>,
    #[command(flatten)]
    answered: Answered,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let options = Options {
        every: args.every,
        most: args.most,
        skip: args.skip,
        command: command::whole(),
        ..Options::new(args.program)
    };
    let console = Console::new()?;
    let found = wss::measure(&options, &console)?;
    args.answered.give(|look| table(&found, look), &found)?;
    found.complete()?;
    Ok(Answer::Yes)
}

fn table(found: &WorkingSet, look: Look) -> String {
    let mut text = format!(
        "{}: pages touched in {} windows of {}, behind {} in which it is loaded\n\n",
        found.program.join(" "),
        found.windows.len() - found.loading,
        found.every,
        found.loading
    );
    let mut table = Table::new(1, 0);
    table.row(["", "touched"]);
    for (what, size) in [
        ("memory of its own, the most in a window", found.wss),
        ("the most in the second half of them", found.later),
        ("the median window", found.median),
        ("mapped files (code, libraries), at most", found.files),
    ] {
        table.row([what.to_owned(), size.to_string()]);
    }
    text += &table.text(look);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\na page of {} counts in whole; so a task says `wss = \"{}\"`",
        found.page, found.wss
    );
    if found.may_hold_loading() {
        text +=
            "the most was touched early: if the program was loading, leave that out (`--skip`)\n";
    }
    match (found.status, found.signal) {
        (Some(0), _) | (None, None) => {}
        (Some(status), _) => {
            let _ = writeln!(text, "the program ended with status {status}");
        }
        (None, Some(signal)) => {
            let _ = writeln!(text, "the program was ended by signal {signal}");
        }
    }
    text
}
