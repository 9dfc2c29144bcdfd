//! Users who mean harm, each a process of its own user: what they hold keeps nobody else from being
//! served, what they kept shows nothing of others, and what they break is theirs.
//!
//! `WARMSET_HOSTILE=10000 cargo test -p warmset-partition --test hostile` makes as many requests
//! and prints how long an ordinary user's took.

mod running;

use model::Bytes;
use partition::client::Connection;
use partition::ledger::{Access, Holder};
use partition::protocol::Request;
use partition::server::MOST_OF_USER;
use partition::tile::{TILE, TILE_PAGES};
use partition::{Color, Colors};
use rand::{RngExt, SeedableRng};
use running::{Running, claimed};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;
use testing::{NotRun, Outcome};

/// Names the socket, and what to do, to the processes that these tests start of themselves.
const SOCKET: &str = "WARMSET_TEST_HOSTILE_SOCKET";
const ROLE: &str = "WARMSET_TEST_HOSTILE_ROLE";
const PAGE: usize = TILE / TILE_PAGES;
/// Users that need no entry anywhere.
const USERS: [u32; 4] = [61_001, 61_002, 61_003, 61_004];

/// A process of another user.
struct Other {
    child: Child,
    tell: ChildStdin,
    said: Box<dyn Iterator<Item = String>>,
}

impl Other {
    /// Waits for a line that begins so, and gives the rest of it.
    fn says(&mut self, begin: &str) -> String {
        self.said
            .find_map(|line| line.strip_prefix(begin).map(|rest| rest.trim().to_owned()))
            .unwrap_or_else(|| panic!("it ended before it said {begin:?}"))
    }
    fn tell(&mut self, line: &str) {
        writeln!(self.tell, "{line}").unwrap();
    }
    fn end(mut self) {
        self.tell("end");
        assert!(self.child.wait().unwrap().success());
    }
}

/// A server that other users reach, and a program that they may run.
struct Place {
    server: Running,
    program: PathBuf,
    _dir: tempfile::TempDir,
}

impl Place {
    fn new(colors: u16, each: usize) -> Result<Self, NotRun> {
        // SAFETY: a call without arguments.
        if unsafe { libc::geteuid() } != 0 {
            return Err(NotRun::because("becoming other users takes root"));
        }
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let program = dir.path().join("program");
        std::fs::copy("/proc/self/exe", &program).unwrap();
        open(dir.path());
        open(&program);
        let server = Running::start(colors, claimed(colors, each));
        open(server.socket.parent().unwrap());
        Ok(Place {
            server,
            program,
            _dir: dir,
        })
    }

    fn start(&self, user: u32, role: &str) -> Other {
        let mut child = Command::new(&self.program)
            .args(["roles", "--exact", "--nocapture"])
            .current_dir("/")
            .env(SOCKET, &self.server.socket)
            .env(ROLE, role)
            .uid(user)
            .gid(user)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Other {
            tell: child.stdin.take().unwrap(),
            said: Box::new(said.map_while(Result::ok)),
            child,
        }
    }
}

fn wait_for(what: &str) {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    assert_eq!(line.trim(), what);
}

/// Holds something until the test says that it has seen enough.
fn until_end(_held: impl Sized) {
    wait_for("end");
}

/// Pages on their way through a pipe, from a file or from memory.
struct Kept(File);

