//! Makes pages and figures of what other modules wrote into a directory.
//!
//! A tour fills such a directory and a report reads it again, so that both show the same.

pub mod advice;
mod delays;
pub mod judged;
mod live;
pub mod schedules;
pub mod studies;

use crate::validate::Validated;
use crate::{PROGRAM, validate};
use judged::Tasks;
use measure::samples::Sample;
use model::{Error, Platform, Profile, Result, files, platformfile, profilefile, taskfile};
use report::page::{ReportData, Shown};
use report::{Figure, findings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use study::Results;

/// The files of a directory that a page is made of. Each may be missing.
pub const PLATFORM: &str = "platform.toml";
/// See [`PLATFORM`].
pub const PROFILE: &str = "profile.toml";
/// See [`PLATFORM`].
pub const SAMPLES: &str = "samples.parquet";

/// The directory of task sets, each a TOML file, within it.
pub const TASKS: &str = "tasks";
/// The directory of a validation within it.
pub const VALIDATION: &str = "validation";
/// The directory of studies, each a directory, within it.
pub const STUDIES: &str = "studies";

/// What a page is made of.
#[derive(Default)]
pub struct Material {
    /// The directory that it was read from, if any: commands on the page name it.
    pub dir: Option<PathBuf>,
    /// The machine.
    pub platform: Option<Platform>,
    /// Its cache delays.
    pub profile: Option<Profile>,
    /// The samples behind them.
    pub samples: Vec<Sample>,
    /// Delays within schedules.
    pub schedules: Option<schedules::Found>,
    /// Task sets to judge with them.
    pub tasks: Vec<Tasks>,
    /// What came of running sets for real.
    pub validated: Option<Validated>,
    /// Studies that are complete.
    pub studies: Vec<Results>,
}

impl Material {
    /// The directory as commands on the page name it.
    fn place(&self) -> String {
        self.dir
            .as_ref()
            .map_or_else(|| "DIR".to_owned(), |dir| dir.display().to_string())
    }
}

/// A page, and every figure in it as one would put it into a paper.
pub struct Made {
    /// The page.
    pub page: ReportData,
    /// What was found, in sentences.
    pub findings: Vec<String>,
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
        dir: Some(dir.to_owned()),
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
        schedules: schedules::read(dir)?,
        tasks: tasks(&dir.join(TASKS))?,
        validated: validate::read(&dir.join(VALIDATION))?,
        studies: all_studies(&dir.join(STUDIES))?,
    })
}

/// What lies in a directory, by name; nothing if there is no such directory.
fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let mut paths = std::fs::read_dir(dir)
        .and_then(|all| {
            all.map(|entry| entry.map(|e| e.path()))
                .collect::<std::io::Result<Vec<_>>>()
        })
        .map_err(|e| Error::io(dir, "read the directory", &e))?;
    paths.sort_unstable();
    Ok(paths)
}

fn tasks(dir: &Path) -> Result<Vec<Tasks>> {
    entries(dir)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| {
            let set =
                taskfile::from_toml(&files::read_text(&path)?).map_err(|e| e.at(path.display()))?;
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            Ok(Tasks { name, set })
        })
        .collect()
}

/// The complete studies; one that was stopped has no results yet and is left out.
fn all_studies(dir: &Path) -> Result<Vec<Results>> {
    entries(dir)?
        .into_iter()
        .filter(|path| path.join("results.json").exists())
        .map(|path| study::load(&path))
        .collect()
}

/// What the machine of a platform or profile is called within a sentence.
pub fn place(name: &str) -> String {
    match name {
        "this-machine" | "" => "this machine".to_owned(),
        name => format!("`{name}`"),
    }
}

/// The machine, and the hierarchy of its caches.
fn show_platform(platform: &Platform, made: &mut Made) {
    made.page.machine = machine(platform);
    let figure = report::platform::figure(&format!("platform-{}", platform.name), platform);
    made.page.hierarchy = Some(Shown {
        figures: vec![figure.clone()],
        command: "warmset platform --picture platform.svg".to_owned(),
    });
    made.figures.push(figure);
}

/// What its cache delays are.
fn show_profile(profile: &Profile, material: &Material, made: &mut Made) -> Result<()> {
    let place = place(&profile.platform);
    let from = &profile.provenance;
    made.page.lead = [&from.machine, &from.kernel, &from.time]
        .into_iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join(" · ");
    made.findings.extend(findings::cpmd(profile, &place));
    let answer = findings::answer(profile, &place).map(|a| ("A cold cache".to_owned(), a));
    made.page.answer.extend(answer);
    made.page.numbers = findings::numbers(profile);
    made.page.warnings.extend(from.warnings.iter().cloned());
    let title = if profile.platform == "this-machine" {
        "This machine"
    } else {
        &profile.platform
    };
    let part = delays::section(
        title,
        &material.place(),
        profile,
        material.platform.as_ref(),
        &material.samples,
        &mut made.figures,
    )?;
    made.page.delays.push(part);
    made.page
        .provenance
        .push(("Cache delays".to_owned(), from.clone()));
    Ok(())
}

