//! Keys without a value: workgen, which prepares files for rt-app, gives them one, and files that
//! are written for it leave it out (`"suspend",`).

use std::borrow::Cow;

/// What stands for a value that was left out.
const VALUE: &str = ":\"\"";

/// A text that is JSON but for comments and commas, and how its places are those of the original.
pub(super) struct Completed<'t> {
    pub text: Cow<'t, str>,
    /// Where values were put in, as places of the original, ascending.
    inserted: Vec<usize>,
}

impl Completed<'_> {
    /// The place in the original of a place in the text.
    pub fn original(&self, at: usize) -> usize {
        let mut before = 0;
        for (count, place) in self.inserted.iter().enumerate() {
            if place + count * VALUE.len() >= at {
                break;
            }
            before = (count + 1) * VALUE.len();
        }
        at.saturating_sub(before)
    }
}

/// Gives each key without a value an empty text.
pub(super) fn complete(text: &str) -> Completed<'_> {
    let inserted = bare_keys(text.as_bytes());
    if inserted.is_empty() {
        return Completed {
            text: text.into(),
            inserted,
        };
    }
    let mut out = String::with_capacity(text.len() + inserted.len() * VALUE.len());
    let mut from = 0;
    for at in &inserted {
        // Just behind a quotation mark, which is one byte.
        out.push_str(&text[from..*at]);
        out.push_str(VALUE);
        from = *at;
    }
    out.push_str(&text[from..]);
    Completed {
        text: out.into(),
        inserted,
    }
}

/// The ends of keys that a comma or the end of their object follows.
fn bare_keys(text: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    // Of each bracket that is open: is it an object?
    let mut open = Vec::new();
    // The end of a text that may be a key, and has no colon behind it yet.
    let mut key = None;
    let mut may_be_key = false;
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        match byte {
            b'/' if matches!(text.get(at + 1), Some(b'/' | b'*')) => {
                at = comment_end(text, at);
                continue;
            }
            b'"' => {
                at = text_end(text, at);
                key = (may_be_key && open.last() == Some(&true)).then_some(at);
                may_be_key = false;
                continue;
            }
            b'{' | b'[' => {
                open.push(byte == b'{');
                may_be_key = true;
                key = None;
            }
            b',' | b'}' => {
                ends.extend(key.take());
                may_be_key = byte == b',';
                if byte == b'}' {
                    open.pop();
                }
            }
            b']' => {
                open.pop();
                key = None;
            }
            byte if byte.is_ascii_whitespace() => {}
            // A colon; or what the reader refuses.
            _ => key = None,
        }
        at += 1;
    }
    ends
}

/// The place behind a comment that begins at `at`.
fn comment_end(text: &[u8], at: usize) -> usize {
    let (end, length): (&[u8], usize) = match text[at + 1] {
        b'/' => (b"\n", 1),
        _ => (b"*/", 2),
    };
    let inside = &text[at + 2..];
    let found = inside.windows(length).position(|w| w == end);
    found.map_or(text.len(), |found| at + 2 + found + length)
}

/// The place behind a text that begins at `at`.
fn text_end(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < text.len() {
        match text[end] {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_a_value_get_one_and_places_stay() {
        for (text, expected) in [
            (r#"{"a", "b": 1}"#, r#"{"a":"", "b": 1}"#),
            (
                r#"{"b": "x", "a" /* , */ }"#,
                r#"{"b": "x", "a":"" /* , */ }"#,
            ),
            (
                r#"{"b": ["x", "y"], "a": {"c"}}"#,
                r#"{"b": ["x", "y"], "a": {"c":""}}"#,
            ),
            (r#"{"a\"": "b",}"#, r#"{"a\"": "b",}"#),
            ("{\"a\" // :\n, }", "{\"a\":\"\" // :\n, }"),
        ] {
            let completed = complete(text);
            assert_eq!(completed.text, expected);
            for (at, c) in text.char_indices().filter(|(_, c)| c.is_ascii_lowercase()) {
                let there = completed.text.char_indices();
                let back = there
                    .filter(|(_, d)| *d == c)
                    .map(|(at, _)| completed.original(at));
                assert!(back.into_iter().any(|b| b == at), "{c} of {text}");
            }
        }
        for text in ["", "\"", "{\"a", "/*", "//", "{\"\\", "[\"a\"]", "\"a\","] {
            assert_eq!(complete(text).text, text);
        }
    }
}
