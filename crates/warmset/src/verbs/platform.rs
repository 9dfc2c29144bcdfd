//! `warmset platform`: processors, caches and what this machine permits; or a built-in platform, or one from a file.

use crate::Answer;
use crate::console::{self, Format};
use crate::options::{On, Printed, new_file};
use model::{Error, Platform, Result, builtin, files, platformfile};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `warmset platform`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Args {
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    printed: Printed,
    /// Write a picture (`.svg`) or a description that can be edited and read again (`.toml`)
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

const HELP: &str = "\
Examples:
  warmset platform                                   what this machine is and permits
  warmset platform -o machine.svg                    its picture
  warmset platform --platform list                   the names of the built-in ones
  warmset platform --platform xeon-l7455             the machine of the delay tables
  warmset platform -o board.toml                     its description, to be read with --platform board.toml
  warmset platform --format json | jq .capabilities";

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    if args.on.name() == Some("list") {
        return list(&args);
    }
    match args.on.given()? {
        Some(platform) => {
            write(&args, &platform)?;
            match args.printed.format() {
                Format::Table => console::show(&machine::render::platform_text(&platform))?,
                Format::Json => console::print_json(&Described { platform: &platform })?,
            }
            Ok(Answer::Yes)
        }
        None => {
            let machine = machine::this_machine()?;
            write(&args, &machine.platform)?;
            match args.printed.format() {
                Format::Table => console::show(&machine::render::machine_text(&machine))?,
                Format::Json => console::print_json(&machine)?,
            }
            Ok(Answer::Yes)
        }
    }
}

/// A platform that is not this machine: facts and capabilities are this machine's alone.
#[derive(Serialize)]
struct Described<'a> {
    platform: &'a Platform,
}

fn list(args: &Args) -> Result<Answer> {
    #[derive(Serialize)]
    struct Row {
        name: &'static str,
        about: &'static str,
    }
    let mut rows: Vec<Row> = builtin::PLATFORMS
        .iter()
        .map(|b| Row {
            name: b.name,
            about: b.about,
        })
        .collect();
    rows.push(Row {
        name: builtin::SYMMETRIC,
        about: "N identical processors, no caches described",
    });
    match args.printed.format() {
        Format::Json => {
            #[derive(Serialize)]
            struct List {
                platforms: Vec<Row>,
            }
            console::print_json(&List { platforms: rows })?;
        }
        Format::Table => {
            let lines: Vec<String> = rows
                .iter()
                .map(|r| format!("{:14} {}\n", r.name, r.about))
                .collect();
            console::show(&lines.concat())?;
        }
    }
    Ok(Answer::Yes)
}

fn write(args: &Args, platform: &Platform) -> Result<()> {
    let Some(path) = &args.output else {
        return Ok(());
    };
    let text = match path.extension().and_then(|e| e.to_str()) {
        Some("svg") => report::platform::svg(platform),
        Some("toml") => platformfile::to_toml(platform),
        _ => {
            return Err(Error::new("neither a picture nor a description by its name")
                .at(path.display())
                .remedy("end the name in `.svg` or `.toml`"));
        }
    };
    files::write(path, text)?;
    // Standard output holds the platform itself.
    console::note(&format!("wrote {}", path.display()));
    Ok(())
}
