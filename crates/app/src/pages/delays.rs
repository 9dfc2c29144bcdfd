//! The section of a page on cache delays: figures, sentences, what became of the samples.

use super::place;
use measure::samples::{Discard, Sample};
use model::{Bytes, Duration, Load, Platform, Profile, Result, Resumption};
use report::page::{Delays, Quality, Shown};
use report::scatter::{Discarded, Samples};
use report::{Figure, cpmd, findings, scatter};
use std::collections::{BTreeMap, BTreeSet};

/// The section of one machine's cache delays, measured into the directory `dir`; its figures go to
/// `figures` too.
pub fn section(
    title: &str,
    dir: &str,
    profile: &Profile,
    platform: Option<&Platform>,
    samples: &[Sample],
    figures: &mut Vec<Figure>,
) -> Result<Delays> {
    let name = &profile.platform;
    let command = match Profile::builtin(name) {
        Ok(_) => format!("warmset report --profile {name} --figures plots"),
        Err(_) => format!("warmset report {dir} --figures plots"),
    };
    let caches = platform.map(cpmd::cache_marks).unwrap_or_default();
    let mut shown = Vec::new();
    let sketches = [
        cpmd::sketch(&format!("cpmd-{name}"), profile, &caches, &cpmd::FIG2),
        scatter::sketch(&format!("samples-{name}"), &cells(samples)),
    ];
    for sketch in sketches.into_iter().flatten() {
        figures.push(sketch.draw()?);
        shown.push(Shown {
            figures: sketch
                .apart()
                .iter()
                .map(|s| s.draw())
                .collect::<Result<_>>()?,
            command: command.clone(),
        });
    }
    Ok(Delays {
        title: title.to_owned(),
        findings: findings::cpmd(profile, &place(name)),
        profile: profile.clone(),
        figures: shown,
        quality: (!samples.is_empty()).then(|| quality(samples)),
    })
}

fn quality(samples: &[Sample]) -> Quality {
    let blocks: BTreeSet<u32> = samples.iter().map(|s| s.block).collect();
    let moved: BTreeSet<u32> = samples
        .iter()
        .filter(|s| s.discarded == Some(Discard::Moved))
        .map(|s| s.block)
        .collect();
    Quality {
        kept: samples.iter().filter(|s| s.discarded.is_none()).count() as u64,
        discarded: Discard::ALL
            .into_iter()
            .map(|cause| {
                let n = samples
                    .iter()
                    .filter(|s| s.discarded == Some(cause))
                    .count();
                (cause.because().to_owned(), n as u64)
            })
            .collect(),
        moved: Some((moved.len() as u64, blocks.len() as u64)),
    }
}

/// The samples that stand for all in the figure by preemption length: 64 KiB under load as in Fig.
/// 3 of 000 if there are such, otherwise what there is most of.
fn cells(samples: &[Sample]) -> Vec<Samples> {
    let ratio = |s: &Sample| (s.write_ratio - Profile::DEFAULT_WRITE_RATIO).abs();
    let nearest = samples.iter().map(ratio).fold(f64::INFINITY, f64::min);
    let usual: Vec<&Sample> = samples.iter().filter(|s| ratio(s) <= nearest).collect();
    let mut counts: BTreeMap<(Load, Bytes), usize> = BTreeMap::new();
    for s in usual.iter().filter(|s| s.discarded.is_none()) {
        *counts.entry((s.load, s.wss)).or_default() += 1;
    }
    let wanted = (Load::Load, Bytes::from_kib(64));
    let most = || {
        counts
            .iter()
            .max_by_key(|(_, n)| **n)
            .map(|(cell, _)| *cell)
    };
    let Some((load, wss)) = counts.get(&wanted).map(|_| wanted).or_else(most) else {
        return Vec::new();
    };
    let mut cells: BTreeMap<Resumption, Samples> = BTreeMap::new();
    for s in usual.iter().filter(|s| s.load == load && s.wss == wss) {
        let cell = cells.entry(s.resumption).or_insert_with(|| Samples {
            resumption: s.resumption,
            load,
            wss,
            kept: Vec::new(),
            lines: Vec::new(),
            discarded: Vec::new(),
        });
        // Before and after alike, unless the machine moved meanwhile.
        let line = Duration::from_nanos(s.line_before.nanos().midpoint(s.line_after.nanos()));
        match s.discarded {
            None => {
                cell.kept.push((s.preempted, s.delay));
                cell.lines.push(line);
            }
            Some(cause) => cell.discarded.push(Discarded {
                length: s.preempted,
                delay: s.delay,
                because: cause.because(),
                placement: matches!(cause, Discard::Moved | Discard::Apart),
                line,
            }),
        }
    }
    cells.into_values().collect()
}
