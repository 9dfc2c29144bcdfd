//! `warmset completions`: what a shell needs to complete verbs, options and their values, from the
//! same definitions as the help.

use super::Cli;
use crate::Answer;
use crate::console::give;
use crate::options::new_file;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use model::{Error, Result};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  warmset completions bash -o /usr/share/bash-completion/completions/warmset
  warmset completions zsh -o /usr/local/share/zsh/site-functions/_warmset
  warmset completions fish -o ~/.config/fish/completions/warmset.fish
  source <(warmset completions bash)       for this shell alone";

/// Options of `warmset completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
    /// Write the script to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let shell = args
        .shell
        .parse::<Shell>()
        .map_err(|e| Error::new(e).at("the shell"))?;
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "warmset", &mut script);
    let script =
        String::from_utf8(script).map_err(|e| Error::new(format!("the script is no text: {e}")))?;
    give(&script, args.output.as_deref())?;
    Ok(Answer::Yes)
}
