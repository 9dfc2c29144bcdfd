//! The verifier stays short enough to be read, and shares no crate with what it verifies.

use std::path::Path;

#[test]
fn it_has_at_most_1200_lines_of_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    // Comments and blank lines explain, and are not what has to be trusted.
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let count = |text: String| text.lines().filter(is_code).count();
    let lines: usize = files.map(|f| count(std::fs::read_to_string(f).unwrap())).sum();
    assert!((500..=1_200).contains(&lines), "{lines} lines");
}

#[test]
fn it_uses_no_crate_of_the_workspace() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    let (_, dependencies) = text.split_once("[dependencies]").unwrap();
    let names = dependencies.lines().filter_map(|line| line.split_once('.')).map(|(name, _)| name);
    let allowed =
        ["num-bigint", "num-integer", "num-rational", "num-traits", "serde", "serde_json"];
    assert_eq!(names.collect::<Vec<_>>(), allowed);
}

#[test]
fn what_is_no_certificate_is_told_in_one_sentence() {
    for text in ["", "{}", "[1]", "{\"schema_version\":1,\"document\":\"x\"}"] {
        let why = verify::verify(text).unwrap_err();
        assert!(!why.is_empty() && !why.contains('\n'), "{text}: {why}");
    }
}

#[test]
fn a_field_that_a_refusal_does_not_have_is_not_passed_over() {
    let claim = |refusal: &str| {
        format!(
            r#"{{"schema_version":1,"document":"warmset certificate","guarantee":"hard",
            "rule":"one-delay","processors":[0],"tasks":[{{"task":"a","wcet_ns":3,"period_ns":2,
            "deadline_ns":2}}],"claims":[{{"policy":"p-edf","says":"refuted",
            "refutation":{refusal}}}]}}"#
        )
    };
    let report = verify::verify(&claim(r#"{"by":"UTILIZATION"}"#)).unwrap();
    assert!(report.is_verified());
    assert!(verify::verify(&claim(r#"{"by":"UTILIZATION","index":0}"#)).is_err());
}
