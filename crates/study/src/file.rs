//! Studies in files: TOML for people, the same parameters as the presets.
//!
//! A file names only what differs from the defaults, or from a preset that it is `based_on`.

use crate::axis::{Axis, Quantity};
use crate::charged::Charged;
use crate::definition::{Cache, Study};
use crate::grid::{self, Cap, Factor, Grid};
use crate::presets;
use crate::schema::KEYS;
use crate::stages::enough_for;
use analyze::Guarantee;
use analyze::policies::Accounting;
use model::input::{Document, Table, Value};
use model::{
    Bytes, Duration, Error, Load, Overheads, Platform, Profile, Provenance, Ratio, Result,
};
use std::fmt::Write;
use std::str::FromStr;

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
    root.only(&KEYS.map(|key| key.name))?;
    let base = base_of(&root)?;
    let own_name = root.get("based_on").is_none();
    let until_ci = match root.get("until_ci") {
        Some(v) => Some((v.number()?, v)),
        None => None,
    };
    let enough = |(width, v): (f64, Value<'_, '_>)| match root.get("sets") {
        Some(_) => Ok(0),
        None => enough_for(width).map_err(|e| v.place(e)),
    };
    let mut study = Study {
        name: text_or(&root, "name", if own_name { UNNAMED } else { &base.name })?,
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
        caps: match root.get("caps") {
            Some(v) => grid_of(&v)?,
            None => base.caps,
        },
        drawn_to: base
            .drawn_to
            .filter(|_| axis_of(&root).is_ok_and(|axis| axis.is_none())),
        axis: axis_of(&root)?.unwrap_or(base.axis),
        cache: cache_of(&root)?.unwrap_or(base.cache),
        overhead_factor: match root.get("overhead_factor") {
            Some(v) => Factor::read(&v)?,
            None => base.overhead_factor,
        },
        factor_on: match root.get("factor_on") {
            Some(v) => overheads_of(&v)?,
            None => base.factor_on,
        },
        sets: count_or(
            &root,
            "sets",
            until_ci.clone().map_or(Ok(base.sets), enough)?,
        )?,
        until_ci: until_ci.map(|(width, _)| width).or(base.until_ci),
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
        load: parsed_or(&root, "load", study.charged.load)?,
        statistic: optional(&root, "statistic")?.or(study.charged.statistic),
        accounting: optional(&root, "accounting")?.or(study.charged.accounting),
        caches: study.charged.caches,
        judging: optional(&root, "judging")?.or(study.charged.judging),
    };
    if let Some(v) = root.get("drawn_to") {
        let number = study.axis.quantity().read(v.text()?);
        study.drawn_to = Some(number.map_err(|e| v.place(e))?);
    }
    study = match root.get("title") {
        Some(_) => Study { charged, ..study },
        None => study.charging(charged),
    };
    Ok(study)
}

