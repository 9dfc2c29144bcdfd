//! Charts, pictures and pages: what a person looks at in the end.
//!
//! Every figure takes plain data, looks alike (`style`), reads in print, in grayscale and by the
//! color-blind, and says in words what it shows. A figure is a list of shapes; `svg`, `png`
//! and `pdf` write it.
//!
//! # Why plotters
//!
//! One real figure (CPMD against working set size, Tables A.3 and A.4 of 002) was drawn with
//! `plotters` 0.3 and with `kuva` 0.6 before choosing:
//!
//! - **build**: plotters without its backends 2.4 s of processor time, kuva 53 s.
//! - **look as it comes**: kuva draws finer lines, true dashes and error bars; plotters writes SVG
//!   in whole pixels and cuts each dash into a segment of its own.
//! - **control**: kuva's logarithmic axes know decimal ticks only, round outwards to whole decades
//!   (half of this figure stayed empty), and draw error bars that reach below the axis across its
//!   labels; a line and its markers are two entries of the legend. plotters lets coordinates, ticks
//!   and the backend be replaced.
//!
//! So plotters gives coordinates, grid and axes; the ticks (`axis`) and the backend (`sheet`) are
//! ours, and through them every length, dash and class is as we want it. PNG is drawn from the same
//! shapes with `tiny-skia`: `resvg`, which would render the SVG itself, takes 94 s of processor
//! time to build. PDF is written from them, too, with `pdf-writer`, 2 s of it: `svg2pdf` brings a
//! shaper of text and two crates for fonts, which take minutes, for labels of a few letters.

#![forbid(unsafe_code)]

pub mod agreement;
pub mod assignment;
pub mod axis;
pub mod by_tasks;
pub mod colors;
pub mod cpmd;
pub mod explorer;
pub mod findings;
pub mod lines;
pub mod misses;
pub mod page;
pub mod panel;
pub mod pdf;
pub mod platform;
pub mod png;
pub mod room;
pub mod sampled;
pub mod scatter;
pub mod schedulability;
pub mod schedule;
pub mod sheet;
pub mod style;
pub mod svg;
pub mod words;

pub use svg::Figure;
