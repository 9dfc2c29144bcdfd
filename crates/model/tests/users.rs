//! Files in directories that two users may write to: what one of them plants there, the other
//! neither follows nor overwrites. The second user is played by children of this process, for which
//! it has to be root.

use model::files::{self, Aside};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testing::{NotRun, Outcome};

/// The second user: one with no rights of its own on any system.
const OTHER: u32 = 65534;

/// A directory like `/tmp`, and a file of root's that nobody else may read.
struct Shared {
    _dir: tempfile::TempDir,
    tmp: PathBuf,
    secret: PathBuf,
}

impl Shared {
    fn new() -> Result<Self, NotRun> {
        let dir = tempfile::tempdir().unwrap();
        if fs::metadata(dir.path()).unwrap().uid() != 0 {
            return Err(NotRun::because("playing a second user takes root"));
        }
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (tmp, secret) = (dir.path().join("tmp"), dir.path().join("secret"));
        fs::create_dir(&tmp).unwrap();
        fs::set_permissions(&tmp, fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(&secret, "root's own").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let shared = Shared {
            _dir: dir,
            tmp,
            secret,
        };
        shared.by_other("true").map_err(|why| {
            NotRun::because(format!("no process can be another user's here: {why}"))
        })?;
        Ok(shared)
    }

    /// Runs a script of the shell as the second user, in the shared directory.
    fn by_other(&self, script: &str) -> Result<(), String> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).current_dir(&self.tmp);
        let done = shell.uid(OTHER).gid(OTHER).stdin(Stdio::null()).output();
        match done {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
            Err(e) => Err(e.to_string()),
        }
    }

    fn plant(&self, script: &str) {
        self.by_other(script)
            .unwrap_or_else(|why| panic!("{script}: {why}"));
    }

    fn is_untouched(&self) {
        assert_eq!(fs::read(&self.secret).unwrap(), b"root's own");
    }
}

/// The names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The name of a part used to be known in advance, and what had it was opened.
fn a_link_under_the_name_of_a_part_leads_nowhere() -> Outcome {
    let shared = Shared::new()?;
    let pid = std::process::id();
    shared.plant(&format!(
        "ln -s ../secret out.{pid}.part; ln -s ../made log.{pid}.part; ln -s ../secret trace.{pid}.part"
    ));
    files::write(&shared.tmp.join("out"), "text").unwrap();
    files::write(&shared.tmp.join("log"), "text").unwrap();
    files::begin(&shared.tmp.join("trace"))
        .unwrap()
        .write_all(b"text")
        .unwrap();
    shared.is_untouched();
    assert!(!shared.tmp.join("../made").exists());
    for file in ["out", "log", "trace"] {
        let found = fs::symlink_metadata(shared.tmp.join(file)).unwrap();
        assert!(found.is_file() && found.uid() == 0, "{file}");
        assert_eq!(fs::read(shared.tmp.join(file)).unwrap(), b"text");
    }
    Ok(())
}

fn a_link_of_another_user_is_refused_wherever_it_stands() -> Outcome {
    let shared = Shared::new()?;
    shared.plant("ln -s ../secret out; ln -s .. up; ln -s ../made new");
    for path in ["out", "new", "up/secret", "up/file", "up/dir/file"] {
        let path = shared.tmp.join(path);
        for refused in [
            files::write(&path, "text").unwrap_err(),
            files::begin(&path).map(drop).unwrap_err(),
            files::can_be_written(&path)
                .map_or_else(|e| e, |()| panic!("{} is taken", path.display())),
        ] {
            let sentence = refused.to_string();
            if !sentence.contains("there is no directory") {
                assert!(sentence.contains("belongs to another user"), "{sentence}");
                assert!(sentence.ends_with("choose another one"), "{sentence}");
            }
        }
    }
    assert!(files::make_dir(&shared.tmp.join("up/dir")).is_err());
    shared.is_untouched();
    assert_eq!(names(&shared.tmp), ["new", "out", "up"]);
    assert_eq!(names(&shared.tmp.join("..")), ["secret", "tmp"]);
    Ok(())
}

/// The own links of root, and files that the other user owns, are no trap.
fn own_links_are_followed_and_files_of_others_replaced() -> Outcome {
    let shared = Shared::new()?;
    let link = shared.tmp.join("link");
    symlink("../secret", &link).unwrap();
    files::write(&link, "new").unwrap();
    assert!(link.is_symlink());
    let secret = fs::metadata(&shared.secret).unwrap();
    assert_eq!((secret.mode() & 0o777, secret.uid()), (0o600, 0));
    assert_eq!(fs::read(&shared.secret).unwrap(), b"new");
    shared.plant("echo theirs > file; chmod 666 file; ln file kept");
    files::write(&shared.tmp.join("file"), "ours").unwrap();
    let file = fs::metadata(shared.tmp.join("file")).unwrap();
    assert_eq!((file.uid(), file.mode() & 0o022), (0, 0));
    assert_eq!(fs::read(shared.tmp.join("kept")).unwrap(), b"theirs\n");
    Ok(())
}

/// Opening a FIFO for writing waits for a reader, who would read what is root's.
fn a_pipe_of_another_user_is_refused() -> Outcome {
    let shared = Shared::new()?;
    shared.plant("mkfifo out");
    for refused in [
        files::write(&shared.tmp.join("out"), "text").unwrap_err(),
        files::can_be_written(&shared.tmp.join("out")).unwrap_err(),
    ] {
        let sentence = refused.to_string();
        assert!(
            sentence.contains("pipe or socket belongs to another user"),
            "{sentence}"
        );
    }
    Ok(())
}

/// Only parts of one's own are cleared away, and none that others keep open stops anybody.
fn parts_of_another_user_stay_and_stop_nobody() -> Outcome {
    let shared = Shared::new()?;
    shared.plant("echo theirs > out.1.part; mkfifo out.2.part; ln -s ../secret out.3.part");
    fs::write(shared.tmp.join("out.4.part"), "left behind").unwrap();
    files::write(&shared.tmp.join("out"), "text").unwrap();
    assert_eq!(
        names(&shared.tmp),
        ["out", "out.1.part", "out.2.part", "out.3.part"]
    );
    shared.is_untouched();
    Ok(())
}

/// In a directory without the sticky bit the other user can exchange anything; never what it leads
/// to.
fn a_link_that_another_user_plants_meanwhile_is_replaced() -> Outcome {
    let shared = Shared::new()?;
    fs::set_permissions(&shared.tmp, fs::Permissions::from_mode(0o777)).unwrap();
    let path = shared.tmp.join("out");
    let mut aside = Aside::create(&path).unwrap();
    aside.write_all(b"text").unwrap();
    shared.plant("ln -s ../secret out; for part in out.?*; do ln -sf ../secret $part; done");
    aside.finish().unwrap();
    shared.is_untouched();
    assert!(!path.is_symlink());
    assert_eq!(fs::read(path).unwrap(), b"text");
    Ok(())
}

testing::tests!(
    a_link_under_the_name_of_a_part_leads_nowhere,
    a_link_of_another_user_is_refused_wherever_it_stands,
    own_links_are_followed_and_files_of_others_replaced,
    a_pipe_of_another_user_is_refused,
    parts_of_another_user_stay_and_stop_nobody,
    a_link_that_another_user_plants_meanwhile_is_replaced,
);
