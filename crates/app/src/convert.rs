//! Converts task sets from and for other tools' files.

use model::{Duration, Result, files, rtapp, taskfile};
use std::path::Path;

/// A file in the other format.
#[derive(Clone, Debug)]
pub struct Converted {
    /// Its text.
    pub text: String,
    /// What has no place in it, with the reason.
    pub notes: Vec<String>,
}

/// Turns a file of rt-app (JSON) into a task file (TOML), and a task file into a file of rt-app
/// that runs for `duration`, rounded up to seconds.
///
/// # Errors
/// The file cannot be read, or is neither of both.
pub fn convert(file: &Path, duration: Duration) -> Result<Converted> {
    let text = files::read_text(file)?;
    // No TOML file begins with a brace, and every file of rt-app does, or with a comment.
    let is_rt_app = text.trim_start().starts_with(['{', '/']);
    let (text, notes) = if is_rt_app {
        let imported = rtapp::from_rt_app(&text).map_err(|e| e.at(file.display()))?;
        let place = |note| format!("{}: {note}", file.display());
        let notes = imported.notes.into_iter().map(place).collect();
        (taskfile::to_toml(&imported.set), notes)
    } else {
        let set = taskfile::from_toml(&text).map_err(|e| e.at(file.display()))?;
        rtapp::to_rt_app(&set, duration).map_err(|e| e.at(file.display()))?
    };
    Ok(Converted { text, notes })
}
