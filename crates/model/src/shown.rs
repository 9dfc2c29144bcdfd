//! Text from outside as people may be shown it: no character of it acts on the terminal, and no
//! quote of it is long.
//!
//! A name in a file may hold the escape sequences that move a cursor, rename a window or hide what
//! stands before, and characters that turn the direction of writing round. Such characters are
//! shown as `\u{1b}`, in tables, sentences, pages and pictures alike.

use std::borrow::Cow;

/// As many characters of what it refuses a sentence quotes.
pub const MOST_QUOTED: usize = 80;
/// A word of more characters is shortened, too: a path of such a length is none that anybody typed.
const LONGEST_WORD: usize = 255;
/// As many characters a place, a cause or a remedy has; only one with text from outside is longer.
const MOST_IN_ALL: usize = 1_000;

/// Tests whether a character acts on the terminal or on the text around it, instead of being seen.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Marks, embeddings, overrides and isolates of direction; separators of lines and
            // paragraphs.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // What has no width of its own and joins nothing; what is no character.
            | '\u{200b}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// The text with each hidden character escaped; line ends too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape_but(text, |_| false)
}

/// The same of text in lines, whose line ends and tabulators stay.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escape_but(text, |c| c == '\n' || c == '\t')
}

fn escape_but(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |c: char| is_hidden(c) && !stays(c);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A part of a sentence: one line, hidden characters escaped, quotes no longer than
/// [`MOST_QUOTED`].
///
/// Quoted is what stands between two backquotes, or between two double or single quotes of which
/// the first follows no letter. White space of any kind is a space. Words that no one types, such
/// as a path of 5,000 letters, are shortened like quotes.
pub fn sentence(text: &str) -> String {
    let flat: String = text
        .chars()
        .map(|c| {
            if matches!(c, '\n' | '\r' | '\t') {
                ' '
            } else {
                c
            }
        })
        .collect();
    let mut out = String::with_capacity(flat.len().min(4 * MOST_IN_ALL));
    let mut rest = flat.as_str();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        out.push(c);
        rest = behind;
        let opens = c == '`' || (c == '"' || c == '\'') && !before.is_alphanumeric();
        before = c;
        if let Some(end) = behind.find(c).filter(|_| opens) {
            out.push_str(&shortened(&behind[..end], MOST_QUOTED));
            out.push(c);
            rest = &behind[end + c.len_utf8()..];
        }
    }
    let words: Vec<Cow<'_, str>> = out
        .split(' ')
        .map(|word| match word.chars().count() > LONGEST_WORD {
            true => shortened(word, MOST_QUOTED),
            false => Cow::Borrowed(word),
        })
        .collect();
    escaped(&shortened(&words.join(" "), MOST_IN_ALL)).into_owned()
}

/// The text, its middle replaced by `…` where it has more characters than `most`: its begin and its
/// end tell most.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    // A character has at most four bytes.
    if text.len() <= most || text.chars().count() <= most {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (most / 2, (most - 1) / 2);
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let back = |n: usize| text.char_indices().nth_back(n - 1).map_or(0, |(at, _)| at);
    Cow::Owned(format!("{}…{}", &text[..at(head)], &text[back(tail)..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_shown_instead() {
        assert_eq!(
            escaped("a\u{1b}[31mb\n\u{9b}2J"),
            "a\\u{1b}[31mb\\n\\u{9b}2J"
        );
        assert_eq!(escaped("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(escaped_lines("a\n\tb\r\n"), "a\n\tb\\r\n");
        assert!(matches!(escaped("Größe 5 µs …"), Cow::Borrowed(_)));
    }

    #[test]
    fn quotes_are_short() {
        let long = "x".repeat(5000);
        for (text, quote) in [
            (format!("unknown key `{long}` there"), '`'),
            (
                format!("invalid type: string \"{long}\", expected a number"),
                '"',
            ),
            (format!("invalid value '{long}' for '--seed <S>'"), '\''),
        ] {
            let sentence = sentence(&text);
            let quoted = sentence.split(quote).nth(1).unwrap();
            assert_eq!(quoted.chars().count(), MOST_QUOTED, "{sentence}");
            assert_eq!(sentence.split(quote).next(), text.split(quote).next());
            assert!(
                sentence.ends_with(text.rsplit(quote).next().unwrap()),
                "{sentence}"
            );
        }
        assert_eq!(sentence("it's `a` and it's b"), "it's `a` and it's b");
        assert_eq!(
            sentence(&format!("{long}: a")).chars().count(),
            MOST_QUOTED + 2
        );
        assert_eq!(sentence(&"a b".repeat(5000)).chars().count(), MOST_IN_ALL);
        assert_eq!(sentence("`a\u{1b}`\nb `"), "`a\\u{1b}` b `");
    }

    #[test]
    fn the_middle_is_left_out() {
        assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
        assert_eq!(shortened("abcdefghi", 8), "abcd…ghi");
        assert_eq!(shortened("äöüäöüäöü", 4), "äö…ü");
    }
}
