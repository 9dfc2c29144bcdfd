//! What releases the jobs of a sporadic task, in a TOML file: `{ fifo = "/run/x" }`,
//! `{ socket = "/run/x" }`, `{ fd = 3 }`.

use crate::error::Result;
use crate::input::Value;
use crate::workload::Trigger;

/// Reads the value of the key `trigger`.
pub(super) fn read(value: &Value<'_, '_>) -> Result<Trigger> {
    let table = value.table()?;
    table.only(&["fifo", "socket", "fd"])?;
    let path = |key: &str| {
        let Some(v) = table.get(key) else {
            return Ok(None);
        };
        table.only(&[key])?;
        match v.text()? {
            "" => Err(v
                .error("the path is empty")
                .remedy("name a file, such as `/run/trigger`")),
            path => Ok(Some(path.to_owned())),
        }
    };
    if let Some(path) = path("fifo")? {
        return Ok(Trigger::Fifo(path));
    }
    if let Some(path) = path("socket")? {
        return Ok(Trigger::Socket(path));
    }
    let fd = table.get("fd").ok_or_else(|| {
        value
            .error("it does not say what releases the task")
            .remedy("write `{ fifo = \"PATH\" }`, `{ socket = \"PATH\" }` or `{ fd = NUMBER }`")
    })?;
    let number = fd.whole()?;
    i32::try_from(number).map(Trigger::Descriptor).map_err(|_| {
        fd.error(format!("{number} is not the number of a descriptor"))
            .remedy("give the number that it is passed by, such as 3")
    })
}

/// Writes a trigger as a table that [`read`] reads back.
pub(super) fn write(trigger: &Trigger) -> toml::Table {
    let (key, value): (&str, toml::Value) = match trigger {
        Trigger::Fifo(path) => ("fifo", path.clone().into()),
        Trigger::Socket(path) => ("socket", path.clone().into()),
        Trigger::Descriptor(number) => ("fd", i64::from(*number).into()),
    };
    toml::Table::from_iter([(key.to_owned(), value)])
}

#[cfg(test)]
mod tests {
    use crate::taskfile;

    #[test]
    fn triggers_read_and_write_back_and_wrong_ones_are_refused() {
        let of = |trigger: &str| {
            taskfile::from_toml(&format!(
                "[[task]]\nwcet = \"1ms\"\nperiod = \"5ms\"\ntrigger = {trigger}"
            ))
        };
        for trigger in ["{ fifo = \"/run/x\" }", "{ socket = \"s\" }", "{ fd = 3 }"] {
            let set = of(trigger).unwrap();
            assert_eq!(taskfile::from_toml(&taskfile::to_toml(&set)).unwrap(), set);
        }
        for (trigger, message) in [
            (
                "{}",
                "line 4, `trigger`: it does not say what releases the task",
            ),
            ("{ fifo = \"\" }", "line 4, `fifo`: the path is empty"),
            ("{ fd = -1 }", "line 4, `fd`: "),
            (
                "{ fd = 3000000000 }",
                "3000000000 is not the number of a descriptor",
            ),
            ("{ fd = 3, fifo = \"/run/x\" }", "unknown key `fd`"),
            ("{ pipe = 3 }", "unknown key `pipe`"),
            ("3", "line 4, `trigger`: "),
        ] {
            let e = of(trigger).unwrap_err().to_string();
            assert!(e.contains(message), "{trigger}: {e}");
        }
    }
}
