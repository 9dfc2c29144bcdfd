//! The charts of a study as files: W, and S(U) at some points of the axis (000 §5, Fig. 5; 002 §6.3
//! and §6.4), as SVG, PDF and PNG, in the form that a paper asks for.

use crate::study::{crossings, curves, swept};
use model::{Error, Result, files};
use report::Figure;
use report::schedulability::{self, Curve, Form, Utilization, Words};
pub use report::style::Family;
use report::style::{Print, SMALL};
use std::path::{Path, PathBuf};
use study::Results;

/// How charts are drawn and written.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Also S(U) at these values of the axis, such as `500us` or `64KiB`; at the first where there
    /// are none.
    pub at: Vec<String>,
    /// Width on paper; `None`: 470 pixels of 96 to an inch, larger text larger.
    pub width: Option<Length>,
    /// Size of tick labels and legends; `None`: 12 pixels, which are 9 points.
    pub font_size: Option<Length>,
    /// The fonts.
    pub family: Family,
    /// No title above the chart.
    pub no_title: bool,
    /// No confidence bands.
    pub no_bands: bool,
    /// The x axis by its logarithm.
    pub log_x: bool,
    /// The y axis by its logarithm.
    pub log_y: bool,
    /// Write PDF, too.
    pub pdf: bool,
    /// Write PNG, too, at 300 pixels an inch.
    pub png: bool,
}

/// A length on paper, such as `3.5in`, `89mm`, `9cm`, `8pt`, `336px`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Length {
    pixels: f64,
}

/// Pixels of a file in an inch.
const INCH: f64 = 96.0;

/// Pixels of a PNG in an inch: what journals ask for.
const PNG_INCH: f64 = 300.0;

impl Length {
    /// In pixels, 96 to an inch.
    pub fn pixels(self) -> f64 {
        self.pixels
    }
}

impl std::str::FromStr for Length {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let units = [
            ("in", INCH),
            ("cm", INCH / 2.54),
            ("mm", INCH / 25.4),
            ("pt", INCH / 72.0),
            ("px", 1.0),
        ];
        let length = units.iter().find_map(|(unit, pixels)| {
            let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            Some(number * pixels)
        });
        match length.filter(|pixels| (1.0..=10_000.0).contains(pixels)) {
            Some(pixels) => Ok(Length { pixels }),
            None => Err(Error::new(format!("`{text}` is no length on paper"))
                .remedy("write a number with its unit, such as `3.5in`, `89mm`, `9cm` or `8pt`")),
        }
    }
}

impl Options {
    /// Pixels of the file for each of the figure's, in which small text has 12.
    fn scale(&self) -> f64 {
        self.font_size.map_or(1.0, |size| size.pixels / SMALL)
    }

    /// # Errors
    /// Text too large for the width.
    fn form(&self) -> Result<Form> {
        const LEAST: f64 = 220.0;
        let form = Form::default();
        let width = self.width.map_or(form.width, |w| w.pixels / self.scale());
        if !(LEAST..=4000.0).contains(&width) {
            return Err(
                Error::new("charts of this width and font size cannot be read")
                    .at("--width")
                    .remedy(
                        "choose between 18 and 330 times the font size (9pt where none is given)",
                    ),
            );
        }
        Ok(Form {
            width,
            title: !self.no_title,
            bands: !self.no_bands,
            log_x: self.log_x,
            log_y: self.log_y,
        })
    }
}

