//! The keys of a study file: what the reader accepts ([`crate::file`]), and the JSON Schema that
//! editors complete and check by. Both are made from [`KEYS`].
//!
//! The schema is of draft 7, which is what editors of TOML know. It accepts every file that the
//! reader accepts, but for spellings in other letter case; what depends on the platform or on the
//! meaning of several keys together is left to the reader.

use crate::axis::Quantity;
use crate::charged::Judging;
use crate::{families, presets};
use analyze::policies::Accounting;
use analyze::registry;
use generate::{Deadlines, Periods, Utilizations};
use model::{Error, Load, Overhead, Result, Statistic, builtin, profilefile};
use policy::catalog;
use serde_json::{Map, Value, json};

/// A key of a study file.
pub(crate) struct Key {
    pub name: &'static str,
    /// What it says, in a sentence or two, for editors.
    about: &'static str,
    kind: Kind,
}

/// What stands behind a key.
enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Words(fn() -> Vec<String>),
    /// Some of these words, in a list.
    Some(fn() -> Vec<String>),
    /// One of these names, or what has this form.
    Names(fn() -> Vec<String>, &'static str),
    /// Policies and tests.
    Policies,
    /// Values along an axis.
    Grid(Unit),
    /// One value.
    One(Unit),
    /// A whole number, at least this.
    Whole(u64),
    /// The width of an interval.
    Width,
}

/// What a value is measured in.
#[derive(Clone, Copy)]
enum Unit {
    /// Thousandths above zero.
    Cap,
    /// Thousandths.
    Factor,
    Time,
    Size,
    Count,
}

fn owned<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

const ANY: &str = "^.+$";

