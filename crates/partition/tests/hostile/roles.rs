//! What the processes of other users do, each in a process that a test started of this program.

use super::{ROLE, SOCKET, USERS};
use model::Bytes;
use partition::client::Connection;
use partition::protocol::Request;
use partition::server::MOST_OF_USER;
use partition::tile::{TILE, TILE_PAGES};
use partition::{Color, Colors};
use rand::{RngExt, SeedableRng};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;
use testing::Outcome;

const PAGE: usize = TILE / TILE_PAGES;

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
pub fn roles() -> Outcome {
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
