//! Studies in files: TOML for people, the same parameters as the presets.
//!
//! A file names only what differs from the defaults, or from a preset that it is `based_on`.

use crate::charged::Charged;
use crate::definition::Study;
use crate::grid::{Cap, Grid};
use crate::presets;
use analyze::Guarantee;
use analyze::policies::Accounting;
use model::input::{Document, Table, Value};
use model::{Duration, Error, Platform, Profile, Provenance, Ratio, Result};
use std::fmt::Write;
use std::str::FromStr;

const KEYS: [&str; 20] = [
    "name",
    "title",
    "source",
    "based_on",
    "platform",
    "policies",
    "guarantee",
    "utilizations",
    "periods",
    "deadlines",
    "fill",
    "caps",
    "delays",
    "sets",
    "seed",
    "charge",
    "overhead",
    "profile",
    "statistic",
    "accounting",
];

/// Reads a study. `platform` and `profile` find these by their names.
///
/// # Errors
/// Anything that is not a study, with line and key.
pub fn from_toml(
    text: &str,
    platform: impl Fn(&str) -> Result<Platform>,
    profile: impl Fn(&str) -> Result<Profile>,
) -> Result<Study> {
    let document = Document::parse(text)?;
    let root = document.root();
    root.only(&KEYS)?;
    let base = base_of(&root)?;
    let own_name = root.get("based_on").is_none();
    let mut study = Study {
        name: text_or(&root, "name", if own_name { "study" } else { &base.name })?,
        title: text_or(&root, "title", if own_name { "" } else { &base.title })?,
        source: text_or(&root, "source", if own_name { "" } else { &base.source })?,
        platform: match root.get("platform") {
            Some(v) => platform(v.text()?).map_err(|e| v.place(e))?,
            None => base.platform,
        },
        policies: match root.get("policies") {
            Some(v) => v
                .list()?
                .iter()
                .map(|p| p.text().map(str::to_owned))
                .collect::<Result<_>>()?,
            None => base.policies,
        },
        guarantee: match root.get("guarantee") {
            None => base.guarantee,
            Some(v) => guarantee_of(&v)?,
        },
        utilizations: parsed_or(&root, "utilizations", base.utilizations)?,
        periods: parsed_or(&root, "periods", base.periods)?,
        deadlines: parsed_or(&root, "deadlines", base.deadlines)?,
        fill: parsed_or(&root, "fill", base.fill)?,
        caps: base.caps,
        delays: base.delays,
        sets: count_or(&root, "sets", base.sets)?,
        seed: count_or(&root, "seed", base.seed)?,
        charge: count_or(&root, "charge", base.charge)?,
        overhead: parsed_or(&root, "overhead", base.overhead)?,
        charged: base.charged,
    };
    let charged = Charged {
        profile: match root.get("profile") {
            Some(v) => Some(profile(v.text()?).map_err(|e| v.place(e))?),
            None => study.charged.profile.clone(),
        },
        statistic: optional(&root, "statistic")?.or(study.charged.statistic),
        accounting: optional(&root, "accounting")?.or(study.charged.accounting),
    };
    study = match root.get("title") {
        Some(_) => Study { charged, ..study },
        None => study.charging(charged),
    };
    if let Some(v) = root.get("caps") {
        let (from, to, step) = ends::<Ratio>(&v)?;
        let cap = |ratio: Ratio| Cap::try_from(ratio).map_err(|e| v.place(e));
        study.caps = Grid::<Cap>::new(cap(from)?, cap(to)?, cap(step)?).map_err(|e| v.place(e))?;
    }
    if let Some(v) = root.get("delays") {
        let (from, to, step) = ends::<Duration>(&v)?;
        study.delays = Grid::<Duration>::new(from, to, step).map_err(|e| v.place(e))?;
    }
    Ok(study)
}

/// The study whose parameters hold where a file names none.
fn base_of(root: &Table<'_, '_>) -> Result<Study> {
    match root.get("based_on") {
        Some(v) => presets::find(v.text()?).map_err(|e| v.place(e)),
        None => {
            for key in ["policies", "utilizations", "periods", "caps", "delays"] {
                root.need(key).map_err(|e| {
                    e.remedy(format!(
                        "add `{key} = …`, or `based_on = \"ospert10-fig5\"`"
                    ))
                })?;
            }
            presets::find("ospert10-fig5")
        }
    }
}

fn guarantee_of(value: &Value<'_, '_>) -> Result<Guarantee> {
    match value.text()? {
        "hard" => Ok(Guarantee::Hard),
        "soft" => Ok(Guarantee::Soft),
        other => Err(value
            .error(format!("unknown guarantee `{other}`"))
            .remedy("write `hard` or `soft`")),
    }
}

fn text_or(table: &Table<'_, '_>, key: &str, default: &str) -> Result<String> {
    table
        .get(key)
        .map_or(Ok(default), |v| v.text())
        .map(str::to_owned)
}

