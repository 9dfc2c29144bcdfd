//! Reads PDF files for tests, by the rules of ISO 32000-1 and nothing of what writes them here: the
//! table of objects, objects, the operators of a page, and the texts that they show.

mod scanner;

pub use scanner::Value;
use scanner::{Scanner, utf16};
use std::collections::BTreeMap;
use std::io::Read;

/// A file and where its objects are.
pub struct Document<'a> {
    bytes: &'a [u8],
    offsets: BTreeMap<usize, usize>,
    trailer: Value,
}

/// A line of text on a page.
#[derive(Debug)]
pub struct Line {
    pub text: String,
    /// The name of its font, as in the file.
    pub font: String,
    /// Its corners on the page: the ends of its base line.
    pub from: (f64, f64),
    pub to: (f64, f64),
}

impl<'a> Document<'a> {
    /// Reads the table at the end of the file (§7.5.4).
    pub fn read(bytes: &'a [u8]) -> Document<'a> {
        assert!(bytes.starts_with(b"%PDF-1.7\n") && bytes.ends_with(b"%%EOF"));
        let wanted = b"startxref";
        let last = bytes.windows(wanted.len()).rposition(|w| w == wanted);
        let after = last.expect("startxref") + wanted.len();
        let start = Scanner { bytes, at: after }.value().expect("a place");
        let mut table = Scanner {
            bytes,
            at: start.number() as usize,
        };
        assert_eq!(table.value(), Some(Value::Word("xref".to_owned())));
        let first = table.value().expect("a number").number() as usize;
        let count = table.value().expect("a number").number() as usize;
        let mut offsets = BTreeMap::new();
        for number in first..first + count {
            let offset = table.value().expect("an offset").number() as usize;
            table.value();
            if table.value() == Some(Value::Word("n".to_owned())) {
                offsets.insert(number, offset);
            }
        }
        assert_eq!(table.value(), Some(Value::Word("trailer".to_owned())));
        let trailer = table.value().expect("a trailer");
        assert_eq!(trailer.table()["Size"].number() as usize, first + count);
        Document {
            bytes,
            offsets,
            trailer,
        }
    }

    /// An object by its number, which stands at its place.
    fn object(&self, number: usize) -> (Value, Scanner<'a>) {
        let mut scanner = Scanner {
            bytes: self.bytes,
            at: self.offsets[&number],
        };
        assert_eq!(scanner.value(), Some(Value::Number(number as f64)));
        scanner.value();
        assert_eq!(scanner.value(), Some(Value::Word("obj".to_owned())));
        (scanner.value().expect("an object"), scanner)
    }

    /// A value, and if it refers to an object, that.
    fn follow(&self, value: &Value) -> Value {
        match value {
            Value::Reference(number) => self.object(*number).0,
            other => other.clone(),
        }
    }

    pub fn entry(&self, table: &Value, name: &str) -> Value {
        let value = table.table().get(name);
        self.follow(value.unwrap_or_else(|| panic!("no {name} in {table:?}")))
    }

    /// What a stream holds (§7.3.8), unpacked.
    pub fn stream(&self, value: &Value) -> Vec<u8> {
        let Value::Reference(number) = value else {
            panic!("no stream: {value:?}");
        };
        let (table, mut scanner) = self.object(*number);
        assert_eq!(scanner.value(), Some(Value::Word("stream".to_owned())));
        let from = scanner.at + 1;
        let length = self.entry(&table, "Length").number() as usize;
        let packed = &self.bytes[from..from + length];
        if !table.table().contains_key("Filter") {
            return packed.to_vec();
        }
        let mut out = Vec::new();
        let mut unpacked = flate2::read::ZlibDecoder::new(packed);
        unpacked.read_to_end(&mut out).expect("a packed stream");
        out
    }

    pub fn pages(&self) -> Vec<Value> {
        let catalog = self.entry(&self.trailer, "Root");
        let pages = self.entry(&catalog, "Pages");
        let kids: Vec<Value> = pages.table()["Kids"]
            .list()
            .iter()
            .map(|kid| self.follow(kid))
            .collect();
        assert_eq!(pages.table()["Count"].number() as usize, kids.len());
        kids
    }

    pub fn info(&self) -> Value {
        self.entry(&self.trailer, "Info")
    }

    /// The operators of a page in their order, each with its operands (§7.8.2).
    pub fn operators(&self, page: &Value) -> Vec<(String, Vec<Value>)> {
        let content = self.stream(&page.table()["Contents"]);
        let mut scanner = Scanner {
            bytes: &content,
            at: 0,
        };
        let (mut operands, mut operators) = (Vec::new(), Vec::new());
        while let Some(value) = scanner.value() {
            match value {
                Value::Word(operator) => operators.push((operator, std::mem::take(&mut operands))),
                operand => operands.push(operand),
            }
        }
        operators
    }

    /// The lines of text of a page, in the order in which they are drawn.
    pub fn texts(&self, page: &Value) -> Vec<Line> {
        let resources = self.entry(page, "Resources");
        let fonts = self.entry(&resources, "Font");
        let mut lines = Vec::new();
        let (mut base, mut matrix, mut font) = (IDENTITY, IDENTITY, None);
        for (operator, operands) in self.operators(page) {
            match operator.as_str() {
                "cm" => base = times(six(&operands), base),
                "Tm" => matrix = times(six(&operands), base),
                "Tf" => {
                    let read = Font::read(self, &self.entry(&fonts, operands[0].name()));
                    font = Some((read, operands[1].number()));
                }
                "Tj" => {
                    let (font, size) = font.as_ref().expect("a font");
                    let glyphs = operands[0].bytes();
                    let length = font.width(glyphs) * size;
                    lines.push(Line {
                        text: font.text(glyphs),
                        font: font.name.clone(),
                        from: (matrix[4], matrix[5]),
                        to: (
                            matrix[4] + length * matrix[0],
                            matrix[5] + length * matrix[1],
                        ),
                    });
                }
                _ => {}
            }
        }
        lines
    }
}

type Matrix = [f64; 6];
const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

fn six(operands: &[Value]) -> Matrix {
    std::array::from_fn(|at| operands[at].number())
}

/// First `a`, then `b` (§8.3.4).
fn times(a: Matrix, b: Matrix) -> Matrix {
    let x = |x: f64, y: f64| x * b[0] + y * b[2];
    let y = |x: f64, y: f64| x * b[1] + y * b[3];
    [
        x(a[0], a[1]),
        y(a[0], a[1]),
        x(a[2], a[3]),
        y(a[2], a[3]),
        x(a[4], a[5]) + b[4],
        y(a[4], a[5]) + b[5],
    ]
}

/// A font of type 0 (§9.7): two bytes a glyph.
struct Font {
    name: String,
    /// In thousandths of an em.
    widths: BTreeMap<u16, f64>,
    characters: BTreeMap<u16, String>,
}

impl Font {
    fn read(document: &Document<'_>, font: &Value) -> Font {
        let descendants = document.entry(font, "DescendantFonts");
        let glyphs = document.follow(&descendants.list()[0]);
        let name = font.table()["BaseFont"].name().to_owned();
        // `first last width`, as they are written here (§9.7.4.3).
        let widths = document.entry(&glyphs, "W").numbers();
        let widths = widths.chunks(3).flat_map(|row| {
            let (first, last) = (row[0] as u16, row[1] as u16);
            (first..=last).map(|glyph| (glyph, row[2]))
        });
        let descriptor = document.entry(&glyphs, "FontDescriptor");
        let file = document.stream(&descriptor.table()["FontFile2"]);
        ttf_parser::Face::parse(&file, 0).expect("a font in the file");
        Font {
            name,
            widths: widths.collect(),
            characters: characters(&document.stream(&font.table()["ToUnicode"])),
        }
    }

    fn glyphs(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
        bytes
            .chunks(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
    }

    fn text(&self, bytes: &[u8]) -> String {
        Self::glyphs(bytes)
            .map(|glyph| self.characters[&glyph].as_str())
            .collect()
    }

    /// In ems.
    fn width(&self, bytes: &[u8]) -> f64 {
        Self::glyphs(bytes)
            .map(|glyph| self.widths[&glyph] / 1000.0)
            .sum()
    }
}

/// The rows between `beginbfchar` and `endbfchar` (§9.10.3).
fn characters(map: &[u8]) -> BTreeMap<u16, String> {
    let mut scanner = Scanner { bytes: map, at: 0 };
    let (mut characters, mut within, mut glyph) = (BTreeMap::new(), false, None);
    while let Some(value) = scanner.value() {
        match (&value, glyph.take()) {
            (Value::Word(word), _) => within = word == "beginbfchar",
            (Value::Text(bytes), None) if within => glyph = Some(bytes.clone()),
            (Value::Text(bytes), Some(of)) => {
                characters.insert(u16::from_be_bytes([of[0], of[1]]), utf16(bytes));
            }
            _ => {}
        }
    }
    characters
}
