//! Puts the schemas of `docs/schema` into a table: a document that gets a schema is registered by
//! that.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut files: Vec<_> = fs::read_dir(&dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let mut table = "&[\n".to_owned();
    for path in &files {
        let name = path.file_stem().unwrap_or_default();
        let (name, path) = (name.to_string_lossy(), fs::canonicalize(path)?);
        // Writing to a String cannot fail.
        let _ = writeln!(table, "({name:?}, include_str!({path:?})),");
    }
    table += "]";
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("schemas.rs"), table)
}
