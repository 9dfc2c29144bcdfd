//! What the supervisor of a program knows, and how it answers: which process has which tiles.
//!
//! One thread waits for all connections at once, and a request is answered when all of it has
//! arrived: a process that connects and says nothing delays nobody. Processes are known by
//! descriptors (pidfd_open(2)), so that the tiles of one that ended return even where its number is
//! another's by then.

use super::Plan;
use super::client::{self, Asking, Request};
use crate::inspect::{self, Report};
use crate::message::{
    BEGIN, GIVE_BACK, MOST_TILES, REPORT, SECRET, TAKE, TAKE_SEGMENT, TAKE_STACK,
};
use model::{Error, Result};
use partition::client::Connection;
use partition::frame::FrameNumbers;
use partition::ledger::Peer;
use partition::tile::TILE;
use partition::{Color, socket};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// The most connections whose requests have not arrived. Beyond, the oldest is cut off: programs
/// send a request at once, so that it has waited for nothing for the longest time.
pub(super) const MOST_ASKING: usize = 256;
/// The most bytes of a reason why there are no tiles.
const MOST_REASON: usize = 250;

/// A process that has tiles.
#[derive(Debug)]
struct Process {
    descriptor: OwnedFd,
    tiles: Vec<u32>,
    /// How many tiles count as code and data.
    in_segments: usize,
}

/// What a process of this run knows.
pub(super) type Secret = [u8; SECRET];

/// What the supervisor knows.
pub(super) struct Supervisor<'a> {
    plan: &'a Plan,
    connection: Connection,
    secret: Secret,
    user: u32,
    numbers: Option<FrameNumbers>,
    /// The color of each frame that was ever given.
    frames: HashMap<u64, Color>,
    processes: BTreeMap<u32, Process>,
    /// Connections in the order in which they came.
    asking: Vec<Asking>,
    /// Tiles that may still be used for segments.
    segments: usize,
    pub(super) reports: Vec<Report>,
    pub(super) ran_out: bool,
    /// The most tiles that were held at a time.
    most_held: usize,
}

/// What happened, of all that is waited for.
#[derive(Default)]
struct Happened {
    program_ended: bool,
    /// By their places.
    asking: Vec<usize>,
    ended: Vec<u32>,
    knocked: bool,
}

impl<'a> Supervisor<'a> {
    /// For programs that know this secret.
    pub(super) fn new(
        plan: &'a Plan,
        connection: Connection,
        secret: Secret,
        // How many tiles code and data may take.
        segments: usize,
    ) -> Self {
        Supervisor {
            plan,
            connection,
            secret,
            user: rustix::process::geteuid().as_raw(),
            numbers: FrameNumbers::of_this_process(),
            frames: HashMap::new(),
            processes: BTreeMap::new(),
            asking: Vec::new(),
            segments,
            reports: Vec::new(),
            ran_out: false,
            most_held: 0,
        }
    }

    /// The most memory that was held at a time, in bytes.
    pub(super) fn most_held(&self) -> u64 {
        (self.most_held * TILE) as u64
    }

    /// Answers until the program has ended, and processes that it left behind.
    ///
    /// # Errors
    /// The system does not tell what happens.
    pub(super) fn serve(&mut self, listener: &UnixListener, program: &OwnedFd) -> Result<()> {
        let failed = |e: IoError| Error::new(format!("cannot wait for the program: {e}"));
        listener.set_nonblocking(true).map_err(failed)?;
        let mut program = Some(program);
        loop {
            if program.is_none() && self.processes.is_empty() {
                return Ok(());
            }
            let happened = self.wait(listener, program).map_err(failed)?;
            self.hear(&happened.asking);
            for pid in happened.ended {
                self.forget_ended(pid);
            }
            if happened.knocked {
                self.let_in(listener);
            }
            if happened.program_ended {
                program = None;
            }
        }
    }

