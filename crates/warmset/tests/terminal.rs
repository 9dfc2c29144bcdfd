//! What stands on a terminal fits it, in color where there may be some; anywhere else there are
//! no escape sequences.

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

const TASKS: &str = "
[[task]]
name = \"a-task-with-a-name-that-is-longer-than-it-should-be\"
wcet = \"4ms\"
period = \"5ms\"
[[task]]
name = \"another-task\"
wcet = \"3ms\"
period = \"8ms\"
[[task]]
name = \"third\"
wcet = \"3ms\"
period = \"8ms\"
";

/// Standard output of a command on a terminal of so many columns.
fn on_terminal(dir: &Path, args: &str, columns: u16, env: &[(&str, &str)]) -> String {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: all pointers are to variables of this function, or null where that is allowed.
    let opened = unsafe {
        libc::openpty(
            &mut ours,
            &mut theirs,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            &size,
        )
    };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the two are open and nobody else's.
    let (ours, theirs) = unsafe {
        (
            std::fs::File::from_raw_fd(ours),
            OwnedFd::from_raw_fd(theirs),
        )
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmset"));
    command
        .current_dir(dir)
        .args(args.split_whitespace())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(theirs)
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("started");
    // The child has the only other end now: reading ends with it.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut ours = ours;
        // The end of a terminal reads as an error of input and output.
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = ours.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..n]);
        }
        bytes
    });
    child.wait().expect("ended");
    String::from_utf8(reader.join().expect("read"))
        .expect("text")
        .replace("\r\n", "\n")
}

fn plain(text: &str) -> String {
    text.replace("\x1b[31m", "")
        .replace("\x1b[32m", "")
        .replace("\x1b[0m", "")
}

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tasks.toml"), TASKS).expect("written");
    let status = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir.path())
        .args([
            "simulate",
            "tasks.toml",
            "-m",
            "2",
            "--policy",
            "p-edf",
            "--for",
            "400ms",
            "--trace",
            "run.wtrace",
        ])
        .stdout(Stdio::null())
        .status()
        .expect("started");
    assert!(matches!(status.code(), Some(0 | 1)));
    dir
}

#[test]
fn answers_fit_the_terminal() {
    let dir = directory();
    for args in [
        "check tasks.toml -m 2",
        "check tasks.toml --platform xeon-l7455 --profile xeon-l7455 --cpmd 1ms --explain",
        "simulate tasks.toml --platform xeon-l7455",
        "trace stats run.wtrace",
        "trace check run.wtrace",
        "study list",
        "reproduce list --paper 003",
        "reproduce 003-fig2",
        "study run ospert10-fig5 --sets 1",
        "profile show xeon-l7455",
        "platform --platform list",
    ] {
        for columns in [60, 80, 120] {
            let text = plain(&on_terminal(dir.path(), args, columns, &[]));
            assert!(!text.is_empty(), "{args}");
            for line in text.lines() {
                let length = line.chars().count();
                assert!(
                    length <= usize::from(columns),
                    "{args} at {columns}: {length}: {line}"
                );
            }
        }
    }
    // All that is there on a wide terminal is there on a narrow one, in more lines.
    let wide = plain(&on_terminal(dir.path(), "trace stats run.wtrace", 200, &[]));
    let narrow = plain(&on_terminal(dir.path(), "trace stats run.wtrace", 60, &[]));
    for head in ["missed", "max tardiness", "preempted"] {
        assert!(
            wide.contains(head) && narrow.contains(head),
            "{head}: {narrow}"
        );
    }
    assert!(narrow.lines().count() > wide.lines().count());
    assert!(
        wide.contains("longer-than-it-should-be") && narrow.contains('…'),
        "{narrow}"
    );
}

#[test]
fn colors_are_for_terminals_alone_and_can_be_turned_off() {
    let dir = directory();
    let args = "simulate tasks.toml -m 1 --policy p-fp --for 200ms";
    let check = "check tasks.toml -m 2 --policy p-edf,g-edf --soft";
    assert!(on_terminal(dir.path(), check, 100, &[]).contains("\x1b[32myes\x1b[0m"));
    let colored = on_terminal(
        dir.path(),
        "simulate tasks.toml -m 1 --policy g-fp --for 200ms",
        100,
        &[],
    );
    assert!(colored.contains("\x1b[31m"), "{colored}");
    for env in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        let text = on_terminal(dir.path(), check, 100, &[env]);
        assert!(
            text.contains("yes") && !text.contains('\x1b'),
            "{env:?}: {text}"
        );
    }
    for args in [args, check] {
        let out = Command::new(env!("CARGO_BIN_EXE_warmset"))
            .current_dir(dir.path())
            .args(args.split_whitespace())
            .env("CLICOLOR_FORCE", "1")
            .output()
            .expect("started");
        assert!(!out.stdout.contains(&0x1b), "{args}");
    }
    on_terminal(dir.path(), &format!("{check} -o answer.txt"), 60, &[]);
    let written = std::fs::read_to_string(dir.path().join("answer.txt")).expect("there");
    assert!(
        written.contains("yes") && !written.contains('\x1b'),
        "{written}"
    );
}
