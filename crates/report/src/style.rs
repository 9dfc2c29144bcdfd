//! The one look of every figure: inks, dashes, markers, text sizes, and the style sheet that turns
//! them dark.
//!
//! Colors are those of Okabe and Ito, chosen to stay apart for the color-blind. No series is told
//! by color alone: each has its own dashes and its own marker, so that a figure still reads in
//! grayscale and on a bad copy.

use model::Resumption;
use plotters::style::RGBColor;
use std::fmt::Write;

/// A family of fonts. This crate carries the first font of each, regular and bold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Family {
    /// Without serifs: DejaVu Sans.
    #[default]
    Sans,
    /// With serifs: DejaVu Serif.
    Serif,
}

impl Family {
    /// The fonts to try, a generic one last.
    pub fn fonts(self) -> &'static str {
        match self {
            Family::Sans => {
                "'DejaVu Sans', Verdana, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
            }
            Family::Serif => "'DejaVu Serif', Georgia, 'Times New Roman', Times, serif",
        }
    }
}

/// How a finished figure is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Print {
    /// Its size: pixels of the file (96 to an inch) for each of the figure's.
    pub scale: f64,
    /// Its fonts.
    pub family: Family,
}

impl Default for Print {
    fn default() -> Self {
        Print {
            scale: 1.0,
            family: Family::Sans,
        }
    }
}

/// Text size of tick labels, legends and notes, in pixels of the figure.
pub const SMALL: f64 = 12.0;
/// Text size of axis titles and panel titles, in pixels of the figure.
pub const TEXT: f64 = 13.0;

/// Every color that a figure may use. Figures name inks; only the style sheets know colors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    /// The background.
    Paper,
    /// Text, axes, and the first series.
    Black,
    /// Secondary text and guide lines.
    Gray,
    /// Grid lines.
    Grid,
    /// Light areas.
    Wash,
    /// A series.
    Blue,
    /// A series.
    Vermilion,
    /// A series.
    Green,
    /// A series.
    Purple,
    /// A series.
    Orange,
    /// A series.
    Sky,
}

/// Ink, class, light color, dark color. Light colors are all different: the SVG writer finds the
/// ink by its color.
const INKS: [(Ink, &str, u32, u32); 11] = [
    (Ink::Paper, "wp", 0xffffff, 0x16181d),
    (Ink::Black, "wk", 0x111111, 0xeceff4),
    (Ink::Gray, "wg", 0x5b6068, 0xa6adb8),
    (Ink::Grid, "wl", 0xdfe2e6, 0x343941),
    (Ink::Wash, "ww", 0xeef1f5, 0x262b33),
    (Ink::Blue, "wb", 0x0072b2, 0x58b4ec),
    (Ink::Vermilion, "wv", 0xd55e00, 0xff8a3d),
    (Ink::Green, "wn", 0x009e73, 0x2fcf9f),
    (Ink::Purple, "wu", 0xb0578d, 0xe193c4),
    (Ink::Orange, "wo", 0xc98600, 0xf0b93a),
    (Ink::Sky, "ws", 0x3b8fc2, 0x8fd0f5),
];

impl Ink {
    fn row(self) -> &'static (Ink, &'static str, u32, u32) {
        // Every ink has its row, in the order of the enum; a test holds that.
        &INKS[self as usize]
    }
    /// The class of elements in this ink.
    pub fn class(self) -> &'static str {
        self.row().1
    }
    /// The color on white paper.
    pub fn color(self) -> RGBColor {
        let rgb = self.row().2;
        RGBColor((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8)
    }
    /// The ink of a color, if it is one.
    pub fn of((r, g, b): (u8, u8, u8)) -> Option<Ink> {
        let rgb = u32::from(r) << 16 | u32::from(g) << 8 | u32::from(b);
        INKS.iter().find(|row| row.2 == rgb).map(|row| row.0)
    }
}

/// Opacity of the dots of a cloud on a dark screen: at the one that suits light paper they are hard
/// to see.
const DARK_DOTS: f64 = 0.85;

/// The rules that turn figures dark, for screens of people who asked for it. Paper stays white.
pub fn dark_rules() -> String {
    let mut css = String::from("@media screen and (prefers-color-scheme:dark){");
    for (_, class, _, dark) in INKS {
        let _ = write!(
            css,
            ".{class}f{{fill:#{dark:06x}}}.{class}s{{stroke:#{dark:06x}}}"
        );
    }
    let _ = write!(css, ".dots{{opacity:{DARK_DOTS}}}");
    css + "}"
}

/// The shape that marks a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marker {
    /// A filled circle.
    Circle,
    /// A triangle on its base, hollow.
    Triangle,
    /// A filled square.
    Square,
    /// A hollow diamond.
    Diamond,
    /// A filled triangle on its tip.
    Wedge,
    /// A hollow circle.
    Ring,
    /// Nothing: the line alone.
    Bare,
}

/// How one series looks, the same in every figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Its color.
    pub ink: Ink,
    /// Its SVG `stroke-dasharray`, in pixels; empty: solid.
    pub dash: &'static str,
    /// Its marker.
    pub marker: Marker,
}

/// The looks, in the order in which series without a meaning of their own take them.
pub const LOOKS: [Look; 6] = [
    Look {
        ink: Ink::Black,
        dash: "",
        marker: Marker::Circle,
    },
    Look {
        ink: Ink::Blue,
        dash: "7 3",
        marker: Marker::Triangle,
    },
    Look {
        ink: Ink::Vermilion,
        dash: "2 2.5",
        marker: Marker::Square,
    },
    Look {
        ink: Ink::Green,
        dash: "9 3 2 3",
        marker: Marker::Diamond,
    },
    Look {
        ink: Ink::Purple,
        dash: "4 2",
        marker: Marker::Wedge,
    },
    Look {
        ink: Ink::Orange,
        dash: "12 3 2 3 2 3",
        marker: Marker::Ring,
    },
];

