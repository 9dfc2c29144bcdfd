//! Makes pages and figures of what the other rooms wrote into a directory.
//!
//! `warmset tour` fills such a directory and `warmset report` reads it again, so that both show the same.

use measure::samples::{Discard, Sample};
use model::{Bytes, Load, Platform, Profile, Result, Resumption, files, platformfile, profilefile};
use report::page::{Delays, Quality, ReportData, Shown};
use report::scatter::Samples;
use report::{Figure, cpmd, findings, scatter};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of a directory that a page is made of. Each may be missing.
pub const PLATFORM: &str = "platform.toml";
/// See [`PLATFORM`].
pub const PROFILE: &str = "profile.toml";
/// See [`PLATFORM`].
pub const SAMPLES: &str = "samples.parquet";

/// What a page is made of.
#[derive(Default)]
pub struct Material {
    /// The machine.
    pub platform: Option<Platform>,
    /// Its cache delays.
    pub profile: Option<Profile>,
    /// The samples behind them.
    pub samples: Vec<Sample>,
}

/// A page, and every figure in it as one would put it into a paper.
pub struct Made {
    /// The page.
    pub page: ReportData,
    /// The figures, panels together.
    pub figures: Vec<Figure>,
}

/// Reads what there is in a directory.
///
/// # Errors
/// A file that is there but not what it should be.
pub fn read(dir: &Path) -> Result<Material> {
    let text = |name: &str| -> Result<Option<String>> {
        let path = dir.join(name);
        path.exists().then(|| files::read_text(&path)).transpose()
    };
    let placed = |name: &str, e: model::Error| e.at(dir.join(name).display());
    let samples = dir.join(SAMPLES);
    Ok(Material {
        platform: text(PLATFORM)?
            .map(|t| platformfile::from_toml(&t).map_err(|e| placed(PLATFORM, e)))
            .transpose()?,
        profile: text(PROFILE)?
            .map(|t| profilefile::from_toml(&t).map_err(|e| placed(PROFILE, e)))
            .transpose()?,
        samples: if samples.exists() {
            measure::samples::read(&samples)?
        } else {
            Vec::new()
        },
    })
}

/// What the machine of a platform or profile is called within a sentence.
pub fn place(name: &str) -> String {
    match name {
        "this-machine" | "" => "this machine".to_owned(),
        name => format!("`{name}`"),
    }
}

/// Makes the page and the figures.
///
/// # Errors
/// A figure cannot be drawn.
pub fn make(material: &Material) -> Result<Made> {
    let mut made = Made {
        page: ReportData {
            title: "What a cold cache costs here, and which scheduler keeps up".to_owned(),
            program: format!("warmset {}", env!("CARGO_PKG_VERSION")),
            ..ReportData::default()
        },
        figures: Vec::new(),
    };
    if let Some(platform) = &material.platform {
        made.page.machine = machine(platform);
    }
    if let Some(profile) = &material.profile {
        let place = place(&profile.platform);
        let from = &profile.provenance;
        made.page.lead = [&from.machine, &from.kernel, &from.time]
            .into_iter()
            .filter(|part| !part.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join(" · ");
        made.page.summary.extend(findings::cpmd(profile, &place));
        made.page.warnings.extend(from.warnings.iter().cloned());
        let title = if profile.platform == "this-machine" {
            "This machine"
        } else {
            &profile.platform
        };
        let part = delays(
            title,
            profile,
            material.platform.as_ref(),
            &material.samples,
            &mut made.figures,
        )?;
        made.page.delays.push(part);
        made.page
            .provenance
            .push(("Cache delays".to_owned(), from.clone()));
    }
    compare(material, &mut made)?;
    Ok(made)
}

/// Sets the machine of the papers beside this one.
fn compare(material: &Material, made: &mut Made) -> Result<()> {
    const BUILTIN: &str = "xeon-l7455";
    if material.profile.as_ref().is_none_or(|p| p.platform == BUILTIN) {
        return Ok(());
    }
    let (profile, platform) = (Profile::builtin(BUILTIN)?, Platform::builtin(BUILTIN)?);
    let title = "To compare: the 24-core Xeon L7455 of the papers";
    // Its figures are the same for everyone: on the page, but not among those of this machine.
    let part = delays(title, &profile, Some(&platform), &[], &mut Vec::new())?;
    made.page.delays.push(part);
    Ok(())
}

fn machine(platform: &Platform) -> Vec<(String, String)> {
    let usable = platform.usable();
    let mut facts = vec![
        ("machine".to_owned(), platform.description.clone()),
        (
            "processors".to_owned(),
            format!(
                "{} usable of {}: {usable}",
                usable.len(),
                platform.processors.len()
            ),
        ),
    ];
    for level in platform.data_levels() {
        let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
        for cache in platform.caches.iter().filter(|c| c.level == level) {
            let size = cache
                .size
                .map_or_else(|| "of unknown size".to_owned(), report::words::size);
            let shared = match cache.shared_by.len() {
                1 => "of one processor".to_owned(),
                n => format!("shared by {n}"),
            };
            let kind = match cache.kind {
                model::CacheKind::Data => "data",
                model::CacheKind::Instruction => "instructions",
                model::CacheKind::Unified => "unified",
            };
            *kinds.entry(format!("{size} {kind}, {shared}")).or_default() += 1;
        }
        let text: Vec<String> = kinds
            .into_iter()
            .map(|(kind, n)| format!("{n} × {kind}"))
            .collect();
        facts.push((format!("L{level}"), text.join("; ")));
    }
    facts.extend(platform.notes.iter().map(|n| ("note".to_owned(), n.clone())));
    facts
}

/// The section of one machine's cache delays; its figures go to `figures` too.
fn delays(
    title: &str,
    profile: &Profile,
    platform: Option<&Platform>,
    samples: &[Sample],
    figures: &mut Vec<Figure>,
) -> Result<Delays> {
    let name = &profile.platform;
    let command = match Profile::builtin(name) {
        Ok(_) => format!("warmset report --profile {name} --figures DIR"),
        Err(_) => "warmset report DIR --figures DIR".to_owned(),
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
            figures: sketch.apart().iter().map(|s| s.draw()).collect::<Result<_>>()?,
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
                let n = samples.iter().filter(|s| s.discarded == Some(cause)).count();
                (cause.because().to_owned(), n as u64)
            })
            .collect(),
        moved: Some((moved.len() as u64, blocks.len() as u64)),
    }
}

/// The samples that stand for all in the figure by preemption length: 64 KiB under load as in Fig. 3 of 000 if there
/// are such, otherwise what there is most of.
fn cells(samples: &[Sample]) -> Vec<Samples> {
    let ratio = |s: &Sample| (s.write_ratio - Profile::DEFAULT_WRITE_RATIO).abs();
    let nearest = samples.iter().map(ratio).fold(f64::INFINITY, f64::min);
    let usual: Vec<&Sample> = samples.iter().filter(|s| ratio(s) <= nearest).collect();
    let mut counts: BTreeMap<(Load, Bytes), usize> = BTreeMap::new();
    for s in usual.iter().filter(|s| s.discarded.is_none()) {
        *counts.entry((s.load, s.wss)).or_default() += 1;
    }
    let wanted = (Load::Load, Bytes::from_kib(64));
    let most = || counts.iter().max_by_key(|(_, n)| **n).map(|(cell, _)| *cell);
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
            discarded: Vec::new(),
        });
        let point = (s.preempted, s.delay);
        if s.discarded.is_none() {
            cell.kept.push(point);
        } else {
            cell.discarded.push(point);
        }
    }
    cells.into_values().collect()
}
