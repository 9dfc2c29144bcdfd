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
fn usage_errors_point_to_the_help_of_their_verb() {
    for (args, said) in [
        (
            &["generate", "--cap", "-1"][..],
            "`--cap` takes no negative number, and `-1` is one; see `warmset generate --help`",
        ),
        (
            &["simulate", "set.toml", "--seed", "-12"],
            "`--seed` takes no negative number, and `-12` is one; see `warmset simulate --help`",
        ),
        (
            &["trace", "check", "-5"],
            "a negative number such as `-5` has no meaning here; see `warmset trace check --help`",
        ),
        (
            &["trace", "check", "run.wtrace", "--tolerace", "1ms"],
            "unexpected argument '--tolerace' found; a similar argument exists: '--tolerance'; see `warmset trace check --help`",
        ),
    ] {
        let stderr = format!("warmset: {said}\n");
        warmset().args(args).assert().code(2).stdout("").stderr(stderr);
    }
}

#[test]
fn no_verb_shows_the_help_and_fails() {
    let out = warmset().assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8_lossy(&out).contains("Commands:"));
}
