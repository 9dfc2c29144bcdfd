//! The pieces that the page is written with: sentences, facts, tables, figures.

use super::Shown;
use crate::svg::{Figure, escape};
use crate::words;
use std::fmt::Write;

/// Figures wider than this, in pixels, are not made smaller than they can be read on a phone: they
/// are moved sideways there.
const WIDE: f64 = 480.0;
/// The least part of its width at which a wide figure is shown.
const LEAST: f64 = 0.85;
/// Tables of more columns than these do not fit on a phone.
const COLUMNS: usize = 4;

/// The sentences as a list; nothing where there are none.
pub fn sentences(all: &[String], class: &str) -> String {
    if all.is_empty() {
        return String::new();
    }
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let items: String = all
        .iter()
        .map(|s| format!("<li>{}</li>\n", coded(s)))
        .collect();
    format!("<ul{class}>\n{items}</ul>\n")
}

/// Each sentence as a paragraph.
pub fn paragraphs(all: &[String]) -> String {
    all.iter()
        .map(|s| format!("<p>{}</p>\n", coded(s)))
        .collect()
}

/// Escaped, with what stands between backquotes set as code, and numbers and units written one way.
pub fn coded(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return held(text);
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        1 => format!("<code>{}</code>", escape(part)),
        _ => held(part),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Escaped, with units written one way, and no line break between a number and its unit or within
/// the name of a policy.
pub fn held(text: &str) -> String {
    let text = words::spaced(text, '\u{a0}');
    let is_name = |word: &str| {
        word.contains('-')
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-')
    };
    let word = |word: &str| {
        let end = word.trim_end_matches([',', ';', '.', ':', ')']).len();
        let start = word.len() - word.trim_start_matches('(').len();
        match word.get(start..end).filter(|name| is_name(name)) {
            Some(name) => format!(
                "{}<span class=\"name\">{name}</span>{}",
                &word[..start],
                escape(&word[end..])
            ),
            None => escape(word),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Something to unfold; nothing where there is nothing inside.
pub fn details(summary: &str, inside: &str) -> String {
    if inside.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>{}</summary>\n{inside}</details>\n",
        escape(summary)
    )
}

/// Names with their values.
pub fn facts(all: &[(String, String)]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let rows: String = all
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), coded(value)))
        .collect();
    format!("<dl class=\"facts\">\n{rows}</dl>\n")
}

/// `inside`, which may be wider than the screen: it can be moved sideways by finger, wheel or
/// keyboard, and a hint says so where screens are narrow. `name` is read out by screen readers.
pub fn scrolled(name: &str, inside: &str, wide: bool) -> String {
    let hint = match wide {
        true => "<p class=\"swipe\" aria-hidden=\"true\">Swipe sideways to see all of it →</p>\n",
        false => "",
    };
    format!(
        "{hint}<div class=\"scroll\" role=\"region\" tabindex=\"0\" \
         aria-label=\"{}\">{inside}</div>\n",
        escape(name)
    )
}

/// Which columns are numbers, to be set to the right: those whose cells all begin with a digit, a
/// sign or a dash.
pub fn numeric(columns: usize, rows: &[Vec<String>]) -> Vec<bool> {
    let begins = |cell: &String| {
        let first = cell.trim_start_matches("≤ ").chars().next();
        first.is_none_or(|c| c.is_ascii_digit() || matches!(c, '−' | '-' | '–' | '+'))
    };
    (0..columns)
        .map(|column| rows.iter().all(|r| r.get(column).is_none_or(begins)))
        .collect()
}

/// A row of cells; the first one names the row.
pub fn row(cells: &[String], numeric: &[bool]) -> String {
    let cell = |(column, text): (usize, &String)| {
        let class = match numeric.get(column) {
            Some(true) => " class=\"n\"",
            _ => "",
        };
        match column {
            0 => format!("<th scope=\"row\"{class}>{}</th>", coded(text)),
            _ => format!("<td{class}>{}</td>", coded(text)),
        }
    };
    let cells: String = cells.iter().enumerate().map(cell).collect();
    format!("<tr>{cells}</tr>\n")
}

/// The cells of a header.
pub fn head(names: &[String], numeric: &[bool]) -> String {
    let cell = |(column, text): (usize, &String)| {
        let class = match numeric.get(column) {
            Some(true) => " class=\"n\"",
            _ => "",
        };
        format!("<th scope=\"col\"{class}>{}</th>", coded(text))
    };
    names.iter().enumerate().map(cell).collect()
}

/// A table. `caption` stands above it and names it.
pub fn table(caption: &str, header: &[String], rows: &[Vec<String>]) -> String {
    let numeric = numeric(header.len(), rows);
    let body: String = rows.iter().map(|r| row(r, &numeric)).collect();
    let inside = format!(
        "<table><caption>{}</caption>\n<thead><tr>{}</tr></thead>\n<tbody>\n{body}</tbody></table>",
        coded(caption),
        head(header, &numeric)
    );
    scrolled(caption, &inside, header.len() > COLUMNS)
}

/// Figures with their captions.
pub fn figures(all: &[Shown]) -> String {
    let mut text = String::new();
    for shown in all {
        let Some(first) = shown.figures.first() else {
            continue;
        };
        let class = if shown.figures.len() > 1 {
            "pair"
        } else {
            "single"
        };
        let again = match shown.command.as_str() {
            "" => String::new(),
            command => format!(" Made by <code>{}</code>.", escape(command)),
        };
        let drawn: String = shown.figures.iter().map(drawn).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "<figure>\n<div \
             class=\"{class}\">\n{drawn}</div>\n<figcaption>{}{again}</figcaption>\n</figure>\n",
            coded(&first.caption)
        );
    }
    text
}

fn drawn(figure: &Figure) -> String {
    let svg = figure.to_inline_svg();
    if figure.width <= WIDE {
        return svg;
    }
    let least = format!(
        "class=\"figure\" style=\"min-width:{:.0}px\"",
        figure.width * LEAST
    );
    let svg = svg.replacen("class=\"figure\"", &least, 1);
    format!("<div>{}</div>\n", scrolled(&figure.title, &svg, true))
}