/// Draws the charts of a study into a directory. Returns the files.
///
/// # Errors
/// The study has no such value of its axis; text too large for the width; a file cannot be written.
pub fn plot(results: &Results, options: &Options, dir: &Path) -> Result<Vec<PathBuf>> {
    // What is not there is said before anything is drawn.
    let form = options.form()?;
    let places: Vec<usize> = match options.at.is_empty() {
        true => vec![0],
        false => {
            let at = options.at.iter().map(|text| results.axis.place(text));
            at.collect::<Result<_>>().map_err(|e| e.at("--at"))?
        }
    };
    let caption = caption(results);
    let said = Words {
        caption: &caption,
        charges: &results.charges,
    };
    let mut written = Vec::new();
    if results.axis.len() > 1 {
        let all = crossings(results);
        let marked = all.iter().find(|c| c.falling == "G-EDF").or(all.first());
        let figure = schedulability::weighted_as(
            &form,
            "weighted",
            &results.title,
            &swept(results),
            &drawn(results),
            marked,
            said,
        )?;
        written.extend(write(results, figure, options, dir)?);
    }
    let (symbol, unit) = (results.axis.quantity.symbol(), swept(results).unit);
    for place in places {
        let figure = schedulability::by_utilization_as(
            &form,
            &format!("schedulability-{}", results.axis.text(place)),
            &format!(
                "{}, at {symbol} = {}",
                results.title,
                unit.text(results.axis.value(place))
            ),
            &utilization(results),
            &curves(results, false, place),
            said,
        )?;
        written.extend(write(results, figure, options, dir)?);
    }
    Ok(written)
}

/// The curves of W up to where they are drawn: 002 §6.4 computes more than it shows.
fn drawn(results: &Results) -> Vec<Curve> {
    let mut all = curves(results, true, 0);
    if let Some(end) = results.axis.drawn_to() {
        for curve in &mut all {
            curve.points.retain(|point| point.0 <= end);
            curve.band.retain(|point| point.0 <= end);
        }
    }
    all
}

/// What caps are, and up to which they go.
pub(crate) fn utilization(results: &Results) -> Utilization {
    match results.caps_are_shares() {
        true => Utilization::Share,
        false => Utilization::Of(results.processors),
    }
}

fn caption(results: &Results) -> String {
    let caption = format!(
        "{}. {} on the total utilization, {}. {}, {}.",
        results.title,
        results.sets_in_words(),
        results.charged,
        results.provenance.source,
        results.provenance.command
    );
    let charges = std::slice::from_ref(&results.charges);
    [charges, &results.notes, &[caption]].concat().join(" ")
}

fn write(
    results: &Results,
    mut figure: Figure,
    options: &Options,
    dir: &Path,
) -> Result<Vec<PathBuf>> {
    // A file has no caption beside it.
    for note in std::iter::once(&results.charges).chain(&results.notes) {
        figure.description += " ";
        figure.description += note;
    }
    let print = Print {
        scale: options.scale(),
        family: options.family,
    };
    let path = |ending: &str| dir.join(format!("{}.{ending}", figure.id));
    let mut written = vec![path("svg")];
    files::write(&path("svg"), figure.to_svg_as(&print))?;
    if options.pdf {
        files::write(&path("pdf"), figure.to_pdf_as(&print)?)?;
        written.push(path("pdf"));
    }
    if options.png {
        let dense = Print {
            scale: print.scale * PNG_INCH / INCH,
            ..print
        };
        files::write(&path("png"), figure.to_png_as(&dense)?)?;
        written.push(path("png"));
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_with_their_unit() {
        for (text, pixels) in [
            ("3.5in", 336.0),
            ("25.4mm", 96.0),
            ("9pt", 12.0),
            ("2.54 cm", 96.0),
        ] {
            let length: Length = text.parse().unwrap();
            assert!((length.pixels() - pixels).abs() < 1e-9, "{text}");
        }
        for text in ["3.5", "in", "-1in", "NaNin", "1e9in", "0px", "3 feet"] {
            assert!(text.parse::<Length>().is_err(), "{text}");
        }
    }

    #[test]
    fn text_that_is_too_large_for_the_width_is_refused() {
        let options = Options {
            width: "1in".parse().ok(),
            ..Options::default()
        };
        assert!(options.form().is_err());
        let column = Options {
            width: "3.5in".parse().ok(),
            font_size: "7pt".parse().ok(),
            ..Options::default()
        };
        assert_eq!(column.form().unwrap().width.round(), 432.0);
    }
}
