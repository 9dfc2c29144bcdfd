//! Assignments that policies need, for tests of runs on threads and in memory.

use analyze::partition::{Fit, Order, pack::Scratch};
use analyze::semi::{edf_fm, edf_wm, nps_f};
use model::assignment::Clustered;
use model::{Assignment, Platform, TaskSet};
use policy::Spec;
use policy::registry::Needs;

/// The assignment that a policy needs. An error says why the tasks do not fit.
pub fn assign(spec: &Spec, set: &TaskSet, platform: &Platform) -> Result<Option<Assignment>, String> {
    let cpus = platform.in_cache_order();
    let timings = set.timings();
    Ok(match (spec.info().needs)(spec).map_err(|e| e.to_string())? {
        Needs::Nothing => None,
        Needs::Clusters(clusters) => {
            let clusters = platform.clusters(clusters).map_err(|e| e.to_string())?;
            let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
            let mut scratch = Scratch::new();
            let cluster_of = scratch
                .pack(timings, &sizes, Order::DecreasingUtilization, Fit::Worst)
                .map_err(|task| format!("task {task} fits nowhere"))?
                .to_vec();
            Some(Assignment::Clustered(Clustered { clusters, cluster_of }))
        }
        Needs::Turns => Some(Assignment::Turns(
            edf_fm::assign(timings, &cpus, edf_fm::Fill::default()).map_err(|e| format!("{e:?}"))?,
        )),
        Needs::Slices => Some(Assignment::Slices(
            edf_wm::assign(timings, &cpus, &edf_wm::Settings::default()).map_err(|e| format!("{e:?}"))?,
        )),
        Needs::Slots { delta, .. } => {
            let settings = nps_f::Settings {
                delta,
                ..nps_f::Settings::default()
            };
            Some(Assignment::Slots(
                nps_f::assign(timings, &[cpus], &settings).map_err(|e| format!("{e:?}"))?,
            ))
        }
    })
}
