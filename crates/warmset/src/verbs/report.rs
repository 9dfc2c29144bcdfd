//! `warmset report`: makes the page and its figures again from the files of a directory.

use crate::Answer;
use crate::console::{Console, Format, print, print_json};
use crate::options::{Printed, directory, new_file};
use crate::pages::{self, Material};
use model::watch::Watch as _;
use model::{Error, Platform, Profile, Result, files, profilefile};
use report::Figure;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Options of `warmset report`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  warmset report warmset-report                          make warmset-report/index.html again
  warmset report warmset-report --figures plots --png    its figures as files, for a paper
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
    #[command(flatten)]
    pub printed: Printed,
}

/// Pixels of a PNG for each of the figure's: enough for print.
const PNG_SCALE: f64 = 3.0;

/// What was written, for scripts.
#[derive(Serialize)]
struct Written {
    page: Option<PathBuf>,
    figures: Vec<PathBuf>,
    findings: Vec<String>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let material = material(&args)?;
    let console = Console::new()?;
    let mut made = pages::make(&material, &console)?;
    console.finish();
    if let Some(dir) = &args.dir {
        made.page.next = super::tour::next(dir);
    }
    let page = match (&args.output, &args.dir, &args.figures) {
        (Some(path), _, _) => Some(path.clone()),
        (None, Some(dir), None) => Some(dir.join("index.html")),
        (None, _, Some(_)) => None,
        (None, None, None) => {
            return Err(Error::new("nowhere to write to")
                .remedy("name the page with `-o FILE`, or a directory for figures with `--figures DIR`"));
        }
    };
    let mut figures = Vec::new();
    if let Some(dir) = &args.figures {
        for figure in &made.figures {
            figures.extend(write_figure(dir, figure, args.png)?);
        }
    }
    if let Some(path) = &page {
        files::write(path, report::page::page(&made.page))?;
    }
    let written = Written {
        page,
        figures,
        findings: made.findings.clone(),
    };
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

fn write_figure(dir: &Path, figure: &Figure, png: bool) -> Result<Vec<PathBuf>> {
    let name = file_name(&figure.id);
    let svg = dir.join(format!("{name}.svg"));
    files::write(&svg, figure.to_svg())?;
    let mut written = vec![svg];
    if png {
        let path = dir.join(format!("{name}.png"));
        files::write(&path, figure.to_png(PNG_SCALE)?)?;
        written.push(path);
    }
    Ok(written)
}

/// A figure's name as that of a file: names of platforms and studies come from files and may hold anything.
fn file_name(id: &str) -> String {
    id.chars()
        .map(|c| {
            if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        })
        .collect()
}

fn material(args: &Args) -> Result<Material> {
    let mut material =
        match &args.dir {
            Some(file) if file.is_file() => {
                return Err(Error::new("this is a file, and a report is made from a directory")
                .at(file.display())
                .remedy("name the directory that it is in; a profile alone is shown with `--profile FILE`"));
            }
            Some(dir) if !dir.is_dir() => {
                return Err(Error::new("there is no such directory")
                    .at(dir.display())
                    .remedy("name the directory that `warmset tour` or `warmset measure cpmd -o` wrote"));
            }
            Some(dir) => pages::read(dir)?,
            None => Material::default(),
        };
    if let Some(name) = &args.profile {
        (material.profile, material.platform) = if Path::new(name).is_file() {
            let path = Path::new(name);
            let profile = profilefile::from_toml(&files::read_text(path)?).map_err(|e| e.at(name))?;
            (Some(profile), None)
        } else {
            (Some(Profile::builtin(name)?), Platform::builtin(name).ok())
        };
        material.samples.clear();
    }
    if material.profile.is_none() && material.platform.is_none() {
        let error = match &args.dir {
            Some(dir) => Error::new(format!("there is no {} to report on", pages::PROFILE)).at(dir.display()),
            None => Error::new("there is nothing to report on"),
        };
        return Err(
            error.remedy("measure with `warmset measure cpmd -o DIR`, or name a profile with `--profile`")
        );
    }
    Ok(material)
}
