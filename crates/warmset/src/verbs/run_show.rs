//! A run, or what was seen before it, for people.

use crate::console::Format;
use app::run::colors::Statement;
use app::run::{Carrier, Preflight, RESERVES, Ran, Times};
use execute::Ending;
use execute::preflight::{Finding, Level};
use execute::witness::Testimony;
use model::table::Look;
use model::{Duration, Result, document};
use partition::geometry::PAGE;
use std::fmt::Write;
use trace::Verdict;

fn times(t: Times) -> String {
    let time = |ns: u32| Duration::from_nanos(u64::from(ns)).rounded();
    format!(
        "{} at the median, {} at 99 %, {} at 99.9 %, {} at most",
        time(t.p50_ns),
        time(t.p99_ns),
        time(t.p999_ns),
        time(t.max_ns)
    )
}

/// The run as text.
pub fn table(ran: &Ran, look: Look) -> String {
    let lasted = ran.ran.rounded();
    // Writing to a string cannot fail, here and below.
    let mut text = format!(
        "{} on {} processors of {}, for real{}: {}\n",
        ran.policy,
        ran.cpus.len(),
        ran.platform,
        match ran.engine {
            Carrier::User => "",
            Carrier::Kernel => ", by the kernel's scheduler",
        },
        match ran.ending {
            Ending::Horizon => format!("ran for {lasted}"),
            Ending::ProgramsEnded => format!("ran for {lasted}, until the last program ended"),
            Ending::Interrupted => format!("interrupted after {lasted}"),
        }
    );
    text += &ran.summary.text(look);
    text.push('\n');
    work_text(ran, &mut text);
    engine_text(ran, &mut text);
    verdict_text(&ran.verdict, &mut text);
    if let Some(testimony) = &ran.witness {
        testimony_text(testimony, &ran.names, &mut text);
    }
    if let Some(colors) = &ran.colors {
        text.push_str(&colors_text(colors));
    }
    if let Some(by) = ran.profiled_by {
        text += &super::simulate_show::profiled(&ran.profiled, look);
        let _ = writeln!(
            text,
            "by {}",
            match by {
                "counters" => "misses of the last cache, which the processor counts",
                _ => "the pages that jobs touched: this machine counts no misses",
            }
        );
    }
    text
}

/// What did the jobs, what filled the time that they left, and what released them.
fn work_text(ran: &Ran, text: &mut String) {
    for end in &ran.programs {
        let _ = writeln!(
            text,
            "the program of {} {}, {} after the release of all",
            end.task,
            end.outcome,
            end.at.rounded()
        );
    }
    for b in &ran.best_effort {
        let _ = writeln!(
            text,
            "best effort: {} had {}, {:.1} % of all processors{}{}",
            b.name,
            Duration::from_nanos(b.executed_ns).rounded(),
            100.0 * b.share,
            b.units.map_or(String::new(), |units| format!(
                ", for {units} units of its work"
            )),
            b.outcome
                .as_ref()
                .map_or(String::new(), |how| format!("; it {how}"))
        );
    }
    for t in &ran.triggers {
        let _ = writeln!(
            text,
            "the trigger of {} asked for {} releases; {} came within a period of the one before and waited, {} of them to the end{}",
            t.task,
            t.events,
            t.deferred + t.left,
            t.left,
            if t.ended {
                "; it was closed before that"
            } else {
                ""
            }
        );
    }
    if !ran.workloads.is_empty() {
        let uncertain = ran
            .workloads
            .iter()
            .map(|w| w.uncertainty)
            .fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "workloads calibrated to within {:.1} % (95 % confidence, the worst of {})",
            100.0 * uncertain,
            ran.workloads.len()
        );
    }
}

