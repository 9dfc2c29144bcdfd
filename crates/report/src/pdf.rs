//! Writes a figure as PDF: the same shapes, lines as lines and text as text, in fonts that stand in
//! the file.
//!
//! The format is that of ISO 32000-1. Always light, as on paper; the page is as large as the figure.
//! The same figure gives the same bytes: nothing in the file depends on the time or the machine.
//! Characters that the fonts lack are left out, as in a PNG.

mod drawing;
mod typeface;

use crate::style::{Family, Print};
use crate::svg::Figure;
use drawing::Drawing;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use model::{Error, Result};
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, TextStr};
use std::io::Write;
use typeface::Typeface;

/// Points in a pixel: 72 and 96 make an inch.
const POINTS: f64 = 0.75;

/// The least and the largest side of a page, in points (ISO 32000-1, annex C).
const LEAST: f64 = 3.0;
const MOST: f64 = 14_400.0;

/// The numbers of the file's objects; those of fonts and opacities follow.
const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const INFO: Ref = Ref::new(5);
const FIRST_FREE: i32 = 6;

impl Figure {
    /// The figure as a PDF file of one page.
    ///
    /// # Errors
    /// As [`to_pdf_as`](Self::to_pdf_as).
    pub fn to_pdf(&self) -> Result<Vec<u8>> {
        self.to_pdf_as(&Print::default())
    }

    /// The same in another size and family of fonts.
    ///
    /// # Errors
    /// A size that makes no page; a font of this program that cannot be read.
    pub fn to_pdf_as(&self, print: &Print) -> Result<Vec<u8>> {
        let [width, height] = [self.width, self.height].map(|side| points(side * print.scale));
        if ![width, height]
            .iter()
            .all(|side| (LEAST..=MOST).contains(side))
        {
            return Err(Error::new(format!(
                "a page of {width:.0} by {height:.0} points cannot be made"
            ))
            .remedy(format!(
                "choose a width and a font size that make sides between {LEAST} and {MOST} points"
            )));
        }
        let mut drawing = Drawing::new(print, height)?;
        for shape in &self.shapes {
            drawing.draw(shape);
        }
        self.file(
            drawing,
            print.family,
            Rect::new(0.0, 0.0, width as f32, height as f32),
        )
    }

    fn file(&self, drawing: Drawing, family: Family, page: Rect) -> Result<Vec<u8>> {
        let mut pdf = Pdf::new();
        let mut free = FIRST_FREE;
        let mut next = || {
            free += 1;
            Ref::new(free - 1)
        };
        pdf.catalog(CATALOG).pages(PAGES).lang(TextStr("en"));
        pdf.pages(PAGES).kids([PAGE]).count(1);
        let fonts: Vec<(&Typeface, Ref)> = drawing
            .typefaces
            .iter()
            .filter(|typeface| typeface.is_used())
            .map(|typeface| (typeface, next()))
            .collect();
        let opacities: Vec<(u8, Ref)> = drawing.opacities.iter().map(|o| (*o, next())).collect();

        let mut entry = pdf.page(PAGE);
        entry.media_box(page).parent(PAGES).contents(CONTENT);
        let mut resources = entry.resources();
        let mut names = resources.fonts();
        for (typeface, place) in &fonts {
            names.pair(typeface.name(), *place);
        }
        names.finish();
        let mut states = resources.ext_g_states();
        for (opacity, place) in &opacities {
            states.pair(Name(drawing::state(*opacity).as_bytes()), *place);
        }
        states.finish();
        resources.finish();
        entry.finish();

        for (opacity, place) in &opacities {
            let alpha = f32::from(*opacity) / 100.0;
            pdf.ext_graphics(*place)
                .stroking_alpha(alpha)
                .non_stroking_alpha(alpha);
        }
        for (typeface, place) in &fonts {
            typeface.embed(&mut pdf, family, *place, &mut next)?;
        }
        let content = packed(&drawing.content.finish())?;
        pdf.stream(CONTENT, &content).filter(Filter::FlateDecode);
        pdf.document_info(INFO)
            .title(TextStr(&self.title))
            .subject(TextStr(&self.description));
        Ok(pdf.finish())
    }
}

/// Pixels as points, to a thousandth: what rounding leaves of 252 points is 252.
fn points(pixels: f64) -> f64 {
    (pixels * POINTS * 1000.0).round() / 1000.0
}

/// The bytes of a stream as the filter `FlateDecode` unpacks them.
fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(|e| Error::new(format!("a part of the PDF cannot be packed: {e}")))
}
