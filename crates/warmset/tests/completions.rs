//! Completions and manual pages: they are made from the definitions of the verbs and name all of
//! them, and the programs that read them understand them.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use testing::command::Called;
use testing::{NotRun, Outcome};

testing::tests!(
    each_shell_is_told_every_verb,
    bash_completes_verbs_options_and_values,
    each_verb_has_a_page,
    man_shows_the_pages,
    an_unknown_shell_is_refused,
);

fn warmset(dir: &Path, arguments: &str) -> Called {
    Called::within(testing::warmset!(), dir, arguments)
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// The verbs as the help lists them.
fn verbs() -> Vec<String> {
    let help = warmset(Path::new("."), "--help").answer();
    let listed = help.split_once("Commands:\n").expect("a list of verbs").1;
    let lines = listed.lines().take_while(|line| !line.trim().is_empty());
    // Continued lines of a description start further to the right.
    let named = lines.filter(|line| !line.starts_with("   "));
    let words = named.filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<String> = words.filter(|w| *w != "help").map(str::to_owned).collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    verbs
}

fn each_shell_is_told_every_verb() {
    let dir = directory();
    for shell in ["bash", "zsh", "fish"] {
        let script = warmset(dir.path(), &format!("completions {shell}")).answer();
        for verb in verbs() {
            assert!(script.contains(&verb), "{shell} knows no `{verb}`");
        }
        let printed = warmset(dir.path(), &format!("completions {shell} -o script"));
        assert_eq!(printed.answer(), "");
        let written = std::fs::read_to_string(dir.path().join("script")).expect("a script");
        assert_eq!(written, script);
    }
}

/// What bash offers for a command line whose last word is to be completed.
fn offered(dir: &Path, words: &[&str]) -> Vec<String> {
    let line = words.join("' '");
    let last = words.len() - 1;
    let script = format!(
        "source completions; COMP_WORDS=('{line}'); COMP_CWORD={last}; \
         _warmset warmset '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words[last],
        words[last - 1]
    );
    let mut bash = Command::new("bash");
    bash.current_dir(dir).args(["--norc", "-c", &script]);
    Called::of(&mut bash)
        .answer()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn bash_completes_verbs_options_and_values() -> Outcome {
    if Command::new("bash").arg("--version").output().is_err() {
        return Err(NotRun::because("no bash: apt-get install bash"));
    }
    let dir = directory();
    let script = warmset(dir.path(), "completions bash").answer();
    std::fs::write(dir.path().join("completions"), script).expect("written");
    assert_eq!(offered(dir.path(), &["warmset", "sim"]), ["simulate"]);
    assert_eq!(
        offered(dir.path(), &["warmset", "check", "--acc"]),
        ["--accounting"]
    );
    assert_eq!(
        offered(dir.path(), &["warmset", "completions", "z"]),
        ["zsh"]
    );
    Ok(())
}

fn each_verb_has_a_page() {
    let dir = directory();
    let said = warmset(dir.path(), "manual -o man1").answer();
    let pages = std::fs::read_dir(dir.path().join("man1"))
        .expect("pages")
        .count();
    assert!(
        said.starts_with(&format!("{pages} manual pages in man1")),
        "{said}"
    );
    for verb in verbs() {
        let page = dir.path().join(format!("man1/warmset-{verb}.1"));
        let page = std::fs::read_to_string(page).expect("the page of the verb");
        let help = warmset(dir.path(), &format!("{verb} --help")).answer();
        let options = help.split_whitespace().filter(|word| {
            word.strip_prefix("--")
                .is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase()))
        });
        for option in options {
            let escaped = option.replace('-', "\\-");
            assert!(page.contains(&escaped), "{verb}: {option}");
        }
    }
    assert!(dir.path().join("man1/warmset-measure-cpmd.1").is_file());
    assert!(dir.path().join("man1/warmset.1").is_file());
}

fn man_shows_the_pages() -> Outcome {
    if Command::new("man").arg("--version").output().is_err() {
        return Err(NotRun::because("no man: apt-get install man-db"));
    }
    let dir = directory();
    warmset(dir.path(), "manual -o man1").answer();
    for page in std::fs::read_dir(dir.path().join("man1")).expect("pages") {
        let path = page.expect("a page").path();
        let mut man = Command::new("man");
        man.args(["--warnings", "-l"])
            .arg(&path)
            .env("MANPAGER", "cat");
        let shown = Called::of(&mut man);
        assert_eq!(shown.err, "", "{}", path.display());
        assert!(shown.answer().contains("SYNOPSIS"), "{}", path.display());
    }
    Ok(())
}

fn an_unknown_shell_is_refused() {
    let refused = warmset(Path::new("."), "completions tcsh").refusal();
    assert!(refused.contains("bash, zsh, fish"), "{refused}");
}
