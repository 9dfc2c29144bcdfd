//! The published JSON Schema says what the reader says: what is a study, and what is none.

use jsonschema::Validator;
use model::{Platform, Profile};
use std::path::Path;
use study::{file, presets, schema};

fn validator() -> Validator {
    jsonschema::draft7::meta::validate(&schema::schema()).unwrap();
    jsonschema::draft7::new(&schema::schema()).unwrap()
}

fn json(text: &str) -> serde_json::Value {
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

fn reads(text: &str) -> Result<(), String> {
    // Files stand beside no test: what is read of them is another matter.
    let platform = |name: &str| match name.ends_with(".toml") {
        true => Ok(Platform::symmetric(8)),
        false => Platform::find(name),
    };
    let profile = |_: &str| Profile::builtin("xeon-l7455");
    file::from_toml(text, platform, profile)
        .map(drop)
        .map_err(|e| e.to_string())
}

#[test]
fn presets_and_examples_are_studies() {
    let validator = validator();
    let mut count = 0;
    let mut check = |what: &str, text: &str| {
        let errors: Vec<String> = validator
            .iter_errors(&json(text))
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:?}");
        assert_eq!(reads(text), Ok(()), "{what}");
        count += 1;
    };
    for (name, ..) in presets::list() {
        check(&name, &presets::find(&name).unwrap().to_toml());
    }
    let page = include_str!("../../../docs/studies.md");
    let mut examples = 0;
    for block in page
        .split("\n\n")
        .filter(|b| b.contains("name = \"light-board\""))
    {
        let text: String = block
            .lines()
            .filter_map(|line| Some(line.strip_prefix("    ")?.to_owned() + "\n"))
            .collect();
        check("docs/studies.md", &text);
        examples += 1;
    }
    assert_eq!(examples, 1, "the page has one whole study");
    for entry in std::fs::read_dir(Path::new("../../examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // Other files of the directory are task sets.
        if text.contains("policies = [") {
            check(&path.display().to_string(), &text);
        }
    }
    assert!(count > 20, "{count}");
}

/// The same files are refused by both.
#[test]
fn wrong_files_are_no_studies() {
    let validator = validator();
    let base = "based_on = \"ospert10-fig5\"\n";
    for text in [
        "",
        "based_on = \"ospert10-fig6\"\n",
        "policies = [\"p-edf\"]\nutilizations = \"uniform-light\"\nperiods = \"short\"\ncaps = [1]\n",
        &format!("{base}polices = []\n"),
        &format!("{base}sets = -1\n"),
        &format!("{base}sets = 1.5\n"),
        &format!("{base}guarantee = \"firm\"\n"),
        &format!("{base}caps = {{ from = 1, to = 2 }}\n"),
        &format!("{base}caps = 4\n"),
        &format!("{base}caps = []\n"),
        &format!("{base}caps = {{ from = 1, to = 2, step = 1, by = 1 }}\n"),
        &format!("{base}caps = [0]\n"),
        &format!("{base}delays = {{ from = 5 }}\n"),
        &format!("{base}delays = [\"5\"]\n"),
        &format!("{base}working_sets = [\"5us\"]\n"),
        &format!("{base}working_sets = [\"64KiB\"]\nprocessors = [4]\n"),
        &format!("{base}delay = \"1us\"\nworking_set = \"64KiB\"\n"),
        &format!("{base}overhead_factors = [-1]\n"),
        &format!("{base}processors = [0]\n"),
        &format!("{base}processors = [1.5]\n"),
        &format!("{base}utilizations = \"uniform-havy\"\n"),
        &format!("{base}periods = \"shortest\"\n"),
        &format!("{base}accounting = \"two\"\n"),
        &format!("{base}load = \"busy\"\n"),
        &format!("{base}statistic = \"median\"\n"),
        &format!("{base}until_ci = 1\n"),
        &format!("{base}fill = \"cut\"\n"),
        &format!("{base}name = 3\n"),
    ] {
        assert!(!validator.is_valid(&json(text)), "the schema takes: {text}");
        assert!(reads(text).is_err(), "the reader takes: {text}");
    }
    // Policies are looked up when the study is checked.
    for policies in ["[\"q-edf\"]", "[\"GFBX\"]", "[]", "[1]"] {
        let text = format!("{base}policies = {policies}\n");
        assert!(!validator.is_valid(&json(&text)), "{text}");
    }
}

/// Whatever the reader takes in one of these forms, the schema takes.
#[test]
fn every_form_of_a_value_is_a_study() {
    let validator = validator();
    for line in [
        "policies = [\"p-rm\", \"p-fp:dm\", \"g-fp:dm\", \"ca-edf\", \"nps-f:delta=4\", \"c-nps-f:l3\", \"gfb\", \"RTA\"]",
        "policies = [\"brute-force:c-edf:l2\", \"P-EDF:ffd\", \"pd2\", \"EDF-WM\"]",
        "caps = [1, 2.5, \"7/2\", { from = 4, to = 6, step = \"0.25\" }]",
        "caps = { from = 2 }",
        "delays = [\"0us\", \"1.5ms\", \"2_000 us\"]",
        "working_sets = [\"64KiB\", \"1 MiB\", \"3mb\"]",
        "overhead_factors = { from = 0, to = 2, step = 0.5 }",
        "processors = [4, 8, { from = 16, to = 64, step = 16 }]",
        "until_ci = 0.02",
        "periods = \"choice:5ms,10ms\"",
        "utilizations = \"bimodal:1/4\"",
        "deadlines = \"constrained:0.5-1\"",
        "platform = \"board.toml\"",
        "platform = \"xeon-l7455:m=8\"",
        "seed = \"18446744073709551615\"",
    ] {
        let text = format!("based_on = \"ospert10-fig5\"\n{line}\n");
        assert_eq!(reads(&text), Ok(()), "{line}");
        assert!(validator.is_valid(&json(&text)), "{line}");
    }
}
