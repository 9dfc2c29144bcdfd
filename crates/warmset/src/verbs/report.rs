//! `warmset report`: makes the page and its figures again from the files of a directory.

use crate::Answer;
use crate::console::{Console, Format, print, print_json};
use crate::options::{Printed, directory, new_file};
use app::Choice;
use app::report::Options;
use model::Result;
use std::path::PathBuf;

/// Options of `warmset report`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  warmset report warmset-report                          make warmset-report/index.html again
  warmset report warmset-report --figures plots --pdf    its figures as files, for a paper
  warmset report --profile xeon-l7455 --figures plots    the figures of a built-in profile

A directory may hold platform.toml, profile.toml and samples.parquet; what is missing is left out.")]
pub struct Args {
    /// Directory that `warmset tour` or `warmset measure cpmd -o` wrote
    pub dir: Option<PathBuf>,
    /// Show this profile instead of the directory's: a built-in one, or a file
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Where to write the page [default: index.html in DIR, unless only figures are asked for]
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    pub output: Option<PathBuf>,
    /// Write every figure as an SVG file into this directory
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub figures: Option<PathBuf>,
    /// Write figures as PNG too
    #[arg(long, requires = "figures")]
    pub png: bool,
    /// Write figures as PDF too, whose text stays text
    #[arg(long, requires = "figures")]
    pub pdf: bool,
    #[command(flatten)]
    pub printed: Printed,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let options = Options {
        dir: args.dir,
        profile: args.profile.map(Choice::Named),
        output: args.output,
        figures: args.figures,
        png: args.png,
        pdf: args.pdf,
    };
    let console = Console::new()?;
    let written = app::report::make(&options, &console)?;
    match args.printed.format() {
        Format::Json => print_json(&written)?,
        Format::Table => {
            let text: String = written
                .page
                .iter()
                .chain(&written.figures)
                .map(|path| format!("wrote {}\n", path.display()))
                .collect();
            print(&text)?;
        }
    }
    Ok(Answer::Yes)
}
