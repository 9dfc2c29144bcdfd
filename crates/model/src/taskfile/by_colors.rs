//! The key `wcet` of a task: one time, or a table of times by number of colors.

use crate::error::{Error, Result};
use crate::input::Value;
use crate::time::Duration;
use crate::wcets::{SHARED, Wcets};

/// Reads a table; `None`: it is one time for all.
pub(super) fn read(value: &Value<'_, '_>) -> Result<Option<Wcets>> {
    if !value.is_table() {
        return Ok(None);
    }
    let (mut shared, mut by_colors) = (None, Vec::new());
    for (key, time) in value.table()?.entries() {
        if key == SHARED {
            shared = Some(time.parsed()?);
            continue;
        }
        let number = key.parse::<u16>().map_err(|_| {
            value.place(
                Error::new(format!("`{key}` is no number of colors"))
                    .remedy(format!("write a whole number, or `{SHARED}`")),
            )
        })?;
        by_colors.push((number, time.parsed()?));
    }
    let wcets = Wcets::new(shared, by_colors);
    wcets.map(Some).map_err(|e| value.place(e))
}

/// Writes what [`read`] reads back.
pub(super) fn write(wcet: Duration, wcets: Option<&Wcets>) -> toml::Value {
    let Some(wcets) = wcets else {
        return toml::Value::String(wcet.to_string());
    };
    let shared = wcets.shared().map(|wcet| (SHARED.to_owned(), wcet));
    let by_colors = wcets.by_colors().iter();
    let by_colors = by_colors.map(|(colors, wcet)| (colors.to_string(), *wcet));
    let entries = shared.into_iter().chain(by_colors);
    toml::Value::Table(
        entries
            .map(|(key, wcet)| (key, toml::Value::String(wcet.to_string())))
            .collect(),
    )
}
