//! Makes the page and its figures again from the files of a directory.

use crate::Choice;
use crate::pages::{self, Material};
use model::watch::Watch;
use model::{Error, Platform, Profile, Result, files};
use report::Figure;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What a report is made of, and where it goes. One of page and figures has to have a place.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory that `tour` or `measure` wrote.
    pub dir: Option<PathBuf>,
    /// Show this profile instead of the directory's.
    pub profile: Option<Choice<Profile>>,
    /// Where to write the page; `None`: index.html in the directory, unless only figures are asked
    /// for.
    pub output: Option<PathBuf>,
    /// Write every figure as an SVG file into this directory.
    pub figures: Option<PathBuf>,
    /// Write figures as PNG, too.
    pub png: bool,
    /// Write figures as PDF, too.
    pub pdf: bool,
}

/// Pixels of a PNG for each of the figure's: enough for print.
const PNG_SCALE: f64 = 3.0;

/// What was written. JSON: as `warmset report --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// The page.
    pub page: Option<PathBuf>,
    /// The files of figures.
    pub figures: Vec<PathBuf>,
    /// What was found, in sentences.
    pub findings: Vec<String>,
}

/// Makes the page and its figures.
///
/// # Errors
/// A directory or profile that is not there or not what it should be; nowhere to write to; a file
/// that cannot be written.
pub fn make(options: &Options, watch: &dyn Watch) -> Result<Written> {
    let material = material(options)?;
    // Before anything is judged or drawn.
    let page = match (&options.output, &options.dir, &options.figures) {
        (Some(path), _, _) => Some(path.clone()),
        (None, Some(dir), None) => Some(dir.join("index.html")),
        (None, _, Some(_)) => None,
        (None, None, None) => {
            return Err(Error::new("nowhere to write to").remedy(
                "name the page with `-o FILE`, or a directory for figures with `--figures DIR`",
            ));
        }
    };
    let mut made = pages::make(&material, watch)?;
    watch.finish();
    if let Some(dir) = &options.dir {
        made.page.next = pages::next(dir);
    }
    let mut figures = Vec::new();
    if let Some(dir) = &options.figures {
        for figure in &made.figures {
            figures.extend(write_figure(dir, figure, options)?);
        }
    }
    if let Some(path) = &page {
        files::write(path, report::page::page(&made.page))?;
    }
    Ok(Written {
        page,
        figures,
        findings: made.findings,
    })
}

fn write_figure(dir: &Path, figure: &Figure, options: &Options) -> Result<Vec<PathBuf>> {
    let name = file_name(&figure.id);
    let path = |ending: &str| dir.join(format!("{name}.{ending}"));
    let mut written = vec![path("svg")];
    files::write(&path("svg"), figure.to_svg())?;
    if options.pdf {
        files::write(&path("pdf"), figure.to_pdf()?)?;
        written.push(path("pdf"));
    }
    if options.png {
        files::write(&path("png"), figure.to_png(PNG_SCALE)?)?;
        written.push(path("png"));
    }
    Ok(written)
}

/// A figure's name as that of a file: names of platforms and studies come from files and may hold
/// anything.
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

fn material(options: &Options) -> Result<Material> {
    let mut material = match &options.dir {
        Some(file) if file.is_file() => {
            return Err(Error::new("this is a file, and a report is made from a directory")
                .at(file.display())
                .remedy("name the directory that it is in; a profile alone is shown with `--profile FILE`"));
        }
        Some(dir) if !dir.is_dir() => {
            return Err(Error::new("there is no such directory")
                .at(dir.display())
                .remedy(
                    "name the directory that `warmset tour` or `warmset measure cpmd -o` wrote",
                ));
        }
        Some(dir) => pages::read(dir)?,
        None => Material::default(),
    };
    if let Some(profile) = &options.profile {
        material.profile = Some(profile.profile()?);
        material.platform = match profile {
            Choice::Named(name) => Platform::builtin(name).ok(),
            Choice::Value(_) => None,
        };
        material.samples.clear();
        material.validated = None;
    }
    if material.profile.is_none() && material.platform.is_none() {
        let error = match &options.dir {
            Some(dir) => {
                Error::new(format!("there is no {} to report on", pages::PROFILE)).at(dir.display())
            }
            None => Error::new("there is nothing to report on"),
        };
        return Err(error.remedy(
            "measure with `warmset measure cpmd -o DIR`, or name a profile with `--profile`",
        ));
    }
    Ok(material)
}
