//! The documentation page of what is reproduced is what the index says.

#[test]
fn the_page_is_made_from_the_index() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduced.md");
    let page = reproduce::page();
    if std::env::var_os("WARMSET_WRITE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reproduced.md differs from the index; write it anew with\n\
         WARMSET_WRITE=1 cargo test -p warmset-reproduce --test page"
    );
}