impl Look {
    /// The look of the series of this index.
    pub fn nth(index: usize) -> Look {
        LOOKS[index % LOOKS.len()]
    }

    /// The look of a way to resume: the same in every figure, whatever levels a machine has.
    pub fn of_resumption(resumption: Resumption) -> Look {
        LOOKS[match resumption {
            Resumption::Preemption => 0,
            Resumption::Migration(2) => 1,
            Resumption::Migration(3) => 2,
            Resumption::Memory => 3,
            Resumption::Migration(1) => 4,
            Resumption::Migration(_) => 5,
        }]
    }

    /// The look of a policy by its name (`p-edf`, `g-edf`, `c-edf:l2` …).
    pub fn of_policy(name: &str) -> Look {
        let name = name.to_lowercase();
        LOOKS[match name.as_str() {
            n if n.starts_with('p') => 0,
            n if n.starts_with('g') => 3,
            n if n.contains("l2") => 1,
            n if n.contains("l3") => 2,
            _ => 4,
        }]
    }

    /// The looks of policies that are drawn together, by their names: the first of a family has its
    /// own, the others ones that nobody has. Up to 36 differ.
    pub fn of_policies<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Look> {
        let mut taken: Vec<Look> = Vec::new();
        let own: Vec<Option<Look>> = names
            .into_iter()
            .map(|name| {
                let look = Look::of_policy(name);
                let free = !taken.contains(&look);
                taken.extend(free.then_some(look));
                free.then_some(look)
            })
            .collect();
        own.into_iter()
            .map(|own| {
                own.unwrap_or_else(|| {
                    let free = Look::all().find(|look| !taken.contains(look));
                    let look = free.unwrap_or(Look::nth(taken.len()));
                    taken.push(look);
                    look
                })
            })
            .collect()
    }

    /// The six, then each with the markers of others: no two have dashes and marker in common.
    fn all() -> impl Iterator<Item = Look> {
        (0..LOOKS.len()).flat_map(|shift| {
            (0..LOOKS.len()).map(move |index| Look {
                marker: Look::nth(index + shift).marker,
                ..LOOKS[index]
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ink_has_its_row_and_its_own_color() {
        for (index, row) in INKS.iter().enumerate() {
            assert_eq!(row.0 as usize, index, "{:?}", row.0);
            assert_eq!(row.0.row().0, row.0);
            let c = row.0.color();
            assert_eq!(
                Ink::of((c.0, c.1, c.2)),
                Some(row.0),
                "two inks share a color"
            );
        }
    }

    #[test]
    fn no_two_looks_share_dashes_or_marker() {
        for (i, a) in LOOKS.iter().enumerate() {
            for b in &LOOKS[i + 1..] {
                assert!(
                    a.ink != b.ink && a.dash != b.dash && a.marker != b.marker,
                    "{a:?} {b:?}"
                );
            }
        }
    }

    #[test]
    fn policies_of_one_family_differ_from_each_other_and_from_all_others() {
        let slices = (0..34).map(|n| format!("EDF-WM-SLICE-{n}US"));
        let names: Vec<String> = ["P-EDF".to_owned(), "EDF-WM".to_owned()]
            .into_iter()
            .chain(slices)
            .collect();
        let looks = Look::of_policies(names.iter().map(String::as_str));
        assert_eq!(looks[..2], [LOOKS[0], LOOKS[4]]);
        for (i, look) in looks.iter().enumerate() {
            let alike = |l: &Look| (l.dash, l.marker) == (look.dash, look.marker);
            assert!(!looks[..i].iter().any(alike), "{}: {look:?}", names[i]);
        }
        // A family that comes later keeps its own.
        let looks = Look::of_policies(["EDF-WM", "NPS-F", "P-EDF", "C-EDF-L2"]);
        assert_eq!(looks, [LOOKS[4], LOOKS[2], LOOKS[0], LOOKS[1]]);
    }

    /// Relative luminance (WCAG 2): series must stand out from the paper, light and dark.
    #[test]
    fn inks_contrast_with_their_paper() {
        fn luminance(rgb: u32) -> f64 {
            let part = |shift: u32| {
                let c = f64::from((rgb >> shift) & 255) / 255.0;
                if c <= 0.04045 {
                    c / 12.92
                } else {
                    ((c + 0.055) / 1.055).powf(2.4)
                }
            };
            0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0)
        }
        fn mixed(ink: u32, paper: u32, opacity: f64) -> u32 {
            let part = |shift: u32| {
                let of = |rgb: u32| f64::from((rgb >> shift) & 255);
                ((of(ink) * opacity + of(paper) * (1.0 - opacity)).round() as u32) << shift
            };
            part(16) | part(8) | part(0)
        }
        let contrast = |a: u32, b: u32| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        for (ink, _, light, dark) in INKS {
            let least = match ink {
                Ink::Paper | Ink::Grid | Ink::Wash => continue,
                Ink::Black | Ink::Gray => 4.5,
                _ => 3.0,
            };
            assert!(
                contrast(light, INKS[0].2) >= least,
                "{ink:?} on light paper"
            );
            assert!(contrast(dark, INKS[0].3) >= least, "{ink:?} on dark paper");
            // Dots are not painted in full: what is left of their ink must still stand out.
            let dots = mixed(dark, INKS[0].3, DARK_DOTS);
            assert!(
                contrast(dots, INKS[0].3) >= least,
                "dots of {ink:?} on dark paper"
            );
        }
        assert!(dark_rules().contains(&format!(".dots{{opacity:{DARK_DOTS}}}")));
    }
}