impl Kept {
    fn splice(file: &OwnedFd, from: i64, pages: usize) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut at = from;
        // SAFETY: a call with open files; the offset lives through it.
        let moved = unsafe {
            let to = writer.as_raw_fd();
            libc::splice(
                file.as_raw_fd(),
                &mut at,
                to,
                std::ptr::null_mut(),
                pages * PAGE,
                0,
            )
        };
        assert_eq!(moved, (pages * PAGE) as isize);
        Kept(OwnedFd::from(reader).into())
    }
    /// From a mapping of the file that is gone afterwards.
    fn vmsplice(file: &OwnedFd) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        // SAFETY: a new mapping of an open file, unmapped below; the part lives through the call.
        unsafe {
            let map = libc::mmap(
                std::ptr::null_mut(),
                TILE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            assert_ne!(map, libc::MAP_FAILED);
            let part = libc::iovec {
                iov_base: map,
                iov_len: TILE,
            };
            assert_eq!(
                libc::vmsplice(writer.as_raw_fd(), &part, 1, 0),
                TILE as isize
            );
            libc::munmap(map, TILE);
        }
        Kept(OwnedFd::from(reader).into())
    }
    fn contents(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        bytes
    }
}

fn write(file: &OwnedFd, byte: u8) {
    let file = File::from(file.try_clone().unwrap());
    file.write_all_at(&[byte; TILE], 0).unwrap();
}

fn is_zero(file: &OwnedFd) -> bool {
    let mut bytes = vec![1; TILE];
    let file = File::from(file.try_clone().unwrap());
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes.iter().all(|b| *b == 0)
}

fn punch(file: &OwnedFd) {
    let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a call with plain numbers on an open file.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), how, 0, TILE as libc::off_t) };
    assert_eq!(done, 0);
}

/// Keeps pages of six tiles in pipes, gives all back, and looks at them when others have them.
fn keeper(mut server: Connection) {
    let tiles = server.take_tiles(Color(0), 12).unwrap();
    let mut kept = Vec::new();
    for (place, (_, file)) in tiles.iter().enumerate() {
        write(file, 0x5a);
        match place {
            0..3 => kept.push(Kept::splice(file, 0, TILE_PAGES)),
            3..6 => kept.push(Kept::vmsplice(file)),
            _ => {}
        }
    }
    let ids: Vec<u32> = tiles.iter().map(|(id, _)| *id).collect();
    drop(tiles);
    server.return_tiles(&ids).unwrap();
    println!("returned");
    wait_for("look");
    let contents: Vec<u8> = kept.into_iter().flat_map(Kept::contents).collect();
    let foreign = contents.iter().filter(|b| **b != 0x5a).count();
    println!("looked {} {foreign}", contents.len());
    wait_for("end");
}

/// Takes all that there is of the first color, and writes to it.
fn writer(mut server: Connection) -> impl Sized {
    let tiles: Vec<(u32, OwnedFd)> = std::iter::from_fn(|| server.take_tiles(Color(0), 1).ok())
        .flatten()
        .collect();
    let dirty = tiles.iter().filter(|(_, file)| !is_zero(file)).count();
    tiles.iter().for_each(|(_, file)| write(file, 0xc3));
    println!("written {} {dirty}", tiles.len());
    (server, tiles)
}

/// Connects twice as often as it may, with lines that never end and files on all of them.
fn crowd(socket: &Path) -> impl Sized {
    let files: Vec<File> = (0..60).map(|_| File::open("/dev/null").unwrap()).collect();
    let open: Vec<UnixStream> = (0..2 * MOST_OF_USER)
        .filter_map(|_| {
            let stream = UnixStream::connect(socket).ok()?;
            // Who is refused cannot send any more; nobody waits to hear it.
            let _ = partition::socket::send(&stream, b"{", &files[..1]);
            Some(stream)
        })
        .collect();
    for stream in open.iter().step_by(2) {
        for _ in 0..4 {
            let _ = partition::socket::send(stream, b"{", &files);
        }
    }
    println!("crowded {}", open.len());
    (open, files)
}

/// Exchanges the frames of all that it may have, gives it back, and asks for more.
fn breaker(mut server: Connection) {
    let tiles = server.take_tiles(Color(0), 2).unwrap();
    tiles.iter().for_each(|(_, file)| punch(file));
    tiles.iter().for_each(|(_, file)| write(file, 1));
    let ids: Vec<u32> = tiles.iter().map(|(id, _)| *id).collect();
    drop(tiles);
    server.return_tiles(&ids).unwrap();
    println!("broken {}", server.take_tiles(Color(0), 1).unwrap_err());
    wait_for("end");
}

