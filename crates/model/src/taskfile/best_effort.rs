//! Work without deadlines in a TOML file: `[[best_effort]]` tables, with a name, a workload and the
//! size of its working set.

use super::workload;
use crate::error::Result;
use crate::input::{Table, Value};
use crate::task::{BestEffort, TaskSet};
use crate::workload::Workload;

/// Adds what the tables say to a set.
pub(super) fn read(set: TaskSet, value: &Value<'_, '_>) -> Result<TaskSet> {
    let tables = value.list()?;
    let with_number = tables.iter().enumerate();
    let of = |(index, value): (usize, &Value<'_, '_>)| one(&value.table()?, index);
    let all = with_number.map(of).collect::<Result<Vec<_>>>()?;
    set.with_best_effort(all).map_err(|e| e.at("`best_effort`"))
}

fn one(table: &Table<'_, '_>, index: usize) -> Result<BestEffort> {
    table.only(&["name", "wss", "workload"])?;
    let name = match table.get("name") {
        Some(v) => match v.text()? {
            "" => {
                return Err(v
                    .error("the name is empty")
                    .remedy("leave it out, or give one"));
            }
            name => name.to_owned(),
        },
        None => format!("B{}", index + 1),
    };
    let workload = match table.get("workload") {
        None => Workload::Spin,
        Some(v) => match workload::read(&v)? {
            Workload::Program { .. } | Workload::Join => {
                return Err(v
                    .error("a program that asks for jobs has none to be given here")
                    .remedy("run it as it is: `exec = […]`, or make it a task"));
            }
            workload => workload,
        },
    };
    Ok(BestEffort {
        name,
        wss: table.get("wss").map(|v| v.parsed()).transpose()?,
        workload,
    })
}

/// Writes one as a table that [`read`] reads back.
pub(super) fn write(work: &BestEffort) -> toml::Table {
    let mut table = toml::Table::new();
    table.insert("name".into(), work.name.clone().into());
    if let Some(wss) = work.wss {
        table.insert("wss".into(), wss.to_string().into());
    }
    table.insert("workload".into(), workload::write(&work.workload).into());
    table
}

#[cfg(test)]
mod tests {
    use crate::taskfile;

    #[test]
    fn best_effort_work_reads_and_writes_back_and_what_is_wrong_is_refused() {
        let of = |work: &str| {
            taskfile::from_toml(&format!(
                "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"5ms\"\n[[best_effort]]\n{work}"
            ))
        };
        for work in [
            "",
            "name = \"b\"\nwss = \"64KiB\"\nworkload = { kind = \"walk\", pattern = \"chase\" }",
            "workload = { exec = [\"make\", \"-j2\"] }\n[[best_effort]]\nname = \"c\"",
        ] {
            let set = of(work).unwrap();
            assert!(!set.best_effort().is_empty());
            assert_eq!(taskfile::from_toml(&taskfile::to_toml(&set)).unwrap(), set);
        }
        for (work, message) in [
            ("name = \"a\"", "`best_effort`: the name `a` is given twice"),
            ("name = \"\"", "line 6, `name`: the name is empty"),
            ("wcet = \"1ms\"", "line 6: unknown key `wcet`"),
            (
                "workload = { program = [\"a\"] }",
                "line 6, `workload`: a program that asks for jobs",
            ),
        ] {
            let e = of(work).unwrap_err().to_string();
            assert!(e.contains(message), "{work}: {e}");
        }
    }
}
