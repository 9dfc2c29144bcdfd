//! `warmset color serve` and what the operator says to it: the memory server.

use crate::Answer;
use crate::console::{Console, Format, print_json, show};
use crate::options::Printed;
use app::color::serve::{self, Options};
use model::{Bytes, Duration, Result};
use partition::Selection;
use partition::ledger::{Access, Client, Holder, Pages, Summary};
use partition::protocol::Request;
use std::fmt::Write as _;
use std::path::PathBuf;

const SERVE_HELP: &str = "\
Clients connect to the socket; the kernel says who they are. They get memory of colors that were granted to their process, \
user or group, and nothing else. Root and the user that runs the server are the operator. While it serves, it asks again \
whether pages still have their colors, and says and mends what has changed. Ends with Ctrl-C; memory that clients map stays with \
them, and the next server knows the grants and what is out.

Exit status: 0 it served until Ctrl-C or SIGTERM; 130 (143) it was stopped before it served; 2 it could not serve.

Example: warmset color serve --size 256MiB";

/// Options of `warmset color serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = SERVE_HELP)]
pub struct ServeArgs {
    /// How much memory to sort and give out
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    size: Bytes,
    /// The level of the cache [default: the first one that has colors]
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// The processor whose cache it is [default: the first one]
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<u32>,
    /// How often to ask again whether what is known of colors is still true; `0s`: never
    #[arg(long, value_name = "TIME", default_value = "10s")]
    again: Duration,
    /// Where grants are kept for the server after this one
    /// [default: beside the socket, with `.state`]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Where clients connect, in a directory that only you write to [default:
    /// /run/warmset/color.sock, or warmset/color.sock in XDG_RUNTIME_DIR]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
}

/// Where the server is.
#[derive(clap::Args, Debug)]
struct Where {
    /// The server's socket [default: as for `serve`]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
}

const GRANT_HELP: &str = "\
Grants are exclusive: a color is one holder's. Others may be granted to read pages of it (--read-only): they take part of that \
cache, but what they leave there never has to be written back.

Examples:
  warmset color grant uid:1000 0-3,8 --size 4MiB
  warmset color grant group:video 0xf0
  warmset color grant pid:4711 super:2/8";

/// Options of `warmset color grant`.
#[derive(clap::Args, Debug)]
#[command(after_help = GRANT_HELP)]
pub struct GrantArgs {
    /// To whom: `pid:NUMBER`, `uid:NUMBER` or `group:NAME`
    holder: Holder,
    /// Which colors: ranges (`0-3,8`), a bitmap (`0x10f`), super colors by number (`super:0-1/8`:
    /// of 8) or by name
    colors: Selection,
    /// The most memory that the holder's processes may have together [default: no limit]
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// To read only, beside the one holder who may write: its cache lines stay clean
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    server: Where,
}

/// Options of `warmset color take-back`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Refused while a process holds memory of them.\n\nExample: warmset color take-back uid:1000 8"
)]
pub struct TakeBackArgs {
    /// From whom
    holder: Holder,
    /// Which colors
    colors: Selection,
    /// What was granted to read only
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    server: Where,
}

/// Options of `warmset color join`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset color join video 4711")]
pub struct JoinArgs {
    /// The group
    group: String,
    /// The process
    pid: u32,
    #[command(flatten)]
    server: Where,
}

const NAME_HELP: &str = "\
A super color is a group of colors. By number they need no name: `super:2/8` are the colors that are 2 modulo 8. What was granted \
by a name stays granted when the name goes to other colors.

Examples:
  warmset color name video 0-3
  warmset color grant uid:1000 video
  warmset color name video --remove";

/// Options of `warmset color name`.
#[derive(clap::Args, Debug)]
#[command(after_help = NAME_HELP)]
pub struct NameArgs {
    /// The name
    name: String,
    /// Which colors
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    colors: Option<Selection>,
    /// Forget the name
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    server: Where,
}

/// `warmset color name`.
pub fn name(args: NameArgs) -> Result<Answer> {
    let request = Request::Name {
        name: args.name,
        colors: args.colors,
    };
    tell(&args.server, &request)
}

/// Options of `warmset color list`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset color list --format json")]
pub struct ListArgs {
    #[command(flatten)]
    server: Where,
    #[command(flatten)]
    printed: Printed,
}

