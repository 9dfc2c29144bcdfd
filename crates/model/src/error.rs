//! Errors as sentences: what is wrong, where, and what to do about it.
//!
//! Every room returns this one type. The binary prints it in one line and exits with status 2.

use crate::shown::sentence;
use std::fmt;
use std::path::Path;

/// A failure that a user can act on. Displays as `place: cause; remedy`, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    place: String,
    cause: String,
    remedy: String,
}

/// The result of everything that can fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with its cause, as a clause that starts in lower case and has no final period.
    pub fn new(cause: impl Into<String>) -> Self {
        Error {
            place: String::new(),
            cause: cause.into(),
            remedy: String::new(),
        }
    }

    /// The error of a file operation: names the file and what the system said, and how to mend the
    /// usual causes.
    pub fn io(path: impl AsRef<Path>, doing: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let remedy = match error.kind() {
            K::NotFound => "check the path",
            K::PermissionDenied => "choose another path, or ask for the right to it",
            K::StorageFull | K::QuotaExceeded => "free space, or choose another path",
            K::ReadOnlyFilesystem => "choose a path on a writable file system",
            K::IsADirectory => "name a file, not a directory",
            K::NotADirectory => "a part of the path is a file: choose another path",
            K::InvalidData => "the file must be UTF-8 text",
            K::FileTooLarge => {
                "raise the limit on the size of files (`ulimit -f`), or choose another path"
            }
            K::OutOfMemory => "free memory, or raise the limit on it (`ulimit -v`)",
            _ => "",
        };
        Error::new(format!("cannot {doing}: {}", io_cause(error)))
            .at(path.as_ref().display())
            .remedy(remedy)
    }

    /// The same error with its place: a file, `file:line`, a key. Places nest: the outer one is put
    /// in front.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        let outer = place.to_string();
        self.place = match (outer.is_empty(), self.place.is_empty()) {
            (true, _) => self.place,
            (_, true) => outer,
            _ => format!("{outer}: {}", self.place),
        };
        self
    }

    /// The same error with what the user can do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Where it went wrong; empty if nowhere in particular.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What went wrong.
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// What the user can do about it; empty if nothing is known to help.
    pub fn advice(&self) -> &str {
        &self.remedy
    }
}

/// What the system said, without Rust's `(os error N)`.
fn io_cause(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line of bounded length, whatever went into the parts: a name may hold anything.
        if !self.place.is_empty() {
            write!(f, "{}: ", sentence(&self.place))?;
        }
        write!(f, "{}", sentence(&self.cause))?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", sentence(&self.remedy))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// As many characters of what was written are compared.
const LONGEST_MEANT: usize = 200;

/// The candidate nearest to what was written, if it is near enough to be meant.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // What is longer than any candidate by far is near none, and comparing takes time with its
    // length.
    let written: String = written
        .chars()
        .take(LONGEST_MEANT)
        .collect::<String>()
        .to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&written, &c.to_lowercase()), c))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, c)| *distance <= 1.max(c.len().max(written.len()) / 2))
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_one_sentence() {
        let e = Error::new("unknown key `wcett`")
            .at("line 3")
            .at("set.toml")
            .remedy("did you mean `wcet`?");
        assert_eq!(
            e.to_string(),
            "set.toml: line 3: unknown key `wcett`; did you mean `wcet`?"
        );
    }

    /// A file of 100 MB may have one key only.
    #[test]
    fn an_error_is_short_and_does_not_act_on_the_terminal() {
        let e = Error::new(format!("unknown key `{}`", "k\u{1b}[2J".repeat(100_000)))
            .at("a\u{7}b.toml")
            .to_string();
        assert!(
            e.starts_with("a\\u{7}b.toml: unknown key `k\\u{1b}[2J"),
            "{e}"
        );
        assert!(
            e.chars().count() < 400 && !e.contains(char::is_control),
            "{e}"
        );
    }

    #[test]
    fn nearest_suggests_only_what_may_be_meant() {
        assert_eq!(nearest("wcett", ["wcet", "period"]), Some("wcet"));
        assert_eq!(nearest("peroid", ["wcet", "period"]), Some("period"));
        assert_eq!(nearest("xyz", ["wcet", "period"]), None);
    }
}
