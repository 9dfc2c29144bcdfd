//! Tables for people: aligned columns that fit the width of a terminal.

use crate::shown::{escaped, escaped_lines};

/// How text for people is to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// The columns of the terminal; `None`: no terminal, lines may be of any length.
    pub width: Option<usize>,
    /// May there be colors?
    pub color: bool,
}

impl Look {
    /// For a file or a pipe.
    pub const PLAIN: Look = Look {
        width: None,
        color: false,
    };
}

/// What a cell means, which its color shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Nothing in particular.
    Plain,
    /// As it should be.
    Good,
    /// As it should not be.
    Bad,
}

/// The sequences that color text, and the one behind it.
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Text in lines as it may be printed: what acts on the terminal is shown escaped, but for the
/// colors of [`Tone::paint`] where there may be colors.
pub fn printable(text: &str, look: Look) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b').filter(|_| look.color) {
        out.push_str(&escaped_lines(&rest[..at]));
        rest = &rest[at..];
        let own = [GREEN, RED, PLAIN]
            .into_iter()
            .find(|own| rest.starts_with(own));
        let length = own.map_or(1, str::len);
        match own {
            Some(own) => out.push_str(own),
            None => out.push_str(&escaped_lines(&rest[..length])),
        }
        rest = &rest[length..];
    }
    out.push_str(&escaped_lines(rest));
    out
}

impl Tone {
    /// The text in the color of the tone, where there may be colors.
    pub fn paint(self, text: &str, look: Look) -> String {
        match self {
            Tone::Good if look.color => format!("{GREEN}{text}{PLAIN}"),
            Tone::Bad if look.color => format!("{RED}{text}{PLAIN}"),
            _ => text.to_owned(),
        }
    }
}

/// One cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Without line ends.
    pub text: String,
    /// What it means.
    pub tone: Tone,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell {
            text: text.into(),
            tone: Tone::Plain,
        }
    }
}

/// A name is not made shorter than this.
const SHORTEST: usize = 8;
/// Spaces between two columns.
const GAP: usize = 2;

/// Rows of equally many cells, the header first.
#[derive(Clone, Default, Debug)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
    words: usize,
    indent: usize,
}

impl Table {
    /// An empty table whose first `words` columns are flush left and may be shortened, and whose
    /// other columns are flush right; all lines are indented.
    pub fn new(words: usize, indent: usize) -> Self {
        Table {
            rows: Vec::new(),
            words,
            indent,
        }
    }

