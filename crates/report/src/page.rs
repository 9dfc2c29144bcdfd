//! The page: one file with figures, styles and words in it, that fetches nothing and runs nothing.
//!
//! Sections that have no data are left out. It reads on a phone, on a wide screen, on paper, light and dark.

use crate::findings::Verdict;
use crate::style::dark_rules;
use crate::svg::{Figure, escape};
use crate::words;
use model::{Delay, Profile, Provenance, Statistic};
use std::fmt::Write;

const CSS: &str = include_str!("page.css");

/// Figures that belong together, with the command that makes them again.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// The figures, side by side where there is room; the caption of the first stands for all.
    pub figures: Vec<Figure>,
    /// The command; empty if there is none.
    pub command: String,
}

/// How many samples were kept and why the others were not.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Quality {
    /// Samples that count.
    pub kept: u64,
    /// Cause, as the end of a sentence after "because", and number.
    pub discarded: Vec<(String, u64)>,
    /// Blocks of samples during which a virtual machine moved, and all blocks.
    pub moved: Option<(u64, u64)>,
}

/// The cache delays of one machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Delays {
    /// Heading, such as `This machine`.
    pub title: String,
    /// Sentences, see [`crate::findings::cpmd`].
    pub findings: Vec<String>,
    /// What was measured.
    pub profile: Profile,
    /// Figures.
    pub figures: Vec<Shown>,
    /// What became of the samples.
    pub quality: Option<Quality>,
}

/// A task set and what the policies say.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Heading.
    pub title: String,
    /// What the set is, in a sentence or two.
    pub about: String,
    /// Sentences, see [`crate::findings::verdicts`].
    pub findings: Vec<String>,
    /// Header and rows of the table of tasks.
    pub tasks: (Vec<String>, Vec<Vec<String>>),
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    /// Tables to unfold: heading, header, rows.
    pub details: Vec<(String, Vec<String>, Vec<Vec<String>>)>,
    /// Pictures of assignments.
    pub figures: Vec<Shown>,
    /// The command that says it again.
    pub command: String,
}

/// One study.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// Its title.
    pub title: String,
    /// Sentences.
    pub findings: Vec<String>,
    /// Figures.
    pub figures: Vec<Shown>,
    /// Where its numbers come from.
    pub provenance: Provenance,
}

/// All that a page can show. What is empty is left out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReportData {
    /// Its heading.
    pub title: String,
    /// One line beneath it: the machine, the day.
    pub lead: String,
    /// What somebody should know who reads nothing else.
    pub summary: Vec<String>,
    /// What could spoil the numbers.
    pub warnings: Vec<String>,
    /// The machine: name and value of each fact.
    pub machine: Vec<(String, String)>,
    /// The picture of its caches.
    pub hierarchy: Option<Shown>,
    /// Cache delays, of this machine first.
    pub delays: Vec<Delays>,
    /// Examples and what the policies say.
    pub judged: Vec<Judged>,
    /// Studies.
    pub studies: Vec<Study>,
    /// What to try next: command and what it does.
    pub next: Vec<(String, String)>,
    /// Where it all comes from.
    pub provenance: Vec<(String, Provenance)>,
    /// The program and its version.
    pub program: String,
}

