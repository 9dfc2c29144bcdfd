//! What the parsers of named distributions share.

use model::Error;
use model::error::nearest;

/// What follows `NAME:`.
pub(crate) fn after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.strip_prefix(name)?.strip_prefix(':').map(str::trim)
}

/// The error of a name that is not known: the nearest one, or all of them.
pub(crate) fn unknown<'a>(
    what: &str,
    text: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    custom: &str,
) -> Error {
    let error = Error::new(format!("unknown {what} `{text}`"));
    match nearest(text, names.clone()) {
        Some(near) => error.remedy(format!("did you mean `{near}`?")),
        None => error.remedy(format!(
            "write {}, or {custom}",
            names
                .map(|n| format!("`{n}`"))
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}
