//! Names of policies with their parameters, as people write them: `g-edf`, `c-edf:l3`, `nps-f:delta=1`.
//!
//! Parameters stand behind a colon, separated by commas; each is a word or `key=value`.

use crate::registry::{self, Info};
use model::error::nearest;
use model::{Duration, Error, Result};
use std::fmt;
use std::str::FromStr;

/// A policy with its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    info: &'static Info,
    parameters: Vec<(String, Option<String>)>,
}

impl Spec {
    /// What is known of the policy.
    pub fn info(&self) -> &'static Info {
        self.info
    }

    /// Is this word given as a parameter?
    pub fn has(&self, word: &str) -> bool {
        self.parameters.iter().any(|(k, v)| k == word && v.is_none())
    }

    /// The words that are given as parameters.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.parameters
            .iter()
            .filter(|(_, v)| v.is_none())
            .map(|(k, _)| k.as_str())
    }

    /// The value of a parameter.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(k, _)| k == key)
            .and_then(|(_, v)| v.as_deref())
    }

    /// The value of a parameter as something that is read from text.
    ///
    /// # Errors
    /// It is there and is not one of these.
    pub fn parsed<T: FromStr<Err: fmt::Display>>(&self, key: &str) -> Result<Option<T>> {
        self.value(key)
            .map(|text| {
                text.parse().map_err(|e| {
                    self.error(format!("`{key}={text}`: {e}"))
                        .remedy(format!("write {}", self.info.parameters))
                })
            })
            .transpose()
    }

    /// A positive duration.
    ///
    /// # Errors
    /// It is there and is zero or not a time.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>> {
        match self.parsed::<Duration>(key)? {
            Some(d) if d.is_zero() => Err(self
                .error(format!("`{key}` is zero"))
                .remedy("give a positive time")),
            other => Ok(other),
        }
    }

    /// The quantum at whose multiples alone the policy decides: its parameter, or `default` for a quantum-driven policy.
    ///
    /// # Errors
    /// The parameter is zero or not a time.
    pub fn quantum(&self, default: Duration) -> Result<Option<Duration>> {
        let given = self.duration("quantum")?;
        Ok(given.or(self.info.quantum_driven.then_some(default)))
    }

    /// An error about this policy's parameters.
    pub fn error(&self, cause: impl Into<String>) -> Error {
        Error::new(cause).at(format!("policy `{self}`"))
    }
}

impl FromStr for Spec {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some(info) = registry::find(name) else {
            let names = registry::all().iter().map(|i| i.name);
            let remedy = match nearest(name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("policies are {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(Error::new(format!("unknown policy `{name}`")).remedy(remedy));
        };
        let mut spec = Spec {
            info,
            parameters: Vec::new(),
        };
        for parameter in rest.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = match parameter.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
                None => (parameter, None),
            };
            let wanted = match &value {
                Some(_) => info.keys.contains(&key),
                None => info.words.iter().any(|w| match w.strip_suffix('#') {
                    Some(stem) => key
                        .strip_prefix(stem)
                        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())),
                    None => *w == key,
                }),
            };
            if !wanted || spec.parameters.iter().any(|(k, _)| k == key) {
                let what = if wanted {
                    "is given twice"
                } else {
                    "is no parameter of it"
                };
                return Err(Error::new(format!("`{parameter}` {what}"))
                    .at(format!("policy `{name}`"))
                    .remedy(match info.parameters {
                        "" => "it has none".to_owned(),
                        known => format!("write {known}"),
                    }));
            }
            spec.parameters.push((key.to_owned(), value));
        }
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.info.name.to_owned();
        for (index, (key, value)) in self.parameters.iter().enumerate() {
            text.push(if index == 0 { ':' } else { ',' });
            text.push_str(key);
            if let Some(value) = value {
                text.push('=');
                text.push_str(value);
            }
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_and_write_back() {
        for text in [
            "g-edf",
            "c-edf:l3",
            "c-edf:size=4",
            "g-edf:ties=index,quantum=1ms",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        let spec: Spec = "g-edf:quantum=1ms".parse().unwrap();
        assert_eq!(spec.duration("quantum").unwrap(), Some(Duration::from_millis(1)));
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        for (text, message) in [
            ("gedf", "unknown policy `gedf`; did you mean `g-edf`?"),
            ("", "unknown policy ``"),
            ("g-edf:l3", "policy `g-edf`: `l3` is no parameter of it"),
            ("c-edf:l", "policy `c-edf`: `l` is no parameter of it"),
            ("g-edf:quantum=1ms,quantum=2ms", "is given twice"),
        ] {
            let e = text.parse::<Spec>().unwrap_err().to_string();
            assert!(e.starts_with(message) || e.contains(message), "{text}: {e}");
        }
        let zero: Spec = "g-edf:quantum=0ms".parse().unwrap();
        assert!(
            zero.duration("quantum")
                .unwrap_err()
                .to_string()
                .contains("is zero")
        );
        let word: Spec = "g-edf:quantum=soon".parse().unwrap();
        assert!(word.duration("quantum").is_err());
    }
}