/// Writes the page.
pub fn page(data: &ReportData) -> String {
    let mut body = String::new();
    let mut contents: Vec<(&str, &str)> = Vec::new();
    if !data.summary.is_empty() || !data.warnings.is_empty() {
        body += "<section id=\"found\">\n";
        body += &sentences(&data.summary, "findings");
        if !data.warnings.is_empty() {
            body += "<div class=\"warnings\" role=\"note\"><strong>What could spoil the numbers</strong>\n";
            body += &sentences(&data.warnings, "");
            body += "</div>\n";
        }
        body += "</section>\n";
    }
    if !data.machine.is_empty() || data.hierarchy.is_some() {
        contents.push(("machine", "The machine"));
        body += &machine(data);
    }
    if !data.delays.is_empty() {
        contents.push(("delays", "Cache delays"));
        body += "<section id=\"delays\"><h2>What losing a warm cache costs</h2>\n";
        for (index, part) in data.delays.iter().enumerate() {
            body += &delays(part, index);
        }
        body += "</section>\n";
    }
    if !data.judged.is_empty() {
        contents.push(("examples", "Which scheduler"));
        body += "<section id=\"examples\"><h2>Which scheduler keeps which load</h2>\n";
        for part in &data.judged {
            body += &judged(part);
        }
        body += "</section>\n";
    }
    if !data.studies.is_empty() {
        contents.push(("studies", "Over many task sets"));
        body += "<section id=\"studies\"><h2>Over many task sets</h2>\n";
        for part in &data.studies {
            let _ = write!(
                body,
                "<h3>{}</h3>\n{}",
                escape(&part.title),
                sentences(&part.findings, "")
            );
            body += &figures(&part.figures);
            body += &details(
                "Where these numbers come from",
                &facts(&provenance(&part.provenance)),
            );
        }
        body += "</section>\n";
    }
    if !data.next.is_empty() {
        contents.push(("next", "What to try next"));
        body += "<section id=\"next\"><h2>What to try next</h2>\n";
        for (command, about) in &data.next {
            let _ = write!(body, "<p>{}</p>\n<pre>{}</pre>\n", escape(about), escape(command));
        }
        body += "</section>\n";
    }
    if !data.provenance.is_empty() {
        contents.push(("provenance", "Where it comes from"));
        body += "<section id=\"provenance\"><h2>Where it comes from</h2>\n";
        for (title, from) in &data.provenance {
            let _ = write!(body, "<h3>{}</h3>\n{}", escape(title), facts(&provenance(from)));
        }
        body += "</section>\n";
    }
    let links: String = contents
        .iter()
        .map(|(id, name)| format!("<a href=\"#{id}\">{name}</a>"))
        .collect();
    let (title, lead, program) = (escape(&data.title), escape(&data.lead), escape(&data.program));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{CSS}{}\n</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"lead\">{lead}</p>\n<nav aria-label=\"Contents\">{links}</nav>\n</header>\n<main>\n{body}</main>\n\
         <footer>Made by {program}. Papers are named as in the documentation: 000 is Bastoni, Brandenburg and Anderson \
         on cache-related preemption and migration delays, 002 is Bastoni’s dissertation.</footer>\n</body>\n</html>\n",
        dark_rules()
    )
}

fn sentences(all: &[String], class: &str) -> String {
    if all.is_empty() {
        return String::new();
    }
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    let items: String = all.iter().map(|s| format!("<li>{}</li>\n", coded(s))).collect();
    format!("<ul{class}>\n{items}</ul>\n")
}

/// Escaped, with what stands between backquotes set as code, and numbers kept together with their units.
fn coded(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return held(text);
    }
    parts
        .iter()
        .enumerate()
        .map(|(index, part)| {
            if index % 2 == 1 {
                format!("<code>{}</code>", escape(part))
            } else {
                held(part)
            }
        })
        .collect()
}

/// Escaped, without a line break between a number and its unit.
fn held(text: &str) -> String {
    const UNITS: [&str; 9] = [" %", " ns", " µs", " ms", " s", " B", " KiB", " MiB", " GiB"];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        let (before, after) = rest.split_at(at);
        out += &escape(before);
        let number = before.ends_with(|c: char| c.is_ascii_digit());
        let unit = UNITS.iter().any(|u| {
            after
                .strip_prefix(u)
                .is_some_and(|r| !r.starts_with(|c: char| c.is_alphanumeric()))
        });
        out.push(if number && unit { '\u{a0}' } else { ' ' });
        rest = &after[1..];
    }
    out + &escape(rest)
}

fn details(summary: &str, inside: &str) -> String {
    if inside.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>{}</summary>\n{inside}</details>\n",
        escape(summary)
    )
}

fn facts(all: &[(String, String)]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let rows: String = all
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), coded(value)))
        .collect();
    format!("<dl class=\"facts\">\n{rows}</dl>\n")
}

fn table(header: &[String], rows: &[Vec<String>]) -> String {
    // A column of numbers is set to the right: one whose cells all begin with a digit, a sign or a dash.
    let numeric: Vec<bool> = (0..header.len())
        .map(|column| {
            rows.iter().all(|r| {
                r.get(column)
                    .and_then(|c| c.chars().next())
                    .is_none_or(|c| c.is_ascii_digit() || matches!(c, '−' | '-' | '–'))
            })
        })
        .collect();
    let cell = |tag: &str, column: usize, text: &str| {
        let class = if numeric.get(column).copied().unwrap_or(false) {
            " class=\"n\""
        } else {
            ""
        };
        format!("<{tag}{class}>{}</{tag}>", coded(text))
    };
    let line = |tag: &str, cells: &[String]| -> String {
        cells
            .iter()
            .enumerate()
            .map(|(column, text)| cell(tag, column, text))
            .collect()
    };
    let rows: String = rows
        .iter()
        .map(|r| format!("<tr>{}</tr>\n", line("td", r)))
        .collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr>{}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
        line("th", header)
    )
}

