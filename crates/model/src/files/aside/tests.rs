//! When a file gets its name, and what lies beside it before that.

use super::*;

/// Names are random; that they need not be is what `O_EXCL` is for.
#[test]
fn nothing_under_the_name_of_a_part_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("victim"), "old").unwrap();
    std::os::unix::fs::symlink("victim", dir.path().join("a.1.part")).unwrap();
    std::os::unix::fs::symlink("new", dir.path().join("a.2.part")).unwrap();
    std::fs::write(dir.path().join("a.3.part"), "file").unwrap();
    let place = Place::of(&dir.path().join("a"), false, "write").unwrap();
    for name in ["a.1.part", "a.2.part", "a.3.part"] {
        let refused = create_new(&place.dir, OsStr::new(name), 0o666).unwrap_err();
        assert_eq!(refused, Errno::EXIST, "{name}");
    }
    assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"old");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn a_part_that_was_exchanged_is_not_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut aside = Aside::create(&path).unwrap();
    aside.write_all(b"ours").unwrap();
    let name = OsString::from("out.1.part");
    aside.part.as_mut().unwrap().name = Some(name.clone());
    std::fs::write(dir.path().join(name), "theirs").unwrap();
    let e = aside.finish().unwrap_err().to_string();
    assert!(e.contains("exchanged the part"), "{e}");
    assert!(!path.exists());
}

/// A writer that is killed leaves nothing behind.
#[test]
fn nothing_is_seen_of_a_file_before_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let seen = || std::fs::read_dir(dir.path()).unwrap().count();
    let path = dir.path().join("out");
    for content in ["first", "second"] {
        let before = seen();
        let mut aside = Aside::create(&path).unwrap();
        aside.write_all(content.as_bytes()).unwrap();
        assert_eq!(seen(), before);
        aside.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        assert_eq!(seen(), 1);
    }
    drop(Aside::create(dir.path().join("other")).unwrap());
    assert_eq!(seen(), 1);
}

/// As where the file system has no files without names.
#[test]
fn a_part_beside_the_file_gets_its_name_when_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let place = Place::of(&path, false, "write").unwrap();
    let part = Part {
        dir: place.dir,
        name: Some("out.1.part".into()),
        last: place.name,
    };
    let file = create_new(&part.dir, OsStr::new("out.1.part"), 0o666).unwrap();
    let mut aside = Aside {
        path: path.clone(),
        part: Some(part),
        file: Some(File::from(file)),
    };
    aside.write_all(b"text").unwrap();
    aside.finish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"text");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn names_of_parts_are_told_from_others() {
    let of = OsStr::new("run.json");
    for name in ["run.json.1.part", "run.json.00ffe0.part"] {
        assert!(is_part(name.as_bytes(), of), "{name}");
    }
    assert!(is_part(part_name(of).as_bytes(), of));
    for name in [
        "run.json..part",
        "run.json.x.part",
        "other.json.1.part",
        "run.json",
    ] {
        assert!(!is_part(name.as_bytes(), of), "{name}");
    }
}
