//! Names of policies with their parameters, as people write them, against the catalog: `g-edf`,
//! `c-edf:l3`, `nps-f:delta=1`.
//!
//! The syntax is that of [`model::Called`].

use crate::catalog::{self, Info, Needs, Order};
use model::{Called, ClusterSpec, Duration, Error, Result};
use std::fmt;
use std::str::FromStr;

/// A policy with its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    info: &'static Info,
    called: Called,
}

impl Spec {
    /// Several policies, separated by commas. A comma stands within a policy's parameters as well:
    /// what follows it belongs to the policy before where that has parameters, and it is not the
    /// name of a policy.
    ///
    /// # Errors
    /// One of them is none.
    ///
    /// ```
    /// let specs = policy::Spec::list("g-edf:ties=index,quantum=1ms,p-edf,c-edf:l2,g-edf").unwrap();
    /// let names: Vec<String> = specs.iter().map(ToString::to_string).collect();
    /// assert_eq!(names, ["g-edf:ties=index,quantum=1ms", "p-edf", "c-edf:l2", "g-edf"]);
    /// ```
    pub fn list(text: &str) -> Result<Vec<Self>> {
        let mut texts: Vec<String> = Vec::new();
        for piece in text.split(',') {
            let called: Called = piece.parse()?;
            match texts.last_mut() {
                Some(last)
                    if last.contains(':')
                        && !piece.contains(':')
                        && catalog::find(called.name()).is_none() =>
                {
                    last.push(',');
                    last.push_str(piece);
                }
                _ => texts.push(piece.to_owned()),
            }
        }
        texts.iter().map(|text| text.parse()).collect()
    }

    /// What is known of the policy.
    pub fn info(&self) -> &'static Info {
        self.info
    }

    /// Is this word given as a parameter?
    pub fn has(&self, word: &str) -> bool {
        self.called.has(word)
    }

    /// The words that are given as parameters.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.called.words()
    }

    /// The value of a parameter.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.called.value(key)
    }

    /// The value of a parameter as something that is read from text.
    ///
    /// # Errors
    /// It is there and is not one of these.
    pub fn parsed<T: FromStr<Err: fmt::Display>>(&self, key: &str) -> Result<Option<T>> {
        self.called.parsed(key, self.info.parameters)
    }

    /// A positive duration.
    ///
    /// # Errors
    /// It is there and is zero or not a time.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>> {
        self.called.duration(key, self.info.parameters)
    }

    /// The clusters that a cache level or a size names.
    ///
    /// # Errors
    /// They are not clear.
    pub fn clusters(&self) -> Result<Option<ClusterSpec>> {
        self.called.clusters()
    }

    /// The clusters that a cache level or a size names, where there must be some.
    ///
    /// # Errors
    /// None are named, or they are not clear.
    pub fn needed_clusters(&self) -> Result<ClusterSpec> {
        self.called.needed_clusters()
    }

    /// The quantum at whose multiples alone the policy decides: its parameter, or `default` for a
    /// quantum-driven policy.
    ///
    /// # Errors
    /// The parameter is zero or not a time.
    pub fn quantum(&self, default: Duration) -> Result<Option<Duration>> {
        let given = self.duration("quantum")?;
        Ok(given.or(self.info.quantum_driven.then_some(default)))
    }

    /// What it has to be told.
    ///
    /// # Errors
    /// A parameter without meaning.
    pub fn needs(&self) -> Result<Needs> {
        (self.info.needs)(self)
    }

    /// Which job goes before which.
    ///
    /// # Errors
    /// A parameter without meaning.
    pub fn order(&self) -> Result<Order> {
        (self.info.order)(self)
    }

    /// The policy by the one way to write it, by which verdicts call it: `p-rm` for `p-fp:rm`,
    /// `c-nps-f:l3` for `c-nps-f`.
    ///
    /// # Errors
    /// A parameter without meaning.
    pub fn canonical(&self) -> Result<Spec> {
        (self.info.canonical)(self)?.parse()
    }

    /// The policy of a name by its canonical form, without the parameters that change no
    /// assignment: those that no test knows, such as `quantum`, and those that change no verdict.
    /// The length of a quantum stands in the assignment itself, and the policy compares it.
    ///
    /// # Errors
    /// No such policy; a parameter without meaning.
    pub fn for_assignment(name: &str) -> Result<Spec> {
        let spec: Spec = name.parse()?;
        let kept = spec
            .called
            .parameters()
            .filter(|(key, _)| !spec.info.unjudged.contains(key) && !spec.info.free.contains(key));
        let mut kept: Vec<String> = kept
            .map(|(key, value)| {
                value.map_or_else(|| key.to_owned(), |value| format!("{key}={value}"))
            })
            .collect();
        kept.sort_unstable();
        let named = match kept.is_empty() {
            true => spec.info.name.to_owned(),
            false => format!("{}:{}", spec.info.name, kept.join(",")),
        };
        named.parse::<Spec>()?.canonical()
    }

    /// The first parameter that no test knows, such as `quantum`.
    pub fn unjudged(&self) -> Option<&'static str> {
        let keys = self.info.unjudged.iter();
        keys.copied().find(|key| self.value(key).is_some())
    }

    /// An error about this policy's parameters.
    pub fn error(&self, cause: impl Into<String>) -> Error {
        self.called.error(cause)
    }
}

