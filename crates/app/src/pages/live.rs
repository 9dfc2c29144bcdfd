//! The sections of a page on what the engine costs, and on sets that were run for real.

use super::{Made, VALIDATION};
use crate::validate::{self, Validated};
use model::{Code, OverheadKind, Profile, Result, Statistic};
use report::page::{Numbers, Observed, Shown};
use report::words;
use std::collections::BTreeSet;

/// The overheads of a profile that was measured on an engine: a column for each policy; none where
/// the profile says nothing of whose code they are.
pub fn overheads(profile: &Profile) -> Vec<Numbers> {
    let of_engine = |code| matches!(code, Some(Code::Both | Code::Own));
    let curves = || profile.overheads.iter().filter(|c| of_engine(c.code));
    let policies: BTreeSet<&str> = curves()
        .map(|c| c.policy.as_str())
        .filter(|policy| !policy.is_empty())
        .collect();
    let kinds: Vec<OverheadKind> = OverheadKind::ALL
        .into_iter()
        .filter(|kind| curves().any(|c| c.kind == *kind))
        .collect();
    let Some(most) = curves().flat_map(|c| &c.points).map(|p| p.tasks).max() else {
        return Vec::new();
    };
    let cell = |policy: &str, kind: OverheadKind| {
        let curve = profile.overhead_curve(kind, policy)?;
        let at = |statistic| Some(words::time(curve.at(most, statistic)?.value));
        let (average, maximum) = (at(Statistic::Average)?, at(Statistic::Maximum)?);
        Some(format!("{average} – {maximum}"))
    };
    let row = |kind: OverheadKind| {
        let cells = policies
            .iter()
            .map(|policy| cell(policy, kind).unwrap_or_else(|| "–".to_owned()));
        std::iter::once(kind.words().to_owned())
            .chain(cells)
            .collect()
    };
    let header = policies.iter().map(|policy| (*policy).to_owned());
    let whose = match curves().any(|c| c.code == Some(Code::Both)) {
        true => "engine and kernel together",
        false => "the engine\u{2019}s own part alone",
    };
    let parts = match kinds.iter().any(|kind| !kind.is_charged()) {
        true => " Timer re-arming is part of the others and is not charged again.",
        false => "",
    };
    vec![Numbers {
        caption: format!(
            "Overheads with {most} tasks, {whose}: average – largest that is no outlier.{parts}"
        ),
        header: std::iter::once("overhead".to_owned())
            .chain(header)
            .collect(),
        rows: kinds.into_iter().map(row).collect(),
    }]
}

/// What came of running sets for real; `dir`: the directory as commands on the page name it.
///
/// # Errors
/// The figure cannot be drawn.
pub fn show(validated: &Validated, dir: &str, made: &mut Made) -> Result<()> {
    let figure = validate::figure("validation", validated)?;
    made.figures.extend(figure.clone());
    let command = match validated.provenance.command.as_str() {
        "" => format!("warmset validate -o {dir}-{VALIDATION} --profile {dir}/profile.toml"),
        command => command.to_owned(),
    };
    let headline = validated.headline();
    made.findings
        .push(format!("Accepted sets, run for real: {headline}"));
    made.page
        .answer
        .push(("Accepted sets, run for real".to_owned(), headline));
    made.page.observed = Some(Observed {
        findings: validated.sentences(),
        figures: figure
            .map(|figure| Shown {
                figures: vec![figure],
                command: format!("warmset report {dir} --figures plots"),
            })
            .into_iter()
            .collect(),
        command,
        provenance: validated.provenance.clone(),
    });
    Ok(())
}
