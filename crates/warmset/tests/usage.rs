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
    warmset().arg("simulte").assert().code(2).stdout("").stderr(
        "warmset: unrecognized subcommand 'simulte'; a similar subcommand exists: 'simulate'; see `warmset --help`\n",
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
        warmset()
            .args(args)
            .assert()
            .code(2)
            .stdout("")
            .stderr(stderr);
    }
}

#[test]
fn no_verb_shows_the_help_and_fails() {
    let out = warmset().assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8_lossy(&out).contains("Commands:"));
}

fn help_of(words: &[String], columns: usize) -> String {
    let out = warmset()
        .args(words)
        .arg("--help")
        .env("COLUMNS", columns.to_string())
        .assert()
        .success();
    String::from_utf8(out.get_output().stdout.clone()).expect("help is text")
}

/// Every verb with its subcommands, as the help lists them.
fn verbs(words: &[String], all: &mut Vec<Vec<String>>) {
    let help = help_of(words, 100);
    let listed = help
        .lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| l.starts_with("  "))
        .filter(|l| !l.starts_with("   "));
    for verb in listed.filter_map(|l| l.split_whitespace().next()) {
        if verb != "help" {
            let mut below = words.to_vec();
            below.push(verb.to_owned());
            verbs(&below, all);
        }
    }
    all.push(words.to_vec());
}

/// A line of a paragraph ends where the next word would not fit, and nowhere else.
#[test]
fn help_is_wrapped_once() {
    let mut all = Vec::new();
    verbs(&[], &mut all);
    assert!(all.len() > 30, "{all:?}");
    for words in &all {
        for columns in [60, 100] {
            let help = help_of(words, columns);
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let (line, next) = (pair[0], pair[1]);
                let is_text = |l: &str| l.starts_with(|c: char| c.is_alphanumeric());
                if !is_text(line) || !is_text(next) {
                    continue;
                }
                let word = next.split_whitespace().next().unwrap_or_default();
                let with = line.trim_end().chars().count() + 1 + word.chars().count();
                assert!(
                    with > columns,
                    "{words:?} at {columns} columns breaks after {line:?}, and {word:?} fits"
                );
            }
        }
    }
}
