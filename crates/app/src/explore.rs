//! One page to explore studies: reads the directories of studies into what the page shows.
//!
//! It reads `results.json` (counts and their axis) and `study.toml` (what tells scenarios apart) by
//! their names of columns, and nothing else of a study: another key of `study.toml` is a facet by
//! itself.

use crate::PROGRAM;
use model::{Error, Result, files};
use report::explorer::{Scenario, Sweep, page};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Keys of `study.toml` that do not tell scenarios apart, or are shown elsewhere.
const NO_FACETS: [&str; 9] = [
    "name", "title", "source", "policies", "fill", "version", "sets", "until_ci", "drawn_to",
];

/// What a key of `study.toml` that is left out means, where another study may have it.
const DEFAULTS: [(&str, &str); 1] = [("overhead_factor", "1")];

/// What is explored, and where the page goes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directories of complete studies.
    pub dirs: Vec<PathBuf>,
    /// The page.
    pub output: PathBuf,
}

/// What was written. JSON: as `warmset study explore --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// How many scenarios it shows.
    pub scenarios: usize,
}

/// What is read of `results.json`.
#[derive(Deserialize)]
struct Results {
    study: String,
    title: String,
    /// Versions before did not tell it so.
    #[serde(default)]
    charges: String,
    notes: Vec<String>,
    provenance: Origin,
    processors: u32,
    sets_by_cap: Vec<u32>,
    caps: Vec<f64>,
    caps_are: String,
    axis: Axis,
    policies: Vec<Policy>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Origin {
    source: String,
    command: String,
}

#[derive(Deserialize)]
struct Axis {
    symbol: String,
    title: String,
    unit: String,
    points: Vec<f64>,
}

#[derive(Deserialize)]
struct Policy {
    policy: String,
    accepted: Vec<Vec<u32>>,
}

/// Writes the page.
///
/// # Errors
/// A directory holds no complete study; the page cannot be written.
pub fn make(options: &Options) -> Result<Written> {
    let scenarios = options.dirs.iter().map(|dir| read(dir));
    let scenarios: Vec<Scenario> = scenarios.collect::<Result<_>>()?;
    files::write(&options.output, page(PROGRAM, &scenarios)?)?;
    Ok(Written {
        page: options.output.clone(),
        scenarios: scenarios.len(),
    })
}

fn read(dir: &Path) -> Result<Scenario> {
    let path = dir.join("results.json");
    let remedy = "name a directory whose `warmset study run -o` has ended";
    let text = files::read_text(&path).map_err(|e| e.remedy(remedy))?;
    let bad = |cause: String| Error::new(cause).at(path.display()).remedy(remedy);
    let results: Results = serde_json::from_str(&text)
        .map_err(|e| bad(format!("these are not the results of a study: {e}")))?;
    let mut facets = facets(&dir.join("study.toml"), &results.rest)?;
    facets.push(("swept".to_owned(), results.axis.symbol.clone()));
    Ok(Scenario {
        name: results.study,
        title: results.title,
        charges: results.charges,
        notes: results.notes,
        source: results.provenance.source,
        command: results.provenance.command,
        facets,
        processors: results.processors,
        shares: results.caps_are != "utilization",
        sets: results.sets_by_cap,
        caps: results.caps,
        sweep: Sweep {
            name: results.axis.symbol,
            title: results.axis.title,
            unit: results.axis.unit,
            values: results.axis.points,
        },
        policies: results.policies.iter().map(|p| p.policy.clone()).collect(),
        accepted: results.policies.into_iter().map(|p| p.accepted).collect(),
    })
}

/// What tells a scenario from others: the words and numbers of its definition, and what was
/// charged. Grids are left out: they are the axes.
fn facets(
    path: &Path,
    results: &serde_json::Map<String, serde_json::Value>,
) -> Result<Vec<(String, String)>> {
    let text = files::read_text(path)?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        Error::new(format!(
            "this is not the definition of a study: {}",
            e.message()
        ))
        .at(path.display())
        .remedy("run the study again")
    })?;
    let charged = ["accounting", "profile", "statistic", "load"];
    let mut facets = Vec::new();
    // What is looked for first stands first.
    let first = ["guarantee", "utilizations", "periods"];
    let rest = table.keys().map(String::as_str);
    for key in first
        .into_iter()
        .chain(rest.filter(|key| !first.contains(key)))
    {
        if NO_FACETS.contains(&key) || charged.contains(&key) {
            continue;
        }
        let value = match table.get(key) {
            Some(toml::Value::String(text)) => known(key, text),
            Some(toml::Value::Integer(number)) => number.to_string(),
            Some(toml::Value::Float(number)) => number.to_string(),
            Some(toml::Value::Boolean(yes)) => yes.to_string(),
            _ => continue,
        };
        facets.push((key.to_owned(), value));
    }
    for (key, value) in DEFAULTS {
        if !table.contains_key(key) {
            facets.push((key.to_owned(), value.to_owned()));
        }
    }
    for key in charged {
        let value = results.get(key).and_then(|value| value.as_str());
        facets.push((key.to_owned(), value.unwrap_or("none").to_owned()));
    }
    Ok(facets)
}

/// The name of a distribution in place of its numbers, where it has one.
fn known(key: &str, value: &str) -> String {
    let named = |names: &[&str], same: &dyn Fn(&str) -> bool| {
        let name = names.iter().find(|name| same(name));
        name.map_or_else(|| value.to_owned(), |name| (*name).to_owned())
    };
    match key {
        "utilizations" => {
            let of = |text: &str| text.parse::<generate::Utilizations>().ok();
            let same = |name: &str| of(name).is_some() && of(name) == of(value);
            let weights = ["light", "medium", "heavy"];
            let shapes = ["uniform", "bimodal", "exponential"];
            let names: Vec<String> = shapes
                .iter()
                .flat_map(|shape| weights.map(|weight| format!("{shape}-{weight}")))
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            named(&names, &same)
        }
        "periods" => {
            let of = |text: &str| text.parse::<generate::Periods>().ok();
            let same = |name: &str| of(name).is_some() && of(name) == of(value);
            named(&["short", "moderate", "long"], &same)
        }
        _ => value.to_owned(),
    }
}