fn parsed_or<T: FromStr<Err = Error>>(table: &Table<'_, '_>, key: &str, default: T) -> Result<T> {
    table.get(key).map_or(Ok(default), |v| v.parsed())
}

fn optional<T: FromStr<Err = Error>>(table: &Table<'_, '_>, key: &str) -> Result<Option<T>> {
    table.get(key).map(|v| v.parsed()).transpose()
}

/// A whole number that fits into `T`.
fn count_or<T: TryFrom<u64>>(table: &Table<'_, '_>, key: &str, default: T) -> Result<T> {
    let Some(v) = table.get(key) else {
        return Ok(default);
    };
    let number = v.whole()?;
    T::try_from(number).map_err(|_| {
        v.error(format!("{number} is too large"))
            .remedy("give a smaller number")
    })
}

/// Reads `{ from = …, to = …, step = … }`; `to` is `from` and the step is nothing where they are
/// left out.
fn ends<T: FromStr<Err = Error> + Copy>(value: &Value<'_, '_>) -> Result<(T, T, T)> {
    let table = value.table()?;
    table.only(&["from", "to", "step"])?;
    let from = table.need("from")?.parsed()?;
    match (table.get("to"), table.get("step")) {
        (None, None) => Ok((from, from, from)),
        (Some(to), Some(step)) => Ok((from, to.parsed()?, step.parsed()?)),
        _ => Err(value
            .error("a range needs both its end and its step")
            .remedy("write `{ from = …, to = …, step = … }`, or only `from` for one value")),
    }
}

impl Study {
    /// The study as TOML that [`from_toml`] reads back, if its platform has a name that can be
    /// found.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let policies: Vec<String> = self.policies.iter().map(|p| quoted(p)).collect();
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "name = {}\ntitle = {}\nsource = {}\nplatform = {}\npolicies = [{}]\nguarantee = \"{}\"\n\
             utilizations = \"{}\"\nperiods = \"{}\"\ndeadlines = \"{}\"\nfill = \"{}\"\n\
             caps = {{ from = {}, to = {}, step = {} }}\n\
             delays = {{ from = \"{}\", to = \"{}\", step = \"{}\" }}\n\
             sets = {}\nseed = {}\ncharge = {}\noverhead = \"{}\"\n",
            quoted(&self.name),
            quoted(&self.title),
            quoted(&self.source),
            quoted(&self.platform.name),
            policies.join(", "),
            self.guarantee,
            self.utilizations,
            self.periods,
            self.deadlines,
            self.fill,
            self.caps.from(),
            self.caps.to(),
            self.caps.step(),
            self.delays.from(),
            self.delays.to(),
            self.delays.step(),
            self.sets,
            self.seed,
            self.charge,
            self.overhead,
        );
        if let Some(profile) = &self.charged.profile {
            let _ = writeln!(text, "profile = {}", quoted(&profile.platform));
        }
        if let Some(statistic) = self.charged.statistic {
            let _ = writeln!(text, "statistic = \"{statistic}\"");
        }
        // Left out where it is the default, as files of earlier versions are.
        if self.charged.profile.is_some() || self.charged.accounting() != Accounting::OneDelay {
            let _ = writeln!(text, "accounting = \"{}\"", self.charged.accounting());
        }
        text
    }

    /// Is the profile one that is found by its name, or is there none?
    fn has_known_profile(&self) -> bool {
        let known = |p: &Profile| Profile::builtin(&p.platform).is_ok_and(|known| known == *p);
        self.charged.profile.as_ref().is_none_or(known)
    }

    /// The options that choose its costs, each with a space in front.
    fn options_of_costs(&self) -> String {
        let profile = self.charged.profile.as_ref();
        let profile = profile.map(|p| format!(" --profile {}", p.platform));
        let statistic = self.charged.statistic.map(|s| format!(" --statistic {s}"));
        let accounting = self
            .charged
            .accounting
            .map(|a| format!(" --accounting {a}"));
        [profile, statistic, accounting]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Where its results come from. No time and no machine: counts depend on neither.
    pub fn provenance(&self) -> Provenance {
        let preset = presets::find(&self.name).is_ok_and(|p| {
            let same = Study {
                sets: self.sets,
                seed: self.seed,
                policies: self.policies.clone(),
                ..p.charging(self.charged.clone())
            };
            same == *self && self.has_known_profile()
        });
        let what = if preset {
            self.name.as_str()
        } else {
            "study.toml"
        };
        let mut command = format!("warmset study run {what}");
        if preset {
            let _ = write!(command, " --sets {} --seed {}", self.sets, self.seed);
            if presets::find(&self.name).is_ok_and(|p| p.policies != self.policies) {
                let _ = write!(command, " --policy {}", self.policies.join(","));
            }
            command += &self.options_of_costs();
        }
        Provenance {
            source: format!("warmset {}", env!("CARGO_PKG_VERSION")),
            command,
            seed: Some(self.seed),
            ..Provenance::default()
        }
    }
}
