//! How `warmset run` shows what came of a run: a table for people, a JSON document for machines.

use super::run_colors::Statement;
use crate::console::Format;
use crate::options::Answered;
use execute::preflight::{Finding, Level};
use execute::witness::Testimony;
use execute::{Ending, Outcome};
use model::table::Look;
use model::{CpuId, Duration, Result, TaskSet, document};
use serde::Serialize;
use std::fmt::Write;
use trace::{Summary, Verdict};
use workload::Calibrated;

/// The workload of each task, with its name.
pub type Workloads = Vec<(String, Calibrated)>;

/// What is shown.
pub struct Shown<'a> {
    pub policy: String,
    pub set: &'a TaskSet,
    pub platform: &'a str,
    pub cpus: &'a [CpuId],
    pub findings: &'a [Finding],
    pub workloads: &'a [(String, Calibrated)],
    pub summary: Summary,
    pub verdict: Verdict,
    pub outcome: &'a Outcome,
    /// When all tasks were released, by the clock on the wall.
    pub released_at: String,
    pub colors: Option<&'a Statement>,
    /// What the kernel's scheduler says, if it was asked.
    pub testimony: Option<&'a Testimony>,
    /// By name of best-effort work, how many units of its workload a round is.
    pub units: &'a [(String, u64)],
}

/// Percentiles of times, in nanoseconds.
#[derive(Clone, Copy, Serialize)]
struct Times {
    count: usize,
    #[serde(rename = "median_ns")]
    p50_ns: u32,
    p99_ns: u32,
    p999_ns: u32,
    max_ns: u32,
}

impl Times {
    /// Of sorted times.
    fn of(sorted: &[u32]) -> Self {
        let at = |part: f64| {
            let rank = (part * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Times {
            count: sorted.len(),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: at(1.0),
        }
    }
    fn text(self) -> String {
        let time = |ns: u32| Duration::from_nanos(u64::from(ns)).rounded();
        format!(
            "{} at the median, {} at 99 %, {} at 99.9 %, {} at most",
            time(self.p50_ns),
            time(self.p99_ns),
            time(self.p999_ns),
            time(self.max_ns)
        )
    }
}

#[derive(Serialize)]
struct Workload<'a> {
    task: &'a str,
    units_per_job: u64,
    unit_median_ps: u64,
    unit_low_ps: u64,
    unit_high_ps: u64,
    #[serde(rename = "job_ns", serialize_with = "model::time::ns::serialize")]
    job: Duration,
}

#[derive(Serialize)]
struct Program {
    task: String,
    outcome: String,
    #[serde(rename = "at_ns", serialize_with = "model::time::ns::serialize")]
    at: Duration,
}

#[derive(Serialize)]
struct Trigger {
    task: String,
    /// Releases that were asked for.
    events: u64,
    /// Those that came earlier than a period after the release before.
    deferred: u64,
    /// Those that still waited at the end.
    left: u64,
    ended: bool,
}

#[derive(Serialize)]
struct BestEffort<'a> {
    name: &'a str,
    /// Processor time within the run.
    executed_ns: u64,
    /// Of all of its processors' time.
    share: f64,
    /// Units of its workload that were done; none of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    policy: &'a str,
    platform: &'a str,
    ended_by: &'static str,
    /// By the clock on the wall, and by `CLOCK_MONOTONIC`.
    released_at: &'a str,
    released_at_ns: u64,
    #[serde(rename = "ran_ns", serialize_with = "model::time::ns::serialize")]
    ran: Duration,
    preflight: &'a [Finding],
    workloads: Vec<Workload<'a>>,
    programs: Vec<Program>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<Trigger>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    best_effort: Vec<BestEffort<'a>>,
    /// The same fields as in the answers of `warmset simulate` and `warmset trace stats`.
    #[serde(flatten)]
    summary: Summary,
    decisions: u64,
    /// Dispatchers: to take note and decide.
    thoughts: Times,
    /// Dispatchers: to take note, decide and carry out.
    steps: Times,
    /// From there to a job's first instruction on another processor.
    calls: Times,
    /// Release to first instruction, of jobs that were chosen at their release.
    latency: Times,
    #[serde(rename = "longest_gap_ns", serialize_with = "model::time::ns::serialize")]
    longest_gap: Duration,
    gaps_over_5ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    colors: Option<&'a Statement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<&'a Testimony>,
    clean: bool,
    verdict: &'a Verdict,
}

