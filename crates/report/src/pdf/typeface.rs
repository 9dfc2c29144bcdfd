//! A font of a PDF file: what is written with it, and how it is put into the file.
//!
//! Glyphs are shown by their numbers (ISO 32000-1, §9.7: a font of type 0 with `Identity-H`), and a
//! table says which character each one stands for (§9.10.3), so that text can be searched and
//! copied.

use super::packed;
use crate::png::fonts;
use crate::style::Family;
use model::{Error, Result};
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, Str};
use std::collections::BTreeMap;
use ttf_parser::{Face, GlyphId};

const SYSTEM: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};

/// A font of the page, regular or bold.
pub(super) struct Typeface {
    bytes: &'static [u8],
    face: Face<'static>,
    bold: bool,
    /// The glyphs that are used, and the characters that they show.
    used: BTreeMap<u16, char>,
}

/// A line of text as the page shows it.
pub(super) struct Written {
    /// Two bytes a glyph.
    pub glyphs: Vec<u8>,
    /// In ems.
    pub width: f32,
}

impl Typeface {
    /// Regular and bold.
    ///
    /// # Errors
    /// A font of this program that cannot be read.
    pub(super) fn both(family: Family) -> Result<[Typeface; 2]> {
        let typeface = |bytes, bold| {
            let face = Face::parse(bytes, 0)
                .map_err(|e| Error::new(format!("the font of this program cannot be read: {e}")))?;
            Ok(Typeface {
                bytes,
                face,
                bold,
                used: BTreeMap::new(),
            })
        };
        let [regular, bold] = fonts(family);
        Ok([typeface(regular, false)?, typeface(bold, true)?])
    }

    /// Its name within the page.
    pub(super) fn name(&self) -> Name<'static> {
        Name(if self.bold { b"B" } else { b"R" })
    }

    pub(super) fn is_used(&self) -> bool {
        !self.used.is_empty()
    }

    /// The glyphs of a text, which count as used. Characters that the font lacks are left out.
    pub(super) fn write(&mut self, text: &str) -> Written {
        let mut written = Written {
            glyphs: Vec::new(),
            width: 0.0,
        };
        for c in text.chars() {
            let Some(glyph) = self.face.glyph_index(c) else {
                continue;
            };
            written.width += self.advance(glyph) / 1000.0;
            written.glyphs.extend_from_slice(&glyph.0.to_be_bytes());
            // Where two characters look alike the plainer one is found: a space, not one that
            // holds words together.
            let shown = self.used.entry(glyph.0).or_insert(c);
            *shown = c.min(*shown);
        }
        written
    }

    /// Puts the font into the file at `place`, with the widths of the glyphs that are used and the
    /// characters that they show; `next` gives the places of its parts.
    ///
    /// # Errors
    /// The font cannot be packed.
    pub(super) fn embed(
        &self,
        pdf: &mut Pdf,
        family: Family,
        place: Ref,
        next: &mut impl FnMut() -> Ref,
    ) -> Result<()> {
        let [glyphs, map, descriptor, file] = [next(), next(), next(), next()];
        let name = self.full_name(family);
        pdf.type0_font(place)
            .base_font(name)
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(glyphs)
            .to_unicode(map);
        let mut font = pdf.cid_font(glyphs);
        font.subtype(CidFontType::Type2)
            .base_font(name)
            .system_info(SYSTEM)
            .font_descriptor(descriptor)
            .default_width(0.0)
            .cid_to_gid_map_predefined(Name(b"Identity"));
        let mut widths = font.widths();
        for glyph in self.used.keys() {
            widths.same(*glyph, *glyph, self.advance(GlyphId(*glyph)));
        }
        widths.finish();
        font.finish();
        let mut characters = UnicodeCmap::new(Name(b"Characters"), SYSTEM);
        for (glyph, c) in &self.used {
            characters.pair(*glyph, *c);
        }
        pdf.cmap(map, &characters.finish());
        self.describe(pdf, family, descriptor, file);
        let packed = packed(self.bytes)?;
        let length = i32::try_from(self.bytes.len()).unwrap_or(i32::MAX);
        pdf.stream(file, &packed)
            .filter(Filter::FlateDecode)
            .pair(Name(b"Length1"), length);
        Ok(())
    }

    fn describe(&self, pdf: &mut Pdf, family: Family, descriptor: Ref, file: Ref) {
        let thousandths = |units: i16| self.thousandths(f32::from(units));
        let bounds = self.face.global_bounding_box();
        let cap = self.face.capital_height().unwrap_or(self.face.ascender());
        let mut flags = FontFlags::SYMBOLIC;
        flags.set(FontFlags::SERIF, family == Family::Serif);
        pdf.font_descriptor(descriptor)
            .name(self.full_name(family))
            .flags(flags)
            .bbox(Rect::new(
                thousandths(bounds.x_min),
                thousandths(bounds.y_min),
                thousandths(bounds.x_max),
                thousandths(bounds.y_max),
            ))
            .italic_angle(0.0)
            .ascent(thousandths(self.face.ascender()))
            .descent(thousandths(self.face.descender()))
            .cap_height(thousandths(cap))
            // About as thick as the stems of both families.
            .stem_v(if self.bold { 170.0 } else { 90.0 })
            .font_file2(file);
    }

    /// Six letters before the name say that it is a part of a font (ISO 32000-1, §9.6.4).
    fn full_name(&self, family: Family) -> Name<'static> {
        Name(match (family, self.bold) {
            (Family::Sans, false) => b"WARMST+DejaVuSans",
            (Family::Sans, true) => b"WARMST+DejaVuSans-Bold",
            (Family::Serif, false) => b"WARMST+DejaVuSerif",
            (Family::Serif, true) => b"WARMST+DejaVuSerif-Bold",
        })
    }

    /// How far a glyph moves the pen, in thousandths of an em.
    fn advance(&self, glyph: GlyphId) -> f32 {
        self.thousandths(f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0)))
    }

    fn thousandths(&self, units: f32) -> f32 {
        units * 1000.0 / f32::from(self.face.units_per_em())
    }
}