/// How long the engine took.
fn engine_text(ran: &Ran, text: &mut String) {
    if let Some(source) = ran.preflight.iter().find(|f| f.name == RESERVES) {
        let _ = writeln!(text, "reserves: {}", source.seen);
    }
    let _ = writeln!(text, "release to first instruction: {}", times(ran.latency));
    if ran.engine == Carrier::Kernel {
        let _ = writeln!(text, "{} decisions in the kernel", ran.decisions);
        stuck_text(ran, text);
        return;
    }
    let _ = writeln!(
        text,
        "note and decide: {} ({} decisions); carry out as well: {}",
        times(ran.thoughts),
        ran.decisions,
        times(ran.steps)
    );
    if ran.calls.count > 0 {
        let _ = writeln!(
            text,
            "from there to a job's first instruction on another processor: {}",
            times(ran.calls)
        );
    }
    let latest = ran.longest_gap.rounded();
    let _ = match ran.gaps_over_5ms {
        0 => writeln!(text, "dispatchers woke up {latest} too late at most"),
        n => writeln!(
            text,
            "{n} times a dispatcher woke up more than 5 ms too late, up to {latest}: something else had the processor"
        ),
    };
    stuck_text(ran, text);
}

fn stuck_text(ran: &Ran, text: &mut String) {
    for task in &ran.stuck {
        let _ = writeln!(
            text,
            "a job of task {task} did not come back when it was told to end"
        );
    }
}

fn testimony_text(t: &Testimony, names: &[String], text: &mut String) {
    let time = |ns: u64| Duration::from_nanos(ns).rounded();
    let _ = writeln!(
        text,
        "the kernel's scheduler {}: it saw threads of tasks come to a processor {} times, of which the trace does not know {} at the median, {} at 99.9 %, {} at most ({} are allowed)",
        if t.disagreements == 0 {
            "confirms the trace"
        } else {
            "disagrees"
        },
        t.seen,
        time(t.median_ns),
        time(t.p999_ns),
        time(t.max_ns),
        time(t.allowed_ns)
    );
    for d in &t.first {
        let _ = writeln!(
            text,
            "  {} on processor {} from {} to {}: {}",
            names[d.task.index()],
            d.cpu,
            d.from,
            d.to,
            d.text
        );
    }
    if t.disagreements > t.first.len() {
        let _ = writeln!(text, "  and {} more", t.disagreements - t.first.len());
    }
    if !t.not_compared.is_empty() {
        let tasks = t
            .not_compared
            .iter()
            .map(|task| names[task.index()].as_str());
        let tasks: Vec<&str> = tasks.collect();
        let _ = writeln!(
            text,
            "  not compared, as programs do their jobs: {}",
            tasks.join(", ")
        );
    }
    if t.unrecorded > 0 {
        let _ = writeln!(
            text,
            "  {} times the kernel did not record who came to an idle processor: then, when the trace says so, if nothing speaks against it",
            t.unrecorded
        );
    }
    if t.lost > 0 {
        let _ = writeln!(
            text,
            "  the kernel had no room for {} switches: some of this may not be so",
            t.lost
        );
    }
    if let Some(until) = t.until {
        let _ = writeln!(
            text,
            "  there were too many switches: compared up to {until}"
        );
    }
}

fn verdict_text(v: &Verdict, text: &mut String) {
    let time = |ns: u64| Duration::from_nanos(ns).rounded();
    let rules = match v.policies.as_slice() {
        [] => "of every schedule".to_owned(),
        names => format!("of every schedule and of {}", names.join(", ")),
    };
    let _ = match (v.violations, v.lost) {
        (0, 0) => writeln!(
            text,
            "checked {} events: the rules {rules} are kept within {}",
            v.events,
            time(v.tolerance_ns)
        ),
        (n, lost) => writeln!(
            text,
            "checked {} events: the rules {rules} are broken {n} times within {} ({lost} events lost)",
            v.events,
            time(v.tolerance_ns)
        ),
    };
    if v.standstills.count > 0 {
        let _ = writeln!(text, "{}", v.standstills);
    }
    if v.overdue.count > 0 {
        let _ = writeln!(
            text,
            "{} decisions were overdue: {} at the median, {} at 99.9 %, {} at most",
            v.overdue.count,
            time(v.overdue.median_ns),
            time(v.overdue.p999_ns),
            time(v.overdue.max_ns)
        );
    }
    let late = &v.late_releases;
    let _ = writeln!(
        text,
        "jobs were released late: {} at the median, {} at 99.9 %, {} at most",
        time(late.median_ns),
        time(late.p999_ns),
        time(late.max_ns)
    );
    for violation in v.first.iter().take(5) {
        let _ = writeln!(text, "  {}: {}", violation.rule, violation.text);
    }
    for note in &v.notes {
        let _ = writeln!(text, "note: {note}");
    }
}

