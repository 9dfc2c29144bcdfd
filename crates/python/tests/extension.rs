//! The extension module as a shared library: its tests are Python's, and take the one that is built
//! for this test (`tests/python.sh`).

use std::path::PathBuf;

/// The library, as it is built beside this program.
fn library() -> Vec<u8> {
    let own = std::env::current_exe().expect("the path of this program");
    let path: PathBuf = own.with_file_name("lib_native.so");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn has(library: &[u8], text: &str) -> bool {
    library.windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn it_is_a_module_of_any_python_and_needs_no_library_of_one() {
    let library = library();
    assert!(has(&library, "PyInit__native"));
    // A name such as `libpython3.11.so.1.0` would bind it to one version.
    assert!(!has(&library, "libpython"));
}
