//! What clients and the memory server say to each other: one JSON object a line.
//!
//! A line of answers to `take` carries as many open files as it names tiles (SCM_RIGHTS, unix(7)).

use crate::colors::{Color, Colors};
use crate::ledger::{Access, Holder, Summary, TileId};
use crate::selection::{Selection, check_name};
use model::{Error, Result};
use serde::{Deserialize, Serialize};

/// The longest line that is read.
pub const MAX_LINE: usize = 64 << 10;
/// The most tiles that one line of an answer names: the kernel passes at most 253 files at once.
pub const TILES_AT_ONCE: usize = 64;

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Which colors do I have?
    Colors {},
    /// Give me memory of this color.
    Take {
        /// The color.
        color: Color,
        /// At least so many pages.
        pages: u64,
        /// To use or to read. A file that is sent along fills pages to read, from its beginning;
        /// others are zero.
        #[serde(default, skip_serializing_if = "Access::is_full")]
        access: Access,
    },
    /// I wrote to a page that I may only read, and am being ended for it. Not answered.
    Wrote {
        /// The page's color.
        color: Color,
    },
    /// I do not use these any more.
    GiveBack {
        /// Numbers of tiles that were taken over this connection.
        tiles: Vec<TileId>,
    },
    /// The operator grants colors.
    Grant {
        /// To whom.
        holder: Holder,
        /// Which.
        colors: Selection,
        /// How many pages at most.
        #[serde(default)]
        pages: Option<u64>,
        /// Exclusively, or to read.
        #[serde(default, skip_serializing_if = "Access::is_full")]
        access: Access,
    },
    /// The operator takes colors back.
    TakeBack {
        /// From whom.
        holder: Holder,
        /// Which.
        colors: Selection,
        /// What was granted exclusively, or to read.
        #[serde(default, skip_serializing_if = "Access::is_full")]
        access: Access,
    },
    /// The operator puts a process into a group.
    Join {
        /// The process.
        pid: u32,
        /// The group's name.
        group: String,
    },
    /// The operator gives colors a name (004 §III-C: a super color), or takes the name from them.
    Name {
        /// The name.
        name: String,
        /// Which; the name is forgotten where there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        colors: Option<Selection>,
    },
    /// The operator asks who has what.
    List {},
}

impl Request {
    /// Is it for the operator alone?
    pub fn is_operators(&self) -> bool {
        match self {
            Request::Colors {}
            | Request::Take { .. }
            | Request::Wrote { .. }
            | Request::GiveBack { .. } => false,
            Request::Grant { .. }
            | Request::TakeBack { .. }
            | Request::Join { .. }
            | Request::Name { .. }
            | Request::List {} => true,
        }
    }
}

/// What the server answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// Done.
    Done,
    /// The client's colors.
    Colors {
        /// Which.
        colors: Colors,
        /// Of how many.
        of: u16,
        /// The colors that it may only read.
        #[serde(default, skip_serializing_if = "Colors::is_empty")]
        read_only: Colors,
    },
    /// Tiles, whose files come with this line.
    Tiles {
        /// Their numbers, in the order of the files.
        tiles: Vec<TileId>,
        /// Do more lines follow?
        more: bool,
        /// Whose color it is, where the client may only read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<Holder>,
    },
    /// Who has what.
    List {
        /// The books.
        summary: Summary,
    },
    /// No.
    Refused {
        /// Why, and what to do about it.
        why: String,
    },
}

/// Reads a request.
///
/// # Errors
/// Too long, not UTF-8, not JSON, not a request, or with a name that cannot be.
pub fn parse(line: &[u8]) -> Result<Request> {
    if line.len() > MAX_LINE {
        return Err(too_long());
    }
    let request: Request = serde_json::from_slice(line).map_err(|e| {
        Error::new(format!("this is no request: {e}")).remedy("send one JSON object a line")
    })?;
    if let Request::Join { group, .. } = &request {
        format!("group:{group}").parse::<Holder>()?;
    }
    if let Request::Name { name, .. } = &request {
        check_name(name)?;
    }
    Ok(request)
}

/// The error of a line that does not end.
pub fn too_long() -> Error {
    Error::new(format!("the line is longer than {MAX_LINE} bytes"))
        .remedy("name fewer tiles at once")
}

/// The error of a line that was begun and not ended for so long.
pub fn unfinished(patience: std::time::Duration) -> Error {
    Error::new(format!(
        "a line was not ended within {} s",
        patience.as_secs()
    ))
    .remedy("send each line at once, with its end")
}

/// The error of a line with more files than it may have.
pub fn too_many_files(most: usize) -> Error {
    Error::new(format!("a line came with more open files than {most}")).remedy(
        "send the file that fills the pages, and no other, with the line that asks for them",
    )
}

/// Writes a message as a line.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    // These types have string keys and finite numbers: they can always be written.
    let mut text = serde_json::to_vec(message).unwrap_or_default();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_written_as_documented() {
        let text = |request: &Request| String::from_utf8(line(request)).unwrap();
        assert_eq!(
            text(&Request::Take {
                color: Color(3),
                pages: 64,
                access: Access::Full,
            }),
            "{\"do\":\"take\",\"color\":3,\"pages\":64}\n"
        );
        assert_eq!(
            text(&Request::Take {
                color: Color(3),
                pages: 64,
                access: Access::ReadOnly,
            }),
            "{\"do\":\"take\",\"color\":3,\"pages\":64,\"access\":\"read-only\"}\n"
        );
        assert_eq!(
            text(&Request::Grant {
                holder: Holder::Uid(1000),
                colors: "0-3,8".parse().unwrap(),
                pages: None,
                access: Access::Full,
            }),
            "{\"do\":\"grant\",\"holder\":\"uid:1000\",\"colors\":\"0-3,8\",\"pages\":null}\n"
        );
    }

    #[test]
    fn what_is_written_reads_back() {
        for request in [
            Request::Colors {},
            Request::List {},
            Request::Take {
                color: Color(0),
                pages: 1,
                access: Access::ReadOnly,
            },
            Request::Wrote { color: Color(2) },
            Request::GiveBack { tiles: vec![1, 2] },
            Request::TakeBack {
                holder: Holder::Group("a".to_owned()),
                colors: "0".parse().unwrap(),
                access: Access::Full,
            },
            Request::Join {
                pid: 1,
                group: "a".to_owned(),
            },
            Request::Name {
                name: "video".to_owned(),
                colors: Some("super:1/4".parse().unwrap()),
            },
            Request::Name {
                name: "video".to_owned(),
                colors: None,
            },
        ] {
            assert_eq!(parse(&line(&request)).unwrap(), request);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            "{\"do\":\"fly\"}",
            "{\"do\":\"take\"}",
            "{\"do\":\"take\",\"color\":-1,\"pages\":1}",
            "{\"do\":\"list\",\"extra\":1}",
            "{\"do\":\"join\",\"pid\":1,\"group\":\"a b\"}",
            "\u{0}",
            "{\"do\":\"grant\",\"holder\":\"root\",\"colors\":\"0\"}",
            "{\"do\":\"name\",\"name\":\"3\",\"colors\":\"0\"}",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(
            parse(&vec![b' '; MAX_LINE + 1])
                .unwrap_err()
                .to_string()
                .contains("longer")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