impl Shown<'_> {
    /// Prints it, or writes it to a file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn give(&self, answered: &Answered) -> Result<()> {
        answered.give(|look| self.table(look), &self.document())
    }

    fn document(&self) -> Document<'_> {
        let workloads = self.workloads.iter().map(|(task, c)| Workload {
            task,
            units_per_job: c.count,
            unit_median_ps: c.unit.median_ps,
            unit_low_ps: c.unit.low_ps,
            unit_high_ps: c.unit.high_ps,
            job: c.length,
        });
        let programs = self.outcome.programs.iter().map(|end| Program {
            task: self.set.name(end.task),
            outcome: end.how.to_string(),
            at: Duration::from_nanos(end.at.nanos()),
        });
        let triggers = self.outcome.triggers.iter().map(|t| Trigger {
            task: self.set.name(t.task),
            events: t.events,
            deferred: t.deferred,
            left: t.left,
            ended: t.ended,
        });
        let mut summary = self.summary.clone();
        if let Some(recorded) = &mut summary.recorded {
            // The engine also counts what was lost after the last event that it could record.
            recorded.lost_events = recorded.lost_events.max(self.outcome.lost);
        }
        Document {
            policy: &self.policy,
            platform: self.platform,
            ended_by: match self.outcome.ending {
                Ending::Horizon => "horizon",
                Ending::Interrupted => "interrupt",
                Ending::ProgramsEnded => "programs",
            },
            released_at: &self.released_at,
            released_at_ns: self.outcome.origin,
            ran: Duration::from_nanos(self.outcome.end.nanos()),
            preflight: self.findings,
            workloads: workloads.collect(),
            programs: programs.collect(),
            triggers: triggers.collect(),
            best_effort: self.best_effort(),
            summary,
            decisions: self.outcome.decisions,
            thoughts: Times::of(&self.outcome.thoughts),
            steps: Times::of(&self.outcome.steps),
            calls: Times::of(&self.outcome.calls),
            latency: Times::of(&self.outcome.latencies),
            longest_gap: self.outcome.latest,
            gaps_over_5ms: self.outcome.gaps,
            colors: self.colors,
            witness: self.testimony,
            clean: self.verdict.is_clean(),
            verdict: &self.verdict,
        }
    }

    fn best_effort(&self) -> Vec<BestEffort<'_>> {
        let whole = self.outcome.end.nanos() as f64 * self.cpus.len() as f64;
        let of = |done: &execute::Done| {
            let known = self.units.iter().find(|(name, _)| *name == done.name)?;
            Some(BestEffort {
                name: &known.0,
                executed_ns: done.executed.nanos(),
                share: done.executed.nanos() as f64 / whole.max(1.0),
                units: (known.1 > 0).then(|| known.1.saturating_mul(done.rounds)),
                outcome: done.ended.map(|how| how.to_string()),
            })
        };
        self.outcome.best_effort.iter().filter_map(of).collect()
    }

    fn table(&self, look: Look) -> String {
        let o = self.outcome;
        // Writing to a string cannot fail, here and below.
        let mut text = format!(
            "{} on {} processors of {}, for real: {}\n",
            self.policy,
            self.cpus.len(),
            self.platform,
            match o.ending {
                Ending::Horizon => format!("ran for {}", Duration::from_nanos(o.end.nanos()).rounded()),
                Ending::ProgramsEnded => format!(
                    "ran for {}, until the last program ended",
                    Duration::from_nanos(o.end.nanos()).rounded()
                ),
                Ending::Interrupted => format!(
                    "interrupted after {}",
                    Duration::from_nanos(o.end.nanos()).rounded()
                ),
            }
        );
        text += &self.summary.text(look);
        let uncertain = self
            .workloads
            .iter()
            .map(|(_, c)| c.unit.uncertainty())
            .fold(0.0, f64::max);
        text.push('\n');
        for end in &o.programs {
            let at = Duration::from_nanos(end.at.nanos()).rounded();
            let _ = writeln!(
                text,
                "the program of {} {}, {at} after the release of all",
                self.set.name(end.task),
                end.how
            );
        }
        for b in self.best_effort() {
            let _ = writeln!(
                text,
                "best effort: {} had {}, {:.1} % of all processors{}{}",
                b.name,
                Duration::from_nanos(b.executed_ns).rounded(),
                100.0 * b.share,
                b.units
                    .map_or(String::new(), |units| format!(", for {units} units of its work")),
                b.outcome.map_or(String::new(), |how| format!("; it {how}"))
            );
        }
        for t in &o.triggers {
            let _ = writeln!(
                text,
                "the trigger of {} asked for {} releases; {} came within a period of the one before and waited, {} of them to the end{}",
                self.set.name(t.task),
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
        if !self.workloads.is_empty() {
            let _ = writeln!(
                text,
                "workloads calibrated to within {:.1} % (95 % confidence, the worst of {})",
                100.0 * uncertain,
                self.workloads.len()
            );
        }
        let _ = writeln!(
            text,
            "release to first instruction: {}",
            Times::of(&o.latencies).text()
        );
        let _ = writeln!(
            text,
            "note and decide: {} ({} decisions); carry out as well: {}",
            Times::of(&o.thoughts).text(),
            o.decisions,
            Times::of(&o.steps).text()
        );
        if !o.calls.is_empty() {
            let _ = writeln!(
                text,
                "from there to a job's first instruction on another processor: {}",
                Times::of(&o.calls).text()
            );
        }
        let _ = match o.gaps {
            0 => writeln!(
                text,
                "dispatchers woke up {} too late at most",
                o.latest.rounded()
            ),
            n => writeln!(
                text,
                "{n} times a dispatcher woke up more than 5 ms too late, up to {}: something else had the processor",
                o.latest.rounded()
            ),
        };
        for task in &o.stuck {
            let _ = writeln!(
                text,
                "a job of task {} did not come back when it was told to end",
                task.0 + 1
            );
        }
        self.verdict_text(&mut text);
        if let Some(testimony) = self.testimony {
            self.testimony_text(testimony, &mut text);
        }
        if let Some(colors) = self.colors {
            text.push_str(&colors.text());
        }
        text
    }

    fn testimony_text(&self, t: &Testimony, text: &mut String) {
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
                self.set.name(d.task),
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
            let names: Vec<String> = t.not_compared.iter().map(|task| self.set.name(*task)).collect();
            let _ = writeln!(
                text,
                "  not compared, as programs do their jobs: {}",
                names.join(", ")
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
            let _ = writeln!(text, "  there were too many switches: compared up to {until}");
        }
    }

    fn verdict_text(&self, text: &mut String) {
        let v = &self.verdict;
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
}

/// The findings of a preflight alone.
///
/// # Errors
/// They cannot be written as JSON.
pub fn preflight(findings: &[Finding], format: Format) -> Result<String> {
    if format == Format::Json {
        #[derive(Serialize)]
        struct Looked<'a> {
            preflight: &'a [Finding],
        }
        return document::pretty(&Looked { preflight: findings });
    }
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
            let _ = writeln!(text, "{:<width$}           Remedy: {}", "", sentence(&f.remedy));
        }
    }
    Ok(text)
}

