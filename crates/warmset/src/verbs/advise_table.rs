//! Advice for people: the recommendation, how far it can be stretched, the other policies, changes.

use super::check_table::{Text, count, details, growth};
use ::advise::{Advice, Ended, Factor, Outcome, Recommended};
use analyze::Guarantee;
use app::advise::Advised;
use model::table::{Cell, Look, Table, Tone};

/// The most single tasks that are shown; JSON has all.
const MOST_TASKS: usize = 8;
/// The most changes that are shown.
const MOST_CHANGES: usize = 8;

/// The advice for the set in `file` as text.
pub fn text(file: &str, advised: &Advised, look: Look) -> String {
    let advice = &advised.advice;
    let mut out = Text {
        text: String::new(),
        look,
    };
    out.paragraph(
        &format!(
            "{file}: {} with utilization {:.3}, on {} ({})",
            count(advice.tasks.len(), "task"),
            advice.utilization,
            advice.platform,
            count(advice.processors, "processor"),
        ),
        0,
    );
    let asked = match advice.guarantee {
        Guarantee::Hard => "asked: hard real time, no deadline may be missed",
        Guarantee::Soft => "asked: soft real time, tardiness must be bounded",
    };
    out.paragraph(asked, 0);
    out.paragraph(&format!("charged: {}", advice.costs), 0);
    if let Some(profile) = advised.profile.as_ref()
        && profile.platform != advice.platform
    {
        let note = format!(
            "note: the delays were measured on {}, not on {}",
            profile.platform, advice.platform
        );
        out.paragraph(&note, 0);
    }
    out.push('\n');
    out.paragraph(&format!("{}.", sentence(&advice.answer)), 0);
    out.push('\n');
    policies(&mut out, advice);
    if let Some(found) = &advice.recommendation {
        plan(&mut out, advice, found);
    }
    changes(&mut out, advice);
    not_tried(&mut out, advice);
    out.text
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn policies(out: &mut Text, advice: &Advice) {
    let mut rows = Table::new(3, 0);
    rows.row(["policy", "plan", "exact", "growth", "lost"]);
    for p in &advice.policies {
        let (holds, tone) = match p.outcome {
            Outcome::Holds => ("found", Tone::Good),
            Outcome::Fails => ("none", Tone::Bad),
            Outcome::NotJudged => ("not judged", Tone::Plain),
            Outcome::NotTried => ("not tried", Tone::Plain),
        };
        let mut name = p.policy.clone();
        if p.priorities.is_some() {
            name += " (priorities found)";
        }
        let cells: [Cell; 5] = [
            name.into(),
            Cell {
                text: holds.to_owned(),
                tone,
            },
            match p.searched.is_exact {
                true => "yes",
                false => "-",
            }
            .into(),
            match p.growth {
                Some(g) => growth(Some(g)),
                None => "-".to_owned(),
            }
            .into(),
            p.lost
                .map_or_else(|| "-".to_owned(), |u| format!("{u:.3}"))
                .into(),
        ];
        rows.row(cells);
    }
    out.push_str(&rows.text(out.look));
    out.push('\n');
    let legend = "plan: `check` says yes to it. exact: of single processors no placement bears more \
                  growth; of a policy without a plan, no placement passes. growth: by how much all \
                  WCETs may grow with this plan as it is. lost: processors lost to overheads.";
    out.paragraph(legend, 0);
    out.push('\n');
    for p in &advice.policies {
        let how = match p.found_by.as_str() {
            "" => String::new(),
            how => format!(" ({how})"),
        };
        out.paragraph(&format!("  {}: {}{how}", p.policy, p.reason), 4);
    }
}

fn plan(out: &mut Text, advice: &Advice, found: &Recommended) {
    details(out, &found.verdict);
    if let Some(priorities) = &found.priorities {
        let named = advice.tasks.iter().zip(priorities);
        let all: Vec<String> = named.map(|(t, p)| format!("{} {p}", t.name)).collect();
        out.push('\n');
        out.paragraph(
            &format!("Priorities, the larger the more urgent: {}", all.join(", ")),
            2,
        );
    }
    if let Some(colors) = &advice.colors {
        let given = found.colors.iter().flatten();
        let named = advice.tasks.iter().zip(given);
        let named = named.filter_map(|(t, own)| Some(format!("{} {}", t.name, own.as_ref()?)));
        let named: Vec<String> = named.collect();
        out.push('\n');
        out.paragraph(&format!("Colors: {}.", colors.words), 2);
        if !named.is_empty() {
            out.paragraph(&format!("  {}", named.join(", ")), 4);
        }
        if !colors.shared_unknown.is_empty() {
            let names = colors.shared_unknown.join(", ");
            let text = format!("  sharing was not tried: no `shared` WCET is known for {names}");
            out.paragraph(&text, 4);
        }
        if !colors.without.is_empty() {
            let names = colors.without.join(", ");
            let text = format!(
                "  {names}: without colors, so that they use those of all others, unless they need \
                 no cache"
            );
            out.paragraph(&text, 4);
        }
    }
    out.push_str("\nHow far the plan can be stretched, as it is:\n");
    let stretch = &found.stretch;
    out.paragraph(&format!("  all WCETs: {}", growth(stretch.wcets)), 4);
    if let Some(margin) = stretch.largest_cpmd {
        let least = if margin.exact { "" } else { ">= " };
        let text = format!("  cache delay a job: {least}{}", margin.cpmd.rounded());
        out.paragraph(&text, 4);
    }
    for (what, by) in [
        ("all cache delays", stretch.delays),
        ("all costs", stretch.costs),
    ] {
        if let Some(by) = by {
            out.paragraph(&format!("  {what}: {}", times(by)), 4);
        }
    }
    for task in stretch.tasks.iter().take(MOST_TASKS) {
        let by = task.thousandths.saturating_sub(1_000);
        let text = format!(
            "  {} alone: from {} to {} (+{}.{} %)",
            task.task,
            task.wcet.rounded(),
            task.largest.rounded(),
            by / 10,
            by % 10
        );
        out.paragraph(&text, 4);
    }
    more(out, stretch.tasks.len(), MOST_TASKS, "tasks");
}

/// `2.35 times`, with a mark where more may be possible.
fn times(by: Factor) -> String {
    let least = if by.exact { "" } else { ">= " };
    format!("{least}{}.{:02} times", by.percent / 100, by.percent % 100)
}

fn more(out: &mut Text, all: usize, shown: usize, what: &str) {
    if let Some(more) = all.checked_sub(shown).filter(|more| *more > 0) {
        out.paragraph(&format!("  {more} more {what}: `--format json`"), 4);
    }
}

fn changes(out: &mut Text, advice: &Advice) {
    if advice.changes.is_empty() {
        return;
    }
    out.push_str("\nWith one of these changes it holds:\n");
    for change in advice.changes.iter().take(MOST_CHANGES) {
        out.paragraph(&format!("  {}", change.words), 4);
    }
    let processors = advice.changes.iter().skip(MOST_CHANGES).next_back();
    if let Some(last) = processors.filter(|c| matches!(c.what, ::advise::What::Processors { .. })) {
        out.paragraph(&format!("  {}", last.words), 4);
    }
    more(out, advice.changes.len(), MOST_CHANGES + 1, "changes");
}

fn not_tried(out: &mut Text, advice: &Advice) {
    let all = match (advice.ended, advice.not_tried.is_empty()) {
        (Ended::Complete, true) => return,
        (Ended::Complete, false) => "\nNot tried:\n",
        (Ended::Budget, _) => "\nThe budget ended the search. Not tried:\n",
        (Ended::Stopped, _) => "\nThe search was stopped. Not tried:\n",
    };
    out.push_str(all);
    for what in &advice.not_tried {
        out.paragraph(&format!("  {what}"), 4);
    }
}
