//! Unmodified programs in colors: loads a library into them, and supervises what it asks for.
//!
//! The library is carried inside this crate and lies in a directory of this user's own while the
//! program runs (`place`): nothing is installed. Each process of the program asks the supervisor
//! for tiles over a socket in the same directory, one connection a request; both sides make sure
//! that the other one is of the same user. The supervisor takes tiles from the memory server,
//! within what was granted to it, and gives them back when the process ends or begins another
//! program.

mod client;
mod loadable;
mod need;
mod place;
mod supervisor;

use crate::inspect::Report;
use crate::message::{HEAP, MAPPING, SECRET, SEGMENT, STACK, VARIABLE};
use model::{Bytes, Error, Result};
use partition::client::Connection;
use partition::holder::{Access, Holder};
use partition::protocol::{Answer, Request};
use partition::tile::{TILE, TILE_PAGES};
use partition::{Color, Colors};
use place::Place;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use supervisor::Supervisor;

pub use loadable::check;
pub use need::known_need;
pub(crate) use place::LIBRARY as LIBRARY_NAME;

/// The library.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libwarmset-preload.so"));

/// A part of a program that can be colored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// What it allocates.
    Heap,
    /// Anonymous private mappings.
    Mappings,
    /// The upper part of each thread's stack.
    Stacks,
    /// Code and data of the program and its libraries.
    Segments,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 4] = [Part::Heap, Part::Mappings, Part::Stacks, Part::Segments];

    fn bit(self) -> u32 {
        1 << match self {
            Part::Heap => HEAP,
            Part::Mappings => MAPPING,
            Part::Stacks => STACK,
            Part::Segments => SEGMENT,
        }
    }
}

/// How a program is to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Page colors of the server.
    pub colors: Colors,
    /// Does each thread get its own of these colors, by its number (004 §III-E)?
    pub by_task: bool,
    /// What is colored.
    pub parts: Vec<Part>,
    /// How much of each thread's stack.
    pub stack: Bytes,
    /// How much code and data at most.
    pub segments: Bytes,
    /// Does an allocation fail where colored memory runs out? Otherwise it gets ordinary memory.
    pub strict: bool,
}

/// How it ran.
#[derive(Debug)]
pub struct Ran {
    /// How the program ended.
    pub status: ExitStatus,
    /// Its number.
    pub process: u32,
    /// What its processes found colored at their ends, the program's own first: it is missing where
    /// the program was ended by a signal.
    pub reports: Vec<Report>,
    /// Did heap or mappings ask for colored memory that was not there?
    pub ran_out: bool,
    /// The most colored memory that its processes had at a time.
    pub most_held: Bytes,
}

/// Runs a program with its memory in colors, and waits for it. The colors are granted to this
/// process if they are not yet and it is the operator's.
///
/// # Errors
/// Nobody serves, or another user does; the colors cannot be had; the program cannot be started.
pub fn run(server: &Path, plan: &Plan, program: &Path, arguments: &[OsString]) -> Result<Ran> {
    check(program)?;
    let connection = Connection::open_trusted(server)?;
    run_over(connection, plan, program, arguments, Start::plain())
}

/// What is done when a program starts.
pub struct Start<'a> {
    /// Where what it prints goes; what it says of errors goes to standard error.
    pub output: Stdio,
    /// Who is told its number.
    pub begun: Option<&'a mut dyn FnMut(u32)>,
}

impl Start<'_> {
    /// It prints where this process does, and nobody is told.
    pub fn plain() -> Self {
        Start {
            output: Stdio::inherit(),
            begun: None,
        }
    }
}

