//! `warmset color` from end to end: what is found, what the self-test answers, and what is refused.

use assert_cmd::Command;

fn color(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("warmset")
        .unwrap()
        .arg("color")
        .args(args)
        .assert()
}

/// Standard error of a call that could not be done.
fn refusal(args: &[&str]) -> String {
    let out = color(args).code(2).get_output().clone();
    assert!(out.stdout.is_empty(), "a refusal prints no result");
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    text
}

#[test]
fn every_level_is_tested_or_says_why_not() {
    let out = color(&["selftest", "--repeats", "3", "--format", "json"])
        .get_output()
        .clone();
    let status = out.status.code().unwrap();
    assert!(status < 2, "{}", String::from_utf8_lossy(&out.stderr));
    let seen: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let levels = seen["levels"].as_array().unwrap();
    assert!(!levels.is_empty());
    let mut all_act = true;
    let mut tested = 0;
    for level in levels {
        match level["result"].as_str().unwrap() {
            "unsure" => {
                tested += 1;
                all_act = false;
                assert!(level["reason"].as_str().unwrap().contains("for sure"));
            }
            "no-colors" => assert!(!level["reason"].as_str().unwrap().is_empty()),
            "tested" => {
                tested += 1;
                all_act &= level["acts"].as_bool().unwrap();
                assert!(
                    level["points"].as_array().unwrap().len()
                        > level["cache"]["ways"].as_u64().unwrap() as usize
                );
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(status == 0, tested > 0 && all_act, "the status is the answer");
}

#[test]
fn a_first_level_has_one_color() {
    let machine = machine::this_machine().unwrap();
    let cpu = machine.platform.usable().lowest().unwrap();
    let cache = machine
        .platform
        .data_cache(1, cpu)
        .and_then(|c| Some((c.size?, c.ways?)));
    if cache.is_none_or(|(size, ways)| size.get() / u64::from(ways) > 4096) {
        eprintln!("skipped: this machine's first level is not known, or has colors");
        return;
    }
    let e = refusal(&["find", "--level", "1"]);
    assert!(e.contains("one color"), "{e}");
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
    assert!(refusal(&["exec", "--colors", "0", "--", "no-such-program"]).contains("there is no program"));
    assert!(refusal(&["exec", "--colors", "3-1", "--", "sort"]).contains("set of colors"));
    assert!(refusal(&["exec", "--colors", "0", "--parts", "heap,ears", "--", "sort"]).contains("stacks"));
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

/// All that follows the program's name is the program's, with `--` before it or without; a misspelled
/// option of ours is not taken for a program.
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
