//! The JSON Schemas of all documents, as `docs/schema` has them.

use model::error::nearest;
use model::{Error, Result, files};
use serde::Serialize;
use std::path::Path;

/// By the name of a document its schema, in the order of the names.
pub const SCHEMAS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

/// A document that has a schema.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it is, such as the answer of a verb.
    pub title: String,
}

/// Lists the documents.
pub fn list() -> Vec<Row> {
    let row = |(name, schema): &(&str, &str)| Row {
        name: (*name).to_owned(),
        title: title(schema),
    };
    SCHEMAS.iter().map(row).collect()
}

fn title(schema: &str) -> String {
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap_or_default();
    schema["title"].as_str().unwrap_or_default().to_owned()
}

/// The schema of a document.
///
/// # Errors
/// There is no such document.
pub fn find(name: &str) -> Result<&'static str> {
    let found = SCHEMAS.iter().find(|(known, _)| *known == name);
    found.map(|(_, schema)| *schema).ok_or_else(|| {
        let near = nearest(name, SCHEMAS.iter().map(|(known, _)| *known));
        let remedy = match near {
            Some(near) => format!("did you mean `{near}`? `warmset schema` lists all"),
            None => "`warmset schema` lists all".to_owned(),
        };
        Error::new(format!("no document is called `{name}`")).remedy(remedy)
    })
}

/// Writes all schemas into a directory, which is made if need be.
///
/// # Errors
/// A file cannot be written.
pub fn write_all(dir: &Path) -> Result<()> {
    files::make_dir(dir)?;
    SCHEMAS
        .iter()
        .try_for_each(|(name, schema)| files::write(&dir.join(format!("{name}.json")), schema))
}
