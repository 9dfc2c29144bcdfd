//! Holds documents against the schemas of `docs/schema`. Here, and not beside the tests of the
//! command, because the validator takes long to compile into each of them.

use jsonschema::Registry;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where the schemas are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// All schemas with their names, in the order of the names.
pub fn all() -> Vec<(String, Value)> {
    let files = std::fs::read_dir(directory()).expect("docs/schema");
    let mut all: Vec<(String, Value)> = files
        .map(|file| {
            let path = file.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a schema");
            let name = path.file_stem().expect("a name").to_string_lossy();
            let schema = serde_json::from_str(&text)
                .unwrap_or_else(|e| panic!("{} is no JSON: {e}", path.display()));
            (name.into_owned(), schema)
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// What a document breaks of the schema of this name, a line each; empty: nothing.
pub fn faults(name: &str, document: &Value) -> Vec<String> {
    let all = all();
    let mut registry = Registry::new();
    for (_, schema) in &all {
        let id = schema["$id"].as_str().expect("an $id");
        registry = registry.add(id, schema.clone()).expect("a schema");
    }
    let registry = registry
        .prepare()
        .expect("schemas that refer to each other");
    let (_, schema) = all
        .iter()
        .find(|(known, _)| known == name)
        .unwrap_or_else(|| panic!("docs/schema/{name}.json is missing"));
    let validator = jsonschema::draft202012::options()
        .with_registry(&registry)
        .build(schema)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    validator
        .iter_errors(document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

/// Fails unless the document is as the schema of this name says.
pub fn hold(name: &str, document: &Value) {
    let faults = faults(name, document);
    assert!(
        faults.is_empty(),
        "not as docs/schema/{name}.json says:\n{}",
        faults.join("\n")
    );
}
