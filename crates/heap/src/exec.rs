//! Unmodified programs in colors: loads a library into them, and supervises what it asks for.
//!
//! The library is carried inside this crate and lies in a file in memory while the program runs: nothing is installed. Each
//! process of the program asks the supervisor for tiles over a socket of its own; the supervisor takes them from the memory
//! server, within what was granted to it, and gives them back when the process ends or begins another program.

use crate::inspect::{self, Report};
use crate::message::{
    BEGIN, Entry, GIVE_BACK, HEAP, MAPPING, MOST_ENTRIES, MOST_TILES, REPORT, SEGMENT, STACK, TAKE,
    TAKE_SEGMENT, TAKE_STACK, VARIABLE,
};
use model::{Bytes, Error, Result};
use partition::client::Connection;
use partition::holder::{Access, Holder};
use partition::protocol::{Answer, Request};
use partition::tile::{TILE, TILE_PAGES};
use partition::{Color, Colors, frame::FrameNumbers, socket};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

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
    /// What its processes found colored at their ends, the program's own first: it is missing where the program was ended by a
    /// signal.
    pub reports: Vec<Report>,
    /// Did heap or mappings ask for colored memory that was not there?
    pub ran_out: bool,
    /// The most colored memory that its processes had at a time.
    pub most_held: Bytes,
}

/// Can a library be loaded into a program? Gives its path.
///
/// # Errors
/// It is not there, or is statically linked, or runs with other rights than its caller's: then the loader ignores libraries.
pub fn check(program: &Path) -> Result<PathBuf> {
    let path = found(program)?;
    checked(&path, 0)?;
    Ok(path)
}

fn found(program: &Path) -> Result<PathBuf> {
    let missing = || {
        Error::new(format!("there is no program `{}`", program.display()))
            .remedy("check its name, or give its path")
    };
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned()).ok_or_else(missing);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
        .ok_or_else(missing)
}

fn checked(path: &Path, depth: usize) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |e: std::io::Error| Error::io(path, "read the program", &e);
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Err(
            Error::new("the program runs with the rights of another user or group (setuid): no library is loaded into it")
                .at(path.display())
                .remedy("run a copy without these rights"),
        );
    }
    let mut bytes = Vec::new();
    Read::take(&file, 1 << 16)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if let Some(line) = bytes.strip_prefix(b"#!")
        && depth < 4
    {
        let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        return match line.split_whitespace().next() {
            Some(interpreter) => checked(&found(Path::new(interpreter))?, depth + 1),
            None => Ok(()),
        };
    }
    let refused = |why: &str| {
        Err(Error::new(why.to_owned())
            .at(path.display())
            .remedy("build it as a dynamically linked program of this machine"))
    };
    let half = |at: usize| {
        bytes
            .get(at..at + 2)
            .map_or(0, |b| usize::from(u16::from_le_bytes([b[0], b[1]])))
    };
    let word = |at: usize| {
        let eight = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
        eight.map_or(0, u64::from_le_bytes) as usize
    };
    if bytes.get(..5) != Some(b"\x7fELF\x02") {
        return refused("this is no 64-bit program: no library can be loaded into it");
    }
    // elf(5): where the program headers are, how long each is, how many there are; 3: the loader's name.
    let (at, each, number) = (word(32), half(54), half(56));
    let dynamic = (0..number).any(|i| bytes.get(at + i * each..at + i * each + 4) == Some(&[3, 0, 0, 0]));
    if !dynamic {
        return refused("the program is statically linked: no library can be loaded into it");
    }
    Ok(())
}

/// What the supervisor knows.
struct Supervisor<'a> {
    plan: &'a Plan,
    connection: Connection,
    numbers: Option<FrameNumbers>,
    /// The color of each frame that was ever given.
    frames: HashMap<u64, Color>,
    /// Tiles by process.
    held: BTreeMap<u32, Vec<u32>>,
    /// Tiles that may still be used for segments.
    segments: usize,
    /// Tiles that a process uses for segments.
    in_segments: BTreeMap<u32, usize>,
    reports: Vec<Report>,
    ran_out: bool,
    /// The most tiles that were held at a time.
    most_held: usize,
}