/// The study whose parameters hold where a file names none.
fn base_of(root: &Table<'_, '_>) -> Result<Study> {
    match root.get("based_on") {
        Some(v) => presets::find(v.text()?).map_err(|e| v.place(e)),
        None => {
            for key in ["policies", "utilizations", "periods", "caps"] {
                root.need(key).map_err(|e| {
                    e.remedy(format!(
                        "add `{key} = …`, or `based_on = \"ospert10-fig5\"`"
                    ))
                })?;
            }
            if Quantity::ALL.iter().all(|q| root.get(q.key()).is_none()) {
                return Err(Error::new("nothing is swept: no axis is given")
                    .at("line 1")
                    .remedy(format!(
                        "add one of {}, or `based_on = \"ospert10-fig5\"`",
                        Quantity::ALL
                            .map(|q| format!("`{} = …`", q.key()))
                            .join(", ")
                    )));
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

/// The name of a study whose file gives none.
pub const UNNAMED: &str = "study";

/// Some of the seven overheads, in a list of their names.
fn overheads_of(value: &Value<'_, '_>) -> Result<Overheads> {
    let names = value.list()?;
    let names = names.iter().map(Value::text).collect::<Result<Vec<_>>>()?;
    let read: Result<Overheads> = names.join(",").parse();
    read.map_err(|e| value.place(e))
}

/// The axis, if the file has one.
fn axis_of(root: &Table<'_, '_>) -> Result<Option<Axis>> {
    let given = Quantity::ALL
        .into_iter()
        .filter_map(|q| Some((q, root.get(q.key())?)));
    let given: Vec<_> = given.collect();
    let (quantity, value) = match &given[..] {
        [] => return Ok(None),
        [only] => only,
        [(first, _), (second, value), ..] => {
            return Err(value
                .error(format!(
                    "a study sweeps one quantity, and `{}` is given too",
                    first.key()
                ))
                .remedy(format!(
                    "leave one of them out, or write it as one value: {}",
                    match second {
                        Quantity::WorkingSet => "`working_set = …`",
                        Quantity::OverheadFactor => "`overhead_factor = …`",
                        _ => "a `delay`, a `platform`",
                    }
                )));
        }
    };
    Ok(Some(match quantity {
        Quantity::Delay => Axis::Delays(grid_of(value)?),
        Quantity::WorkingSet => Axis::WorkingSets(grid_of(value)?),
        Quantity::OverheadFactor => Axis::OverheadFactors(grid_of(value)?),
        Quantity::Processors => Axis::Processors(grid_of(value)?),
    }))
}

/// What caches cost where the axis does not sweep it, if the file says so.
fn cache_of(root: &Table<'_, '_>) -> Result<Option<Cache>> {
    match (root.get("delay"), root.get("working_set")) {
        (Some(_), Some(v)) => Err(v
            .error("what caches cost is given twice: by `delay` and by `working_set`")
            .remedy("leave one of them out")),
        (Some(v), None) => Ok(Some(Cache::Delay(v.parsed()?))),
        (None, Some(v)) => Ok(Some(Cache::WorkingSet(v.parsed()?))),
        (None, None) => Ok(None),
    }
}

/// A value of a grid as a file writes it.
trait Read: grid::Value {
    fn read(value: &Value<'_, '_>) -> Result<Self>;
}

impl Read for Duration {
    fn read(value: &Value<'_, '_>) -> Result<Self> {
        value.parsed()
    }
}

impl Read for Bytes {
    fn read(value: &Value<'_, '_>) -> Result<Self> {
        value.parsed()
    }
}

impl Read for Cap {
    fn read(value: &Value<'_, '_>) -> Result<Self> {
        let ratio: Ratio = value.parsed()?;
        Cap::try_from(ratio).map_err(|e| value.place(e))
    }
}

impl Read for Factor {
    fn read(value: &Value<'_, '_>) -> Result<Self> {
        let ratio: Ratio = value.parsed()?;
        Factor::try_from(ratio).map_err(|e| value.place(e))
    }
}

impl Read for u32 {
    fn read(value: &Value<'_, '_>) -> Result<Self> {
        let number = value.whole()?;
        u32::try_from(number).map_err(|_| {
            value
                .error(format!("{number} is too large"))
                .remedy("give a smaller number")
        })
    }
}

/// Reads a range, or a list of values and ranges.
fn grid_of<T: Read>(value: &Value<'_, '_>) -> Result<Grid<T>> {
    let Ok(list) = value.list() else {
        return range_of(value).map_err(|e| match value.table() {
            Ok(_) => e,
            Err(_) => value
                .error("expected a range or a list")
                .remedy("write `{ from = …, to = …, step = … }` or `[…, …]`"),
        });
    };
    let parts = list.iter().map(|part| match part.table() {
        Ok(_) => range_of(part),
        Err(_) => Grid::single(T::read(part)?).map_err(|e| part.place(e)),
    });
    let parts: Vec<Grid<T>> = parts.collect::<Result<_>>()?;
    Grid::joined(parts).map_err(|e| value.place(e))
}

/// Reads `{ from = …, to = …, step = … }`; `to` is `from` where both others are left out.
fn range_of<T: Read>(value: &Value<'_, '_>) -> Result<Grid<T>> {
    let table = value.table()?;
    table.only(&["from", "to", "step"])?;
    let from = T::read(&table.need("from")?)?;
    match (table.get("to"), table.get("step")) {
        (None, None) => Grid::single(from),
        (Some(to), Some(step)) => Grid::new(from, T::read(&to)?, T::read(&step)?),
        _ => {
            return Err(value
                .error("a range needs both its end and its step")
                .remedy("write `{ from = …, to = …, step = … }`, or only `from` for one value"));
        }
    }
    .map_err(|e| value.place(e))
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
             caps = {}\n{} = {}\n\
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
            self.caps.written(),
            self.axis.quantity().key(),
            self.axis.written(),
            self.sets,
            self.seed,
            self.charge,
            self.overhead,
        );
        if let Some(width) = self.until_ci {
            let _ = writeln!(text, "until_ci = {width}");
        }
        if let Some(end) = self.drawn_to {
            let _ = writeln!(text, "drawn_to = \"{}\"", self.axis.quantity().text(end));
        }
        match self.cache {
            Cache::NOTHING => {}
            Cache::Delay(delay) => {
                let _ = writeln!(text, "delay = \"{delay}\"");
            }
            Cache::WorkingSet(wss) => {
                let _ = writeln!(text, "working_set = \"{wss}\"");
            }
        }
        if self.overhead_factor != Factor::ONE {
            let _ = writeln!(text, "overhead_factor = {}", self.overhead_factor);
        }
        if self.factor_on != Overheads::ALL {
            let names: Vec<String> = self.factor_on.iter().map(|o| quoted(o.name())).collect();
            let _ = writeln!(text, "factor_on = [{}]", names.join(", "));
        }
        if self.has_working_sets() || self.charged.load != Load::Load {
            let _ = writeln!(text, "load = \"{}\"", self.charged.load);
        }
        if let Some(profile) = &self.charged.profile {
            let _ = writeln!(text, "profile = {}", quoted(&profile.platform));
        }
        if let Some(statistic) = self.charged.statistic {
            let _ = writeln!(text, "statistic = \"{statistic}\"");
        }
        // Left out where it is the default.
        if self.charged.profile.is_some() || self.charged.accounting() != Accounting::OneDelay {
            let _ = writeln!(text, "accounting = \"{}\"", self.charged.accounting());
        }
        if let Some(judging) = self.charged.judging {
            let _ = writeln!(text, "judging = \"{judging}\"");
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
        let load =
            (self.charged.load != Load::Load).then(|| format!(" --load {}", self.charged.load));
        let statistic = self.charged.statistic.map(|s| format!(" --statistic {s}"));
        let accounting = self
            .charged
            .accounting
            .map(|a| format!(" --accounting {a}"));
        [profile, load, statistic, accounting]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Where its results come from. No time and no machine: counts depend on neither.
    pub fn provenance(&self) -> Provenance {
        let preset = presets::find(&self.name).is_ok_and(|p| {
            let charged = Charged {
                judging: p.charged.judging,
                ..self.charged.clone()
            };
            let same = Study {
                sets: self.sets,
                seed: self.seed,
                policies: self.policies.clone(),
                ..p.charging(charged)
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
