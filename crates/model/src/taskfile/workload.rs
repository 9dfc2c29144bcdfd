//! The workload of a task in a TOML file: built-in ones, programs, programs that join.

use crate::error::Result;
use crate::input::{Table, Value};
use crate::workload::{Beyond, Computation, Pattern, Rights, Workload};

/// Reads the value of the key `workload`.
pub(super) fn read(value: &Value<'_, '_>) -> Result<Workload> {
    let table = value.table()?;
    table.only(&[
        "kind",
        "write_ratio",
        "pattern",
        "coefficients",
        "points",
        "exec",
        "program",
        "beyond_budget",
        "user",
        "rights",
    ])?;
    if let Some(exec) = table.get("exec") {
        table.only(&["exec", "beyond_budget", "user", "rights"])?;
        return Ok(Workload::Exec {
            command: command_of(&exec, "exec")?,
            beyond_budget: match table.get("beyond_budget") {
                None => Beyond::default(),
                Some(v) => match v.text()? {
                    "hold" => Beyond::Hold,
                    "best-effort" => Beyond::BestEffort,
                    other => {
                        return Err(v
                            .error(format!("unknown choice `{other}`"))
                            .remedy("write `hold` or `best-effort`"));
                    }
                },
            },
            rights: rights_of(&table)?,
        });
    }
    if let Some(program) = table.get("program") {
        table.only(&["program", "user", "rights"])?;
        return Ok(Workload::Program {
            command: command_of(&program, "program")?,
            rights: rights_of(&table)?,
        });
    }
    if let Some(v) = table.get("user").or_else(|| table.get("rights")) {
        return Err(v
            .error("only a program that is started for the run has rights of its own")
            .remedy("use it beside `exec = […]` or `program = […]`"));
    }
    if let Some(v) = table.get("beyond_budget") {
        return Err(v
            .error("only a program that knows nothing of jobs has a choice here")
            .remedy("use it beside `exec = […]`"));
    }
    let kind = table.need("kind")?;
    match kind.text()? {
        "join" => {
            table.only(&["kind"])?;
            Ok(Workload::Join)
        }
        "spin" => {
            table.only(&["kind"])?;
            Ok(Workload::Spin)
        }
        "walk" => {
            table.only(&["kind", "write_ratio", "pattern"])?;
            walk_of(&table)
        }
        "filter" => {
            table.only(&["kind", "coefficients"])?;
            let coefficients = count_of(&table, "coefficients")?;
            Ok(Workload::Compute(Computation::Filter { coefficients }))
        }
        "cosine" => {
            let points = points_of(&table)?;
            Ok(Workload::Compute(Computation::Cosine { points }))
        }
        "fourier" => {
            let points = points_of(&table)?;
            Ok(Workload::Compute(Computation::Fourier { points }))
        }
        "matrix" => {
            table.only(&["kind"])?;
            Ok(Workload::Compute(Computation::Matrix))
        }
        other => Err(kind.error(format!("unknown workload `{other}`")).remedy(
            "write `spin`, `walk`, `filter`, `cosine`, `fourier`, `matrix` or `join`, or \
                 `exec = […]` or `program = […]`",
        )),
    }
}

/// How many coefficients or points a computation has.
fn count_of(table: &Table<'_, '_>, key: &'static str) -> Result<u32> {
    let value = table.need(key)?;
    let number = value.number()?;
    let fits = number.fract() == 0.0 && (1.0..=f64::from(Computation::MOST)).contains(&number);
    match fits {
        true => Ok(number as u32),
        false => Err(value
            .error(format!("{number} is no number of {key}"))
            .remedy(format!(
                "give a whole number from 1 to {}",
                Computation::MOST
            ))),
    }
}

/// How many points a transform has.
fn points_of(table: &Table<'_, '_>) -> Result<u32> {
    table.only(&["kind", "points"])?;
    let points = count_of(table, "points")?;
    match points.is_power_of_two() {
        true => Ok(points),
        false => Err(table
            .need("points")?
            .error(format!(
                "a transform halves its points, and {points} are no power of two"
            ))
            .remedy("give such as 256")),
    }
}

