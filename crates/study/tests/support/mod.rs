//! Studies of a few lines.

use model::{Platform, Profile};
use study::{Study, file};

/// A study that differs in these lines from Fig. 5 of 000.
pub fn small(text: &str) -> Study {
    let text = format!("based_on = \"ospert10-fig5\"\nname = \"small\"\n{text}");
    file::from_toml(&text, Platform::find, Profile::find).unwrap()
}
