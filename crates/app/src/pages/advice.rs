//! The page of an advice: what to run, who runs where, how far it can be stretched, and what the
//! other policies come to.

use super::judged::{bar, label};
use super::{machine, place};
use crate::{PROGRAM, Tasks, advise};
use ::advise::{Advice, Asked, Considered, Ended, Factor, OneTask, Outcome, Recommended};
use analyze::Guarantee;
use analyze::policies::{self, Growth, PolicyVerdict};
use model::watch::Silent;
use model::{Delay, Duration, Result, TaskSet};
use report::page::{self, Numbers, Part, ReportData, Shown};
use report::room::{self, Room};
use report::{Figure, assignment, words};

/// So many of the other policies have their assignments drawn.
const DRAWN: usize = 3;

/// The page, as a file.
///
/// # Errors
/// A figure cannot be drawn.
pub fn page(
    tasks: &Tasks,
    asked: &Asked<'_>,
    advice: &Advice,
    options: &advise::Options,
) -> Result<String> {
    let mut data = ReportData {
        title: format!("What to run: {}", tasks.place),
        lead: lead(advice),
        answer: vec![("Answer".to_owned(), sentence(&advice.answer))],
        program: PROGRAM.to_owned(),
        machine: machine(asked.platform),
        warnings: warnings(advice, asked),
        ..ReportData::default()
    };
    if let Some(found) = &advice.recommendation {
        data.parts
            .push(plan(&advice.planned_set(&tasks.set)?, advice, found)?);
        data.parts.push(margins(found)?);
    }
    if !advice.changes.is_empty() {
        data.parts.push(changes(advice));
    }
    data.parts.push(others(asked, advice)?);
    if !advice.not_tried.is_empty() {
        data.parts.push(Part {
            id: "not-tried",
            name: "Not tried",
            heading: "What was not tried",
            says: Vec::new(),
            numbers: Vec::new(),
            figures: Vec::new(),
            list: advice.not_tried.iter().map(|what| sentence(what)).collect(),
        });
    }
    let shown = report::platform::figure("platform", asked.platform);
    data.hierarchy = Some(Shown {
        figures: vec![shown],
        command: String::new(),
    });
    if let Some(profile) = asked.costs.profile {
        let title = format!("What is charged: the costs of {}", place(&profile.platform));
        data.provenance.push((title, profile.provenance.clone()));
    }
    let own = crate::provenance(&options.command);
    data.provenance.push(("This page".to_owned(), own));
    Ok(page::page(&data))
}

fn sentence(text: &str) -> String {
    words::capital(text) + "."
}

/// The set and the machine on one line.
fn lead(advice: &Advice) -> String {
    let guarantee = match advice.guarantee {
        Guarantee::Hard => "no deadline may be missed",
        Guarantee::Soft => "tardiness must be bounded",
    };
    format!(
        "{}, utilization {} of {} · {} · {guarantee} · charged: {}",
        words::count(advice.tasks.len() as u64, "task"),
        words::three(advice.utilization),
        words::count(advice.processors as u64, "processor"),
        advice.platform,
        advice.costs
    )
}

/// What somebody must know to trust the answer.
fn warnings(advice: &Advice, asked: &Asked<'_>) -> Vec<String> {
    let mut all = Vec::new();
    match advice.ended {
        Ended::Complete => {}
        Ended::Budget => all.push("The budget ended the search before all was tried.".to_owned()),
        Ended::Stopped => all.push("The search was stopped before all was tried.".to_owned()),
    }
    if let Some(profile) = asked.costs.profile
        && profile.platform != advice.platform
    {
        all.push(format!(
            "The costs were measured on {}, not on {}.",
            place(&profile.platform),
            place(&advice.platform)
        ));
    }
    if asked.costs.profile.is_none() && asked.costs.cpmd.is_none() {
        all.push("Nothing is charged: preemptions and the scheduler cost something.".to_owned());
    }
    if let Some(found) = &advice.recommendation {
        if !found.verdict.cpmd_covered {
            all.push("Not all is charged that this policy does to caches.".to_owned());
        }
        all.extend(found.verdict.notes.iter().map(|note| sentence(note)));
    }
    all
}

