//! The page: one file with figures, styles and words in it, that fetches nothing and runs nothing.
//!
//! Sections that have no data are left out. It reads on a phone, on a wide screen, on paper, light
//! and dark.

mod data;
mod markup;

use crate::findings::Verdict;
use crate::style::dark_rules;
use crate::svg::escape;
use crate::words;
pub use data::{
    Delays, Judged, Numbers, Observed, Part, Quality, ReportData, Schedules, Shown, Statement,
    Study, Tasks,
};
use markup::{coded, details, facts, figures, held, paragraphs, sentences, table};
use model::{Delay, Profile, Provenance, Statistic};
use std::fmt::Write;

const CSS: &str = include_str!("page.css");

/// A part of the page: its anchor, its name among the contents, its heading, and what is in it.
struct Section {
    id: &'static str,
    name: &'static str,
    heading: &'static str,
    inside: String,
}

/// All sections that have something to show, in their order.
fn sections(data: &ReportData) -> impl Iterator<Item = Section> {
    let section = |id, name, heading, inside: String| Section {
        id,
        name,
        heading,
        inside,
    };
    let costs = data.overheads.iter();
    let costs = costs.map(|n| table(&n.caption, &n.header, &n.rows));
    let next = data.next.iter().map(|(command, about)| {
        let (about, command) = (escape(about), escape(command));
        format!("<p>{about}</p>\n<pre>{command}</pre>\n")
    });
    let origins = data.provenance.iter().map(|(title, from)| {
        let title = escape(title);
        format!("<h3>{title}</h3>\n{}", facts(&provenance(from)))
    });
    let parts = data.parts.iter();
    let parts = parts.map(move |p| section(p.id, p.name, p.heading, part(p)));
    let all = [
        section("machine", "The machine", "The machine", machine(data)),
        section(
            "delays",
            "Cache delays",
            "What losing a warm cache costs",
            data.delays.iter().map(delays).collect(),
        ),
        section(
            "schedules",
            "Within schedules",
            "Cache delays within schedules",
            data.schedules.iter().map(schedules).collect(),
        ),
        section(
            "overheads",
            "Scheduling overheads",
            "What scheduling costs",
            costs.collect(),
        ),
        section(
            "observed",
            "Predicted and observed",
            "What verdicts are worth here",
            data.observed.iter().map(observed).collect(),
        ),
        section(
            "examples",
            "Which scheduler",
            "Which scheduler keeps which load",
            data.judged.iter().map(judged).collect(),
        ),
        section(
            "studies",
            "Over many task sets",
            "Over many task sets",
            data.studies.iter().map(study).collect(),
        ),
        section(
            "next",
            "What to try next",
            "What to try next",
            next.collect(),
        ),
        section(
            "provenance",
            "Where it comes from",
            "Where it comes from",
            origins.collect(),
        ),
    ];
    parts
        .chain(all)
        .filter(|section| !section.inside.is_empty())
}

