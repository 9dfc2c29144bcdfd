//! Names with parameters, as people write those of policies: `g-edf`, `c-edf:l3`, `nps-f:delta=1`.
//!
//! Parameters stand behind a colon, separated by commas; each is a word or `key=value`. The syntax,
//! the parameters that name clusters and the errors are the same in every room; which names and
//! parameters there are, and what they mean, is said by the room that reads them.

use crate::error::nearest;
use crate::{ClusterSpec, Duration, Error, Result};
use std::fmt;
use std::str::FromStr;

/// A name with its parameters. Names, words and keys are in lower case.
///
/// Invariant: no parameter is given twice.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Called {
    name: String,
    parameters: Vec<(String, Option<String>)>,
}

impl Called {
    /// The name without its parameters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Is this word given as a parameter?
    pub fn has(&self, word: &str) -> bool {
        self.words().any(|w| w == word)
    }

    /// The words that are given as parameters.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.parameters
            .iter()
            .filter(|(_, v)| v.is_none())
            .map(|(k, _)| k.as_str())
    }

    /// All parameters in the order in which they are written: a word, or a key with its value.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.parameters
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_deref()))
    }

    /// The value of a parameter.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(k, _)| k == key)
            .and_then(|(_, v)| v.as_deref())
    }

    /// The value of a parameter as something that is read from text; `known` says what to write
    /// instead.
    ///
    /// # Errors
    /// It is there and is not one of these.
    pub fn parsed<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &str,
        known: &str,
    ) -> Result<Option<T>> {
        self.value(key)
            .map(|text| {
                text.parse().map_err(|e| {
                    self.error(format!("`{key}={text}`: {e}"))
                        .remedy(format!("write {known}"))
                })
            })
            .transpose()
    }

    /// A positive duration.
    ///
    /// # Errors
    /// It is there and is zero or not a time.
    pub fn duration(&self, key: &str, known: &str) -> Result<Option<Duration>> {
        match self.parsed::<Duration>(key, known)? {
            Some(d) if d.is_zero() => Err(self
                .error(format!("`{key}` is zero"))
                .remedy("give a positive time")),
            other => Ok(other),
        }
    }

    /// The clusters that `l2` (around the caches of a level) or `size=4` (so many processors each)
    /// names.
    ///
    /// # Errors
    /// Both, several levels, or what is no number.
    pub fn clusters(&self) -> Result<Option<ClusterSpec>> {
        let mut levels = self
            .words()
            .filter_map(|w| w.strip_prefix('l')?.parse::<u8>().ok());
        let size = self.parsed::<u32>("size", "a number of processors such as `size=4`")?;
        match (levels.next(), levels.next(), size) {
            (level, None, None) => Ok(level.map(ClusterSpec::Level)),
            (None, None, Some(size)) => Ok(Some(ClusterSpec::Size(size))),
            _ => Err(self
                .error("the clusters are not clear")
                .remedy("write either one cache level or a size")),
        }
    }

    /// [`Called::clusters`] where there must be some.
    ///
    /// # Errors
    /// None are named; and as there.
    pub fn needed_clusters(&self) -> Result<ClusterSpec> {
        let name = &self.name;
        self.clusters()?.ok_or_else(|| {
            self.error(format!("`{name}` does not say which clusters"))
                .remedy(format!("write `{name}:l2`, `{name}:l3` or `{name}:size=4`"))
        })
    }

    /// Checks that each parameter is one of these words (`#` at the end stands for digits) or keys;
    /// `known` is what a remedy quotes, empty if there are none.
    ///
    /// # Errors
    /// The first that is not.
    pub fn only(&self, words: &[&str], keys: &[&str], known: &str) -> Result<()> {
        let is_known = |(key, value): &(String, Option<String>)| match value {
            Some(_) => keys.contains(&key.as_str()),
            None => words.iter().any(|w| match w.strip_suffix('#') {
                Some(stem) => key
                    .strip_prefix(stem)
                    .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())),
                None => w == key,
            }),
        };
        match self.parameters.iter().find(|p| !is_known(p)) {
            None => Ok(()),
            Some((key, value)) => {
                let text = value.as_ref().map_or(key.clone(), |v| format!("{key}={v}"));
                Err(Error::new(format!("`{text}` is no parameter of it"))
                    .at(format!("policy `{}`", self.name))
                    .remedy(match known {
                        "" => "it has none".to_owned(),
                        known => format!("write {known}"),
                    }))
            }
        }
    }

    /// An error about this policy's parameters.
    pub fn error(&self, cause: impl Into<String>) -> Error {
        Error::new(cause).at(format!("policy `{self}`"))
    }

    /// An error about a name that is none of these.
    pub fn unknown<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Error {
        let remedy = match nearest(&self.name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("policies are {}", names.collect::<Vec<_>>().join(", ")),
        };
        Error::new(format!("unknown policy `{}`", self.name)).remedy(remedy)
    }
}

impl FromStr for Called {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut called = Called {
            name: name.trim().to_lowercase(),
            parameters: Vec::new(),
        };
        for parameter in rest.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = match parameter.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
                None => (parameter, None),
            };
            let key = key.to_lowercase();
            if called.parameters.iter().any(|(k, _)| *k == key) {
                return Err(Error::new(format!("`{key}` is given twice"))
                    .at(format!("policy `{}`", called.name))
                    .remedy("write it once"));
            }
            called.parameters.push((key, value));
        }
        Ok(called)
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.name.clone();
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
    fn names_are_taken_apart_and_written_back() {
        let called: Called = " C-EDF: L2 , quantum = 1ms".parse().unwrap();
        assert_eq!(called.to_string(), "c-edf:l2,quantum=1ms");
        assert_eq!((called.name(), called.has("l2")), ("c-edf", true));
        assert_eq!(called.value("quantum"), Some("1ms"));
        assert_eq!(called.clusters().unwrap(), Some(ClusterSpec::Level(2)));
        assert_eq!(
            called.duration("quantum", "").unwrap(),
            Some(Duration::from_millis(1))
        );
        assert!(called.only(&["l#"], &["quantum"], "").is_ok());
        assert!(called.only(&["l#"], &[], "").is_err());
    }

    #[test]
    fn clusters_that_are_not_clear_are_refused() {
        for text in ["c-edf:l2,l3", "c-edf:l2,size=4", "c-edf:size=many"] {
            assert!(
                text.parse::<Called>().unwrap().clusters().is_err(),
                "{text}"
            );
        }
        let none: Called = "c-edf".parse().unwrap();
        assert_eq!(
            none.needed_clusters().unwrap_err().to_string(),
            "policy `c-edf`: `c-edf` does not say which clusters; write `c-edf:l2`, `c-edf:l3` or `c-edf:size=4`"
        );
    }
}