fn figures(all: &[Shown]) -> String {
    let mut text = String::new();
    for shown in all {
        let Some(first) = shown.figures.first() else {
            continue;
        };
        let class = if shown.figures.len() > 1 { "pair" } else { "single" };
        let again = if shown.command.is_empty() {
            String::new()
        } else {
            format!(" Made by <code>{}</code>.", escape(&shown.command))
        };
        let drawn: String = shown.figures.iter().map(Figure::to_inline_svg).collect();
        let _ = write!(
            text,
            "<figure>\n<div class=\"{class}\">\n{drawn}</div>\n<figcaption>{}{again}</figcaption>\n</figure>\n",
            coded(&first.caption)
        );
    }
    text
}

fn machine(data: &ReportData) -> String {
    format!(
        "<section id=\"machine\"><h2>The machine</h2>\n<div class=\"pair\">\n{}{}</div>\n</section>\n",
        facts(&data.machine),
        figures(data.hierarchy.as_slice())
    )
}

fn delays(part: &Delays, index: usize) -> String {
    let mut text = format!("<h3>{}</h3>\n", escape(&part.title));
    // The first machine's sentences stand in the summary already.
    if index > 0 {
        text += &sentences(&part.findings, "");
    }
    text += &figures(&part.figures);
    let (header, rows) = delay_table(&part.profile);
    if !rows.is_empty() {
        text += &details("The numbers", &table(&header, &rows));
    }
    if let Some(quality) = &part.quality {
        text += &quality_text(quality);
    }
    text
}

/// Every point of a profile's cache delays in one table.
fn delay_table(profile: &Profile) -> (Vec<String>, Vec<Vec<String>>) {
    let header = [
        "resumption",
        "load",
        "written",
        "working set",
        "samples",
        "average",
        "95 % interval",
        "std. dev.",
        "largest",
    ];
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let mut rows = Vec::new();
    for curve in &profile.cpmd {
        for p in &curve.points {
            rows.push(vec![
                crate::cpmd::name(curve.resumption),
                curve.load.to_string(),
                words::plain(curve.write_ratio),
                words::size(p.wss),
                or_dash((p.samples > 0).then(|| words::grouped(p.samples))),
                or_dash(p.value(Statistic::Average).map(words::time)),
                or_dash(
                    p.average_interval
                        .map(|(low, high)| format!("{} – {}", words::time(low), words::time(high))),
                ),
                or_dash(p.deviation.map(|d| words::time(Delay::from(d)))),
                or_dash(p.value(Statistic::Maximum).map(words::time)),
            ]);
        }
    }
    (header.map(str::to_owned).to_vec(), rows)
}

fn quality_text(quality: &Quality) -> String {
    let lost: u64 = quality.discarded.iter().map(|(_, n)| n).sum();
    let mut text = format!(
        "<p>{} kept, {} discarded",
        words::count(quality.kept, "sample"),
        words::grouped(lost)
    );
    let causes: Vec<&(String, u64)> = quality.discarded.iter().filter(|(_, n)| *n > 0).collect();
    if causes.is_empty() {
        text += ".</p>\n";
    } else {
        text += ":</p>\n<ul>\n";
        for (cause, n) in causes {
            let _ = writeln!(text, "<li>{} because {}</li>", words::grouped(*n), escape(cause));
        }
        text += "</ul>\n";
    }
    match quality.moved {
        Some((0, all)) => {
            let _ = writeln!(
                text,
                "<p>The time to transfer a line stayed the same in all {}.</p>",
                words::count(all, "block")
            );
        }
        Some((moved, all)) => {
            let _ = writeln!(
                text,
                "<p>In {} of {} the time to transfer a line changed: the virtual machine was moved to other processors of \
                 its host. Those blocks do not count.</p>",
                words::grouped(moved),
                words::count(all, "block")
            );
        }
        None => {}
    }
    text
}

