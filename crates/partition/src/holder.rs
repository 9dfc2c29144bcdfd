//! Whom colors are granted to (001 §5.1: tasks or groups of tasks), and how that is written.

use model::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What a holder may do with pages of a color.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Read and write: one holder only.
    #[default]
    Full,
    /// Read: what others may do with pages of a protected color (001 §5.3, single-writer
    /// partitioning).
    ReadOnly,
}

impl Access {
    /// For the default of a message.
    pub fn is_full(&self) -> bool {
        *self == Access::Full
    }
    /// Behind a sentence about what is granted.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Access::Full => "",
            Access::ReadOnly => " to read",
        }
    }
}

/// Whom colors are granted to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// A process.
    Pid(u32),
    /// All processes of a user.
    Uid(u32),
    /// The processes that joined a group.
    Group(String),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Pid(pid) => write!(f, "pid:{pid}"),
            Holder::Uid(uid) => write!(f, "uid:{uid}"),
            Holder::Group(name) => write!(f, "group:{name}"),
        }
    }
}

impl FromStr for Holder {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(format!(
                "`{text}` names nobody that colors can be granted to"
            ))
            .remedy(
                "write `pid:NUMBER`, `uid:NUMBER` or `group:NAME` (letters, digits, `-`, `_`, `.`)",
            )
        };
        let (kind, name) = text.split_once(':').ok_or_else(bad)?;
        let number = || name.parse::<u32>().map_err(|_| bad());
        match kind {
            "pid" => Ok(Holder::Pid(number()?)),
            "uid" => Ok(Holder::Uid(number()?)),
            "group"
                if (1..=64).contains(&name.len())
                    && name
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) =>
            {
                Ok(Holder::Group(name.to_owned()))
            }
            _ => Err(bad()),
        }
    }
}
impl Serialize for Holder {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Holder {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_read_back_and_nonsense_is_refused() {
        for text in ["pid:1", "uid:0", "group:a-b_c.9"] {
            assert_eq!(text.parse::<Holder>().unwrap().to_string(), text);
        }
        for text in [
            "pid:",
            "uid:-1",
            "group:",
            "group:a b",
            "x:1",
            "1",
            "pid:99999999999",
        ] {
            assert!(text.parse::<Holder>().is_err(), "{text}");
        }
    }
}
