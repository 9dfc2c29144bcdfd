//! What happens to a job that executes for longer than it may.

use crate::error::{Error, Result, nearest};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What happens to a job that has executed for its WCET and is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Enforcement {
    /// It goes on.
    #[default]
    #[serde(rename = "off")]
    Off,
    /// It is cut short at the next multiple of the quantum; the task's next job does the rest.
    #[serde(rename = "quantum")]
    PerQuantum,
    /// It is cut short at once; the task's next job does the rest.
    #[serde(rename = "exact")]
    Exact,
}

impl Enforcement {
    /// Every way, with its word and what it means, for help.
    pub const ALL: [(&'static str, Enforcement, &'static str); 3] = [
        ("off", Enforcement::Off, "They go on"),
        (
            "quantum",
            Enforcement::PerQuantum,
            "They are cut short at the end of a quantum, the rest is done by the next job",
        ),
        (
            "exact",
            Enforcement::Exact,
            "They are cut short at once, the rest is done by the next job",
        ),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        let (word, ..) = Self::ALL[self as usize];
        word
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Enforcement {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(word, ..)| *word == text);
        found.map(|(_, how, _)| *how).ok_or_else(|| {
            let meant = nearest(text, Self::ALL.map(|(word, ..)| word));
            let remedy = match meant {
                Some(word) => format!("did you mean `{word}`?"),
                None => "write `off`, `quantum` or `exact`".to_owned(),
            };
            Error::new(format!("`{text}` is no way to enforce budgets")).remedy(remedy)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_what_they_are_read_as() {
        for (word, how, _) in Enforcement::ALL {
            assert_eq!(how.to_string(), word);
            assert_eq!(word.parse::<Enforcement>().unwrap(), how);
            assert_eq!(serde_json::to_string(&how).unwrap(), format!("\"{word}\""));
        }
        assert!("none".parse::<Enforcement>().is_err());
    }
}
