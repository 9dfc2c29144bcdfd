//! Studies of a few lines.

use model::{Duration, Platform, Profile};
use study::{Results, Study, file};

/// A study that differs in these lines from Fig. 5 of 000.
pub fn small(text: &str) -> Study {
    let text = format!("based_on = \"ospert10-fig5\"\nname = \"small\"\n{text}");
    file::from_toml(&text, Platform::find, Profile::find).unwrap()
}

/// The delays of results.
#[allow(dead_code, reason = "each test program uses a part")]
pub fn delays(results: &Results) -> Vec<Duration> {
    let points = results.axis.points.iter();
    points.map(|ns| Duration::from_nanos(*ns)).collect()
}