    /// Adds a row; the first one is the header. Characters that act on a terminal are shown
    /// escaped.
    pub fn row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let shown = |cell: T| {
            let Cell { text, tone } = cell.into();
            let text = escaped(&text).into_owned();
            Cell { text, tone }
        };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// The table as lines. Where it is too wide, long words end in `…`; what is still too wide
    /// stands in several tables below each other, each with the first column.
    pub fn text(&self, look: Look) -> String {
        let mut widths = self.widths();
        if let Some(width) = look.width {
            self.shorten(&mut widths, width);
        }
        let mut text = String::new();
        for block in blocks(&widths, self.indent, look.width) {
            if !text.is_empty() {
                text.push('\n');
            }
            for row in &self.rows {
                let mut line = " ".repeat(self.indent);
                for (place, column) in block.iter().enumerate() {
                    let gap = if place > 0 { GAP } else { 0 };
                    line.push_str(&" ".repeat(gap));
                    let Some(cell) = row.get(*column) else {
                        continue;
                    };
                    let shown = shortened(&cell.text, widths[*column]);
                    let pad = " ".repeat(widths[*column].saturating_sub(shown.chars().count()));
                    let painted = cell.tone.paint(&shown, look);
                    line += &match *column < self.words {
                        true => painted + &pad,
                        false => pad + &painted,
                    };
                }
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let longest = |c: usize| self.rows.iter().filter_map(move |r| r.get(c));
        (0..columns)
            .map(|c| {
                longest(c)
                    .map(|cell| cell.text.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect()
    }

    /// Takes from the longest column of words, as long as the table is too wide.
    fn shorten(&self, widths: &mut [usize], width: usize) {
        let mut over = total(widths, self.indent).saturating_sub(width);
        while over > 0 {
            let words = widths.iter_mut().take(self.words);
            let Some(longest) = words.filter(|w| **w > SHORTEST).max() else {
                return;
            };
            *longest -= 1;
            over -= 1;
        }
    }
}

fn total(widths: &[usize], indent: usize) -> usize {
    indent + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// The columns of each of the tables that fit; each begins with the first column.
fn blocks(widths: &[usize], indent: usize, width: Option<usize>) -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = 0;
    for (column, own) in widths.iter().enumerate() {
        let fits = width.is_none_or(|width| used + GAP + own <= width);
        match blocks.last_mut() {
            // A block has one column of its own at least, however wide that is.
            Some(block) if fits || block.len() < 2 => {
                block.push(column);
                used += GAP + own;
            }
            None => {
                blocks.push(vec![column]);
                used = indent + own;
            }
            Some(_) => {
                blocks.push(vec![0, column]);
                used = indent + widths[0] + GAP + own;
            }
        }
    }
    blocks
}

/// The text, ending in `…` where it has more characters than `width`.
pub fn shortened(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(1, 0);
        table.row(["task", "jobs", "missed", "mean"]);
        table.row(["a-task-with-a-long-name", "12", "0", "3.25ms"]);
        table.row(["short", "7", "1", "250us"]);
        table
    }

    fn at(width: usize) -> Look {
        Look {
            width: Some(width),
            color: false,
        }
    }

    #[test]
    fn a_table_is_as_wide_as_it_needs_where_there_is_no_terminal() {
        assert_eq!(
            table().text(Look::PLAIN),
            "task                     jobs  missed    mean\n\
             a-task-with-a-long-name    12       0  3.25ms\n\
             short                       7       1   250us\n"
        );
    }

    #[test]
    fn names_are_shortened_before_columns_move_below() {
        assert_eq!(
            table().text(at(32)),
            "task        jobs  missed    mean\n\
             a-task-wi…    12       0  3.25ms\n\
             short          7       1   250us\n"
        );
        assert_eq!(
            table().text(at(24)),
            "task      jobs  missed\n\
             a-task-…    12       0\n\
             short        7       1\n\n\
             task        mean\n\
             a-task-…  3.25ms\n\
             short      250us\n"
        );
    }

    #[test]
    fn no_line_is_longer_than_the_width() {
        for width in 18..60 {
            let text = table().text(at(width));
            let longest = text.lines().map(|l| l.chars().count()).max().unwrap_or(0);
            assert!(longest <= width, "{width}: {text}");
        }
    }

    #[test]
    fn names_do_not_act_on_the_terminal() {
        let mut table = Table::new(1, 0);
        table.row(["task", "jobs"]);
        table.row(["a\x1b[2J\u{9b}1m\nb", "1"]);
        let look = Look {
            width: None,
            color: true,
        };
        for look in [look, Look::PLAIN] {
            let text = table.text(look);
            assert!(text.contains("a\\u{1b}[2J\\u{9b}1m\\nb  "), "{text}");
            assert!(
                !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text}"
            );
        }
        let text = format!("{} x\x1b[5m\x07y\n", Tone::Bad.paint("no", look));
        assert_eq!(
            printable(&text, look),
            "\x1b[31mno\x1b[0m x\\u{1b}[5m\\u{7}y\n"
        );
        assert_eq!(
            printable(&text, Look::PLAIN),
            "\\u{1b}[31mno\\u{1b}[0m x\\u{1b}[5m\\u{7}y\n"
        );
    }

    #[test]
    fn colors_do_not_count_as_width() {
        let mut table = Table::new(1, 0);
        table.row([Cell::from("policy"), Cell::from("holds")]);
        table.row([
            Cell::from("g-edf"),
            Cell {
                text: "no".to_owned(),
                tone: Tone::Bad,
            },
        ]);
        let look = Look {
            width: Some(40),
            color: true,
        };
        assert_eq!(
            table.text(look),
            "policy  holds\ng-edf      \x1b[31mno\x1b[0m\n"
        );
        assert_eq!(table.text(Look::PLAIN), "policy  holds\ng-edf      no\n");
    }
}
