//! Values of PDF files, and how they are read one after the other (ISO 32000-1, §7.3).

use std::collections::BTreeMap;

/// An object (§7.3), or an operator of a page.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    List(Vec<Value>),
    Table(BTreeMap<String, Value>),
    Reference(usize),
    Word(String),
}

impl Value {
    pub fn number(&self) -> f64 {
        match self {
            Value::Number(number) => *number,
            other => panic!("no number: {other:?}"),
        }
    }
    pub fn name(&self) -> &str {
        match self {
            Value::Name(name) => name,
            other => panic!("no name: {other:?}"),
        }
    }
    pub fn list(&self) -> &[Value] {
        match self {
            Value::List(list) => list,
            other => panic!("no list: {other:?}"),
        }
    }
    pub fn numbers(&self) -> Vec<f64> {
        self.list().iter().map(Value::number).collect()
    }
    pub fn table(&self) -> &BTreeMap<String, Value> {
        match self {
            Value::Table(table) => table,
            other => panic!("no table: {other:?}"),
        }
    }
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Text(bytes) => bytes,
            other => panic!("no text: {other:?}"),
        }
    }
    /// A text of the document: ASCII, or UTF-16 with its mark (§7.9.2).
    pub fn text(&self) -> String {
        match self.bytes() {
            [0xfe, 0xff, rest @ ..] => utf16(rest),
            bytes => String::from_utf8(bytes.to_vec()).expect("ASCII"),
        }
    }
}

pub fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes
        .chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    String::from_utf16(&units).expect("UTF-16")
}

/// Reads one value after the other.
pub struct Scanner<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn is_plain(byte: u8) -> bool {
        !byte.is_ascii_whitespace() && !b"()<>[]/%".contains(&byte)
    }

    fn plain(&mut self) -> String {
        let from = self.at;
        while self.peek().is_some_and(Self::is_plain) {
            self.at += 1;
        }
        String::from_utf8(self.bytes[from..self.at].to_vec()).expect("ASCII")
    }

    fn skip(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self.peek().is_some_and(|byte| byte != b'\n') {
                    self.at += 1;
                }
            } else if !byte.is_ascii_whitespace() {
                break;
            } else {
                self.at += 1;
            }
        }
    }

    fn until(&mut self, end: &str) -> Vec<Value> {
        let mut values = Vec::new();
        loop {
            self.skip();
            if self.bytes[self.at..].starts_with(end.as_bytes()) {
                self.at += end.len();
                return values;
            }
            let value = self.value().expect("an end");
            // `5 0 R` is a reference.
            let refers = value == Value::Word("R".to_owned());
            match values[..] {
                [.., Value::Number(number), Value::Number(_)] if refers => {
                    values.truncate(values.len() - 2);
                    values.push(Value::Reference(number as usize));
                }
                _ => values.push(value),
            }
        }
    }

    pub fn value(&mut self) -> Option<Value> {
        self.skip();
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        Some(match rest {
            [b'<', b'<', ..] => {
                self.at += 2;
                let values = self.until(">>");
                let pairs = values.chunks(2).map(|pair| match pair {
                    [Value::Name(name), value] => (name.clone(), value.clone()),
                    other => panic!("no entry: {other:?}"),
                });
                Value::Table(pairs.collect())
            }
            [b'<', ..] => {
                let end = rest.iter().position(|byte| *byte == b'>').expect("an end");
                self.at += end + 1;
                let digit = |byte: &u8| (*byte as char).to_digit(16).expect("a digit") as u8;
                let digits: Vec<u8> = rest[1..end].iter().map(digit).collect();
                Value::Text(digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect())
            }
            [b'(', ..] => Value::Text(self.literal()),
            [b'[', ..] => {
                self.at += 1;
                Value::List(self.until("]"))
            }
            [b'/', ..] => {
                self.at += 1;
                Value::Name(self.plain())
            }
            _ => {
                let word = self.plain();
                assert!(!word.is_empty(), "nothing can be read at {}", self.at);
                word.parse().map_or(Value::Word(word), Value::Number)
            }
        })
    }

    /// A text within parentheses (§7.3.4.2).
    fn literal(&mut self) -> Vec<u8> {
        let (mut text, mut depth) = (Vec::new(), 0);
        loop {
            let byte = self.peek().expect("an end");
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            match byte {
                b'(' if depth == 1 => {}
                b')' if depth == 0 => return text,
                b'\\' => text.push(self.escaped()),
                other => text.push(other),
            }
        }
    }

    fn escaped(&mut self) -> u8 {
        let rest = &self.bytes[self.at..];
        let octal = rest
            .iter()
            .take(3)
            .take_while(|d| (b'0'..=b'7').contains(d));
        let (length, value) = octal.fold((0, 0), |(n, v), d| (n + 1, v * 8 + u32::from(d - b'0')));
        self.at += length.max(1);
        match rest[0] {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            _ if length > 0 => u8::try_from(value).expect("a byte"),
            other => other,
        }
    }
}
