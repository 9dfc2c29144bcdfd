//! Reading files that people write: every error names the file, the line and the key, and suggests
//! what was meant.

use crate::error::{Error, Result, nearest};
use crate::shown::is_hidden;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes as text.
///
/// # Errors
/// Empty, NUL bytes, not UTF-8; with the line.
pub fn text_of(bytes: Vec<u8>) -> Result<String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::new("the file is empty").remedy("give it at least one task or entry"));
    }
    let line_of = |at: usize| 1 + bytes[..at].iter().filter(|b| **b == b'\n').count();
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        return Err(Error::new("the file holds a NUL byte")
            .at(format!("line {}", line_of(at)))
            .remedy("give a text file"));
    }
    if let Err(e) = std::str::from_utf8(&bytes) {
        return Err(Error::new("the file is not UTF-8 text")
            .at(format!("line {}", line_of(e.valid_up_to())))
            .remedy("save it as UTF-8"));
    }
    // Checked just above.
    String::from_utf8(bytes).map_err(|_| Error::new("the file is not UTF-8 text"))
}

/// A TOML document with its places.
pub struct Document<'i> {
    lines: Lines,
    root: Spanned<DeTable<'i>>,
}

/// Turns offsets into lines, in logarithmic time: a file may hold a million tasks.
#[derive(Clone, Debug)]
struct Lines {
    /// The offset behind every line end, ascending.
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        Lines {
            starts: text
                .bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(at, _)| at + 1)
                .collect(),
        }
    }
    /// The number of the line of an offset, from 1.
    fn at(&self, offset: usize) -> usize {
        1 + self.starts.partition_point(|start| *start <= offset)
    }
}

/// The most bytes of a document whose every value is kept with its place: TOML, and the JSON of
/// rt-app.
///
/// With [`MAX_TABLES`] it keeps what is made of a document below 1.5 GiB.
pub const MAX_DOCUMENT: usize = 8 << 20;

/// The most tables, lists and dots of such a document. A table may take three bytes of text (`a.`,
/// `{}`), and takes more than a kilobyte: it has room for eleven keys from its first one on.
pub const MAX_TABLES: usize = 500_000;

/// Refuses a document that is too large.
///
/// # Errors
/// It has more than [`MAX_DOCUMENT`] bytes, or more than [`MAX_TABLES`] brackets, braces and dots,
/// wherever they stand.
pub fn check_size(text: &str) -> Result<()> {
    let tables = || {
        text.bytes()
            .filter(|b| matches!(b, b'[' | b'{' | b'.'))
            .count()
    };
    let cause = if text.len() > MAX_DOCUMENT {
        format!("the text is larger than {} MiB", MAX_DOCUMENT >> 20)
    } else if tables() > MAX_TABLES {
        format!("the text has more than {MAX_TABLES} tables, lists and dots")
    } else {
        return Ok(());
    };
    Err(Error::new(cause).remedy(
        "split it; `check` and `simulate` take task sets of any number in a batch, one a line of JSON",
    ))
}

impl<'i> Document<'i> {
    /// Parses the syntax.
    ///
    /// # Errors
    /// Not TOML: the line and what was expected there; larger than [`MAX_DOCUMENT`].
    pub fn parse(text: &'i str) -> Result<Self> {
        check_size(text)?;
        let lines = Lines::of(text);
        let root = DeTable::parse(text).map_err(|e| {
            let error = Error::new(e.message().replace('\n', ", ")).remedy("the file must be TOML");
            match e.span() {
                Some(span) => error.at(format!("line {}", lines.at(span.start))),
                None => error,
            }
        })?;
        Ok(Document { lines, root })
    }

    /// The outermost table.
    pub fn root(&self) -> Table<'_, 'i> {
        Table {
            lines: &self.lines,
            table: self.root.get_ref(),
            start: 0,
        }
    }
}

/// A table of a document.
#[derive(Clone, Copy)]
pub struct Table<'d, 'i> {
    lines: &'d Lines,
    table: &'d DeTable<'i>,
    start: usize,
}

/// A value of a table, with its key.
#[derive(Clone)]
pub struct Value<'d, 'i> {
    lines: &'d Lines,
    key: String,
    value: &'d DeValue<'i>,
    span: Range<usize>,
}

impl<'d, 'i> Table<'d, 'i> {
    /// The line it starts on.
    pub fn line(&self) -> usize {
        self.lines.at(self.start)
    }