/// How many things may disturb a run, in a line; none where nothing does. Another run is named: it
/// spoils both.
pub fn disturbances(findings: &[Finding]) -> Option<String> {
    let warned = || findings.iter().filter(|f| f.level == Level::Warn);
    let things = match warned().count() {
        0 => return None,
        1 => "1 thing".to_owned(),
        n => format!("{n} things"),
    };
    let runs: Vec<&str> = warned()
        .filter(|f| f.name == execute::preflight::OTHER_RUNS)
        .filter_map(|f| f.seen.split_whitespace().nth(1))
        .collect();
    let among = match runs.as_slice() {
        [] => String::new(),
        [one] => format!(", among them another Warmset run (process {one})"),
        many => format!(", among them other Warmset runs (processes {})", many.join(", ")),
    };
    Some(format!(
        "{things} on this machine may disturb the run{among}; `warmset run … --preflight` lists them"
    ))
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
    fn what_may_disturb_a_run_is_one_line_with_the_count() {
        let mut found = findings();
        assert_eq!(disturbances(&found[..1]), None);
        let said = "1 thing on this machine may disturb the run; `warmset run … --preflight` lists them";
        assert_eq!(disturbances(&found[..2]).as_deref(), Some(said));
        found.push(Finding::warn(
            execute::preflight::OTHER_RUNS,
            "process 71 is another Warmset run on processors 0-1",
            "wait",
        ));
        let said = disturbances(&found).unwrap();
        assert!(
            said.starts_with("3 things") && said.contains("another Warmset run (process 71);"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }

    #[test]
    fn a_preflight_tells_all_in_sentences() {
        let text = preflight(&findings(), Format::Table).unwrap();
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
        let json: serde_json::Value =
            serde_json::from_str(&preflight(&findings(), Format::Json).unwrap()).unwrap();
        assert_eq!(json["preflight"].as_array().map(Vec::len), Some(3), "{json}");
    }
}
