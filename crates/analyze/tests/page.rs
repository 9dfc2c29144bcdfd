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

/// Every section that has an equation or a count says what holds it up.
#[test]
fn the_page_of_overheads_says_what_is_proven_argued_or_only_tested() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/overheads.md");
    let page = std::fs::read_to_string(path).unwrap();
    let sections: Vec<&str> = page.split("\n## ").collect();
    let counted = [
        "By piece",
        "One processor or cluster",
        "EDF-fm",
        "EDF-WM",
        "NPS-F",
        "PD²",
    ];
    for name in counted {
        let section = sections.iter().find(|s| s.starts_with(name)).unwrap();
        let says = ["proven", "argued", "only tested"];
        assert!(says.iter().any(|word| section.contains(word)), "{name}");
        // Whose the counts are.
        assert!(
            ["ours", "Proof"].iter().any(|word| section.contains(word)),
            "{name}"
        );
    }
}
