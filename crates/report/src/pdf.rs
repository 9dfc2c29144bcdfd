//! Writes a figure as PDF: its SVG, light as on paper, by `svg2pdf`; text stays text, in the fonts
//! that this crate carries.

use crate::png::fonts;
use crate::style::{Family, Print};
use crate::svg::Figure;
use model::{Error, Result};
use std::sync::Arc;
use svg2pdf::usvg::{Options, Tree, fontdb};
use svg2pdf::{ConversionOptions, PageOptions};

/// Points in a pixel of SVG: 72 and 96 to an inch.
const POINTS: f32 = 72.0 / 96.0;

impl Figure {
    /// The figure as a PDF file of one page.
    ///
    /// # Errors
    /// A scale that makes no page.
    pub fn to_pdf(&self, print: &Print) -> Result<Vec<u8>> {
        let failed = |cause: String| {
            Error::new(format!(
                "the figure `{}` cannot be written as PDF: {cause}",
                self.id
            ))
            .remedy("choose another width, or write it as SVG")
        };
        let mut known = fontdb::Database::new();
        for bytes in [Family::Sans, Family::Serif].into_iter().flat_map(fonts) {
            known.load_font_data(bytes.to_vec());
        }
        let options = Options {
            fontdb: Arc::new(known),
            ..Options::default()
        };
        let tree = Tree::from_str(&self.to_paper_svg(print), &options)
            .map_err(|e| failed(e.to_string()))?;
        // A unit of a page is a point.
        let page = PageOptions {
            dpi: 72.0 / POINTS,
        };
        svg2pdf::to_pdf(&tree, ConversionOptions::default(), page)
            .map_err(|e| failed(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Profile;

    #[test]
    fn a_page_has_the_size_and_the_fonts_that_were_asked_for() {
        let xeon = Profile::builtin("xeon-l7455").unwrap();
        let mut figure = crate::cpmd::figure("f", &xeon, &[], &crate::cpmd::FIG2)
            .unwrap()
            .unwrap();
        figure.width = 400.0;
        figure.height = 200.0;
        for (family, font) in [(Family::Sans, "DejaVuSans"), (Family::Serif, "DejaVuSerif")] {
            let pdf = figure.to_pdf(&Print { scale: 2.0, family }).unwrap();
            let text = String::from_utf8_lossy(&pdf);
            assert!(text.starts_with("%PDF-"));
            assert!(text.contains("/MediaBox [0 0 600 300]"), "three quarters of the pixels");
            assert!(text.contains(font), "{font}");
        }
    }
}
