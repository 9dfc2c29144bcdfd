//! `warmset color` from end to end: what is refused. What it finds on this machine is in
//! `permitted.rs`.

use testing::command::Called;
use testing::warmset;

fn refusal(args: &[&str]) -> String {
    Called::of(warmset!().arg("color").args(args)).refusal()
}

#[test]
fn what_does_not_exist_is_refused() {
    assert!(refusal(&["find", "--level", "9"]).contains("level-9"));
    assert!(refusal(&["selftest", "--cpu", "8000"]).contains("--cpu"));
    assert!(refusal(&["find", "--sort", "12"]).contains("unit"));
}

#[test]
fn who_asks_where_nobody_serves_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("none.sock");
    let socket = socket.to_str().unwrap();
    let e = refusal(&["list", "--socket", socket]);
    assert!(e.contains("none.sock") && e.contains("color serve"), "{e}");
    assert!(refusal(&["grant", "root", "0-3", "--socket", socket]).contains("uid:NUMBER"));
    assert!(refusal(&["grant", "uid:0", "3-1", "--socket", socket]).contains("set of colors"));
}

#[test]
fn what_cannot_be_run_in_colors_is_refused() {
    assert!(
        refusal(&["exec", "--colors", "0", "--", "no-such-program"])
            .contains("there is no program")
    );
    assert!(refusal(&["exec", "--colors", "3-1", "--", "sort"]).contains("set of colors"));
    assert!(
        refusal(&[
            "exec",
            "--colors",
            "0",
            "--parts",
            "heap,ears",
            "--",
            "sort"
        ])
        .contains("stacks")
    );
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("none.sock");
    let e = refusal(&[
        "exec",
        "--colors",
        "0",
        "--socket",
        socket.to_str().unwrap(),
        "--",
        "sort",
    ]);
    assert!(e.contains("none.sock") && e.contains("color serve"), "{e}");
}

/// All that follows the program's name is the program's, with `--` before it or without; a
/// misspelled option of ours is not taken for a program.
#[test]
fn arguments_of_a_program_need_no_dashes_before_them() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("none.sock");
    let socket = socket.to_str().unwrap();
    for arguments in [
        &["sort", "-n", "--output", "x", "--", "--colors"][..],
        &["--", "sort", "--help"],
    ] {
        let own = ["exec", "--colors", "0", "--strict", "--socket", socket];
        // Understood: the program is there, and only the server is not.
        let e = refusal(&[&own[..], arguments].concat());
        assert!(e.contains("none.sock"), "{e}");
    }
    let e = refusal(&["exec", "--colors", "0", "--strikt", "sort"]);
    assert!(e.contains("--strikt"), "{e}");
    let e = refusal(&["exec", "--colors", "0"]);
    assert!(e.contains("PROGRAM"), "{e}");
}

#[test]
fn experiments_that_cannot_be_are_refused_before_anything_is_measured() {
    let e = refusal(&["experiment", "multicore", "--hasten", "1000"]);
    assert!(e.contains("--hasten"), "{e}");
    let e = refusal(&["experiment", "multicore", "--execution", "most"]);
    assert!(e.contains("--execution"), "{e}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let e = refusal(&["experiment", "isolation", "-o", file.to_str().unwrap()]);
    assert!(e.contains("file"), "{e}");
}
