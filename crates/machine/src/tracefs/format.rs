//! What the kernel says of its tracepoints: their numbers and where their fields lie.
//!
//! Source: the kernel's `Documentation/trace/events.rst`, "Event formats".

use std::io;

/// Where one field of an event lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    signed: bool,
}

/// One tracepoint, as its file `format` describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Format {
    /// By this number its events are known.
    pub id: u16,
    /// The fields that are asked for, in their order.
    pub fields: Vec<Field>,
}

impl Format {
    /// Reads the text of a `format` file, for these fields.
    ///
    /// # Errors
    /// It has no number, or lacks a field or has it as no integer.
    pub fn parse(text: &str, fields: &[&str]) -> io::Result<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let id = id.and_then(|id| id.trim().parse().ok());
        Ok(Format {
            id: id.ok_or_else(|| unknown("it has no number"))?,
            fields: fields
                .iter()
                .map(|name| {
                    field(text, name).ok_or_else(|| unknown(&format!("it has no integer `{name}`")))
                })
                .collect::<io::Result<_>>()?,
        })
    }
}

fn unknown(why: &str) -> io::Error {
    io::Error::other(format!(
        "the kernel's description of the tracepoint is not understood: {why}"
    ))
}

/// Such as `field:pid_t prev_pid; offset:24; size:4; signed:1;`.
pub(super) fn field(text: &str, name: &str) -> Option<Field> {
    text.lines().find_map(|line| {
        let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
        if declared.rsplit([' ', '*']).next()? != name {
            return None;
        }
        let value = |key: &str| -> Option<usize> {
            let (_, rest) = rest.split_once(key)?;
            rest.split(';').next()?.trim().parse().ok()
        };
        let field = Field {
            offset: value("offset:")?,
            size: value("size:")?,
            signed: value("signed:")? != 0,
        };
        matches!(field.size, 1 | 2 | 4 | 8).then_some(field)
    })
}

impl Field {
    /// What an event has there. An unsigned one of 64 bits keeps its bits.
    pub fn of(self, event: &[u8]) -> Option<i64> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match (bytes, self.signed) {
            ([a], false) => i64::from(*a),
            ([a], true) => i64::from(*a as i8),
            ([a, b], false) => i64::from(u16::from_ne_bytes([*a, *b])),
            ([a, b], true) => i64::from(i16::from_ne_bytes([*a, *b])),
            ([a, b, c, d], false) => i64::from(u32::from_ne_bytes([*a, *b, *c, *d])),
            ([a, b, c, d], true) => i64::from(i32::from_ne_bytes([*a, *b, *c, *d])),
            _ => i64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:void * function;\toffset:32;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"prev_pid=%d\", REC->prev_pid\n";

    #[test]
    fn fields_are_found_by_their_names() {
        let format = Format::parse(SWITCH, &["prev_pid", "function"]).unwrap();
        assert_eq!(format.id, 372);
        let mut event = [0u8; 40];
        event[24..28].copy_from_slice(&(-5i32).to_ne_bytes());
        event[32..40].copy_from_slice(&u64::MAX.to_ne_bytes());
        let values: Vec<_> = format.fields.iter().map(|f| f.of(&event)).collect();
        assert_eq!(values, [Some(-5), Some(-1)]);
        assert_eq!(format.fields[1].of(&event[..39]), None);
    }

    #[test]
    fn what_is_no_integer_or_not_there_is_refused() {
        for name in ["prev_comm", "prev_comm[16]", "next_pid", "pid"] {
            let e = Format::parse(SWITCH, &[name]).unwrap_err().to_string();
            assert!(e.contains(name), "{e}");
        }
        assert!(Format::parse("format:\n", &[]).is_err());
    }
}
