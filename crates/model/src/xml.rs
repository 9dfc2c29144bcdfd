//! XML of other tools: a tree with places, and text that is written.
//!
//! A document type is refused (it could define entities that grow without bound), and so is one
//! that is larger than any that people write.

use crate::error::{Error, Result};
use crate::input::MAX_DOCUMENT;
use roxmltree::{Document, Node, ParsingOptions};

/// The most elements, texts and comments of a document.
const MOST_NODES: u32 = 2_000_000;

/// The most attributes of an element: the reader compares each with all others.
const MOST_ATTRIBUTES: usize = 500;

/// Whether some element has more attributes than that. Counted are quotation marks behind equals
/// signs from one `<`, which no attribute holds, to the next.
fn has_too_many_attributes(text: &str) -> bool {
    let (mut count, mut before) = (0, b' ');
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        match byte {
            b'<' => count = 0,
            b'"' | b'\'' if before == b'=' => count += 1,
            _ => {}
        }
        if count > MOST_ATTRIBUTES {
            return true;
        }
        before = byte;
    }
    false
}

/// Reads a document; `tool` is whose file it should be.
///
/// # Errors
/// It is too large, or no XML; with line and column.
pub(crate) fn parse<'t>(text: &'t str, tool: &str) -> Result<Document<'t>> {
    if text.len() > MAX_DOCUMENT {
        return Err(Error::new(format!(
            "the file has {} bytes, at most {MAX_DOCUMENT} are read",
            text.len()
        ))
        .remedy("split it"));
    }
    if has_too_many_attributes(text) {
        return Err(Error::new(format!(
            "an element has more than {MOST_ATTRIBUTES} attributes"
        ))
        .remedy(format!("give a file of {tool}")));
    }
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MOST_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|e| {
        let at = e.pos();
        Error::new(format!("this is no XML: {e}"))
            .at(format!("line {}, column {}", at.row, at.col))
            .remedy(format!("give a file of {tool}"))
    })
}

/// Where a node begins, as people count.
pub(crate) fn place(node: Node<'_, '_>) -> String {
    let at = node.document().text_pos_at(node.range().start);
    format!("line {}", at.row)
}

/// The elements below a node that have this name, in their order.
pub(crate) fn children<'a, 't: 'a>(
    node: Node<'a, 't>,
    name: &'a str,
) -> impl Iterator<Item = Node<'a, 't>> + use<'a, 't> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

/// The first element below a node that has this name.
pub(crate) fn child<'a, 't: 'a>(node: Node<'a, 't>, name: &'a str) -> Option<Node<'a, 't>> {
    children(node, name).next()
}

/// The text of the element of this name below a node, without spaces around it.
pub(crate) fn text_in<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let found = node.children().find(|child| child.has_tag_name(name))?;
    Some(found.text().unwrap_or_default().trim())
}

/// Text as it stands in XML, also within quotation marks.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Attributes would lose them otherwise.
            '\n' | '\r' | '\t' => out.push_str(&format!("&#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_long_to_read_is_refused() {
        let with = |count: usize| {
            let all: Vec<String> = (0..count).map(|at| format!("a{at} = '>'")).collect();
            format!("<x {}/>", all.join(" "))
        };
        assert!(parse(&with(MOST_ATTRIBUTES), "SimSo").is_ok());
        let e = parse(&with(MOST_ATTRIBUTES + 1), "SimSo").unwrap_err();
        assert!(e.to_string().contains("more than 500 attributes"), "{e}");
        let large = format!("<x>{}</x>", " ".repeat(MAX_DOCUMENT));
        assert!(parse(&large, "SimSo").is_err());
        // Deep nesting takes no stack.
        let deep = format!("{}{}", "<a>".repeat(400_000), "</a>".repeat(400_000));
        assert!(parse(&deep, "SimSo").is_ok());
    }

    #[test]
    fn what_is_escaped_reads_back() {
        let text = "a<b>&\"c\"\td\ne\u{fc}";
        let document = format!("<x y=\"{0}\">{0}</x>", escaped(text));
        let read = parse(&document, "SimSo").unwrap();
        let root = read.root_element();
        assert_eq!((root.attribute("y"), root.text()), (Some(text), Some(text)));
    }
}
