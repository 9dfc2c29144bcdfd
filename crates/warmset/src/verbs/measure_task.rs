//! `warmset measure task`: how long a program executes, in ordinary memory and in colors.

use crate::console::Console;
use crate::options::Answered;
use crate::{Answer, command};
use app::measure::task::{self, Options, Times};
use model::table::{Look, Table};
use model::{Bytes, Duration, Result};
use std::fmt::Write;

pub const HELP: &str = "\
The program runs again and again as it would alone; a run is a job. What counts is the time that it, and what it starts and \
waits for, takes of processors: not while others have the processor, but with what they do to its caches. Runs take turns: \
with nothing beside them; with a flood on every other processor, which walks through memory larger than all caches; with a flood on \
the same processor, which preempts the program; moved from one processor to the next.

With --colors it runs in ordinary memory and, as by `warmset color exec`, in the first 1, 2, … page colors of the cache. What \
starting in colors takes is told beside it, by a program that does nothing: it is in each of these times.

The last line is what a task may say (`wcet = …`): the longest of the runs with nothing or with a flood beside them. What preemptions and \
migrations cost is not in it: that is charged by a profile (`warmset measure cpmd`). The longest that was seen bounds no run that was \
not: input that takes longer, or a rarer coincidence, is not in it.

What the program prints is not shown; its errors are. A run that fails ends the measurement.

Examples:
  warmset measure task --runs 100 -- ./decode frame.bin
  warmset measure task --colors 1,2,4,8 -- ./decode frame.bin";

/// Options of `warmset measure task`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Run it in so many page colors as well, such as 1,2,4,8 [default: in ordinary memory only]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    colors: Vec<u16>,
    /// How many runs of each kind
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: u32,
    /// How often the program is moved where it is moved
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    every: Duration,
    /// How much memory to sort by color [default: 64MiB; up to 256MiB where the program's code and
    /// data are known to need it]
    #[arg(long, value_name = "SIZE", requires = "colors")]
    memory: Option<Bytes>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<String>,
    #[command(flatten)]
    answered: Answered,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let options = Options {
        colors: args.colors,
        runs: args.runs,
        every: args.every,
        memory: args.memory,
        command: command::whole(),
        ..Options::new(args.program)
    };
    let console = Console::new()?;
    let found = task::measure(&options, &console)?;
    args.answered.give(|look| table(&found, look), &found)?;
    found.complete()?;
    Ok(Answer::Yes)
}

fn table(found: &Times, look: Look) -> String {
    use measure::task::Beside;
    let mut text = format!(
        "{}: time of processors that a run takes, on processor {}\n\n",
        found.program.join(" "),
        found.cpu
    );
    let mut table = Table::new(2, 0);
    table.row([
        "memory",
        "beside",
        "runs",
        "least",
        "median",
        "most",
        "lost its processor",
        "moved",
    ]);
    for row in &found.rows {
        let memory = match row.colors {
            None => "ordinary".to_owned(),
            Some(1) => "1 color".to_owned(),
            Some(n) => format!("{n} colors"),
        };
        let beside = match row.beside {
            Beside::Alone => "nothing",
            Beside::Flooded => "a flood on other processors",
            Beside::Preempted => "a flood on the same processor",
            Beside::Migrated => "moved between processors",
        };
        table.row([
            memory,
            beside.to_owned(),
            row.runs.to_string(),
            row.min.rounded().to_string(),
            row.median.rounded().to_string(),
            row.max.rounded().to_string(),
            row.lost.to_string(),
            row.moves.to_string(),
        ]);
    }
    text += &table.text(look);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\nlost its processor, moved: how often in the median run."
    );
    if let Some(start) = found.start {
        let _ = writeln!(
            text,
            "Of each run in colors about {} are for starting in them.",
            start.rounded()
        );
    }
    if !found.is_colored {
        text.push_str(
            "Colored memory ran out in some runs, which went on in ordinary memory: give more by `--memory`.\n",
        );
    }
    let left_out: Vec<String> = found.left_out().iter().map(u16::to_string).collect();
    if !left_out.is_empty() {
        let _ = writeln!(
            text,
            "Left out below: {} colors, with which a run may take longer than in ordinary memory.",
            left_out.join(", ")
        );
    }
    let _ = writeln!(
        text,
        "\nwcet = {}\n\nThese are the longest runs that were seen with nothing or a flood beside them. If the \
         runs of a row are alike and do not depend on each other, then with 95 % confidence at most {:.1} % of them \
         take longer; nothing bounds the longest that there is.",
        found.key(),
        found.beyond * 100.0
    );
    text
}
