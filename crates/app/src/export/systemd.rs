//! Units of systemd: a service for each task with a program, a drop-in for each without, and a
//! target that starts them together.
//!
//! Forms: `systemd.exec(5)` (CPUAffinity, CPUSchedulingPolicy, CPUSchedulingPriority),
//! `systemd.service(5)` (quoting of ExecStart), `systemd.unit(5)` (names, drop-ins, specifiers).

use super::carried::{Carried, Placed};
use super::chrt::full;
use super::shell::{comment, notes};
use super::{Exported, File};
use model::{Error, Result, Rights, Workload};

const TARGET: &str = "warmset-plan.target";
/// A name of a unit has at most 255 bytes.
const LONGEST: usize = 255;

/// The units.
///
/// # Errors
/// A name that is too long for a unit; no working directory.
pub(super) fn units(carried: &Carried<'_>) -> Result<Exported> {
    let dir = std::env::current_dir()
        .map_err(|e| Error::io(".", "read the working directory", &e))?
        .display()
        .to_string();
    let mut files = Vec::new();
    let mut all = full(carried);
    let (mut services, mut rights) = (Vec::new(), Vec::new());
    for task in &carried.tasks {
        let unit = unit_of(task)?;
        let scheduling = format!(
            "CPUAffinity={}\nCPUSchedulingPolicy=fifo\nCPUSchedulingPriority={}\n",
            task.cpus,
            task.priority.unwrap_or(1)
        );
        let Some(words) = task.command else {
            all.push(format!(
                "task {}: it names no program; its part is a drop-in for a unit {unit} of yours",
                comment(&task.name)
            ));
            files.push(File {
                name: format!("{unit}.d/50-warmset-plan.conf"),
                text: format!("[Service]\n{scheduling}"),
            });
            continue;
        };
        let user = match task.workload {
            Some(
                Workload::Exec {
                    rights: Rights::User(user),
                    ..
                }
                | Workload::Program {
                    rights: Rights::User(user),
                    ..
                },
            ) => format!("User={}\n", escaped(user)),
            _ => {
                rights.push(comment(&task.name));
                String::new()
            }
        };
        files.push(File {
            name: unit.clone(),
            text: format!(
                "[Unit]\nDescription=Task {} of a plan of Warmset under {}\nPartOf={TARGET}\n\n\
                 [Service]\nType=exec\nWorkingDirectory={}\nExecStart={}\n{user}{scheduling}\n\
                 [Install]\nWantedBy={TARGET}\n",
                escaped(&comment(&task.name)),
                carried.policy,
                escaped(&dir),
                exec_start(words, &dir)
            ),
        });
        services.push(unit);
    }
    if !services.is_empty() {
        files.push(File {
            name: TARGET.to_owned(),
            text: format!(
                "[Unit]\nDescription=A plan of Warmset under {}\nWants={}\n\n\
                 [Install]\nWantedBy=multi-user.target\n",
                carried.policy,
                services.join(" ")
            ),
        });
    }
    if !rights.is_empty() {
        all.push(format!(
            "units of the system run as root where they name no `User=`: {}",
            rights.join(", ")
        ));
    }
    all.extend(notes(&carried.tasks));
    Ok(Exported { files, notes: all })
}

/// The name of a task's service: what a name of a unit may not have is escaped as systemd does.
fn unit_of(task: &Placed<'_>) -> Result<String> {
    let mut name = String::new();
    for (place, byte) in task.name.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric()
            || matches!(byte, b':' | b'_' | b'-')
            || (byte == b'.' && place > 0);
        match is_plain {
            true => name.push(char::from(byte)),
            false => name += &format!("\\x{byte:02x}"),
        }
    }
    let unit = format!("{name}.service");
    match unit.len() <= LONGEST {
        true => Ok(unit),
        false => Err(
            Error::new("its name is too long for a unit of systemd, which has 255 bytes")
                .at(format!("task {}", task.name))
                .remedy("give it a shorter one"),
        ),
    }
}

/// A text in which `%` is no specifier.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

/// A command line: the program by its whole path, as systemd asks for, every word quoted.
fn exec_start(words: &[String], dir: &str) -> String {
    let mut all = Vec::with_capacity(words.len());
    for (place, word) in words.iter().enumerate() {
        let is_relative = place == 0 && word.contains('/') && !word.starts_with('/');
        let word = match is_relative {
            true => format!("{dir}/{}", word.trim_start_matches("./")),
            false => word.clone(),
        };
        let mut text = String::new();
        for c in word.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                '%' => text += "%%",
                // Variables are not expanded in the path of the program, and `$$` is not either.
                '$' if place > 0 => text += "$$",
                '\n' => text += "\\n",
                '\t' => text += "\\t",
                c => text.push(c),
            }
        }
        all.push(format!("\"{text}\""));
    }
    all.join(" ")
}