impl FromStr for Spec {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let called: Called = text.parse()?;
        let info = catalog::find(called.name())
            .ok_or_else(|| called.unknown(catalog::all().iter().map(|i| i.name)))?;
        called.only(info.words, info.keys, info.parameters)?;
        Ok(Spec { info, called })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.called.fmt(f)
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
        assert_eq!(
            spec.duration("quantum").unwrap(),
            Some(Duration::from_millis(1))
        );
    }

    #[test]
    fn an_assignment_is_for_each_way_to_write_its_policy() {
        for (name, other) in [
            ("pd2:quantum=2ms", "pd2"),
            ("ca-edf:quantum=2ms,cache=8MiB", "ca-edf"),
            ("c-edf:quantum=1ms,l2,ties=index", "c-edf:l2"),
            ("nps-f:delta=1", "nps-f"),
            ("c-nps-f:size=2,delta=2", "c-nps-f:delta=2,size=2"),
            ("p-fp:rm", "p-rm"),
        ] {
            let of = |name: &str| Spec::for_assignment(name).unwrap();
            assert_eq!(of(name), of(other), "{name}");
        }
        for (name, other) in [
            ("p-fp", "p-fp:dm"),
            ("nps-f:delta=2", "nps-f"),
            ("c-edf:l2", "c-edf:l3"),
        ] {
            let of = |name: &str| Spec::for_assignment(name).unwrap();
            assert_ne!(of(name), of(other), "{name}");
        }
        assert!(Spec::for_assignment("pedf").is_err());
    }

    #[test]
    fn several_are_told_apart_from_parameters() {
        let list = |text: &str| -> Result<Vec<String>> {
            Ok(Spec::list(text)?.iter().map(ToString::to_string).collect())
        };
        for (text, names) in [
            ("g-edf", vec!["g-edf"]),
            ("g-edf,p-edf", vec!["g-edf", "p-edf"]),
            (
                "g-edf:quantum=1ms,ties=index, P-EDF",
                vec!["g-edf:quantum=1ms,ties=index", "p-edf"],
            ),
            (
                "nps-f:delta=2,c-edf:l2,p-rm,g-edf",
                vec!["nps-f:delta=2", "c-edf:l2", "p-rm", "g-edf"],
            ),
        ] {
            assert_eq!(list(text).unwrap(), names);
        }
        for (text, cause) in [
            ("g-edf,pedf", "unknown policy `pedf`; did you mean `p-edf`?"),
            ("g-edf,", "unknown policy ``"),
            (
                "c-edf:l2,pedf",
                "policy `c-edf`: `pedf` is no parameter of it",
            ),
            ("g-edf,quantum=1ms", "unknown policy `quantum=1ms`"),
        ] {
            let e = list(text).unwrap_err().to_string();
            assert!(e.starts_with(cause), "{text}: {e}");
        }
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