/// What became of pages that were asked for their colors again, `moved` of `asked` having others; of
/// the rest of `all` nobody knows.
fn asked_again(asked: u64, moved: u64, all: u64) -> String {
    let told = match (asked, moved) {
        (0, _) => return format!("; asked again at the end: none of {all} pages could be told"),
        (1, 0) => "the page has it".to_owned(),
        (_, 0) => format!("all {asked} pages have them"),
        _ => format!("{moved} of {asked} pages have others"),
    };
    let rest = match all.saturating_sub(asked) {
        0 => String::new(),
        n => format!(" ({n} could not be told)"),
    };
    format!("; asked again at the end: {told}{rest}")
}

/// The colors that were given out.
fn colors_text(c: &Statement) -> String {
    // Writing into a string cannot fail.
    let mut text = format!("\ncolors given out ({}) of the {}\n", c.scheme, c.cache);
    let width = c
        .tasks
        .iter()
        .map(|t| t.task.len())
        .max()
        .unwrap_or(0)
        .max(6);
    for t in &c.tasks {
        let _ = write!(
            text,
            "  {:<width$}  {:<12} {}{}{}",
            t.task,
            t.share.colors,
            t.wss,
            if t.share.exclusive {
                ", its own"
            } else {
                ", shared"
            },
            if t.share.fits {
                ""
            } else {
                ", which do not hold it"
            },
        );
        if let (Some(asked), Some(moved)) = (t.asked, t.moved) {
            let all = t.wss.get().div_ceil(PAGE as u64);
            text.push_str(&asked_again(asked as u64, moved as u64, all));
        }
        text.push('\n');
    }
    let _ = match c.system.is_empty() {
        true => writeln!(text, "  {:<width$}  any", "system"),
        false => writeln!(
            text,
            "  {:<width$}  {:<12} stacks of dispatchers",
            "system", c.system
        ),
    };
    let _ = writeln!(text, "  not colored: {}", c.not_colored);
    text
}

/// The findings of a preflight alone.
///
/// # Errors
/// They cannot be written as JSON.
pub fn preflight(seen: &Preflight, format: Format) -> Result<String> {
    match format {
        Format::Json => document::pretty(seen),
        Format::Table => Ok(findings_text(&seen.findings)),
    }
}

fn findings_text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for f in findings {
        let mark = match f.level {
            Level::Fine => "ok",
            Level::Warn => "warning",
            Level::Refuse => "refused",
        };
        let _ = writeln!(text, "{:<width$}  {mark:<7}  {}", f.name, sentence(&f.seen));
        if !f.remedy.is_empty() {
            let _ = writeln!(
                text,
                "{:<width$}           Remedy: {}",
                "",
                sentence(&f.remedy)
            );
        }
    }
    text
}

/// The text with a capital at its beginning and a period at its end. What begins with a path, a
/// command or an option keeps its beginning.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::fine("cpuset", "no cpuset limits this process"),
            Finding::warn("governor", "the machine does not tell it", "repeat runs"),
            Finding::warn("hypervisor", "there is one (KVM).", "`look` at the gaps"),
        ]
    }

    #[test]
    fn a_preflight_tells_all_in_sentences() {
        let text = findings_text(&findings());
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "cpuset      ok       No cpuset limits this process.",
                "governor    warning  The machine does not tell it.",
                "Remedy: Repeat runs.",
                "hypervisor  warning  There is one (KVM).",
                "Remedy: `look` at the gaps.",
            ]
        );
    }

    /// Where no page could be told there is nothing that all of them have.
    #[test]
    fn pages_that_could_not_be_told_count_for_nothing() {
        assert!(asked_again(0, 0, 16).ends_with(": none of 16 pages could be told"));
        assert!(asked_again(12, 0, 16).ends_with(": all 12 pages have them (4 could not be told)"));
        assert!(asked_again(16, 3, 16).ends_with(": 3 of 16 pages have others"));
    }
}
