//! The compiled program is the one that its sources give, as far as that can be told without a
//! compiler: `main.bpf.o.made`, which `guest/bpf.sh` writes, has the checksums of both. Where the
//! compiler is there, `make test-kernel` compiles it anew and compares every byte.

use std::path::{Path, PathBuf};
use std::process::Command;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bpf")
}

/// The files of a directory that are source, and the object.
fn files(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| [".c", ".h", ".o"].iter().any(|end| name.ends_with(end)))
        .collect();
    names.sort();
    names
}

/// What `sha256sum` says of the files that `main.bpf.o.made` names; `Err`: they are others.
fn check(directory: &Path) -> Result<(), String> {
    let made = std::fs::read_to_string(directory.join("main.bpf.o.made")).unwrap();
    let lines = made.lines().filter(|line| !line.starts_with('#'));
    let mut named: Vec<&str> = lines.filter_map(|line| line.split("  ").nth(1)).collect();
    named.sort_unstable();
    let there = files(directory);
    if named != there {
        return Err(format!("it is about {named:?}, and there are {there:?}"));
    }
    let checked = Command::new("sha256sum")
        .args(["--check", "--quiet", "--strict", "main.bpf.o.made"])
        .current_dir(directory)
        .output()
        .expect("sha256sum is part of every Linux");
    match checked.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&checked.stdout).into_owned()),
    }
}

#[test]
fn the_object_is_made_of_the_sources_that_are_there() {
    if let Err(what) = check(&directory()) {
        panic!(
            "crates/kernel/src/bpf/main.bpf.o was made of other sources: {what}\n\
             make it anew with `make kernel-program`"
        );
    }
}

#[test]
fn a_changed_source_and_a_changed_object_are_found() {
    for changed in ["jobs.h", "main.bpf.o", "new.h"] {
        let copy = tempfile::tempdir().unwrap();
        for name in files(&directory())
            .iter()
            .map(String::as_str)
            .chain(["main.bpf.o.made"])
        {
            std::fs::copy(directory().join(name), copy.path().join(name)).unwrap();
        }
        assert_eq!(check(copy.path()), Ok(()));
        let path = copy.path().join(changed);
        let mut bytes = std::fs::read(&path).unwrap_or_default();
        bytes.push(b'\n');
        std::fs::write(&path, bytes).unwrap();
        let said = check(copy.path()).unwrap_err();
        assert!(said.contains(changed), "{said}");
    }
}

/// The compiler is the one that is fetched: `guest/pins`.
#[test]
fn the_compiler_is_the_one_that_is_pinned() {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest/pins");
    let pins = std::fs::read_to_string(pins).unwrap();
    let pinned = |package: &str| {
        let lines = pins.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mut found = lines.filter(|words| words[1] == package);
        let words = found
            .next()
            .unwrap_or_else(|| panic!("no pin of {package}"));
        assert_eq!(words[3].len(), 64, "{words:?} has a SHA-256");
        words[2].to_owned()
    };
    for package in ["qemu-system-x86", "bpftool", "libbpf-dev", "libelf-dev"] {
        pinned(package);
    }
    let made = std::fs::read_to_string(directory().join("main.bpf.o.made")).unwrap();
    // A package `1:19.1.7-3+b1` calls itself `19.1.7 (3+b1)`.
    let (_, version) = pinned("clang-19").split_once(':').map_or_else(
        || panic!("clang-19 has no epoch"),
        |(epoch, version)| (epoch.to_owned(), version.to_owned()),
    );
    let (upstream, revision) = version.rsplit_once('-').unwrap();
    let said = format!("# Debian clang version {upstream} ({revision})");
    assert_eq!(made.lines().next(), Some(&*said));
}
