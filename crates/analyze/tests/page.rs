//! The documentation page of the tests is what the registry says.

use analyze::registry;

#[test]
fn the_page_of_tests_is_made_from_the_registry() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tests.md");
    let page = registry::page();
    if std::env::var_os("WARMSET_WRITE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/tests.md differs from the registry; write it anew with\n\
         WARMSET_WRITE=1 cargo test -p warmset-analyze --test all page::"
    );
    for test in registry::ALL {
        assert!(
            test.about.len() > 40 && !test.source.is_empty(),
            "{} says too little",
            test.name
        );
    }
}
