//! JSON documents: what all of them have in common.
//!
//! Every document is an object that opens with `schema_version`. Durations are integers of
//! nanoseconds in fields whose names end in `_ns` ([`crate::time::ns`]).

use crate::error::{Error, Result};
use crate::shown::is_hidden;
use serde::Serialize;

/// The version of the fields of all documents. It grows when a field changes its name or meaning,
/// not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a, T> {
    schema_version: u32,
    #[serde(flatten)]
    content: &'a T,
}

/// The document of a struct or map: indented, with a line end.
///
/// # Errors
/// The content is not an object, or holds what JSON cannot.
pub fn pretty(content: &impl Serialize) -> Result<String> {
    finish(serde_json::to_string_pretty(&of(content)))
}

/// The same on one line, for documents with long lists of numbers.
///
/// # Errors
/// The content is not an object, or holds what JSON cannot.
pub fn compact(content: &impl Serialize) -> Result<String> {
    finish(serde_json::to_string(&of(content)))
}

fn of<T>(content: &T) -> Document<'_, T> {
    Document {
        schema_version: SCHEMA_VERSION,
        content,
    }
}

/// The same JSON, in which no character of a string acts on a terminal or on the text around it:
/// all such characters are written as `\u009b`.
pub fn plain(json: &str) -> String {
    use std::fmt::Write;
    // Line ends and spaces between values are no part of strings.
    let is_escaped = |c: char| c >= '\u{7f}' && is_hidden(c);
    let mut out = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if is_escaped(c) {
            // All of them have four digits; writing into a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn finish(text: serde_json::Result<String>) -> Result<String> {
    text.map(|text| plain(&text) + "\n")
        .map_err(|e| Error::new(format!("the result cannot be written as JSON: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Delay, Duration};

    #[derive(Serialize)]
    struct Content {
        #[serde(rename = "wcet_ns", with = "crate::time::ns")]
        wcet: Duration,
        #[serde(rename = "delays_ns", serialize_with = "crate::time::ns::serialize")]
        delays: Vec<Option<Delay>>,
    }

    #[test]
    fn a_document_opens_with_its_version_and_has_times_in_nanoseconds() {
        let content = Content {
            wcet: Duration::from_millis(4),
            delays: vec![Some(Delay::from_nanos(-170)), None],
        };
        assert_eq!(
            compact(&content).unwrap(),
            "{\"schema_version\":1,\"wcet_ns\":4000000,\"delays_ns\":[-170,null]}\n"
        );
        assert!(
            pretty(&content)
                .unwrap()
                .starts_with("{\n  \"schema_version\": 1,\n")
        );
    }

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_reads_back() {
        let content =
            std::collections::BTreeMap::from([("name", "\u{1b}[2J\u{9b}\u{7f}\u{202e}ä\n")]);
        for text in [compact(&content).unwrap(), pretty(&content).unwrap()] {
            assert!(
                !text.trim_end().contains(|c| is_hidden(c) && c != '\n'),
                "{text:?}"
            );
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read["name"], content["name"]);
        }
    }

    #[test]
    fn a_list_is_no_document() {
        let refusal = pretty(&vec![1, 2]).unwrap_err().to_string();
        assert!(refusal.contains("cannot be written as JSON"), "{refusal}");
    }
}