/// A walk through the working set, from the keys `write_ratio` and `pattern`.
fn walk_of(table: &Table<'_, '_>) -> Result<Workload> {
    Ok(Workload::Walk {
        write_ratio: match table.get("write_ratio") {
            None => crate::profile::Profile::DEFAULT_WRITE_RATIO,
            Some(v) => match v.number()? {
                ratio if (0.0..=1.0).contains(&ratio) => ratio,
                ratio => {
                    return Err(v
                        .error(format!("{ratio} is not a ratio"))
                        .remedy("give a number from 0 to 1"));
                }
            },
        },
        pattern: match table.get("pattern") {
            None => Pattern::default(),
            Some(v) => match v.text()? {
                "sequential" => Pattern::Sequential,
                "random" => Pattern::Random,
                "chase" => Pattern::Chase,
                other => {
                    return Err(v
                        .error(format!("unknown pattern `{other}`"))
                        .remedy("write `sequential`, `random` or `chase`"));
                }
            },
        },
    })
}

/// With which rights a program runs, from the keys `user` and `rights`.
fn rights_of(table: &Table<'_, '_>) -> Result<Rights> {
    match (table.get("user"), table.get("rights")) {
        (None, None) => Ok(Rights::Unsaid),
        (Some(_), Some(v)) => Err(v
            .error("a program of another user keeps no rights")
            .remedy("leave out `user` or `rights`")),
        (Some(v), None) => match v.text()? {
            "" => Err(v
                .error("no user is named")
                .remedy("write such as `user = \"nobody\"`")),
            name => Ok(Rights::User(name.to_owned())),
        },
        (None, Some(v)) => match v.text()? {
            "keep" => Ok(Rights::Keep),
            "drop" => Ok(Rights::Drop),
            other => Err(v
                .error(format!("unknown choice `{other}`"))
                .remedy("write `keep` or `drop`")),
        },
    }
}

fn command_of(value: &Value<'_, '_>, key: &str) -> Result<Vec<String>> {
    let words = value
        .list()?
        .iter()
        .map(|v| v.text().map(str::to_owned))
        .collect::<Result<Vec<_>>>()?;
    if words.first().is_none_or(String::is_empty) {
        return Err(value
            .error("no program is named")
            .remedy(format!("write `{key} = [\"./program\", \"argument\"]`")));
    }
    Ok(words)
}

/// Writes a workload as a table that [`read`] reads back.
pub(super) fn write(workload: &Workload) -> toml::Table {
    let mut table = toml::Table::new();
    match workload {
        Workload::Spin => {
            table.insert("kind".into(), "spin".into());
        }
        Workload::Walk {
            write_ratio,
            pattern,
        } => {
            let pattern = match pattern {
                Pattern::Sequential => "sequential",
                Pattern::Random => "random",
                Pattern::Chase => "chase",
            };
            table.insert("kind".into(), "walk".into());
            table.insert("write_ratio".into(), (*write_ratio).into());
            table.insert("pattern".into(), pattern.into());
        }
        Workload::Compute(what) => write_computation(*what, &mut table),
        Workload::Exec {
            command,
            beyond_budget,
            rights,
        } => {
            table.insert("exec".into(), command.clone().into());
            if *beyond_budget == Beyond::BestEffort {
                table.insert("beyond_budget".into(), "best-effort".into());
            }
            write_rights(rights, &mut table);
        }
        Workload::Program { command, rights } => {
            table.insert("program".into(), command.clone().into());
            write_rights(rights, &mut table);
        }
        Workload::Join => {
            table.insert("kind".into(), "join".into());
        }
    }
    table
}

fn write_computation(what: Computation, table: &mut toml::Table) {
    let (kind, size) = match what {
        Computation::Filter { coefficients } => ("filter", Some(("coefficients", coefficients))),
        Computation::Cosine { points } => ("cosine", Some(("points", points))),
        Computation::Fourier { points } => ("fourier", Some(("points", points))),
        Computation::Matrix => ("matrix", None),
    };
    table.insert("kind".into(), kind.into());
    if let Some((key, size)) = size {
        table.insert(key.into(), i64::from(size).into());
    }
}

