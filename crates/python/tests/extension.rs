//! The extension module as a shared library: its tests are Python's, and take the one that is built
//! for this test (`tests/python.sh`).

use std::path::{Path, PathBuf};

/// Where the library is: built beside this program.
fn path() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    own.with_file_name("lib_native.so")
}

fn library() -> Vec<u8> {
    let path = path();
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

/// The types that the compiler put into the library are those that `_native.pyi` tells editors.
/// After a change of the module: `UPDATE_STUB=1 cargo test -p warmset-python --test extension`.
#[test]
fn the_stub_is_what_the_build_made() {
    let module = pyo3_introspection::introspect_cdylib(path(), "_native").expect("types");
    let files = pyo3_introspection::module_stub_files(&module);
    let [made] = &files.values().collect::<Vec<_>>()[..] else {
        panic!("one file, not {:?}", files.keys());
    };
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/warmset/_native.pyi");
    if std::env::var_os("UPDATE_STUB").is_some() {
        std::fs::write(&stub, made).expect("written");
    }
    let kept = std::fs::read_to_string(&stub).expect("the stub");
    assert!(
        kept == **made,
        "{} is not as built: set UPDATE_STUB=1",
        stub.display()
    );
}
