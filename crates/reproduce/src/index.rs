//! The whole index, and how an entry is found by its name.

use crate::entry::{Entry, Step};
use crate::papers;
use model::error::nearest;
use model::{Error, Result};

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Three digits, by which the documentation names it.
    pub number: &'static str,
    /// Who wrote it, and what it is called.
    pub title: &'static str,
}

/// The papers, in their order.
pub const PAPERS: [Paper; 5] = [
    Paper {
        number: "000",
        title: "Bastoni, Brandenburg, Anderson: Cache-Related Preemption and Migration Delays: \
                Empirical Approximation and Impact on Schedulability",
    },
    Paper {
        number: "001",
        title: "Liedtke, Härtig, Hohmuth: OS-Controlled Cache Predictability for Real-Time Systems",
    },
    Paper {
        number: "002",
        title: "Bastoni: Towards the Integration of Theory and Practice in Multiprocessor Real-Time \
                Scheduling",
    },
    Paper {
        number: "003",
        title: "Calandrino, Anderson: On the Design and Implementation of a Cache-Aware Multicore \
                Real-Time Scheduler",
    },
    Paper {
        number: "004",
        title: "Gracioli, Fröhlich: An Experimental Evaluation of the Cache Partitioning Impact on \
                Multicore Real-Time Schedulers",
    },
];

/// Every entry, paper by paper.
pub fn all() -> Vec<Entry> {
    papers::all()
}

/// The entry of this name. The name of a study preset or of an experiment under `warmset color
/// experiment` is another name of the first entry that runs it.
///
/// # Errors
/// There is none: suggests the nearest.
pub fn find(name: &str) -> Result<Entry> {
    let written = name.to_lowercase();
    let mut all = all();
    let place = all
        .iter()
        .position(|e| e.id.to_lowercase() == written)
        .or_else(|| {
            all.iter()
                .position(|e| e.steps.iter().any(|s| is_run_by(s, name)))
        });
    if let Some(at) = place {
        return Ok(all.swap_remove(at));
    }
    let near = nearest(name, all.iter().map(|e| e.id.as_str()));
    Err(
        Error::new(format!("nothing in the papers is called `{name}`")).remedy(match near {
            Some(near) => format!("did you mean `{near}`? `warmset reproduce list` shows all"),
            None => "see `warmset reproduce list`".to_owned(),
        }),
    )
}

/// Whether a step runs the study or the experiment of this name.
fn is_run_by(step: &Step, name: &str) -> bool {
    let words: Vec<&str> = step.full.split_whitespace().collect();
    match words[..] {
        // A `-fine` preset is the same study on a finer grid, `-two-delays` the same figure by the
        // other reading of §6.1.
        ["study", "run", study, ..] => {
            study
                == name
                    .trim_end_matches("-fine")
                    .trim_end_matches("-two-delays")
        }
        ["color", "experiment", experiment, ..] => experiment == name,
        _ => false,
    }
}