/// `warmset color serve`.
pub fn serve(args: ServeArgs) -> Result<Answer> {
    let options = Options {
        size: args.size,
        level: args.level,
        cpu: args.cpu,
        again: args.again,
        state: args.state,
        socket: args.socket,
    };
    let console = Console::new()?;
    serve::serve(&options, &console).map(|()| Answer::Yes)
}

fn access(read_only: bool) -> Access {
    if read_only {
        Access::ReadOnly
    } else {
        Access::Full
    }
}

fn tell(server: &Where, request: &Request) -> Result<Answer> {
    serve::tell(server.socket.as_deref(), request).map(|_| Answer::Yes)
}

/// `warmset color grant`.
pub fn grant(args: GrantArgs) -> Result<Answer> {
    let request = Request::Grant {
        holder: args.holder,
        colors: args.colors,
        pages: args
            .size
            .map(|s| s.get() / partition::geometry::PAGE as u64),
        access: access(args.read_only),
    };
    tell(&args.server, &request)
}

/// `warmset color take-back`.
pub fn take_back(args: TakeBackArgs) -> Result<Answer> {
    let request = Request::TakeBack {
        holder: args.holder,
        colors: args.colors,
        access: access(args.read_only),
    };
    tell(&args.server, &request)
}

/// `warmset color join`.
pub fn join(args: JoinArgs) -> Result<Answer> {
    let request = Request::Join {
        pid: args.pid,
        group: args.group,
    };
    tell(&args.server, &request)
}

/// `warmset color list`.
pub fn list(args: &ListArgs) -> Result<Answer> {
    let summary = serve::list(args.server.socket.as_deref())?;
    match args.printed.format() {
        Format::Json => print_json(&summary)?,
        Format::Table => show(&list_text(&summary))?,
    }
    Ok(Answer::Yes)
}

fn write_client(text: &mut String, client: &Client) {
    let _ = writeln!(
        text,
        "process {} of user {}: {} pages{}, may use colors {}{}",
        client.peer.pid,
        client.peer.uid,
        client.pages,
        if client.untrue == 0 {
            String::new()
        } else {
            format!(" ({} of them were moved to other colors)", client.untrue)
        },
        if client.colors.is_empty() {
            "none".to_owned()
        } else {
            client.colors.to_string()
        },
        if client.read_only.is_empty() {
            String::new()
        } else {
            format!(", read colors {}", client.read_only)
        }
    );
}

fn list_text(summary: &Summary) -> String {
    // Writing into a string cannot fail.
    let mut text = String::new();
    let sum: Pages = summary.pages.iter().copied().sum();
    let struck: u64 = summary.struck.iter().sum();
    let _ = writeln!(
        text,
        "{} colors; pages: {} free, {} held, {} returning{}",
        summary.colors,
        sum.free,
        sum.held,
        sum.returning,
        match struck {
            0 => String::new(),
            n => format!(", {n} struck off (their frames had changed)"),
        }
    );
    for (name, colors) in &summary.names {
        let _ = writeln!(text, "{name}: a name of colors {colors}");
    }
    for grant in &summary.grants {
        let limit = grant
            .pages
            .map_or_else(String::new, |pages| format!(", at most {pages} pages"));
        let only = match grant.access {
            Access::Full => "",
            Access::ReadOnly => ", to read only",
        };
        let _ = writeln!(
            text,
            "{}: colors {}{only}{limit}",
            grant.holder, grant.colors
        );
    }
    // Who asks for the list is connected, too.
    let others = |c: &&Client| c.pages > 0 || c.peer.pid != std::process::id();
    for client in summary.clients.iter().filter(others) {
        write_client(&mut text, client);
    }
    for spoiled in &summary.spoiled {
        let _ = writeln!(
            text,
            "{}: {} pages that it exchanged or still refers to count against it",
            spoiled.holder, spoiled.pages
        );
    }
    for violation in &summary.violations {
        let _ = writeln!(
            text,
            "process {} of user {} tried to write to color {} {} times, which belongs to {}",
            violation.peer.pid,
            violation.peer.uid,
            violation.color,
            violation.count,
            violation
                .owner
                .as_ref()
                .map_or_else(|| "nobody".to_owned(), ToString::to_string)
        );
    }
    text
}
