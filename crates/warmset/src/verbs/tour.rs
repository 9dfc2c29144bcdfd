//! `warmset tour`: looks at this machine, measures it, judges two examples and a study with what it
//! found, and writes the report.

use crate::console::{self, Console, Format};
use crate::options::{On, Printed, Seed, directory};
use crate::{Answer, command};
use app::tour::{self, Found, Options};
use app::{Choice, pages};
use model::Result;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  warmset tour                          takes about two minutes; real-time rights (root) make it more exact
  warmset tour -o my-board --sets 1000  more task sets in the studies
  warmset tour --long                   about five minutes, as root: also what scheduling costs, and sets run for real
  warmset report my-board               make the page again from the files

Stages: the platform; its cache delays (a quick measurement); two examples judged with them; the weighted schedulability \
of 000, Fig. 5, and the same for this machine; the page. Ctrl-C ends the tour and reports on what is done by then; the \
same command goes on.

\
--long: also the overheads of scheduling (a quick measurement), which the examples are then charged, and 20 sets run for \
real and compared with what analysis and simulation say of them (`warmset validate`). What is complete in DIR is kept.";

/// Options of `warmset tour`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Directory for everything that the tour finds
    #[arg(short, long, value_name = "DIR", default_value = "warmset-report", value_parser = directory)]
    output: PathBuf,
    /// Do not measure: use this profile, a built-in one or a file
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    on: On,
    /// Also measure what scheduling costs here (three minutes), and run 20 task sets for real and
    /// compare (a minute); needs the right to real-time priorities
    #[arg(long)]
    long: bool,
    /// Task sets for each utilization cap of a study
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    sets: u32,
    #[command(flatten)]
    seed: Seed,
    #[command(flatten)]
    printed: Printed,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let options = Options {
        output: args.output,
        profile: args.profile.map(Choice::Named),
        on: args.on.choice(),
        long: args.long,
        sets: args.sets,
        seed: args.seed.seed,
    };
    let console = Console::new()?;
    let found = tour::tour(&options, &console)?;
    match args.printed.format() {
        Format::Json => console::print_json(&found)?,
        Format::Table => console::show(&closing(&found, &options.output))?,
    }
    found.complete()?;
    Ok(Answer::Yes)
}

/// What stands at the end: where the report is, and what to try next.
fn closing(found: &Found, dir: &Path) -> String {
    let mut text = format!(
        "\nThe report is {}: open it in a browser.\n",
        found.page.display()
    );
    if !found.stopped {
        text += "\nTry next:\n";
        let program = command::program();
        for (command, about) in pages::next(dir) {
            text += &format!(
                "  {}\n      {about}\n",
                command.replacen("warmset", &program, 1)
            );
        }
    }
    text
}