/// As [`run`], over a connection to the memory server.
///
/// # Errors
/// The colors cannot be had; the program cannot be started.
pub fn run_over(
    mut connection: Connection,
    plan: &Plan,
    program: &Path,
    arguments: &[OsString],
    start: Start<'_>,
) -> Result<Ran> {
    let path = check(program)?;
    granted(&mut connection, &plan.colors)?;
    let segments = segments(&mut connection, plan);
    let secret = secret()?;
    let (place, listener) = Place::make(LIBRARY)?;
    let mut supervisor = Supervisor::new(plan, connection, secret, segments);
    let failed = |e: std::io::Error| Error::io(&path, "run the program", &e);
    let mut child = Command::new(&path)
        .args(arguments)
        .stdout(start.output)
        .env(
            "LD_PRELOAD",
            preloaded(&place.library(), std::env::var_os("LD_PRELOAD")),
        )
        .env(
            &*VARIABLE.to_string_lossy(),
            plan.setting(&place.socket(), &secret),
        )
        .spawn()
        .map_err(failed)?;
    if let Some(begun) = start.begun {
        begun(child.id());
    }
    let served = client::process(child.id())
        .map_err(|e| {
            Error::new(format!("the program cannot be watched: {e}"))
                .remedy("use Linux 5.3 or newer (pidfd_open)")
        })
        .and_then(|program| supervisor.serve(&listener, &program));
    if served.is_err() {
        // Without its supervisor it would not be what was asked for. It may have ended already.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    served?;
    let id = child.id();
    supervisor.reports.sort_by_key(|r| r.process != id);
    Ok(Ran {
        status,
        process: id,
        ran_out: supervisor.ran_out,
        most_held: Bytes::new(supervisor.most_held()),
        reports: supervisor.reports,
    })
}

/// What is to be loaded first: the library, and what was to be loaded anyway. The library of a
/// run around this one is left out, for only one of them can be a program's allocator.
fn preloaded(library: &Path, others: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    let others = others.unwrap_or_default();
    // ld.so(8): both separate, and neither can be escaped.
    for other in others.as_bytes().split(|b| b" :".contains(b)) {
        let is_library = other.ends_with(place::LIBRARY.as_bytes());
        if !other.is_empty() && !is_library {
            all.push(":");
            all.push(OsStr::from_bytes(other));
        }
    }
    all
}

/// Known to this run and to what it starts.
fn secret() -> Result<[u8; SECRET]> {
    let mut secret = [0; SECRET];
    let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut secret));
    random.map_err(|e| Error::io("/dev/urandom", "draw a random number", &e))?;
    Ok(secret)
}

impl Plan {
    /// The variable that tells the library of the supervisor, as [`VARIABLE`] describes it.
    fn setting(&self, socket: &Path, secret: &[u8; SECRET]) -> OsString {
        let colors: Vec<String> = self.colors.iter().map(|c| c.to_string()).collect();
        let heaps = self.heaps();
        let parts = self.parts.iter().fold(0, |all, part| all | part.bit());
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut setting = socket.as_os_str().to_owned();
        setting.push(format!(
            ";{};{secret};{};{heaps};{};{parts};{};{}",
            std::process::id(),
            colors.join(","),
            u8::from(self.by_task),
            self.stack.get(),
            u8::from(self.strict)
        ));
        setting
    }

    /// How many heaps the colors are divided among.
    fn heaps(&self) -> usize {
        match self.by_task {
            true => self.colors.len().min(crate::alloc::arena::MOST_HEAPS),
            false => 1,
        }
    }

    /// The other colors of the heap that a color belongs to.
    fn beside(&self, color: Color) -> Vec<Color> {
        let heaps = self.heaps();
        let own = self.colors.iter().position(|c| c == color).unwrap_or(0) % heaps;
        let same = |(place, other): &(usize, Color)| place % heaps == own && *other != color;
        let all = self.colors.iter().enumerate().filter(same);
        all.map(|(_, other)| other).collect()
    }
}

/// Makes sure that this process may use these colors.
fn granted(connection: &mut Connection, colors: &Colors) -> Result<()> {
    let (own, of) = connection.colors()?;
    colors.check(of)?;
    if colors.is_empty() {
        return Err(Error::new("no colors are named").remedy("name some: `--colors 0-3`"));
    }
    let missing = colors.difference(&own);
    if !missing.is_empty() {
        let grant = Request::Grant {
            holder: Holder::Pid(std::process::id()),
            colors: missing.clone().into(),
            pages: None,
            access: Access::Full,
        };
        connection.ask(&grant).map_err(|e| {
            let user = rustix::process::geteuid().as_raw();
            Error::new(format!(
                "colors {missing} are not granted to this process, and it cannot have them: {}",
                e.cause()
            ))
            .remedy(format!(
                "ask the operator: `warmset color grant uid:{user} {missing}`"
            ))
        })?;
    }
    Ok(())
}

/// How many tiles code and data may take: half of what is free at most, where the server says what
/// that is, so that the heap has some.
fn segments(connection: &mut Connection, plan: &Plan) -> usize {
    let most = (plan.segments.get() / TILE as u64) as usize;
    match connection.ask(&Request::List {}) {
        Ok(Answer::List { summary }) => {
            let free = plan
                .colors
                .iter()
                .filter_map(|c| summary.pages.get(c.index()));
            let least = free.map(|pages| pages.free).min().unwrap_or(0) as usize / TILE_PAGES;
            most.min(least * plan.colors.len() / 2)
        }
        // Only the operator is told.
        _ => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_once() {
        let own = Path::new("/run/a/libwarmset-preload.so");
        let text = |others: Option<&str>| preloaded(own, others.map(OsString::from));
        assert_eq!(text(None), own.as_os_str());
        assert_eq!(text(Some("")), own.as_os_str());
        assert_eq!(
            text(Some("/run/b/libwarmset-preload.so:libx.so /y/z.so")),
            "/run/a/libwarmset-preload.so:libx.so:/y/z.so"
        );
    }
}
