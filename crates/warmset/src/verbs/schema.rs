//! `warmset schema`: the JSON Schemas of all documents, as the binary knows them.

use crate::Answer;
use crate::console::{give, print, show};
use app::schemas;
use model::{Result, files};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  warmset schema
  warmset schema check
  warmset schema check -o check.schema.json
  warmset schema -o schemas                 all of them: they refer to one another

`warmset study schema` prints the schema of study files.";

/// Options of `warmset schema`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The document, such as `check` or `study-results` [default: list all]
    document: Option<String>,
    /// Write the schema to this file; without a document: all of them into this directory
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match (args.document, args.output) {
        (Some(name), output) => {
            let schema = schemas::find(&name)?;
            if let Some(file) = &output {
                files::can_be_written(file).map_err(|e| e.at("--output"))?;
            }
            give(schema, output.as_deref())?;
        }
        (None, Some(dir)) => {
            schemas::write_all(&dir)?;
            let (count, dir) = (schemas::SCHEMAS.len(), dir.display());
            print(&format!("{count} schemas in {dir}\n"))?;
        }
        (None, None) => {
            let line = |row: schemas::Row| format!("{:26}  {}\n", row.name, row.title);
            show(&schemas::list().into_iter().map(line).collect::<String>())?;
        }
    }
    Ok(Answer::Yes)
}