    /// Refuses keys that are not in `known`, with the nearest one that is.
    ///
    /// # Errors
    /// The first unknown key, in the order of the file.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        let unknown = self
            .table
            .keys()
            .filter(|k| !known.contains(&k.get_ref().as_ref()))
            .min_by_key(|k| k.span().start);
        let Some(key) = unknown else { return Ok(()) };
        let written = key.get_ref().as_ref();
        let remedy = match nearest(written, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "known keys are {}",
                known
                    .iter()
                    .map(|k| format!("`{k}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        Err(Error::new(format!("unknown key `{written}`"))
            .at(format!("line {}", self.lines.at(key.span().start)))
            .remedy(remedy))
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<Value<'d, 'i>> {
        self.table.get(key).map(|v| Value {
            lines: self.lines,
            key: key.to_owned(),
            value: v.get_ref(),
            span: v.span(),
        })
    }

    /// Every key with its value, in the order of the keys.
    pub fn entries(&self) -> impl Iterator<Item = (String, Value<'d, 'i>)> {
        let lines = self.lines;
        self.table.iter().map(move |(key, v)| {
            let key = key.get_ref().to_string();
            let value = Value {
                lines,
                key: key.clone(),
                value: v.get_ref(),
                span: v.span(),
            };
            (key, value)
        })
    }

    /// The value of a key that has to be there.
    ///
    /// # Errors
    /// It is not there: names the line of the table.
    pub fn need(&self, key: &str) -> Result<Value<'d, 'i>> {
        self.get(key).ok_or_else(|| {
            Error::new(format!("the key `{key}` is missing"))
                .at(format!("line {}", self.line()))
                .remedy(format!("add `{key} = …`"))
        })
    }
}

impl<'d, 'i> Value<'d, 'i> {
    /// The line of the value.
    pub fn line(&self) -> usize {
        self.lines.at(self.span.start)
    }
    /// An error about this value.
    pub fn error(&self, cause: impl Into<String>) -> Error {
        self.place(Error::new(cause))
    }
    /// Puts the line and the key in front of an error.
    pub fn place(&self, error: Error) -> Error {
        error.at(format!(
            "line {}, `{}`",
            self.lines.at(self.span.start),
            self.key
        ))
    }
    fn wrong_kind(&self, wanted: &str, example: &str) -> Error {
        self.error(format!(
            "expected {wanted}, found {}",
            self.value.type_str()
        ))
        .remedy(format!("write {example}"))
    }
    /// Is it a table?
    pub fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }
    /// As text.
    ///
    /// # Errors
    /// Not a string.
    pub fn text(&self) -> Result<&'d str> {
        self.value
            .as_str()
            .ok_or_else(|| self.wrong_kind("text", "it in double quotes"))
    }
    /// As something that is read from text: a time, a size.
    ///
    /// # Errors
    /// Not a string, or not one of these: the cause of its parser, with line and key.
    pub fn parsed<T: FromStr<Err = Error>>(&self) -> Result<T> {
        // A bare number is the commonest slip: say what is missing rather than what TOML calls it.
        let text = match self.value {
            DeValue::Integer(n) => n.to_string(),
            DeValue::Float(n) => n.to_string(),
            _ => self.text()?.to_owned(),
        };
        text.parse().map_err(|e| self.place(e))
    }
    /// As a number.
    ///
    /// # Errors
    /// Neither an integer nor a finite floating-point number.
    pub fn number(&self) -> Result<f64> {
        let text = match self.value {
            DeValue::Integer(n) => n.to_string(),
            DeValue::Float(n) => n.to_string(),
            _ => return Err(self.wrong_kind("a number", "a number without quotes")),
        };
        match text.replace('_', "").parse::<f64>() {
            Ok(n) if n.is_finite() => Ok(n),
            _ => Err(self.error(format!("`{text}` is not a finite number"))),
        }
    }
    /// As a whole number; text of digits counts too, for numbers above those of TOML.
    ///
    /// # Errors
    /// Not a number, negative, with a fraction, 2^64 or above.
    pub fn whole(&self) -> Result<u64> {
        let text = match self.value {
            DeValue::Integer(n) if n.radix() == 10 => n.as_str().replace('_', ""),
            DeValue::String(s) => s.to_string(),
            _ => {
                return Err(self.wrong_kind(
                    "a whole number",
                    "a number without quotes, sign and fraction",
                ));
            }
        };
        text.parse::<u64>().map_err(|_| {
            self.error(format!("`{text}` is not a whole number"))
                .remedy("give a number from 0 to 2^64 - 1")
        })
    }
    /// As a boolean.
    ///
    /// # Errors
    /// Neither `true` nor `false`.
    pub fn boolean(&self) -> Result<bool> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong_kind("true or false", "`true` or `false`"))
    }
    /// As a table.
    ///
    /// # Errors
    /// Not a table.
    pub fn table(&self) -> Result<Table<'d, 'i>> {
        let table = self
            .value
            .as_table()
            .ok_or_else(|| self.wrong_kind("a table", "`{ key = value }`"))?;
        Ok(Table {
            lines: self.lines,
            table,
            start: self.span.start,
        })
    }
    /// As a list, each element with the key of the list.
    ///
    /// # Errors
    /// Not a list.
    pub fn list(&self) -> Result<Vec<Value<'d, 'i>>> {
        let array = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong_kind("a list", "`[…]`"))?;
        Ok(array
            .iter()
            .map(|v| Value {
                lines: self.lines,
                key: self.key.clone(),
                value: v.get_ref(),
                span: v.span(),
            })
            .collect())
    }
}

/// Text as a basic string of TOML in one line, fit for a key too.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // All of these have four digits.
            c if is_hidden(c) => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
