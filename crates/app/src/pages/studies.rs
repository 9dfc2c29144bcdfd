//! The section of a page on studies: weighted schedulability, and where global stops being the
//! better choice.

use super::place;
use model::{Profile, Result};
use report::page::{Shown, Study};
use report::schedulability::{self, Curve, Form};
use report::{Figure, findings, words};
use study::{Quantity, Results};

fn curves(all: Vec<study::Curve>) -> Vec<Curve> {
    all.into_iter()
        .map(|c| Curve {
            policy: c.policy,
            points: c.points,
            band: c.band,
        })
        .collect()
}

/// W(D) of every policy.
pub fn weighted(results: &Results) -> Vec<Curve> {
    curves(results.weighted())
}

/// What was found, in sentences. `profiles` are the machines whose delays are looked up.
pub fn sentences(results: &Results, profiles: &[&Profile]) -> Vec<String> {
    let all = weighted(results);
    let named = |name: &str| all.iter().find(|c| c.policy.eq_ignore_ascii_case(name));
    let (Some(global), Some(partitioned)) = (named("G-EDF"), named("P-EDF")) else {
        return Vec::new();
    };
    if results.axis.len() < 2 || results.axis.quantity != Quantity::Delay {
        return Vec::new();
    }
    let mut said = findings::global_or_partitioned(global, partitioned, profiles, place);
    // What the paper says of the same experiment, to be compared (000 §5, Fig. 5).
    if results.name == "ospert10-fig5"
        && let Some(crossing) = schedulability::crossing(global, partitioned)
    {
        said.push(format!(
            "The paper reads 0.55 for P-EDF without delay and 725 µs for the crossing; here they are {} and {}, over {} task \
             sets for each utilization cap.",
            words::three(crossing.level),
            words::time_f64(crossing.at),
            results.sets
        ));
    }
    said
}

/// The section of one study; its figures go to `figures` too.
///
/// # Errors
/// A figure cannot be drawn.
pub fn section(
    results: &Results,
    profiles: &[&Profile],
    figures: &mut Vec<Figure>,
) -> Result<Study> {
    let caption = format!(
        "{} on the total utilization of {} processors, {}.",
        results.sets_in_words(),
        results.processors,
        results.charged
    );
    let caption = [&results.notes[..], &[caption]].concat().join(" ");
    let mut shown = Vec::new();
    if results.axis.len() > 1 {
        let all = weighted(results);
        let named = |name: &str| all.iter().find(|c| c.policy.eq_ignore_ascii_case(name));
        let crossing = named("G-EDF")
            .zip(named("P-EDF"))
            .filter(|_| results.axis.quantity != Quantity::Processors)
            .and_then(|(g, p)| schedulability::crossing(g, p));
        let id = format!("weighted-{}", results.name);
        let title = format!("Weighted schedulability, {} processors", results.processors);
        shown.push(schedulability::weighted_as(
            &Form::default(),
            &id,
            &title,
            &crate::study::swept(results),
            &all,
            crossing.as_ref(),
            &caption[..],
        )?);
    }
    if let Some(first) = results.axis.points.first() {
        let id = format!("schedulability-{}", results.name);
        let quantity = results.axis.quantity;
        let title = match (first, quantity) {
            (0, Quantity::Delay) => "Schedulability without delay".to_owned(),
            _ => format!(
                "Schedulability with {} = {}",
                quantity.symbol(),
                crate::study::swept(results)
                    .unit
                    .text(results.axis.value(0))
            ),
        };
        let all = curves(results.by_utilization(0));
        shown.push(schedulability::by_utilization_as(
            &Form::default(),
            &id,
            &title,
            &crate::charts::utilization(results),
            &all,
            &caption[..],
        )?);
    }
    figures.extend(shown.iter().cloned());
    Ok(Study {
        title: results.title.clone(),
        findings: sentences(results, profiles),
        figures: vec![Shown {
            figures: shown,
            command: results.provenance.command.clone(),
        }],
        provenance: results.provenance.clone(),
    })
}