/// Who runs where.
fn plan(set: &TaskSet, advice: &Advice, found: &Recommended) -> Result<Part> {
    let verdict = &found.verdict;
    let mut says = vec![
        sentence(&verdict.reason),
        format!("How it was found: {}.", found.found_by),
    ];
    if let Some(priorities) = &found.priorities {
        let named = advice.tasks.iter().zip(priorities);
        let all: Vec<String> = named.map(|(t, p)| format!("{} {p}", t.name)).collect();
        says.push(format!(
            "Priorities, the larger the more urgent: {}.",
            words::list(&all)
        ));
    }
    if let Some(colors) = &advice.colors {
        says.push(sentence(&colors.words));
        let named = set.ids().filter_map(|id| {
            let own = set.details(id)?.colors.as_ref()?;
            Some(format!("{} {own}", set.name(id)))
        });
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            says.push(format!("Colors: {}.", words::list(&named)));
        }
    }
    Ok(Part {
        id: "plan",
        name: "The plan",
        heading: "The plan: who runs where",
        says,
        numbers: vec![task_table(set, found)],
        figures: vec![Shown {
            figures: vec![drawn("plan", &label(&found.policy), verdict)?],
            command: String::new(),
        }],
        list: Vec::new(),
    })
}

/// The assignment of a verdict as a picture.
fn drawn(id: &str, title: &str, verdict: &PolicyVerdict) -> Result<Figure> {
    let busy = verdict
        .clusters
        .iter()
        .filter(|cluster| !cluster.tasks.is_empty());
    let bars: Vec<assignment::Bar> = busy.map(bar).collect();
    let mut figure = assignment::figure(id, title, &bars)?;
    let idle = verdict.clusters.len() - bars.len();
    if idle > 0 {
        figure.caption += &format!(" {} more run nothing.", words::grouped(idle as u64));
    }
    Ok(figure)
}

