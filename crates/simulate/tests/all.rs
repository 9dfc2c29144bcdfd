//! All tests of the engine in virtual time, in one program: what it is made of for every policy is
//! compiled and linked once, not once a file.

mod added_up;
mod boundaries;
mod cached;
mod checked;
mod conformance;
mod corrupted;
mod example;
mod figure_2_7;
mod figures;
mod limits;
mod overheads;
mod perfetto;
mod profiler;
mod quick;
mod reference;
mod support;

#[test]
fn every_file_beside_this_one_is_part_of_it() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let text = std::fs::read_to_string(here.join("all.rs")).unwrap();
    for entry in std::fs::read_dir(here).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|e| e == "rs") && name != "all" {
            assert!(text.contains(&format!("mod {name};")), "{name}");
        }
    }
}
