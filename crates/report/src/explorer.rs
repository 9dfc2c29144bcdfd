//! The explorer: one page for any number of studies, with their counts, charts and tables within.
//!
//! The page is `explorer/page.html` with its style, its scripts and the libraries of
//! `explorer/vendor` (D3 and Observable Plot, as they are published). It fetches nothing. Counts
//! are 32-bit integers by scenario, policy, cap and point of the sweep, compressed and in base64.

use base64::Engine;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use model::{Error, Result};
use serde::Serialize;
use std::io::Write;

const PAGE: &str = include_str!("explorer/page.html");
const PARTS: [(&str, &str); 7] = [
    ("@CSS@", include_str!("explorer/explorer.css")),
    ("@D3@", include_str!("explorer/vendor/d3.min.js")),
    ("@PLOT@", include_str!("explorer/vendor/plot.umd.min.js")),
    ("@MODEL@", include_str!("explorer/model.js")),
    ("@PARTS@", include_str!("explorer/parts.js")),
    ("@MAP@", include_str!("explorer/map.js")),
    ("@VIEW@", include_str!("explorer/view.js")),
];

/// The quantity along the x axis of weighted schedulability.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sweep {
    /// Its letter: `D`.
    pub name: String,
    /// What it is, in words.
    pub title: String,
    /// The unit of its values: `ns`, `B`, or another one that is written as it is.
    pub unit: String,
    /// Its values, ascending.
    pub values: Vec<f64>,
}

/// One study as the page shows it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Scenario {
    /// The name of the study.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What is charged, and how, in one sentence; empty where that is not known.
    pub charges: String,
    /// What must be known to trust it, in sentences.
    pub notes: Vec<String>,
    /// The program that ran it.
    pub source: String,
    /// The command that runs it again.
    pub command: String,
    /// What tells it from other scenarios: names and values, such as `periods` and `short`.
    pub facets: Vec<(String, String)>,
    /// Number of processors.
    pub processors: u32,
    /// Are caps shares of the processors?
    pub shares: bool,
    /// Sets of each cap.
    pub sets: Vec<u32>,
    /// The caps on the total utilization.
    pub caps: Vec<f64>,
    /// What is swept.
    pub sweep: Sweep,
    /// The policies, as named in figures.
    pub policies: Vec<String>,
    /// Accepted sets: by policy, then by cap, then by point of the sweep.
    #[serde(skip)]
    pub accepted: Vec<Vec<Vec<u32>>>,
}

#[derive(Serialize)]
struct Data<'a> {
    program: &'a str,
    scenarios: &'a [Scenario],
    counts: String,
}

/// The page. `program`: the program and version that made it.
///
/// # Errors
/// There is no scenario, or one whose counts have another shape than its policies, caps and sweep.
pub fn page(program: &str, scenarios: &[Scenario]) -> Result<String> {
    if scenarios.is_empty() {
        return Err(Error::new("there is no study to explore")
            .remedy("name a directory that `warmset study run -o` made"));
    }
    scenarios.iter().try_for_each(check)?;
    let data = Data {
        program,
        scenarios,
        counts: packed(scenarios)?,
    };
    let json = serde_json::to_string(&data)
        .map_err(|e| Error::new(format!("the studies cannot be written as JSON: {e}")))?;
    // Nothing in a name may end the element that holds the data.
    let json = json.replace('<', "\\u003c");
    let mut page = PAGE.to_owned();
    for (place, text) in PARTS {
        page = page.replace(place, text);
    }
    // The data last: what a name says is never taken for a place of the page.
    Ok(page.replace("@DATA@", &json))
}

fn check(s: &Scenario) -> Result<()> {
    let fits = |row: &Vec<u32>, sets: u32| {
        row.len() == s.sweep.values.len() && row.iter().all(|n| *n <= sets)
    };
    let sound = s.accepted.len() == s.policies.len()
        && s.sets.len() == s.caps.len()
        && s.sets.iter().all(|sets| *sets > 0)
        && s.accepted.iter().all(|caps| {
            caps.len() == s.caps.len() && caps.iter().zip(&s.sets).all(|(row, n)| fits(row, *n))
        });
    match sound && !s.caps.is_empty() && !s.sweep.values.is_empty() {
        true => Ok(()),
        false => Err(Error::new(format!(
            "the counts of the study `{}` are not those of its policies, caps and delays",
            s.name
        ))
        .remedy("run the study again")),
    }
}

/// All counts, compressed, in base64.
fn packed(scenarios: &[Scenario]) -> Result<String> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    let failed = |e| Error::new(format!("the counts cannot be compressed: {e}"));
    let all = scenarios.iter().flat_map(|s| s.accepted.iter().flatten());
    for count in all.flatten() {
        zlib.write_all(&count.to_le_bytes()).map_err(failed)?;
    }
    let bytes = zlib.finish().map_err(failed)?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn scenario(name: &str) -> Scenario {
        Scenario {
            name: name.to_owned(),
            title: String::new(),
            charges: String::new(),
            notes: Vec::new(),
            source: String::new(),
            command: String::new(),
            facets: vec![("periods".to_owned(), "short".to_owned())],
            processors: 2,
            shares: false,
            sets: vec![9, 9],
            caps: vec![1.0, 2.0],
            sweep: Sweep {
                name: "D".to_owned(),
                title: "delay".to_owned(),
                unit: "ns".to_owned(),
                values: vec![0.0],
            },
            policies: vec!["P-EDF".to_owned()],
            accepted: vec![vec![vec![9], vec![4]]],
        }
    }

    #[test]
    fn a_page_holds_everything_and_fetches_nothing() {
        let text = page("warmset", &[scenario("x")]).unwrap();
        for (place, _) in PARTS {
            assert!(!text.contains(place), "{place}");
        }
        for fetched in ["<link", "<script src", "@import", "<img"] {
            assert!(!text.contains(fetched), "{fetched}");
        }
    }

    #[test]
    fn names_cannot_end_the_element_of_the_data() {
        let text = page("warmset", &[scenario("</script><b>@VIEW@")]).unwrap();
        assert!(!text.contains("</script><b>"));
        assert!(text.contains("\\u003c/script>\\u003cb>@VIEW@"));
    }

    #[test]
    fn counts_come_back_in_their_order() {
        let packed = packed(&[scenario("x"), scenario("y")]).unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(packed)
            .unwrap();
        let mut counts = Vec::new();
        flate2::read::ZlibDecoder::new(&bytes[..])
            .read_to_end(&mut counts)
            .unwrap();
        let expected: Vec<u8> = [9u32, 4, 9, 4]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        assert_eq!(counts, expected);
    }

    #[test]
    fn counts_of_another_shape_are_refused() {
        assert!(page("warmset", &[]).is_err());
        let mut odd = scenario("x");
        odd.accepted[0][1] = vec![4, 4];
        assert!(page("warmset", std::slice::from_ref(&odd)).is_err());
        odd.accepted[0][1] = vec![10];
        assert!(page("warmset", &[odd]).is_err(), "more than there are");
    }
}