/// Gives back what it goes on using, and asks for more.
fn hoarder(mut server: Connection) -> impl Sized {
    let mut kept = Vec::new();
    let mut refusal = None;
    while refusal.is_none() {
        match server.take_tiles(Color(0), 1) {
            Ok(taken) => {
                let ids: Vec<u32> = taken.iter().map(|(id, _)| *id).collect();
                kept.extend(taken);
                server.return_tiles(&ids).unwrap();
            }
            Err(e) => refusal = Some(e),
        }
    }
    println!("hoards {} {}", kept.len() * TILE_PAGES, refusal.unwrap());
    (server, kept)
}

/// Asks for all that may not be, keeps and breaks what it gets. Its color and its mark are told by
/// its user.
fn mischief(socket: &Path, requests: u64) {
    // SAFETY: a call without arguments.
    let user = unsafe { libc::geteuid() };
    let (color, mark) = (Color((user - USERS[0]) as u16), (user % 250) as u8 + 1);
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(u64::from(user));
    let mut server = Connection::open(socket).unwrap();
    let (mut kept, mut mapped) = (Vec::new(), Vec::new());
    let (mut leaks, mut got) = (0_u64, 0_u64);
    for _ in 0..requests {
        match random.random_range(0..12) {
            0 => {
                // What is not understood, and what never ends.
                let stream = UnixStream::connect(socket).unwrap();
                let _ = (&stream).write_all(b"{\"do\":\"fly\"}\n\n\0\0\n{\"do\":");
            }
            1 => {
                let others = (0..4000).map(|_| random.random_range(0..1000)).collect();
                assert!(server.ask(&Request::GiveBack { tiles: others }).is_err());
            }
            2 => drop(server.ask(&Request::List {}).unwrap_err()),
            3 => drop(server.take_tiles(Color((color.0 + 1) % 3), 1).unwrap_err()),
            4 => drop(server.take_tiles(color, 100_000).unwrap_err()),
            5 => server = Connection::open(socket).unwrap(),
            6 => mapped.truncate(0),
            what => {
                let Ok(tiles) = server.take_tiles(color, random.random_range(1..4)) else {
                    continue;
                };
                got += 1;
                let ids: Vec<u32> = tiles.iter().map(|(id, _)| *id).collect();
                for (_, file) in tiles {
                    leaks += u64::from(!is_zero(&file));
                    write(&file, mark);
                    match (what, random.random_range(0..40)) {
                        (7, _) => mapped.push(file),
                        (_, 0) => kept.push(Kept::splice(&file, 0, 1)),
                        (_, 1) => punch(&file),
                        _ => {}
                    }
                }
                server.return_tiles(&ids).unwrap();
            }
        }
        mapped.truncate(16);
    }
    let seen = kept.into_iter().flat_map(Kept::contents);
    leaks += seen.filter(|b| *b != mark).count() as u64;
    println!("done {leaks} {got}");
    wait_for("end");
}

/// An ordinary user: takes, looks, writes, gives back, until it is told to stop. Says how long
/// answers took.
fn ordinary(socket: &Path, requests: u64) {
    let mut took = Vec::new();
    let mut leaks = 0_u64;
    let mut server = Connection::open(socket).unwrap();
    for round in 0..requests {
        if round % 16 == 0 {
            let begun = Instant::now();
            server = Connection::open(socket).unwrap();
            server.colors().unwrap();
            took.push(begun.elapsed().as_micros());
        }
        let begun = Instant::now();
        let memory = server.map(&Colors::from_iter([Color(3)]), Bytes::from_kib(128));
        took.push(begun.elapsed().as_micros());
        let mut memory = memory.unwrap();
        leaks += u64::from(memory.bytes().iter().any(|b| *b != 0));
        memory.bytes_mut().fill(0xee);
        let begun = Instant::now();
        server.give_back(memory).unwrap();
        took.push(begun.elapsed().as_micros());
    }
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 1000];
    println!(
        "done {leaks} {} {} {} {} {}",
        took.len(),
        at(500),
        at(990),
        at(999),
        at(1000)
    );
    wait_for("end");
}