/// Every key, in the order of documents.
pub(crate) const KEYS: [Key; 31] = [
    Key {
        name: "name",
        about: "A short name.",
        kind: Kind::Text,
    },
    Key {
        name: "title",
        about: "What it shows, in one line: stands above charts.",
        kind: Kind::Text,
    },
    Key {
        name: "source",
        about: "Where it comes from.",
        kind: Kind::Text,
    },
    Key {
        name: "based_on",
        about: "A built-in study whose parameters hold where the file names none.",
        kind: Kind::Names(built_in, "^bastoni11-fig[BC]\\.[0-9]+[abc]$"),
    },
    Key {
        name: "platform",
        about: "A built-in platform, a file, or `this-machine`; with `:m=8` behind it scaled to so many processors.",
        kind: Kind::Names(
            || {
                let known = builtin::PLATFORMS.iter().map(|b| b.name);
                owned(known.chain(["symmetric:m=8", "this-machine"]))
            },
            ANY,
        ),
    },
    Key {
        name: "policies",
        about: "Policies with their parameters, tests by their names, and simulations such as `brute-force:g-edf`.",
        kind: Kind::Policies,
    },
    Key {
        name: "guarantee",
        about: "Hard: no deadline is missed. Soft: tardiness is bounded.",
        kind: Kind::Words(|| owned(["hard", "soft"])),
    },
    Key {
        name: "utilizations",
        about: "The distribution of utilizations, as for `warmset generate`.",
        kind: Kind::Names(
            || owned(Utilizations::names()),
            "^(uniform|bimodal|exponential):.+$",
        ),
    },
    Key {
        name: "periods",
        about: "The distribution of periods, as for `warmset generate`.",
        kind: Kind::Names(
            || owned(Periods::names()),
            "^(uniform|log-uniform|choice):.+$",
        ),
    },
    Key {
        name: "deadlines",
        about: "The kind of deadlines, as for `warmset generate`.",
        kind: Kind::Names(|| owned(Deadlines::names()), "^(constrained|arbitrary):.+$"),
    },
    Key {
        name: "fill",
        about: "What becomes of the task that would exceed the cap.",
        kind: Kind::Words(|| owned(["drop", "scale"])),
    },
    Key {
        name: "caps",
        about: "The caps U on the total utilization; where `processors` are swept, as shares of them.",
        kind: Kind::Grid(Unit::Cap),
    },
    Key {
        name: "delays",
        about: "Sweeps the delay D of one preemption or migration, the same for all tasks.",
        kind: Kind::Grid(Unit::Time),
    },
    Key {
        name: "working_sets",
        about: "Sweeps the working set size of every task; each kind of preemption and migration costs what the profile says.",
        kind: Kind::Grid(Unit::Size),
    },
    Key {
        name: "overhead_factors",
        about: "Sweeps a factor on overheads of the profile: on all, cache delays included, or on those of \
                `factor_on`.",
        kind: Kind::Grid(Unit::Factor),
    },
    Key {
        name: "processors",
        about: "Sweeps the number of processors: the platform is scaled.",
        kind: Kind::Grid(Unit::Count),
    },
    Key {
        name: "drawn_to",
        about: "Up to which value of what is swept charts go; default: to its end.",
        kind: Kind::Text,
    },
    Key {
        name: "delay",
        about: "The delay D where neither delays nor working sets are swept.",
        kind: Kind::One(Unit::Time),
    },
    Key {
        name: "working_set",
        about: "The working set size of every task where neither delays nor working sets are swept.",
        kind: Kind::One(Unit::Size),
    },
    Key {
        name: "overhead_factor",
        about: "A factor on overheads of the profile where it is not swept.",
        kind: Kind::One(Unit::Factor),
    },
    Key {
        name: "factor_on",
        about: "Which overheads the factor multiplies, `cpmd` being cache delays; default: all.",
        kind: Kind::Some(|| owned(Overhead::ALL.map(Overhead::name))),
    },
    Key {
        name: "sets",
        about: "How many task sets for each cap; with `until_ci` at most.",
        kind: Kind::Whole(1),
    },
    Key {
        name: "until_ci",
        about: "Adds task sets to a cap until the 95 % interval of each of its shares is at most so wide.",
        kind: Kind::Width,
    },
    Key {
        name: "seed",
        about: "The seed of all random choices.",
        kind: Kind::Whole(0),
    },
    Key {
        name: "charge",
        about: "How many delays D a job is charged, by the accounting `one-delay`.",
        kind: Kind::Whole(0),
    },
    Key {
        name: "overhead",
        about: "What every WCET grows by besides.",
        kind: Kind::One(Unit::Time),
    },
    Key {
        name: "profile",
        about: "What the scheduler costs: a built-in profile, or a file.",
        kind: Kind::Names(|| owned(profilefile::names()), ANY),
    },
    Key {
        name: "load",
        about: "Which cache delays of the profile are read for working sets.",
        kind: Kind::Words(|| owned(Load::ALL.map(Load::name))),
    },
    Key {
        name: "statistic",
        about: "Which number of an overhead; by default the maximum for hard, the average for soft.",
        kind: Kind::Words(|| owned(Statistic::ALL.map(Statistic::name))),
    },
    Key {
        name: "accounting",
        about: "How overheads are charged.",
        kind: Kind::Words(|| owned(Accounting::ALL.map(Accounting::name))),
    },
    Key {
        name: "judging",
        about: "By which heuristics and tests EDF is judged: every one, as `warmset check` does, or worst fit and five tests, \
                as 002 §6.3 does.",
        kind: Kind::Words(|| owned([Judging::Check, Judging::Paper].map(Judging::name))),
    },
];

/// The names of the built-in studies, those in families too.
fn built_in() -> Vec<String> {
    let single = presets::list().into_iter().map(|(name, ..)| name);
    let families = families::families().into_iter();
    single
        .chain(families.flat_map(|family| family.studies))
        .collect()
}

impl Unit {
    fn schema(self) -> Value {
        match self {
            Unit::Cap => json!({"anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]*|/[0-9]+)?\\s*$"},
            ]}),
            Unit::Factor => json!({"anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]*|/[0-9]+)?\\s*$"},
            ]}),
            Unit::Time => json!({
                "type": "string",
                "pattern": "^\\s*-?[0-9_]*\\.?[0-9_]*\\s*(h|min|s|ms|us|µs|μs|ns)\\s*$",
                "examples": ["500us"],
            }),
            Unit::Size => json!({
                "type": "string",
                "pattern": "^\\s*[0-9]+\\s*([kKmM]|[bB]|[kKmMgG][iI]?[bB])\\s*$",
                "examples": ["64KiB"],
            }),
            Unit::Count => json!({"anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": "^[0-9]+$"},
            ]}),
        }
    }
}

