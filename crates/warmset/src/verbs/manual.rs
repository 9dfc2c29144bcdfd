//! `warmset manual`: a manual page for the command and one for each verb (`warmset-check.1`), from
//! the same definitions as the help.

use super::Cli;
use crate::Answer;
use crate::console::print;
use crate::options::directory;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use model::{Error, Result, files};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  warmset manual -o man1                 then: man -l man1/warmset-check.1
  warmset manual -o /usr/local/share/man/man1";

/// Options of `warmset manual`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The directory for the pages; it is made if need be
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: PathBuf,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    files::make_dir(&args.output)?;
    let mut command = Cli::command();
    command.build();
    let written = write_pages(&command, "warmset", &args.output)?;
    let dir = args.output.display();
    print(&format!(
        "{written} manual pages in {dir}; read one: man -l {dir}/warmset.1\n"
    ))?;
    Ok(Answer::Yes)
}

/// Writes the page of a command and of all commands below it, and returns how many these are.
fn write_pages(command: &Command, name: &str, dir: &Path) -> Result<usize> {
    let file = dir.join(format!("{name}.1"));
    let mut page = Vec::new();
    Man::new(command.clone())
        .title(name)
        .section("1")
        .render(&mut page)
        .map_err(|e| Error::io(&file, "make", &e))?;
    files::write(&file, &page)?;
    let mut written = 1;
    // The words `help VERB` are no verb of their own.
    for verb in command
        .get_subcommands()
        .filter(|verb| verb.get_name() != "help")
    {
        written += write_pages(verb, &format!("{name}-{}", verb.get_name()), dir)?;
    }
    Ok(written)
}
