//! Which colors an operator means: as they are counted, or super colors by number or by name (004
//! §III-C).

use crate::colors::{Color, Colors};
use model::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The longest name of a super color, in bytes.
const LONGEST: usize = 64;

/// Colors as an operator names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// `0-3,8` or `0x10f`: colors of pages.
    These(Colors),
    /// `super:0-1/8`: of 8 super colors these, each the colors that are equal to its number modulo
    /// 8 (004 eq. 1).
    Super {
        /// Which.
        which: Colors,
        /// Of how many.
        of: u16,
    },
    /// A super color that the operator gave a name.
    Named(String),
}

impl From<Colors> for Selection {
    fn from(colors: Colors) -> Self {
        Selection::These(colors)
    }
}

impl Selection {
    /// The colors of pages that are meant where there are `colors` of them; `named` knows the
    /// names.
    ///
    /// # Errors
    /// More super colors than colors, one beyond the last, a name that nobody gave.
    pub fn colors(&self, colors: u16, named: impl Fn(&str) -> Option<Colors>) -> Result<Colors> {
        match self {
            Selection::These(these) => Ok(these.clone()),
            Selection::Super { of, .. } if *of > colors => Err(Error::new(format!(
                "{of} super colors cannot be made of {colors} colors"
            ))
            .remedy(format!("write `super:NUMBER/{colors}` or less"))),
            Selection::Super { which, of } => {
                if let Some(beyond) = which.highest().filter(|c| c.0 >= *of) {
                    return Err(Error::new(format!(
                        "super color {beyond} is beyond the last one: there are {of} of them"
                    ))
                    .remedy(format!("choose among super:0-{}/{of}", of - 1)));
                }
                Ok(which
                    .iter()
                    .flat_map(|c| Colors::of_super(c, *of, colors).iter().collect::<Vec<Color>>())
                    .collect())
            }
            Selection::Named(name) => named(name).ok_or_else(|| {
                Error::new(format!("no colors have the name `{name}`")).remedy(format!(
                    "give it to some: `warmset color name {name} 0-3`; `warmset color list` shows all names"
                ))
            }),
        }
    }
}

/// Is this the name of a super color?
///
/// # Errors
/// It does not begin with a letter, is too long, or has characters that names do not have.
pub fn check_name(name: &str) -> Result<()> {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let others = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if first && others && name.len() <= LONGEST {
        return Ok(());
    }
    Err(
        Error::new(format!("`{name}` cannot be the name of colors")).remedy(format!(
            "begin with a letter, go on with letters, digits, `-`, `_`, `.`, {LONGEST} at most"
        )),
    )
}

impl FromStr for Selection {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some(supers) = text.strip_prefix("super:") {
            let bad = || {
                Error::new(format!("`{text}` names no super colors"))
                    .remedy("write which and of how many: `super:2/8`, `super:0-1/8`")
            };
            let (which, of) = supers.split_once('/').ok_or_else(bad)?;
            let which: Colors = which.parse().map_err(|_| bad())?;
            let of: u16 = of.trim().parse().map_err(|_| bad())?;
            if which.is_empty() || of == 0 {
                return Err(bad());
            }
            return Ok(Selection::Super { which, of });
        }
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            check_name(text)?;
            return Ok(Selection::Named(text.to_owned()));
        }
        text.parse().map(Selection::These)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::These(colors) => colors.fmt(f),
            Selection::Super { which, of } => write!(f, "super:{which}/{of}"),
            Selection::Named(name) => f.pad(name),
        }
    }
}

impl Serialize for Selection {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colors(text: &str, of: u16) -> Result<String> {
        let video = |name: &str| (name == "video").then(|| Colors::first(3));
        text.parse::<Selection>()?
            .colors(of, video)
            .map(|c| c.to_string())
    }

    /// 004 eq. 1: a super color is the color modulo their number.
    #[test]
    fn super_colors_are_named_by_number() {
        assert_eq!(colors("super:1/4", 16).unwrap(), "1,5,9,13");
        assert_eq!(colors("super:0,3/4", 8).unwrap(), "0,3-4,7");
        assert_eq!(colors("super:0/1", 4).unwrap(), "0-3");
        assert_eq!(colors("video", 8).unwrap(), "0-2");
        assert_eq!(colors("0x10f", 16).unwrap(), "0-3,8");
    }

    #[test]
    fn what_names_no_colors_is_refused_with_what_to_write() {
        let refused = |text: &str| colors(text, 8).unwrap_err().to_string();
        assert!(refused("super:4/4").contains("super:0-3/4"));
        assert!(refused("super:1/9").contains("cannot be made of 8 colors"));
        assert!(refused("audio").contains("warmset color name audio"));
        for text in [
            "super:",
            "super:1",
            "super:/4",
            "super:a/4",
            "super:1/0",
            "super:1/70000",
        ] {
            assert!(refused(text).contains("super:2/8"), "{text}");
        }
        assert!(refused("a b").contains("begin with a letter"));
        assert!(check_name(&"a".repeat(65)).is_err() && check_name("3a").is_err());
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in ["0-3,8", "super:0-1/8", "video.low_1", ""] {
            assert_eq!(text.parse::<Selection>().unwrap().to_string(), text);
        }
    }
}
