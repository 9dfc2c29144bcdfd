//! What scripts share: quoting, and the lines by which tasks are named.

use super::carried::Placed;
use model::shown;

/// A word that the shell takes as it is.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A text that ends with the line that it stands in: for comments.
pub(super) fn comment(text: &str) -> String {
    shown::sentence(text)
}

/// A command, as the shell takes it.
pub(super) fn command(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// The end of a script: `start` starts the programs that the plan names, `NAME=THREAD` places
/// threads that run. `place` and `start` are what follows these functions of the script by task.
pub(super) fn body(
    tasks: &[Placed<'_>],
    place: impl Fn(&Placed<'_>) -> String,
    start: impl Fn(&Placed<'_>) -> String,
) -> String {
    let has_programs = tasks.iter().any(|task| task.command.is_some());
    let usage = match has_programs {
        true => "usage: $0 start | NAME=THREAD...",
        false => "usage: $0 NAME=THREAD...",
    };
    let mut text = format!(
        "\nif [ $# -eq 0 ]; then\n    echo \"{usage}\" >&2\n    exit 2\nfi\n\
         for given in \"$@\"; do\n    case ${{given%=*}} in\n"
    );
    for task in tasks {
        text += &format!(
            "    {}) place {} \"${{given##*=}}\" ;;\n",
            quoted(&task.name),
            place(task)
        );
    }
    // Last: a task may have this name.
    if has_programs {
        text += "    start)\n";
        for task in tasks {
            if let Some(words) = task.command {
                text += &format!("        start {} {}\n", start(task), command(words));
            }
        }
        text += "        ;;\n";
    }
    text += "    *)\n        echo \"$0: there is no task ${given%=*} in this plan\" >&2\n        \
             exit 2\n        ;;\n    esac\ndone\n";
    if has_programs {
        text += "wait\n";
    }
    text
}

/// What holds for every export that schedules programs.
pub(super) fn notes(tasks: &[Placed<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let joins = |task: &&Placed<'_>| matches!(task.workload, Some(model::Workload::Program { .. }));
    if let Some(task) = tasks.iter().find(joins) {
        notes.push(format!(
            "task {}: its program asks `warmset run` for its jobs, and finds none there: make it \
             wait for its releases by itself",
            task.name
        ));
    }
    let unknowing =
        |task: &&Placed<'_>| matches!(task.workload, Some(model::Workload::Exec { .. }));
    if let Some(task) = tasks.iter().find(unknowing) {
        notes.push(format!(
            "task {}: its program has to wait for its releases by itself",
            task.name
        ));
    }
    let without: Vec<&str> = tasks
        .iter()
        .filter(|task| task.command.is_none())
        .map(|task| task.name.as_str())
        .collect();
    if !without.is_empty() && without.len() < tasks.len() {
        notes.push(format!("no program is known for {}", without.join(", ")));
    }
    notes
}