fn judged(part: &Judged) -> String {
    let mut text = format!(
        "<h3>{}</h3>\n<p>{}</p>\n",
        escape(&part.title),
        coded(&part.about)
    );
    text += &sentences(&part.findings, "");
    if !part.verdicts.is_empty() {
        text += "<div class=\"scroll\"><table class=\"verdicts\"><thead><tr><th>policy</th><th>holds?</th><th>by</th>\
                 <th class=\"n\">execution may grow</th><th class=\"n\">utilization with overheads</th>\
                 <th class=\"n\">lost to overheads</th><th class=\"n\">passes up to a delay of</th><th>why</th></tr></thead>\n<tbody>\n";
        for v in &part.verdicts {
            let (class, word) = match v.passes {
                Some(true) => ("yes", "yes"),
                Some(false) if v.refuted => ("no", "no"),
                Some(false) => ("no", "not shown"),
                None => ("", "does not apply"),
            };
            let _ = writeln!(
                text,
                "<tr><td>{}</td><td class=\"{class}\">{word}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"why\">{}</td></tr>",
                escape(&v.policy),
                escape(&v.test),
                escape(v.growth.as_deref().unwrap_or("–")),
                v.inflated.map_or_else(|| "–".to_owned(), words::three),
                if v.lost.is_empty() {
                    "–".to_owned()
                } else {
                    words::three(v.lost.iter().map(|(_, u)| u).sum())
                },
                v.largest_delay
                    .map_or_else(|| "–".to_owned(), |d| words::time(Delay::from(d))),
                coded(&v.reason)
            );
        }
        text += "</tbody></table></div>\n";
    }
    let (header, rows) = &part.tasks;
    if !rows.is_empty() {
        text += &details("The tasks", &table(header, rows));
    }
    for (heading, header, rows) in &part.details {
        text += &details(heading, &table(header, rows));
    }
    text += &figures(&part.figures);
    if !part.command.is_empty() {
        let _ = writeln!(text, "<p>Ask again:</p>\n<pre>{}</pre>", escape(&part.command));
    }
    text
}

/// A provenance as facts; what is not known is left out.
fn provenance(from: &Provenance) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = [
        ("source", from.source.clone()),
        (
            "command",
            if from.command.is_empty() {
                String::new()
            } else {
                format!("`{}`", from.command)
            },
        ),
        ("time", from.time.clone()),
        ("machine", from.machine.clone()),
        ("kernel", from.kernel.clone()),
        ("seed", from.seed.map(|s| s.to_string()).unwrap_or_default()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    all.extend(
        from.settings
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    all.extend(from.warnings.iter().map(|w| ("warning".to_owned(), w.clone())));
    all.retain(|(_, value)| !value.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_report_is_a_page_and_nothing_more() {
        let html = page(&ReportData::default());
        assert!(html.starts_with("<!DOCTYPE html>") && !html.contains("<section"));
    }

    #[test]
    fn what_comes_from_files_cannot_become_markup() {
        let evil = "<script>alert(1)</script>";
        let data = ReportData {
            title: evil.to_owned(),
            lead: evil.to_owned(),
            summary: vec![evil.to_owned()],
            warnings: vec![evil.to_owned()],
            machine: vec![(evil.to_owned(), format!("`{evil}`"))],
            next: vec![(evil.to_owned(), evil.to_owned())],
            provenance: vec![(
                evil.to_owned(),
                Provenance {
                    source: evil.to_owned(),
                    command: evil.to_owned(),
                    ..Provenance::default()
                },
            )],
            program: evil.to_owned(),
            ..ReportData::default()
        };
        assert!(!page(&data).contains("<script"));
    }

    #[test]
    fn numbers_keep_their_units() {
        assert_eq!(held("12.5 µs and 3 samples"), "12.5\u{a0}µs and 3 samples");
        assert_eq!(coded("`a b` 17 %."), "<code>a b</code> 17\u{a0}%.");
    }

    #[test]
    fn nothing_is_fetched() {
        let html = page(&ReportData {
            summary: vec!["a".to_owned()],
            ..ReportData::default()
        });
        for source in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!html.contains(source), "{source}");
        }
    }

    #[test]
    fn columns_of_numbers_are_set_to_the_right() {
        let rows = [
            vec!["a".to_owned(), "−1 µs".to_owned()],
            vec!["1".to_owned(), "–".to_owned()],
        ];
        let html = table(&["x".to_owned(), "y".to_owned()], &rows);
        assert!(html.contains("<td>a</td><td class=\"n\">−1\u{a0}µs</td>"));
    }
}
