//! Names from files and arguments: what in them acts on a terminal is shown escaped, wherever
//! people read it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A name that clears the screen, renames the window, and turns the direction of writing round.
const NAME: &str = "x\u{1b}[2J\u{1b}]0;y\u{7}\u{9b}31m\u{202e}z";
/// How it is shown.
const SHOWN: &str = "x\\u{1b}[2J\\u{1b}]0;y\\u{7}\\u{9b}31m\\u{202e}z";

fn warmset(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmset"));
    command.args(args).current_dir(dir).stdin(Stdio::null());
    command.output().expect("started")
}

/// Nothing in the text acts on a terminal.
fn is_plain(what: &str, text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let acts = |c: char| model::shown::is_hidden(c) && c != '\n';
    if let Some(at) = text.find(acts) {
        panic!(
            "{what}: {:?}",
            &text[at..].chars().take(40).collect::<String>()
        );
    }
    text
}

/// A task set with such names; in TOML they are escaped.
fn set(dir: &Path) {
    let name = NAME
        .replace('\u{1b}', "\\u001b")
        .replace('\u{7}', "\\u0007");
    let task =
        |name: &str| format!("[[task]]\nname = \"{name}\"\nwcet = \"3ms\"\nperiod = \"4ms\"\n");
    let text = task(&name) + &task("b") + &task("c");
    std::fs::write(dir.join("set.toml"), text).unwrap();
}

#[test]
fn names_of_tasks_do_not_act_on_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    set(dir.path());
    let trace = ["--trace", "run.wtrace"];
    for command in [
        "check set.toml -m 2",
        "check set.toml -m 3 --policy p-edf",
        "check set.toml -m 2 --format json",
        "simulate set.toml --policy g-edf -m 2 --for 40ms",
        "simulate set.toml --policy g-edf -m 2 --for 40ms --format json",
        "trace check run.wtrace",
        "trace stats run.wtrace",
        "trace stats run.wtrace --format json",
        "trace export run.wtrace --to text",
        "trace export run.wtrace --to text --rows tasks",
        "trace export run.wtrace --to csv",
        "trace export run.wtrace --to svg",
        "trace export run.wtrace --to svg --rows tasks",
        "convert set.toml",
    ] {
        let mut args: Vec<&str> = command.split(' ').collect();
        if command.starts_with("simulate") {
            args.extend(trace);
        }
        let output = warmset(dir.path(), &args);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command}: {output:?}"
        );
        is_plain(command, &output.stdout);
        is_plain(command, &output.stderr);
    }
    let shown = warmset(dir.path(), &["trace", "stats", "run.wtrace"]);
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains(SHOWN),
        "{shown:?}"
    );
    let drawn = warmset(
        dir.path(),
        &["trace", "export", "run.wtrace", "--to", "svg"],
    );
    assert!(String::from_utf8_lossy(&drawn.stdout).contains(SHOWN));
}

#[test]
fn what_is_refused_is_quoted_escaped_and_short() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    let long = format!("\\u001b[2J{}", "k".repeat(5000));
    file("key.toml", format!("\"{long}\" = 1\n"));
    file(
        "name.toml",
        format!("[[task]]\nname = \"{long}\"\n").repeat(2),
    );
    file(
        "time.toml",
        format!("[[task]]\nwcet = \"{long}\"\nperiod = \"4ms\"\n"),
    );
    file(
        "line.jsonl",
        format!("{{\"m\":2,\"tasks\":[{{\"{long}\":1}}]}}\n"),
    );
    file("type.jsonl", format!("{{\"m\":\"{long}\",\"tasks\":[]}}\n"));
    file(NAME, "x".to_owned());
    let argument = format!("{NAME}{}", "k".repeat(5000));
    for args in [
        vec!["check", "key.toml", "-m", "2"],
        vec!["check", "name.toml", "-m", "2"],
        vec!["check", "time.toml", "-m", "2"],
        vec!["check", "--batch", "line.jsonl", "--tests", "GFB"],
        vec!["check", "--batch", "type.jsonl", "--tests", "GFB"],
        vec!["check", NAME, "-m", "2"],
        vec!["check", &argument, "-m", "2"],
        vec!["check", "key.toml", "-m", &argument],
        vec!["check", "key.toml", "--platform", &argument],
        vec!["check", "key.toml", "-m", "2", "--policy", &argument],
        vec![&argument],
        vec!["study", "run", &argument],
        vec!["trace", "check", NAME],
        vec!["generate", "--periods", &argument],
        vec!["report", &argument],
    ] {
        let output = warmset(dir.path(), &args);
        let said = is_plain(args[0], &output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!said.contains(&"k".repeat(81)), "{said}");
        assert!(said.chars().count() < 700, "{said}");
    }
}

/// Pages and pictures of a directory that holds such names.
#[test]
fn pages_do_not_act_on_anything() {
    let dir = tempfile::tempdir().unwrap();
    let site = dir.path().join("site");
    std::fs::create_dir_all(site.join("tasks")).unwrap();
    set(&site.join("tasks"));
    std::fs::rename(
        site.join("tasks/set.toml"),
        site.join(format!("tasks/{NAME}.toml")),
    )
    .unwrap();
    let made = warmset(
        dir.path(),
        &[
            "platform",
            "--platform",
            "xeon-l7455",
            "-o",
            "site/platform.toml",
        ],
    );
    assert!(made.status.success(), "{made:?}");
    let platform = std::fs::read_to_string(site.join("platform.toml")).unwrap();
    let (before, behind) = platform.split_once("name = \"").unwrap();
    let name = NAME
        .replace('\u{1b}', "\\u001b")
        .replace('\u{7}', "\\u0007");
    std::fs::write(
        site.join("platform.toml"),
        format!("{before}name = \"{name}{behind}"),
    )
    .unwrap();
    for args in [
        vec!["report", "site", "--figures", "figures"],
        vec!["report", "site", "-o", "site/index.html"],
        vec!["platform", "--platform", "site/platform.toml"],
        vec![
            "platform",
            "--platform",
            "site/platform.toml",
            "-o",
            "site/platform.svg",
        ],
    ] {
        let output = warmset(dir.path(), &args);
        assert!(output.status.success(), "{output:?}");
        is_plain(args[0], &output.stdout);
        is_plain(args[0], &output.stderr);
    }
    let page = std::fs::read(site.join("index.html")).unwrap();
    let page = is_plain("the page", &page);
    assert!(
        page.matches(SHOWN).count() > 1,
        "of tasks and of the platform"
    );
    is_plain(
        "the picture",
        &std::fs::read(site.join("platform.svg")).unwrap(),
    );
    for figure in std::fs::read_dir(dir.path().join("figures")).unwrap() {
        let figure = figure.unwrap().path();
        is_plain(
            &figure.display().to_string(),
            &std::fs::read(&figure).unwrap(),
        );
    }
}