/// What the delays mean for the task sets.
fn judge_tasks(
    platform: &Platform,
    profile: &Profile,
    material: &Material,
    watch: &dyn model::watch::Watch,
    made: &mut Made,
) -> Result<()> {
    for tasks in &material.tasks {
        let part = judged::section(
            tasks,
            &material.place(),
            platform,
            profile,
            watch,
            &mut made.figures,
        )?;
        made.findings.extend(
            part.findings
                .first()
                .map(|s| format!("{}: {s}", part.title)),
        );
        let subject = format!("{} ({})", part.title, judged::need(&tasks.set));
        made.page.answer.push((subject, part.answer.clone()));
        made.page.judged.push(part);
    }
    Ok(())
}

fn show_studies(material: &Material, made: &mut Made) -> Result<()> {
    let profiles: Vec<&Profile> = material.profile.iter().collect();
    for results in &material.studies {
        let part = studies::section(results, &profiles, &mut made.figures)?;
        let on = format!("On {} processors", results.processors);
        if let Some(first) = part.findings.first() {
            made.findings.push(format!("{on}: {first}"));
            made.page.answer.push((on, first.clone()));
        }
        made.page.studies.push(part);
    }
    Ok(())
}

/// Makes the page and the figures.
///
/// # Errors
/// A figure cannot be drawn.
pub fn make(material: &Material, watch: &dyn model::watch::Watch) -> Result<Made> {
    let mut made = Made {
        page: ReportData {
            title: "What a cold cache costs here, and which scheduler keeps up".to_owned(),
            program: PROGRAM.to_owned(),
            ..ReportData::default()
        },
        findings: Vec::new(),
        figures: Vec::new(),
    };
    if let Some(platform) = &material.platform {
        show_platform(platform, &mut made);
    }
    if let Some(profile) = &material.profile {
        show_profile(profile, material, &mut made)?;
    }
    compare(material, &mut made)?;
    if let Some(found) = &material.schedules {
        let (dir, profile) = (material.place(), material.profile.as_ref());
        let part = schedules::section(found, &dir, profile, &mut made.figures)?;
        made.page.schedules = Some(part);
    }
    if let Some(profile) = &material.profile {
        made.page.overheads = live::overheads(profile);
    }
    if let Some(validated) = &material.validated {
        live::show(validated, &material.place(), &mut made)?;
    }
    if let (Some(platform), Some(profile)) = (&material.platform, &material.profile) {
        judge_tasks(platform, profile, material, watch, &mut made)?;
    }
    show_studies(material, &mut made)?;
    Ok(made)
}

/// What to try after a tour into this directory: commands, each with what it does.
pub fn next(dir: &Path) -> Vec<(String, String)> {
    let dir = dir.display();
    [
        (
            format!("warmset check {dir}/tasks/control.toml --platform {dir}/platform.toml --profile {dir}/profile.toml"),
            "judges the example again; write a task set of your own like it, and judge that".to_owned(),
        ),
        (
            format!("warmset measure cpmd -o {dir}-full"),
            "measures longer, with preemptions of up to 50 ms: tighter intervals, larger maxima".to_owned(),
        ),
        (
            "warmset study list".to_owned(),
            "names the studies of the papers; `warmset study run` runs one, or one of your own".to_owned(),
        ),
        (
            format!("warmset report {dir} --figures plots --pdf"),
            "writes every figure as a file, for a paper".to_owned(),
        ),
    ]
    .to_vec()
}

/// Sets the machine of the papers beside this one.
fn compare(material: &Material, made: &mut Made) -> Result<()> {
    const BUILTIN: &str = "xeon-l7455";
    if material
        .profile
        .as_ref()
        .is_none_or(|p| p.platform == BUILTIN)
    {
        return Ok(());
    }
    let (profile, platform) = (Profile::builtin(BUILTIN)?, Platform::builtin(BUILTIN)?);
    let title = "To compare: the 24-core Xeon L7455 of the papers";
    // Its figures are the same for everyone: on the page, but not among those of this machine.
    let part = delays::section(title, "", &profile, Some(&platform), &[], &mut Vec::new())?;
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
            let kind = cache.kind.name();
            *kinds.entry(format!("{size} {kind}, {shared}")).or_default() += 1;
        }
        let text: Vec<String> = kinds
            .into_iter()
            .map(|(kind, n)| format!("{n} × {kind}"))
            .collect();
        facts.push((format!("L{level}"), text.join("; ")));
    }
    facts.extend(
        platform
            .notes
            .iter()
            .map(|n| ("note".to_owned(), n.clone())),
    );
    facts
}