/// What the processes of other users do.
fn roles() -> Outcome {
    let (Some(socket), Ok(role)) = (std::env::var_os(SOCKET), std::env::var(ROLE)) else {
        return Ok(());
    };
    let socket = Path::new(&socket);
    let connect = || Connection::open(socket).unwrap();
    match role.split_once(' ').unwrap_or((&role, "0")) {
        ("keeper", _) => keeper(connect()),
        ("writer", _) => until_end(writer(connect())),
        ("crowd", _) => until_end(crowd(socket)),
        ("breaker", _) => breaker(connect()),
        ("hoarder", _) => until_end(hoarder(connect())),
        ("mischief", requests) => mischief(socket, requests.parse().unwrap()),
        ("ordinary", requests) => ordinary(socket, requests.parse().unwrap()),
        other => panic!("{other:?}"),
    }
    Ok(())
}

/// The numbers in a line.
fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn pages_kept_in_pipes_show_nothing_of_the_next_user() -> Outcome {
    let place = Place::new(1, 12)?;
    let server = &place.server;
    server.grant(Holder::Uid(USERS[0]), "0", None);
    let mut keeper = place.start(USERS[0], "keeper");
    keeper.says("returned");
    server.operator(&Request::TakeBack {
        holder: Holder::Uid(USERS[0]),
        colors: "0".parse().unwrap(),
        access: Access::Full,
    });
    server.grant(Holder::Uid(USERS[1]), "0", None);
    let mut writer = place.start(USERS[1], "writer");
    let written = numbers(&writer.says("written"));
    // What was not kept is there for the next; a tile or two may have lost a frame to the system.
    assert!(written[0] >= 4, "{written:?}: {:?}", server.summary());
    assert_eq!(written[1], 0, "tiles that were not zero");
    keeper.tell("look");
    let looked = numbers(&keeper.says("looked"));
    assert_eq!(
        looked,
        [(6 * TILE) as u64, 0],
        "bytes in pipes, and bytes of others"
    );
    if server.frames().is_some() {
        // Where frames have numbers, what lost some is struck off.
        assert!(server.summary().struck[0] >= (6 * TILE_PAGES) as u64);
    }
    writer.end();
    keeper.end();
    Ok(())
}

fn a_user_who_holds_all_that_he_can_keeps_nobody_out() -> Outcome {
    let place = Place::new(4, 4)?;
    let server = &place.server;
    server.grant(Holder::Uid(USERS[3]), "3", None);
    // What the crowds send along; no other test opens it so often.
    let files = || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == Path::new("/dev/null")))
            .count()
    };
    let mut crowds: Vec<Other> = USERS[..3]
        .iter()
        .map(|user| place.start(*user, "crowd"))
        .collect();
    for crowd in &mut crowds {
        assert_eq!(crowd.says("crowded"), (2 * MOST_OF_USER).to_string());
    }
    // Who asks now has come after all of them.
    let clients = server.summary().clients;
    for user in &USERS[..3] {
        let own = clients
            .iter()
            .filter(|client| client.peer.uid == *user)
            .count();
        assert!(own <= MOST_OF_USER, "user {user} has {own} connections");
    }
    // One on each connection, and a few that this process has anyway.
    assert!(files() <= 3 * MOST_OF_USER + 16, "{} files", files());
    let mut served = place.start(USERS[3], "ordinary 20");
    assert_eq!(numbers(&served.says("done"))[0], 0);
    served.end();
    let _ = server.summary();
    crowds.into_iter().for_each(Other::end);
    Ok(())
}

