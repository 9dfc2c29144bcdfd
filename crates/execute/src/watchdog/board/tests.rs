//! What a run has made is taken away, and processes are not mistaken for others.

use super::*;
use std::process::{Command, Stdio};

#[test]
fn places_that_nobody_has_written_to_are_not_looked_at() {
    let board = BoardRef::alone().unwrap();
    assert!(board.beats().is_empty());
    board.beat(2);
    assert_eq!(board.beats().len(), 3);
    board.due(0, Some(1));
    assert_eq!(board.beats().len(), 3);
    board.slack(MAX_BEATS - 1);
    board.beat(MAX_BEATS);
    assert_eq!(board.beats().len(), MAX_BEATS);
}

#[test]
fn what_was_made_is_taken_away_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let [file, directory, other, later] =
        ["file", "directory", "other", "later"].map(|name| dir.path().join(name));
    for path in [&file, &other, &later] {
        std::fs::write(path, "").unwrap();
    }
    std::fs::create_dir(&directory).unwrap();
    let board = BoardRef::alone().unwrap();
    let noted = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        let there = std::fs::symlink_metadata(path).ok();
        let (device, inode) = there.map_or((1, 1), |t| (t.dev(), t.ino()));
        let mut text = format!("{device:016x}{inode:016x}").into_bytes();
        text.extend_from_slice(path.as_os_str().as_bytes());
        text.push(0);
        board.made(&text)
    };
    assert!(
        [&file, &directory, &later, &dir.path().join("gone")]
            .iter()
            .all(|path| noted(path))
    );
    // Somebody else has made another one there meanwhile.
    let kept = dir.path().join("kept");
    std::fs::rename(&later, &kept).unwrap();
    std::fs::write(&later, "").unwrap();
    board.take_away();
    let there = [&file, &directory, &other, &later, &kept].map(|path| path.exists());
    assert_eq!(there, [false, false, true, true, true]);
    // There is an end to what can be remembered, and it is told.
    assert!((0..PATHS).any(|_| !noted(&other)));
    // Where the record has gone, somebody else has taken everything away.
    board.has_record(&dir.path().join("record"));
    board.take_away();
    assert!(other.exists());
    std::fs::write(dir.path().join("record"), "").unwrap();
    board.take_away();
    assert!(!other.exists() && !dir.path().join("record").exists());
}

#[test]
fn processes_are_known_until_they_are_forgotten_and_never_mistaken() {
    let child = || {
        Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    };
    let (mut ours, guest, stranger) = (child(), child(), child());
    let id = |child: &std::process::Child| child.id() as i32;
    let board = BoardRef::alone().unwrap();
    board.mark();
    let home = Thread(id(&guest)).processors().unwrap();
    let identity = |child: &std::process::Child| Identity::of(id(child)).unwrap();
    board.know(identity(&ours), None).unwrap();
    board.know(identity(&guest), Some(&home)).unwrap();
    board.know(identity(&stranger), None).unwrap();
    board.forget(identity(&stranger));
    // Somebody who had its number before it.
    let earlier = Identity {
        born: identity(&stranger).born - 1,
        ..identity(&stranger)
    };
    board.know(earlier, None).unwrap();
    // SAFETY: a child of ours.
    unsafe { libc::kill(id(&guest), libc::SIGSTOP) };
    board.lower_all();
    // No process carries this board's mark.
    assert_eq!(board.kill_programs(None), 1);
    assert!(!ours.wait().unwrap().success());
    // A process that was just started or let go on need not sleep yet; whoever sleeps was neither
    // stopped nor killed.
    let sleeps = |child: &std::process::Child| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let state = procfs::state(id(child)).map(|s| s.0);
            if state == Some(b'S') || std::time::Instant::now() > until {
                return state;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    assert_eq!(
        (sleeps(&guest), sleeps(&stranger)),
        (Some(b'S'), Some(b'S'))
    );
    for mut child in [guest, stranger] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