/// Names that an editor offers, or any text of a form.
fn names(known: &[String], form: &str) -> Value {
    json!({"anyOf": [{"enum": known}, {"type": "string", "pattern": form}]})
}

/// Policies by their names with any parameters, tests by theirs in capitals or small letters.
fn policies() -> Value {
    let policies: Vec<&str> = catalog::all().iter().map(|info| info.name).collect();
    let tests: Vec<&str> = registry::ALL.iter().map(|test| test.name).collect();
    let small: Vec<String> = tests.iter().map(|name| name.to_lowercase()).collect();
    let known: Vec<String> = policies
        .iter()
        .chain(&tests)
        .map(|s| (*s).to_owned())
        .collect();
    let any = |names: &[&str]| names.join("|");
    let form = format!(
        "^\\s*((brute-force:)?({p}|{capital})(:.+)?|{t}|{s})(@(idle|load))?\\s*$",
        p = any(&policies),
        capital = policies.join("|").to_uppercase(),
        t = any(&tests),
        s = small.join("|"),
    );
    json!({"type": "array", "minItems": 1, "items": names(&known, &form)})
}

impl Kind {
    fn schema(&self) -> Value {
        match self {
            Kind::Text => json!({"type": "string"}),
            Kind::Words(words) => json!({"enum": words()}),
            Kind::Some(words) => {
                json!({"type": "array", "minItems": 1, "items": {"enum": words()}})
            }
            Kind::Names(known, form) => names(&known(), form),
            Kind::Policies => policies(),
            Kind::Grid(unit) => grid(*unit),
            Kind::One(unit) => unit.schema(),
            Kind::Whole(least) => json!({"anyOf": [
                {"type": "integer", "minimum": least},
                {"type": "string", "pattern": "^[0-9]+$"},
            ]}),
            Kind::Width => json!({"type": "number", "minimum": 0.001, "exclusiveMaximum": 1}),
        }
    }
}

/// A range, or a list of values and ranges.
fn grid(unit: Unit) -> Value {
    let range = json!({
        "type": "object",
        "properties": {
            "from": unit.schema(),
            "to": unit.schema(),
            "step": unit.schema(),
        },
        "required": ["from"],
        "dependencies": {"to": ["step"], "step": ["to"]},
        "additionalProperties": false,
    });
    json!({"anyOf": [
        range,
        {"type": "array", "minItems": 1, "items": {"anyOf": [range, unit.schema()]}},
    ]})
}

/// The JSON Schema of a study file as a document of its own.
///
/// # Errors
/// None in practice: there is nothing in it that JSON cannot hold.
pub fn text() -> Result<String> {
    serde_json::to_string_pretty(&schema())
        .map(|text| text + "\n")
        .map_err(|e| Error::new(format!("the schema cannot be written as JSON: {e}")))
}

/// The JSON Schema of a study file.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for key in &KEYS {
        let mut schema = key.kind.schema();
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), key.about.into());
        }
        properties.insert(key.name.to_owned(), schema);
    }
    let axes = Quantity::ALL.map(Quantity::key);
    let one_axis: Vec<Value> = axes
        .iter()
        .map(|axis| json!({"required": [axis]}))
        .collect();
    let pairs = axes
        .iter()
        .enumerate()
        .flat_map(|(at, first)| axes[at + 1..].iter().map(move |second| [*first, *second]));
    let apart: Vec<Value> = pairs
        .chain([["delay", "working_set"]])
        .map(|pair| json!({"not": {"required": pair}}))
        .collect();
    let mut all = vec![json!({"anyOf": [
        {"required": ["based_on"]},
        {"required": ["policies", "utilizations", "periods", "caps"], "anyOf": one_axis},
    ]})];
    all.extend(apart);
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A study of Warmset",
        "description": "Compares schedulers over many task sets: see `warmset study --help` and docs/studies.md.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "allOf": all,
    })
}
