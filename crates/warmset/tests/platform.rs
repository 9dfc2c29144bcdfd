//! `warmset platform` from end to end: this machine, built-in platforms, files, pictures, and what
//! is refused.

use std::fs;
use testing::command::Called;
use testing::warmset;

fn warmset(args: &[&str]) -> Called {
    Called::of(warmset!().arg("platform").args(args))
}
fn stdout(args: &[&str]) -> String {
    warmset(args).with_status(0)
}
fn refusal(args: &[&str]) -> String {
    warmset(args).refusal()
}

#[test]
fn this_machine_is_shown_with_facts_and_capabilities() {
    let text = stdout(&[]);
    for word in [
        "this-machine",
        "processor",
        "kernel",
        "preemption",
        "tick rate",
        "governor",
        "hypervisor",
        "real-time priority",
        "memory locking",
        "tracefs",
        "BPF",
        "performance counters",
        "pagemap",
        "resctrl",
        "sched_ext",
        "engine in the kernel",
    ] {
        assert!(text.contains(word), "{word}\n{text}");
    }
}

#[test]
fn json_is_one_document() {
    let machine: serde_json::Value = serde_json::from_str(&stdout(&["--format", "json"])).unwrap();
    assert!(
        !machine["platform"]["processors"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(machine["capabilities"].as_array().unwrap().len(), 9);
    let xeon: serde_json::Value =
        serde_json::from_str(&stdout(&["--platform", "xeon-l7455", "--format", "json"])).unwrap();
    assert_eq!(xeon["platform"]["processors"].as_array().unwrap().len(), 24);
    let list: serde_json::Value =
        serde_json::from_str(&stdout(&["--platform", "list", "--format", "json"])).unwrap();
    assert_eq!(list["platforms"].as_array().unwrap().len(), 8);
}

#[test]
fn the_xeon_is_drawn_with_what_was_assumed() {
    insta::assert_snapshot!(stdout(&["--platform", "xeon-l7455"]));
}

#[test]
fn every_name_that_is_listed_is_shown() {
    let list = stdout(&["--platform", "list"]);
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap().replace("=N", "=8");
        assert!(stdout(&["--platform", &name]).starts_with(&name), "{name}");
    }
}

#[test]
fn a_platform_goes_through_a_file_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("xeon.toml");
    let file = file.to_str().unwrap();
    let built_in = stdout(&["--platform", "xeon-l7455", "-o", file]);
    assert_eq!(stdout(&["--platform", file]), built_in);
    // This machine too.
    let own = dir.path().join("own.toml");
    warmset(&["-o", own.to_str().unwrap()]).with_status(0);
    assert!(stdout(&["--platform", own.to_str().unwrap()]).starts_with("this-machine"));
}

#[test]
fn a_picture_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("symmetric.svg");
    warmset(&["--platform", "symmetric:m=8", "-o", file.to_str().unwrap()]).with_status(0);
    let svg = fs::read_to_string(file).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for cpu in 0..9 {
        assert_eq!(svg.contains(&format!(">P{cpu}<")), cpu < 8, "P{cpu}");
    }
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    assert!(refusal(&["--platform", "xeon-l7445"]).contains("did you mean `xeon-l7455`?"));
    assert!(refusal(&["--platform", "symmetric:m=0"]).contains("from 1 to 8192"));
    assert!(
        refusal(&["--platform", "missing.toml"]).contains("missing.toml: cannot read the file")
    );
    assert!(refusal(&["-o", "machine.pdf"]).contains("end the name in `.toml`"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("board.toml");
    for (text, cause) in [
        ("", "the file is empty"),
        (
            "version = 1\nname = \"b\"\n\0",
            "line 3: the file holds a NUL byte",
        ),
        (
            "version = 1\nname = \"b\"\nprocesors = []\n",
            "line 3: unknown key `procesors`; did you mean `processors`?",
        ),
        (
            "version = 1\nname = \"b\"\nprocessors = []\n",
            "the platform has no processors",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let said = refusal(&["--platform", file.to_str().unwrap()]);
        assert!(said.contains(cause), "{said}");
    }
}

#[test]
fn nothing_is_left_behind_where_a_file_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let blocker = dir.path().join("file");
    fs::write(&blocker, "kept").unwrap();
    let said = refusal(&["--picture", blocker.join("machine.svg").to_str().unwrap()]);
    assert!(
        said.contains("machine.svg") || said.contains("file"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&blocker).unwrap(), "kept");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