/// Writes the page.
pub fn page(data: &ReportData) -> String {
    let mut body = String::new();
    if !data.answer.is_empty() || !data.numbers.rows.is_empty() || !data.warnings.is_empty() {
        body += &found(data);
    }
    let mut links = String::new();
    for Section {
        id,
        name,
        heading,
        inside,
    } in sections(data)
    {
        let _ = write!(links, "<a href=\"#{id}\">{name}</a>");
        let _ = write!(
            body,
            "<section id=\"{id}\"><h2>{heading}</h2>\n{inside}</section>\n"
        );
    }
    let (title, lead, program) = (
        escape(&data.title),
        escape(&data.lead),
        escape(&data.program),
    );
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

/// What was found, in short: answers, numbers, warnings.
fn found(data: &ReportData) -> String {
    let mut body = String::new();
    body += "<section id=\"found\">\n";
    for (subject, answer) in &data.answer {
        let (subject, answer) = (held(subject), coded(answer));
        let _ = writeln!(
            body,
            "<p class=\"answer\"><strong>{subject}:</strong> {answer}</p>"
        );
    }
    if !data.numbers.rows.is_empty() {
        let Numbers {
            caption,
            header,
            rows,
        } = &data.numbers;
        body += &table(caption, header, rows);
    }
    if !data.warnings.is_empty() {
        body +=
            "<div class=\"warnings\" role=\"note\"><strong>What could spoil the numbers</strong>\n";
        body += &sentences(&data.warnings, "");
        body += "</div>\n";
    }
    body += "</section>\n";
    body
}

fn part(part: &Part) -> String {
    let mut body = paragraphs(&part.says);
    for numbers in &part.numbers {
        body += &table(&numbers.caption, &numbers.header, &numbers.rows);
    }
    body += &figures(&part.figures);
    body + &sentences(&part.list, "")
}

fn observed(part: &Observed) -> String {
    let mut body = sentences(&part.findings, "");
    body += &figures(&part.figures);
    let _ = write!(
        body,
        "<p>Ask again:</p>\n<pre>{}</pre>\n{}",
        escape(&part.command),
        details(
            "Where these numbers come from",
            &facts(&provenance(&part.provenance))
        )
    );
    body
}

fn study(part: &Study) -> String {
    let mut body = String::new();
    let _ = write!(
        body,
        "<h3>{}</h3>\n{}",
        held(&part.title),
        paragraphs(&part.findings)
    );
    body += &figures(&part.figures);
    body += &details(
        "Where these numbers come from",
        &facts(&provenance(&part.provenance)),
    );
    body
}

fn machine(data: &ReportData) -> String {
    if data.machine.is_empty() && data.hierarchy.is_none() {
        return String::new();
    }
    format!(
        "<div class=\"pair\">\n{}{}</div>\n",
        facts(&data.machine),
        figures(data.hierarchy.as_slice())
    )
}

fn delays(part: &Delays) -> String {
    let mut text = format!("<h3>{}</h3>\n", held(&part.title));
    text += &figures(&part.figures);
    text += &sentences(&part.findings, "");
    let (header, rows) = delay_table(&part.profile);
    if !rows.is_empty() {
        let caption = format!("Every cache delay of `{}`.", part.profile.platform);
        text += &details("The numbers", &table(&caption, &header, &rows));
    }
    if let Some(quality) = &part.quality {
        text += &quality_text(quality);
    }
    text
}

/// Delays within schedules, and each observation of the paper with what was found.
fn schedules(part: &Schedules) -> String {
    let mut text = format!("<p>{}</p>\n", coded(&part.about));
    text += &figures(&part.figures);
    if !part.observed.is_empty() {
        let header = ["what the paper says", "here", "by the rule", "it"];
        let rows: Vec<Vec<String>> = part
            .observed
            .iter()
            .map(|o| {
                let says = format!("{} ({})", words::capital(&o.says), o.source);
                vec![says, o.here.clone(), o.rule.clone(), o.holds.clone()]
            })
            .collect();
        let caption = "Observations 1 to 5 of 000 §4.2, put to the test on this machine";
        text += &table(caption, &header.map(str::to_owned), &rows);
    }
    text += &details(
        "Where these numbers come from",
        &facts(&provenance(&part.provenance)),
    );
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
            let _ = writeln!(
                text,
                "<li>{} because {}</li>",
                words::grouped(*n),
                held(cause)
            );
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
    if !part.answer.is_empty() {
        let _ = writeln!(text, "<p class=\"answer\">{}</p>", coded(&part.answer));
    }
    if !part.verdicts.is_empty() {
        text += &verdict_table(&part.title, &part.verdicts);
    }
    text += &paragraphs(&part.findings);
    if !part.tasks.rows.is_empty() {
        text += &task_table(&part.title, &part.tasks);
    }
    text += &figures(&part.figures);
    if !part.command.is_empty() {
        let _ = writeln!(
            text,
            "<p>Ask again:</p>\n<pre>{}</pre>",
            escape(&part.command)
        );
    }
    text
}

fn verdict_table(title: &str, verdicts: &[Verdict]) -> String {
    let caption = format!("{title}: what each policy guarantees");
    let mut text = format!(
        "<table class=\"verdicts\"><caption>{}</caption>\n<thead><tr><th scope=\"col\">policy</th>\
         <th scope=\"col\">holds?</th><th scope=\"col\">by</th><th scope=\"col\" \
         class=\"n\">execution may grow</th>\
         <th scope=\"col\" class=\"n\">utilization with overheads</th>\
         <th scope=\"col\" class=\"n\">lost to overheads</th>\
         <th scope=\"col\" class=\"n\">passes up to a delay of</th><th \
         scope=\"col\">why</th></tr></thead>\n<tbody>\n",
        coded(&caption)
    );
    let or_dash = |value: Option<String>| held(&value.unwrap_or_else(|| "–".to_owned()));
    for v in verdicts {
        let (class, word) = match v.passes {
            Some(true) => ("yes", "yes"),
            Some(false) if v.refuted => ("no", "no"),
            Some(false) => ("no", "not shown"),
            None => ("", "does not apply"),
        };
        let lost = (!v.lost.is_empty()).then(|| words::three(v.lost.iter().map(|(_, u)| u).sum()));
        let mut lost = or_dash(lost);
        if v.lost.len() > 1 {
            let part = |(to, u): &(String, f64)| format!("{} {}", escape(to), words::three(*u));
            let parts: Vec<String> = v.lost.iter().map(part).collect();
            lost += &format!("<small>{}</small>", parts.join("<br>"));
        }
        let asked = match v.asked.as_str() {
            "" => String::new(),
            asked => format!("<small>{}</small>", coded(asked)),
        };
        let _ = writeln!(
            text,
            "<tr><th scope=\"row\">{}</th><td class=\"{class}\">{word}</td><td>{}</td><td \
             class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{lost}</td><td class=\"n\">{}</td>\
             <td class=\"why\">{}{asked}</td></tr>",
            held(&v.policy),
            held(&v.test),
            or_dash(v.growth.clone()),
            or_dash(v.inflated.map(words::three)),
            or_dash(v.largest_delay.map(|d| words::time(Delay::from(d)))),
            coded(&v.reason)
        );
    }
    text += "</tbody></table>";
    markup::scrolled(&caption, &text, true)
}

/// The tasks with their facts, and how long after their release jobs are done under each policy.
fn task_table(title: &str, tasks: &Tasks) -> String {
    let mut caption = format!("{title}: the tasks");
    let mut header = tasks.facts.clone();
    header.extend(tasks.policies.iter().map(|(name, _)| name.clone()));
    if tasks.policies.is_empty() {
        return table(&caption, &header, &tasks.rows);
    }
    caption += ", and how long after its release a job is done at the latest (≤: a bound that need not \
         be reached)";
    let numeric = markup::numeric(header.len(), &tasks.rows);
    let rows: String = tasks
        .rows
        .iter()
        .map(|r| markup::row(r, &numeric))
        .collect();
    let by: String = tasks
        .policies
        .iter()
        .map(|(_, by)| format!("<td>{}</td>", held(by)))
        .collect();
    let inside = format!(
        "<table class=\"tasks\"><caption>{}</caption>\n<colgroup span=\"{facts}\"></colgroup>\
         <colgroup span=\"{policies}\"></colgroup>\n<thead><tr><th scope=\"colgroup\" \
         colspan=\"{facts}\">the task</th>\
         <th scope=\"colgroup\" colspan=\"{policies}\" class=\"group\">its jobs are done \
         after</th></tr>\n\
         <tr>{}</tr></thead>\n<tbody>\n{rows}\
         <tr class=\"by\"><th scope=\"row\" colspan=\"{facts}\">shown \
         by</th>{by}</tr>\n</tbody></table>",
        coded(&caption),
        markup::head(&header, &numeric),
        facts = tasks.facts.len(),
        policies = tasks.policies.len(),
    );
    markup::scrolled(&caption, &inside, true)
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
    all.extend(
        from.warnings
            .iter()
            .map(|w| ("warning".to_owned(), w.clone())),
    );
    all.retain(|(_, value)| !value.is_empty());
    all
}

#[cfg(test)]
mod tests;