fn exchanged_frames_cost_only_who_exchanged_them() -> Outcome {
    let place = Place::new(4, 4)?;
    let server = &place.server;
    let quota = Some((2 * TILE_PAGES) as u64);
    server.grant(Holder::Uid(USERS[0]), "0", quota);
    server.grant(Holder::Uid(USERS[3]), "3", None);
    let mut breaker = place.start(USERS[0], "breaker");
    let refusal = breaker.says("broken");
    assert!(refusal.contains("quota of 32"), "{refusal}");
    let spoiled = server.summary().spoiled;
    assert_eq!(spoiled.len(), 1);
    assert_eq!(
        (&spoiled[0].holder, spoiled[0].pages),
        (&Holder::Uid(USERS[0]), (2 * TILE_PAGES) as u64)
    );
    let struck = server.summary().struck;
    assert_eq!(struck[1..], [0, 0, 0]);
    let mut served = place.start(USERS[3], "ordinary 4");
    assert_eq!(numbers(&served.says("done"))[0], 0);
    served.end();
    breaker.end();
    Ok(())
}

fn what_is_given_back_and_still_used_counts_against_the_quota() -> Outcome {
    let place = Place::new(1, 40)?;
    place.server.grant(Holder::Uid(USERS[0]), "0", Some(32));
    let mut hoarder = place.start(USERS[0], "hoarder");
    let said = hoarder.says("hoards");
    assert!(
        said.starts_with("32 ") && said.contains("quota of 32"),
        "{said}"
    );
    hoarder.end();
    Ok(())
}

fn three_hostile_users_and_an_ordinary_one() -> Outcome {
    let asked = std::env::var("WARMSET_HOSTILE")
        .ok()
        .and_then(|n| n.parse::<u64>().ok());
    let requests = asked.unwrap_or(400);
    let place = Place::new(4, 64)?;
    let server = &place.server;
    for (color, user) in USERS.iter().enumerate() {
        server.grant(Holder::Uid(*user), &color.to_string(), None);
    }
    let mut hostile: Vec<Other> = USERS[..3]
        .iter()
        .map(|user| place.start(*user, &format!("mischief {requests}")))
        .collect();
    let mut served = place.start(USERS[3], &format!("ordinary {}", requests.div_ceil(4)));
    let said = numbers(&served.says("done"));
    assert_eq!(said[0], 0, "an ordinary user found what others had written");
    if asked.is_some() {
        println!(
            "{} answers to an ordinary user: median {} us, 99 % {} us, 99.9 % {} us, longest {} us",
            said[1], said[2], said[3], said[4], said[5]
        );
    }
    served.end();
    for other in &mut hostile {
        let said = numbers(&other.says("done"));
        assert_eq!(said[0], 0, "a hostile user saw what was not his");
        assert!(said[1] > 0, "it got nothing: {:?}", server.summary());
    }
    hostile.into_iter().for_each(Other::end);
    // All that was not broken is free again, and nothing of the ordinary user's was.
    let summary = server.summary();
    let all = 64 * TILE_PAGES as u64;
    let whole =
        |color: usize| server.summary().pages[color].0 + server.summary().struck[color] == all;
    let settled = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        (0..4).all(whole)
    });
    assert!(settled, "{summary:?}");
    assert!(
        summary
            .spoiled
            .iter()
            .all(|s| s.holder != Holder::Uid(USERS[3]))
    );
    Ok(())
}

testing::tests!(
    roles,
    pages_kept_in_pipes_show_nothing_of_the_next_user,
    a_user_who_holds_all_that_he_can_keeps_nobody_out,
    exchanged_frames_cost_only_who_exchanged_them,
    what_is_given_back_and_still_used_counts_against_the_quota,
    three_hostile_users_and_an_ordinary_one,
);