/// Runs a program with its memory in colors, and waits for it. The colors are granted to this process if they are not yet
/// and it is the operator's.
///
/// # Errors
/// Nobody serves; the colors cannot be had; the program cannot be started.
pub fn run(server: &Path, plan: &Plan, program: &Path, arguments: &[OsString]) -> Result<Ran> {
    let path = check(program)?;
    let mut connection = Connection::open(server)?;
    granted(&mut connection, &plan.colors)?;
    let segments = segments(&mut connection, plan);
    let library = library()?;
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "warmset-color-exec-{}-{}",
        std::process::id(),
        RUNS.fetch_add(1, Ordering::Relaxed)
    );
    let failed = |e: std::io::Error| Error::new(format!("cannot listen for the program: {e}"));
    let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
    let listener = UnixListener::bind_addr(&address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let mut supervisor = Supervisor {
        plan,
        connection,
        numbers: FrameNumbers::of_this_process(),
        frames: HashMap::new(),
        held: BTreeMap::new(),
        segments,
        in_segments: BTreeMap::new(),
        reports: Vec::new(),
        ran_out: false,
        most_held: 0,
    };
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let supervising = scope.spawn(|| {
            supervisor.serve(&listener, &ended);
            supervisor
        });
        let mut preload = OsString::from(format!("/proc/{}/fd/{}", std::process::id(), library.as_raw_fd()));
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|o| !o.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let ran = Command::new(&path)
            .args(arguments)
            .env("LD_PRELOAD", preload)
            .env(&*VARIABLE.to_string_lossy(), plan.setting(&name))
            .spawn()
            .and_then(|mut child| Ok((child.id(), child.wait()?)))
            .map_err(|e| Error::io(&path, "run the program", &e));
        ended.store(true, Ordering::Relaxed);
        let mut supervisor = supervising
            .join()
            .map_err(|_| Error::new("supervising the program broke off: a defect of this program"))?;
        let (id, status) = ran?;
        supervisor.reports.sort_by_key(|r| r.process != id);
        Ok(Ran {
            status,
            process: id,
            ran_out: supervisor.ran_out,
            most_held: Bytes::new((supervisor.most_held * TILE) as u64),
            reports: supervisor.reports,
        })
    })
}

impl Plan {
    fn setting(&self, socket: &str) -> String {
        let colors: Vec<String> = self.colors.iter().map(|c| c.to_string()).collect();
        let heaps = self.heaps();
        let parts = self.parts.iter().fold(0, |all, part| all | part.bit());
        format!(
            "{socket};{};{heaps};{};{parts};{};{}",
            colors.join(","),
            u8::from(self.by_task),
            self.stack.get(),
            u8::from(self.strict)
        )
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
            // SAFETY: a call without arguments.
            let user = unsafe { libc::geteuid() };
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

/// How many tiles code and data may take: half of what is free at most, where the server says what that is, so that the
/// heap has some.
fn segments(connection: &mut Connection, plan: &Plan) -> usize {
    let most = (plan.segments.get() / TILE as u64) as usize;
    match connection.ask(&Request::List {}) {
        Ok(Answer::List { summary }) => {
            let free = plan.colors.iter().filter_map(|c| summary.pages.get(c.index()));
            let least = free.map(|pages| pages.0).min().unwrap_or(0) as usize / TILE_PAGES;
            most.min(least * plan.colors.len() / 2)
        }
        // Only the operator is told.
        _ => most,
    }
}

/// The library as a file in memory, which others find under this process.
fn library() -> Result<File> {
    // SAFETY: the name is a C string. The descriptor is made here and belongs to nobody else.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"warmset-preload".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(Error::new(format!(
                "cannot make a file in memory: {}",
                std::io::Error::last_os_error()
            )));
        }
        File::from(OwnedFd::from_raw_fd(fd))
    };
    file.write_all(LIBRARY)
        .map_err(|e| Error::new(format!("cannot write a file in memory: {e}")))?;
    Ok(file)
}