fn task_table(set: &TaskSet, found: &Recommended) -> Numbers {
    let verdict = &found.verdict;
    let rows = set.ids().map(|id| {
        let (timing, name) = (&set.timings()[id.index()], set.name(id));
        let places: Vec<String> = verdict
            .clusters
            .iter()
            .filter(|cluster| cluster.tasks.iter().any(|placed| placed.task == id))
            .map(|cluster| cluster.processors.to_string())
            .collect();
        let bound = verdict.tasks.iter().find(|bound| bound.task == id);
        let done = bound.map(|bound| {
            let least = if bound.exact { "" } else { "≤ " };
            format!("{least}{}", words::time(Delay::from(bound.response)))
        });
        let alone = found.stretch.tasks.iter().find(|task| task.task == name);
        vec![
            name,
            words::duration(timing.wcet),
            words::duration(timing.period),
            words::duration(timing.deadline),
            places.join(" and "),
            done.unwrap_or_else(|| "–".to_owned()),
            alone.map_or_else(
                || "–".to_owned(),
                |task| words::duration(rounded(task.largest)),
            ),
        ]
    });
    Numbers {
        caption:
            "The tasks: where each runs, when its jobs are done at the latest (≤: a bound that \
                  need not be reached), and how long its WCET may be if all others stay"
                .to_owned(),
        header: [
            "task",
            "WCET",
            "period",
            "deadline",
            "processors",
            "done after",
            "WCET up to",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.collect(),
    }
}

/// To whole microseconds, downwards: what is shown as bearable is.
fn rounded(time: Duration) -> Duration {
    match time.nanos() {
        long @ 10_000.. => Duration::from_nanos(long / 1_000 * 1_000),
        _ => time,
    }
}

/// How far the plan can be stretched, as bars.
fn margins(found: &Recommended) -> Result<Part> {
    let stretch = &found.stretch;
    let mut rooms = Vec::new();
    if let Some(growth) = stretch.wcets {
        rooms.push(Room {
            is_first: true,
            ..of_growth("all WCETs together", growth)
        });
    }
    rooms.extend(stretch.tasks.iter().map(of_task));
    let of_factor = |name: &str, factor: Factor| Room {
        name: name.to_owned(),
        percent: factor.percent as f64 - 100.0,
        at_least: !factor.exact,
        tip: format!("{name}: the plan holds with {} %", factor.percent),
        is_first: false,
    };
    rooms.extend(stretch.delays.map(|by| of_factor("all cache delays", by)));
    rooms.extend(stretch.costs.map(|by| of_factor("all costs", by)));
    let mut says = Vec::new();
    if let Some(margin) = stretch.largest_cpmd {
        let least = if margin.exact { "" } else { "at least " };
        says.push(format!(
            "The cache delay of a job, the same for every task, may be {least}{} before the plan \
             fails.",
            words::time(Delay::from(margin.cpmd))
        ));
    }
    let caption = "By how much each may grow while all else stays as it is, nobody is placed anew, \
                   and the plan still holds. A task alone is one bar, the one with the least room \
                   first.";
    let figures = match rooms.is_empty() {
        true => Vec::new(),
        false => vec![Shown {
            figures: vec![room::figure(
                "margins",
                "How far the plan can be stretched",
                caption,
                &rooms,
            )?],
            command: String::new(),
        }],
    };
    Ok(Part {
        id: "margins",
        name: "Margins",
        heading: "How far it can be stretched",
        says,
        numbers: Vec::new(),
        figures,
        list: Vec::new(),
    })
}

fn of_growth(name: &str, growth: Growth) -> Room {
    let percent = growth.thousandths as f64 / 10.0 - 100.0;
    Room {
        name: name.to_owned(),
        percent,
        at_least: !growth.exact,
        tip: format!(
            "{name}: WCETs may be {:.1} % of those given",
            percent + 100.0
        ),
        is_first: false,
    }
}

fn of_task(task: &OneTask) -> Room {
    Room {
        name: format!("{} alone", task.task),
        percent: task.thousandths as f64 / 10.0 - 100.0,
        at_least: false,
        tip: format!(
            "{}: from {} to {}",
            task.task,
            words::duration(task.wcet),
            words::duration(rounded(task.largest))
        ),
        is_first: false,
    }
}

/// The changes with which something would hold.
fn changes(advice: &Advice) -> Part {
    let rows = advice
        .changes
        .iter()
        .map(|change| vec![words::capital(&change.words), label(&change.policy)]);
    Part {
        id: "changes",
        name: "Changes",
        heading: "With one of these changes it holds",
        says: Vec::new(),
        numbers: vec![Numbers {
            caption: "Each alone, the smallest first, and the policy that then holds the set"
                .to_owned(),
            header: ["change", "policy"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }],
        figures: Vec::new(),
        list: Vec::new(),
    }
}

/// All policies beside each other.
fn others(asked: &Asked<'_>, advice: &Advice) -> Result<Part> {
    let holding: Vec<&Considered> = advice
        .policies
        .iter()
        .filter(|p| p.outcome == Outcome::Holds)
        .collect();
    let rooms: Vec<Room> = holding
        .iter()
        .enumerate()
        .filter_map(|(place, p)| {
            let name = label(&p.policy);
            let room = of_growth(&name, p.growth?);
            Some(Room {
                is_first: place == 0,
                ..room
            })
        })
        .collect();
    let mut figures = Vec::new();
    if !rooms.is_empty() {
        let caption = "By how much all WCETs may grow with the plan of each policy that holds the \
                       set, as it is.";
        figures.push(Shown {
            figures: vec![room::figure(
                "policies",
                "The policies side by side",
                caption,
                &rooms,
            )?],
            command: String::new(),
        });
    }
    let mut pictures = Vec::new();
    for (place, p) in holding.iter().skip(1).take(DRAWN).enumerate() {
        if let Some(verdict) = verdict(asked, p)? {
            pictures.push(drawn(
                &format!("other-{place}"),
                &label(&p.policy),
                &verdict,
            )?);
        }
    }
    if !pictures.is_empty() {
        figures.push(Shown {
            figures: pictures,
            command: String::new(),
        });
    }
    Ok(Part {
        id: "policies",
        name: "The alternatives",
        heading: "What the policies come to",
        says: Vec::new(),
        numbers: vec![policy_table(advice)],
        figures,
        list: Vec::new(),
    })
}

/// What `check` says of a plan that is not the recommended one.
fn verdict(asked: &Asked<'_>, considered: &Considered) -> Result<Option<PolicyVerdict>> {
    let Some(assignment) = &considered.assignment else {
        return Ok(None);
    };
    let set = considered.planned_set(asked.set)?;
    let judged = policies::judge_assigned(
        &set,
        asked.platform,
        &considered.policy.parse()?,
        assignment,
        asked.guarantee,
        &asked.costs,
        &Silent,
    )?;
    Ok(judged.policies.into_iter().next())
}

fn policy_table(advice: &Advice) -> Numbers {
    let rows = advice.policies.iter().map(|p| {
        let plan = match p.outcome {
            Outcome::Holds => "found",
            Outcome::Fails => "none",
            Outcome::NotJudged => "not judged",
            Outcome::NotTried => "not tried",
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        vec![
            label(&p.policy),
            plan.to_owned(),
            or_dash(p.growth.map(|g| {
                let least = if g.exact { "" } else { "≥ " };
                format!("{least}{:+.1} %", g.thousandths as f64 / 10.0 - 100.0)
            })),
            or_dash(p.lost.map(words::three)),
            if p.searched.is_exact { "yes" } else { "no" }.to_owned(),
            words::capital(&p.reason),
        ]
    });
    Numbers {
        caption: "Every policy: whether a plan was found, how much all WCETs may grow with it, \
                  processors lost to overheads, whether nothing was left out (exact), and why"
            .to_owned(),
        header: ["policy", "plan", "growth", "lost", "exact", "why"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.collect(),
    }
}