    /// Waits until something happens.
    fn wait(
        &self,
        listener: &UnixListener,
        // Until it has ended.
        program: Option<&OwnedFd>,
    ) -> std::io::Result<Happened> {
        let mut all = vec![PollFd::new(listener, PollFlags::IN)];
        all.extend(
            self.asking
                .iter()
                .map(|a| PollFd::new(a.stream(), PollFlags::IN)),
        );
        let processes = self.processes.values();
        all.extend(processes.map(|p| PollFd::new(&p.descriptor, PollFlags::IN)));
        all.extend(program.map(|program| PollFd::new(program, PollFlags::IN)));
        match poll(&mut all, None) {
            // A signal is the program's to heed.
            Err(rustix::io::Errno::INTR) => return Ok(Happened::default()),
            answer => answer?,
        };
        let mut ready = all.iter().map(|fd| !fd.revents().is_empty());
        Ok(Happened {
            knocked: ready.next().unwrap_or(false),
            asking: (0..self.asking.len())
                .filter(|_| ready.next().unwrap_or(false))
                .collect(),
            ended: (self.processes.keys().copied())
                .filter(|_| ready.next().unwrap_or(false))
                .collect(),
            program_ended: ready.next().unwrap_or(false),
        })
    }

    /// Takes connections in. Those of other users are closed.
    fn let_in(&mut self, listener: &UnixListener) {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let asking = Asking::of(stream, self.user);
                    self.asking.extend(asking.ok().flatten());
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    // No descriptor is left, or no memory for one.
                    self.make_room(0);
                    std::thread::sleep(Duration::from_millis(10));
                    break;
                }
            }
            self.make_room(MOST_ASKING);
        }
    }

    /// Cuts off the oldest connections that have not asked, until so many are left.
    fn make_room(&mut self, most: usize) {
        if self.asking.len() > most {
            // Requests may have arrived meanwhile.
            self.hear(&(0..self.asking.len()).collect::<Vec<_>>());
            let beyond = self.asking.len().saturating_sub(most);
            self.asking.drain(..beyond);
        }
    }

    /// Answers those of the connections at these places whose requests have arrived.
    fn hear(&mut self, places: &[usize]) {
        let mut still = Vec::new();
        for (place, mut asking) in std::mem::take(&mut self.asking).into_iter().enumerate() {
            if !places.contains(&place) {
                still.push(asking);
                continue;
            }
            match asking.receive(&self.secret) {
                Ok(None) => still.push(asking),
                Ok(Some(request)) => {
                    // A process that hung up in the middle has ended, which is noticed.
                    let _ = self.answer(asking.stream(), asking.peer, &request);
                }
                // It hung up, or is no program of this run.
                Err(_) => {}
            }
        }
        self.asking = still;
    }

    /// The tiles of a process return.
    fn forget(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            self.segments += process.in_segments;
            // Where the server is gone, they are nobody's any more.
            let _ = self.connection.return_tiles(&process.tiles);
        }
    }

    /// The tiles of a process that has ended return. Its number may be another's by now.
    fn forget_ended(&mut self, pid: u32) {
        let process = self.processes.get(&pid);
        if process.is_some_and(|process| client::has_ended(&process.descriptor)) {
            self.forget(pid);
        }
    }

    /// The books of the process at the other end.
    fn process_of(&mut self, stream: &UnixStream, peer: Peer) -> std::io::Result<&mut Process> {
        self.forget_ended(peer.pid);
        Ok(match self.processes.entry(peer.pid) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(Process {
                descriptor: client::process_of(stream, peer)?,
                tiles: Vec::new(),
                in_segments: 0,
            }),
        })
    }

    fn answer(&mut self, stream: &UnixStream, peer: Peer, asked: &Request) -> std::io::Result<()> {
        let body = &asked.body;
        match asked.kind {
            kind @ (TAKE | TAKE_SEGMENT | TAKE_STACK) if body.len() <= 2 * MOST_TILES => {
                let color = |b: &[u8]| Color(u16::from_ne_bytes([b[0], b[1]]));
                let colors: Vec<Color> = body.chunks_exact(2).map(color).collect();
                self.hand_out(stream, peer, kind, &colors)
            }
            GIVE_BACK => {
                let number = |b: &[u8]| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
                let given: Vec<u32> = body.chunks_exact(4).map(number).collect();
                if self.processes.contains_key(&peer.pid) {
                    let process = self.process_of(stream, peer)?;
                    let own = |tile: &u32| process.tiles.contains(tile);
                    let own: Vec<u32> = given.into_iter().filter(own).collect();
                    process.tiles.retain(|tile| !own.contains(tile));
                    self.forget_empty(peer.pid);
                    self.connection.return_tiles(&own).map_err(IoError::other)?;
                }
                socket::send(stream, &[0; 4], &[])
            }
            BEGIN => {
                self.forget(peer.pid);
                socket::send(stream, &[0; 4], &[])
            }
            REPORT => {
                let report = inspect::process(peer.pid, body, &self.frames);
                self.reports.push(report);
                socket::send(stream, &[0; 4], &[])
            }
            _ => Err(IoError::from(ErrorKind::InvalidData)),
        }
    }

    /// Sends tiles, and books them for the process. What cannot be sent returns.
    fn hand_out(
        &mut self,
        stream: &UnixStream,
        peer: Peer,
        kind: u32,
        colors: &[Color],
    ) -> std::io::Result<()> {
        self.process_of(stream, peer)?;
        let taken = self.take(kind, colors);
        let (tiles, files) = taken
            .as_ref()
            .map_or((&[][..], &[][..]), |(t, f)| (&t[..], &f[..]));
        // They are the process's before it has them: it may end at any moment.
        let in_segments = if kind == TAKE_SEGMENT { tiles.len() } else { 0 };
        if let Some(process) = self.processes.get_mut(&peer.pid) {
            process.tiles.extend(tiles);
            process.in_segments += in_segments;
        }
        let held = self
            .processes
            .values()
            .map(|process| process.tiles.len())
            .sum();
        self.most_held = self.most_held.max(held);
        let answer = match &taken {
            Ok(_) => [0]
                .iter()
                .chain(tiles)
                .flat_map(|n| n.to_ne_bytes())
                .collect(),
            Err(e) => {
                let why = e.to_string();
                let why = why.bytes().take(MOST_REASON);
                1_u32
                    .to_ne_bytes()
                    .into_iter()
                    .chain(why)
                    .collect::<Vec<u8>>()
            }
        };
        let sent = socket::send(stream, &answer, files);
        if let (Err(_), Some(process)) = (&sent, self.processes.get_mut(&peer.pid)) {
            process.tiles.retain(|tile| !tiles.contains(tile));
            process.in_segments -= in_segments;
            self.segments += in_segments;
            self.connection
                .return_tiles(tiles)
                .map_err(IoError::other)?;
        }
        self.forget_empty(peer.pid);
        sent
    }

    /// A process that has nothing need not be waited for.
    fn forget_empty(&mut self, pid: u32) {
        if self
            .processes
            .get(&pid)
            .is_some_and(|process| process.tiles.is_empty())
        {
            self.forget(pid);
        }
    }

    /// Takes tiles from the server, in the order of the colors. Where a color has run out, another
    /// one of the same heap takes its place. Where all of them have, there are fewer tiles than
    /// asked for; in strict mode the heap and mappings get none then.
    fn take(&mut self, kind: u32, colors: &[Color]) -> Result<(Vec<u32>, Vec<File>)> {
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
        }
        Ok((tiles, files))
    }

    /// Takes tiles of a color, as many as there are up to a number. `refusal`: why there are no
    /// more.
    fn take_some(
        &mut self,
        color: Color,
        most: usize,
        refusal: &mut Option<Error>,
    ) -> Vec<(u32, File)> {
        let mut taken = Vec::new();
        // The server gives all that it is asked for, or nothing.
        let mut step = most;
        while step > 0 && taken.len() < most {
            match self
                .connection
                .take_tiles(color, step.min(most - taken.len()))
            {
                Ok(tiles) => taken.extend(
                    tiles
                        .into_iter()
                        .map(|(tile, file)| (tile, File::from(file))),
                ),
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