fn write_rights(rights: &Rights, table: &mut toml::Table) {
    let (key, value) = match rights {
        Rights::Unsaid => return,
        Rights::Drop => ("rights", "drop"),
        Rights::Keep => ("rights", "keep"),
        Rights::User(name) => ("user", name.as_str()),
    };
    table.insert(key.into(), value.into());
}

#[cfg(test)]
mod tests {
    use crate::taskfile;

    #[test]
    fn computations_read_and_write_back_and_wrong_ones_are_refused() {
        let of = |workload: &str| {
            taskfile::from_toml(&format!(
                "[[task]]\nwcet = \"1ms\"\nperiod = \"5ms\"\nworkload = {workload}"
            ))
        };
        for workload in [
            "{ kind = \"filter\", coefficients = 512 }",
            "{ kind = \"cosine\", points = 64 }",
            "{ kind = \"fourier\", points = 1 }",
            "{ kind = \"matrix\" }",
        ] {
            let set = of(workload).unwrap();
            let again = taskfile::from_toml(&taskfile::to_toml(&set)).unwrap();
            assert_eq!(set, again, "{workload}");
        }
        for (workload, cause) in [
            ("{ kind = \"filter\" }", "coefficients"),
            ("{ kind = \"filter\", coefficients = 0 }", "0 is no number"),
            (
                "{ kind = \"filter\", coefficients = 1.5 }",
                "1.5 is no number",
            ),
            ("{ kind = \"cosine\", points = 100 }", "no power of two"),
            (
                "{ kind = \"fourier\", points = 131072 }",
                "no number of points",
            ),
            ("{ kind = \"matrix\", points = 8 }", "points"),
            ("{ kind = \"walk\", points = 8 }", "points"),
        ] {
            let e = of(workload).unwrap_err().to_string();
            assert!(e.contains(cause), "{workload}: {e}");
        }
    }

    #[test]
    fn programs_read_and_write_back_and_wrong_ones_are_refused() {
        let of = |workload: &str| {
            taskfile::from_toml(&format!(
                "[[task]]\nwcet = \"1ms\"\nperiod = \"5ms\"\nworkload = {workload}"
            ))
        };
        for workload in [
            "{ exec = [\"./a\", \"b c\"] }",
            "{ exec = [\"./a\"], beyond_budget = \"best-effort\" }",
            "{ program = [\"./a\"] }",
            "{ program = [\"./a\"], user = \"nobody\" }",
            "{ exec = [\"./a\"], rights = \"keep\" }",
            "{ exec = [\"./a\"], rights = \"drop\" }",
            "{ kind = \"join\" }",
        ] {
            let set = of(workload).unwrap();
            assert_eq!(taskfile::from_toml(&taskfile::to_toml(&set)).unwrap(), set);
        }
        for (workload, message) in [
            ("{ exec = [] }", "line 4, `exec`: no program is named"),
            (
                "{ program = [\"\"] }",
                "line 4, `program`: no program is named",
            ),
            (
                "{ exec = [\"a\"], beyond_budget = \"stop\" }",
                "unknown choice `stop`",
            ),
            (
                "{ program = [\"a\"], beyond_budget = \"hold\" }",
                "unknown key `beyond_budget`",
            ),
            (
                "{ kind = \"spin\", beyond_budget = \"hold\" }",
                "only a program that knows nothing",
            ),
            (
                "{ exec = [\"a\"], rights = \"all\" }",
                "unknown choice `all`",
            ),
            ("{ exec = [\"a\"], user = \"\" }", "no user is named"),
            (
                "{ exec = [\"a\"], user = \"b\", rights = \"keep\" }",
                "a program of another user keeps no rights",
            ),
            (
                "{ kind = \"join\", user = \"b\" }",
                "only a program that is started",
            ),
            (
                "{ exec = [\"a\"], program = [\"a\"] }",
                "unknown key `program`",
            ),
            ("{ kind = \"joins\" }", "unknown workload `joins`"),
        ] {
            let e = of(workload).unwrap_err().to_string();
            assert!(e.contains(message), "{workload}: {e}");
        }
    }
}
