//! The section of a page on cache delays within schedules: what makes a sample, delays against the
//! number of tasks, and Observations 1 to 5 of 000 put to the test.

use crate::measure::scheduled::RESULTS;
use ::measure::scheduled::example::Example;
use model::{Bytes, Error, Load, Profile, Provenance, Result, Resumption, ScheduledCurve, files};
use report::by_tasks::{self, Group, Line};
use report::page::{Schedules, Shown, Statement};
use report::panel::Sketch;
use report::sampled::{self, Sampled};
use report::{Figure, words};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// A panel has lines of so many working set sizes at most, the largest, as in Fig. 4.
const SIZES: usize = 3;

/// What a page needs of the results.
#[derive(Debug, Deserialize)]
pub struct Found {
    runs: u32,
    jobs: u64,
    samples: u64,
    #[serde(default)]
    example: Option<Example>,
    observations: Vec<Told>,
    provenance: Provenance,
}

/// An observation of 000, and what was found here.
#[derive(Debug, Deserialize)]
struct Told {
    says: String,
    source: String,
    rule: String,
    here: String,
    holds: Verdict,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Yes,
    No,
    CannotTell,
}

impl Verdict {
    const fn words(self) -> &'static str {
        use ::measure::overheads::statements::Holds;
        match self {
            Verdict::Yes => Holds::Yes,
            Verdict::No => Holds::No,
            Verdict::CannotTell => Holds::CannotTell,
        }
        .words()
    }
}

/// Reads the results in a directory, if there are any.
///
/// # Errors
/// They are none.
pub fn read(dir: &Path) -> Result<Option<Found>> {
    let path = dir.join(RESULTS);
    if !path.exists() {
        return Ok(None);
    }
    let text = files::read_text(&path)?;
    let found = serde_json::from_str(&text).map_err(|e| {
        Error::new(format!("these are no results of delays in schedules: {e}"))
            .at(path.display())
            .remedy("measure them again with this version, or remove the file")
    })?;
    Ok(Some(found))
}

/// Largest delays against the number of tasks, a panel for each policy and load; `None` where there
/// are none.
pub fn by_tasks(id: &str, curves: &[ScheduledCurve]) -> Option<Sketch> {
    let ratios: BTreeSet<u64> = curves
        .iter()
        .map(|c| c.curve.write_ratio.to_bits())
        .collect();
    let usual = Profile::DEFAULT_WRITE_RATIO;
    let ratio = match ratios.contains(&usual.to_bits()) {
        true => usual,
        false => f64::from_bits(*ratios.first()?),
    };
    let shown: Vec<&ScheduledCurve> = curves
        .iter()
        .filter(|c| c.curve.write_ratio == ratio)
        .collect();
    let sizes: BTreeSet<Bytes> = shown
        .iter()
        .flat_map(|c| &c.curve.points)
        .map(|p| p.wss)
        .collect();
    let sizes: Vec<Bytes> = sizes.into_iter().rev().take(SIZES).collect();
    // In the order in which policies were given.
    let mut policies: Vec<&str> = Vec::new();
    for curve in &shown {
        if !policies.contains(&curve.policy.as_str()) {
            policies.push(&curve.policy);
        }
    }
    let mut groups = Vec::new();
    for policy in policies {
        for load in [Load::Idle, Load::Load] {
            let of: Vec<&ScheduledCurve> = shown
                .iter()
                .copied()
                .filter(|c| c.policy == policy && c.curve.load == load)
                .collect();
            groups.push(Group {
                title: format!("{policy}, {load}"),
                lines: lines(&of, &sizes),
            });
        }
    }
    let caption = format!(
        "The largest delay by number of tasks, write ratio {}; equally many samples for each number of \
         tasks within a line. As Fig. 4 of 000.",
        words::plain(ratio)
    );
    let title = "Largest cache delay by number of tasks, schedule-sensitive method";
    by_tasks::sketch(id, title, &caption, &groups)
}

/// A line for each size and way to resume.
fn lines(curves: &[&ScheduledCurve], sizes: &[Bytes]) -> Vec<Line> {
    let ways: BTreeSet<Resumption> = curves.iter().map(|c| c.curve.resumption).collect();
    let mut lines = Vec::new();
    for wss in sizes {
        for way in &ways {
            let of = curves.iter().filter(|c| c.curve.resumption == *way);
            let mut points: Vec<(u32, f64)> = of
                .filter_map(|c| {
                    let point = c.curve.points.iter().find(|p| p.wss == *wss)?;
                    Some((c.tasks, point.maximum?.nanos() as f64))
                })
                .collect();
            points.sort_unstable_by_key(|point| point.0);
            lines.push(Line {
                wss: *wss,
                resumption: *way,
                points,
            });
        }
    }
    lines
}

/// The picture of what makes a sample.
///
/// # Errors
/// The example goes on in a way that is none.
pub fn sampled(id: &str, example: &Example) -> Result<Figure> {
    Ok(sampled::figure(
        id,
        &Sampled {
            policy: super::judged::label(&example.policy),
            tasks: example.tasks,
            wss: example.wss,
            resumption: example.resumption.parse()?,
            processors: (example.from, example.to),
            cold_ns: example.cold_ns,
            warm_ns: example.warm_ns,
            post_ns: example.post_ns,
            told_ns: example.told_ns,
            away_ns: example.away_ns,
        },
    ))
}