impl Supervisor<'_> {
    /// Answers until the program has ended, and processes that it left behind.
    fn serve(&mut self, listener: &UnixListener, ended: &AtomicBool) {
        const TICK: Duration = Duration::from_millis(2);
        let mut idle = 0_u32;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    idle = 0;
                    // Whoever hangs up in the middle has ended, which is noticed below.
                    let _ = self.attend(&stream);
                }
                Err(_) => {
                    self.take_in();
                    if ended.load(Ordering::Relaxed) && self.held.is_empty() {
                        return;
                    }
                    // A program asks often at its beginning, and seldom later.
                    idle = (idle + 1).min(10);
                    wait_for(listener, TICK * idle * 2);
                }
            }
        }
    }

    /// Tiles of processes that ended return.
    fn take_in(&mut self) {
        let gone: Vec<u32> = self
            .held
            .keys()
            .copied()
            .filter(|pid| !Path::new("/proc").join(pid.to_string()).exists() || is_zombie(*pid))
            .collect();
        for pid in gone {
            self.forget(pid);
        }
    }

    fn forget(&mut self, pid: u32) {
        self.segments += self.in_segments.remove(&pid).unwrap_or(0);
        if let Some(tiles) = self.held.remove(&pid) {
            // Where the server is gone, they are nobody's any more.
            let _ = self.connection.return_tiles(&tiles);
        }
    }

    fn attend(&mut self, mut stream: &UnixStream) -> std::io::Result<()> {
        use std::io::Error as IoError;
        let wrong = || IoError::from(std::io::ErrorKind::InvalidData);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let peer = socket::peer(stream).map_err(IoError::other)?;
        // SAFETY: a call without arguments.
        let own = unsafe { libc::geteuid() };
        if peer.uid != own && peer.uid != 0 && own != 0 {
            return Err(wrong());
        }
        let mut word = [0; 4];
        stream.read_exact(&mut word)?;
        let length = u32::from_ne_bytes(word) as usize;
        if !(4..=4 + MOST_ENTRIES * size_of::<Entry>()).contains(&length) {
            return Err(wrong());
        }
        stream.read_exact(&mut word)?;
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body)?;
        let numbers: Vec<u32> = body
            .chunks_exact(4)
            .map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        match u32::from_ne_bytes(word) {
            kind @ (TAKE | TAKE_SEGMENT | TAKE_STACK) if body.len() <= 2 * MOST_TILES => {
                let colors: Vec<Color> = body
                    .chunks_exact(2)
                    .map(|b| Color(u16::from_ne_bytes([b[0], b[1]])))
                    .collect();
                match self.take(peer.pid, kind, &colors) {
                    Ok((tiles, files)) => {
                        let mut answer = vec![0; 4];
                        tiles.iter().for_each(|t| answer.extend(t.to_ne_bytes()));
                        socket::send(stream, &answer, &files)
                    }
                    Err(e) => {
                        let mut answer = 1_u32.to_ne_bytes().to_vec();
                        answer.extend(e.to_string().bytes().take(250));
                        socket::send(stream, &answer, &[])
                    }
                }
            }
            GIVE_BACK => {
                if let Some(held) = self.held.get_mut(&peer.pid) {
                    let own: Vec<u32> = numbers.into_iter().filter(|t| held.contains(t)).collect();
                    held.retain(|t| !own.contains(t));
                    self.connection.return_tiles(&own).map_err(IoError::other)?;
                }
                socket::send(stream, &[0; 4], &[])
            }
            BEGIN => {
                self.forget(peer.pid);
                socket::send(stream, &[0; 4], &[])
            }
            REPORT => {
                let report = inspect::process(peer.pid, &body, &self.frames);
                self.reports.push(report);
                socket::send(stream, &[0; 4], &[])
            }
            _ => Err(wrong()),
        }
    }

    /// Takes tiles from the server, in the order of the colors. Where a color has run out, another one
    /// of the same heap takes its place. Where all of them have, there are fewer tiles than asked for;
    /// in strict mode the heap and mappings get none then.
    fn take(&mut self, pid: u32, kind: u32, colors: &[Color]) -> Result<(Vec<u32>, Vec<File>)> {
        let colors = match kind {
            TAKE_SEGMENT => &colors[..colors.len().min(self.segments)],
            _ => colors,
        };
        if let Some(other) = colors.iter().find(|c| !self.plan.colors.contains(**c)) {
            return Err(Error::new(format!("color {other} is not this program's")));
        }
        let mut wanted: BTreeMap<Color, usize> = BTreeMap::new();
        for color in colors {
            *wanted.entry(*color).or_default() += 1;
        }
        let mut taken: BTreeMap<Color, Vec<(u32, File)>> = BTreeMap::new();
        let mut refusal = None;
        for (color, number) in wanted {
            let mut missing = number;
            for from in [color].into_iter().chain(self.plan.beside(color)) {
                if missing == 0 {
                    break;
                }
                let tiles = self.take_some(from, missing, &mut refusal);
                missing -= tiles.len();
                taken.entry(color).or_default().extend(tiles);
            }
        }
        // In the order of the request, as far as there are some.
        let own = |color: &Color| taken.get_mut(color).and_then(Vec::pop);
        let (tiles, files): (Vec<u32>, Vec<File>) = colors.iter().filter_map(own).unzip();
        if kind == TAKE && tiles.len() < colors.len() {
            self.ran_out = true;
            if self.plan.strict {
                drop(files);
                self.connection.return_tiles(&tiles)?;
                return Err(refusal.unwrap_or_else(|| Error::new("there are no more tiles")));
            }
        }
        if kind == TAKE_SEGMENT {
            self.segments -= tiles.len();
            *self.in_segments.entry(pid).or_default() += tiles.len();
        }
        self.held.entry(pid).or_default().extend(&tiles);
        let held = self.held.values().map(Vec::len).sum();
        self.most_held = self.most_held.max(held);
        Ok((tiles, files))
    }

    /// Takes tiles of a color, as many as there are up to a number. `refusal`: why there are no more.
    fn take_some(&mut self, color: Color, most: usize, refusal: &mut Option<Error>) -> Vec<(u32, File)> {
        let mut taken = Vec::new();
        // The server gives all that it is asked for, or nothing.
        let mut step = most;
        while step > 0 && taken.len() < most {
            match self.connection.take_tiles(color, step.min(most - taken.len())) {
                Ok(tiles) => taken.extend(tiles.into_iter().map(|(tile, file)| (tile, File::from(file)))),
                Err(e) => {
                    *refusal = Some(e);
                    step /= 2;
                }
            }
        }
        if let Some(numbers) = &self.numbers {
            for (_, file) in &taken {
                let frames = inspect::frames(file, numbers);
                self.frames.extend(frames.into_iter().map(|f| (f, color)));
            }
        }
        taken
    }
}

/// Sleeps until somebody knocks.
fn wait_for(listener: &UnixListener, most: Duration) {
    let mut waited = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which lives through the call.
    unsafe { libc::poll(&mut waited, 1, most.as_millis() as libc::c_int) };
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|s| s.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}
