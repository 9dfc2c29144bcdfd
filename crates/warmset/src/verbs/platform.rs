//! `warmset platform`: processors, caches and what this machine permits; or a built-in platform, or
//! one from a file.

use crate::Answer;
use crate::console::{self, Format};
use crate::options::{On, Printed, new_file};
use app::platform::{Described, describe};
use model::Result;
use std::path::PathBuf;

/// Options of `warmset platform`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Args {
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    printed: Printed,
    /// Draw processors and caches, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    /// Write the description, which can be edited and read again, to this file (`.toml`)
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

const HELP: &str = "\
Examples:
  warmset platform                                   what this machine is and permits
  warmset platform --picture machine.svg             its picture
  warmset platform --platform list                   the names of the built-in ones
  warmset platform --platform xeon-l7455             the machine of the delay tables
  warmset platform -o board.toml                     its description, to be read with --platform board.toml
  warmset platform --format json | jq .capabilities";

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    if args.on.name() == Some("list") {
        return list(&args);
    }
    let described = describe(&args.on.choice())?;
    if let Some(path) = &args.picture {
        described.draw(path)?;
    }
    if let Some(path) = &args.output {
        described.write(path)?;
    }
    for path in args.picture.iter().chain(&args.output) {
        // Standard output holds the platform itself.
        console::note(&format!("wrote {}", path.display()));
    }
    match (args.printed.format(), &described) {
        (Format::Json, _) => console::print_json(&described)?,
        (Format::Table, Described::Platform { platform }) => {
            console::show(&machine::render::platform_text(platform))?;
        }
        (Format::Table, Described::Machine(machine)) => {
            console::show(&machine::render::machine_text(machine))?;
        }
    }
    Ok(Answer::Yes)
}

fn list(args: &Args) -> Result<Answer> {
    let list = app::platform::list();
    match args.printed.format() {
        Format::Json => console::print_json(&list)?,
        Format::Table => {
            let rows = list.platforms.iter();
            let lines: Vec<String> = rows
                .map(|r| format!("{:14} {}\n", r.name, r.about))
                .collect();
            console::show(&lines.concat())?;
        }
    }
    Ok(Answer::Yes)
}