/// The section of what was measured into the directory `dir`; its figures go to `figures` too.
///
/// # Errors
/// A figure cannot be drawn.
pub fn section(
    found: &Found,
    dir: &str,
    profile: Option<&Profile>,
    figures: &mut Vec<Figure>,
) -> Result<Schedules> {
    let command = format!("warmset report {dir} --figures plots");
    let mut shown = Vec::new();
    if let Some(example) = &found.example {
        let figure = sampled("scheduled-sample", example)?;
        figures.push(figure.clone());
        shown.push(Shown {
            figures: vec![figure],
            command: command.clone(),
        });
    }
    let curves = profile.map_or(&[][..], |profile| &profile.cpmd_scheduled);
    if let Some(sketch) = by_tasks("scheduled", curves) {
        figures.push(sketch.draw()?);
        let apart = sketch.apart();
        shown.push(Shown {
            figures: apart.iter().map(Sketch::draw).collect::<Result<_>>()?,
            command,
        });
    }
    let observed = found.observations.iter().map(|told| Statement {
        says: told.says.clone(),
        source: told.source.clone(),
        rule: told.rule.clone(),
        here: told.here.clone(),
        holds: told.holds.words().to_owned(),
    });
    Ok(Schedules {
        about: format!(
            "{} runs, {} jobs, of which {} gave a sample that counts; a job does if it went as in the \
             first figure.",
            found.runs,
            words::grouped(found.jobs),
            words::grouped(found.samples)
        ),
        figures: shown,
        observed: observed.collect(),
        provenance: found.provenance.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpmdCurve, CpmdPoint, Delay};

    /// Curves of two policies with so many tasks each, of two sizes, delays by number of tasks.
    fn curves(counts: &[u32]) -> Vec<ScheduledCurve> {
        let mut all = Vec::new();
        for policy in ["p-edf", "g-edf"] {
            for tasks in counts.iter().rev() {
                for (resumption, more) in [(Resumption::Preemption, 0), (Resumption::Memory, 500)] {
                    let point = |kib: u64| CpmdPoint {
                        wss: Bytes::from_kib(kib),
                        samples: 20,
                        average: None,
                        deviation: None,
                        maximum: Some(Delay::from_nanos(
                            (kib * 10) as i64 + i64::from(*tasks) + more,
                        )),
                        percentiles: Vec::new(),
                        average_interval: None,
                        maximum_interval: None,
                    };
                    all.push(ScheduledCurve {
                        policy: policy.to_owned(),
                        tasks: *tasks,
                        curve: CpmdCurve {
                            resumption,
                            load: Load::Load,
                            write_ratio: 0.5,
                            points: [4, 64, 256, 1024].map(point).to_vec(),
                        },
                    });
                }
            }
        }
        all
    }

    #[test]
    fn four_numbers_of_tasks_are_lines_of_four_points_in_their_order() {
        let sketch = by_tasks("scheduled", &curves(&[6, 12, 24, 48])).unwrap();
        let titles: Vec<&str> = sketch.panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(titles, ["p-edf, load", "g-edf, load"]);
        let lines = sketch.panels[0]
            .layers
            .iter()
            .filter_map(|layer| match layer {
                report::panel::Layer::Curve { points, .. } => Some(points.clone()),
                _ => None,
            });
        let lines: Vec<_> = lines.collect();
        // The three largest sizes, two ways.
        assert_eq!(lines.len(), 6);
        let ends = [
            (6.0, 10_246.0),
            (12.0, 10_252.0),
            (24.0, 10_264.0),
            (48.0, 10_288.0),
        ];
        assert!(lines.iter().any(|points| points[..] == ends), "{lines:?}");
        assert!(sketch.caption.contains("write ratio 0.5"));
        assert!(by_tasks("scheduled", &[]).is_none());
    }

    #[test]
    fn results_are_read_from_their_document_and_shown_with_each_observation() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        let observation = |holds: &str| {
            format!(
                r#"{{"id": "o", "says": "they say", "source": "000", "rule": "so", "here": "8 µs", "holds": "{holds}"}}"#
            )
        };
        let text = format!(
            r#"{{"runs": 8, "jobs": 1200, "samples": 90, "provenance": {}, "observations": [{}, {}, {}],
                "example": {{"policy": "g-edf", "tasks": 6, "load": "idle", "resumption": "memory-migration", "wss": "64KiB", "from": 0, "to": 1,
                "cold_ns": 9000, "warm_ns": 1000, "post_ns": 4000, "told_ns": 700000, "away_ns": 701000}}}}"#,
            serde_json::to_string(&Provenance::default()).unwrap(),
            observation("yes"),
            observation("no"),
            observation("cannot-tell")
        );
        files::write(&dir.path().join(RESULTS), text).unwrap();
        let found = read(dir.path()).unwrap().unwrap();
        let mut profile = Profile::builtin("xeon-l7455").unwrap();
        profile.cpmd_scheduled = curves(&[6, 12, 24, 48]);
        let mut figures = Vec::new();
        let section = section(&found, "DIR", Some(&profile), &mut figures).unwrap();
        assert_eq!(figures.len(), 2);
        assert_eq!(section.figures[1].figures.len(), 2, "panels apart");
        let holds: Vec<&str> = section.observed.iter().map(|o| o.holds.as_str()).collect();
        assert_eq!(holds, ["holds", "does not hold", "cannot tell here"]);
        assert!(figures[0].title.contains("6 tasks under G-EDF"));

        files::write(&dir.path().join(RESULTS), "{}").unwrap();
        let e = read(dir.path()).unwrap_err().to_string();
        assert!(
            e.contains("scheduled.json") && e.contains("measure them again"),
            "{e}"
        );
    }
}
