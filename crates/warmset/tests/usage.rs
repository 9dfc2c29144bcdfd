//! The command line itself: help, version, and usage errors in one sentence with status 2.

use assert_cmd::Command;

fn warmset() -> Command {
    Command::new(env!("CARGO_BIN_EXE_warmset"))
}

#[test]
fn help_and_version_work() {
    warmset()
        .arg("--version")
        .assert()
        .success()
        .stdout(format!("warmset {}\n", env!("CARGO_PKG_VERSION")));
    let help = warmset()
        .arg("--help")
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let help = String::from_utf8(help).expect("help is text");
    for verb in ["tour", "platform", "measure", "check", "generate", "study"] {
        assert!(help.contains(verb), "{verb} is missing in:\n{help}");
    }
}

#[test]
fn a_slip_gets_one_sentence_with_the_nearest_verb() {
    warmset().arg("chekc").assert().code(2).stdout("").stderr(
        "warmset: unrecognized subcommand 'chekc'; a similar subcommand exists: 'check'; see `warmset --help`\n",
    );
}

#[test]
fn no_verb_shows_the_help_and_fails() {
    let out = warmset().assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8_lossy(&out).contains("Commands:"));
}
