//! Tests of the schedulability tests, in one program: what it is made of is compiled and linked
//! once, not once a file. Apart from it are the search over small sets (`exact_search`), which is
//! called by itself with a million of them, and `certificates`, which has no harness.

mod agreement;
mod catalog;
mod conformance;
mod delayed;
mod delays_simulated;
mod edf_responses;
mod edf_wm_reference;
mod fixed_priority;
mod handed_over;
mod hostile;
mod many;
mod overheads;
mod overheads_simulated;
mod page;
mod partitioned;
mod played;
mod policies;
mod published;
mod reference;
mod semi_agreement;
mod semi_partitioned;
mod semi_properties;
mod simulated;
mod window_constrained;
mod zero_costs;

#[test]
fn every_file_beside_this_one_is_part_of_it() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let text = std::fs::read_to_string(here.join("all.rs")).unwrap();
    for entry in std::fs::read_dir(here).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_module = path.join("mod.rs").exists();
        if name != "all" && (is_module || path.extension().is_some_and(|e| e == "rs")) {
            assert!(text.contains(&format!("mod {name};")), "{name}");
        }
    }
}
