//! 64 clients at once, each a process that is killed at any moment: no frame is lost, none is
//! handed to two, none unzeroed.
//!
//! `WARMSET_KILLS=10000 cargo test -p warmset-partition --test killed` kills as many.

mod running;

use model::Bytes;
use partition::client::Connection;
use partition::tile::TILE_PAGES;
use partition::{Color, Colors};
use rand::{RngExt, SeedableRng};
use running::{Running, claimed};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testing::{NotRun, Outcome};

/// Names the socket to the processes that this test starts of itself.
const SOCKET: &str = "WARMSET_TEST_KILLED";
const CLIENTS: u64 = 64;
const COLORS: u16 = 8;
const EACH: usize = 32;

/// Takes, marks, looks again and gives back, until it is killed. Whatever it finds that should not
/// be, it says.
fn client(socket: &Path) -> ! {
    let mark = u64::from(std::process::id()) << 16 | 1;
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(mark);
    let mut server = Connection::open(socket).unwrap();
    println!("begun");
    let mut held = Vec::new();
    loop {
        let color = Colors::from_iter([Color(random.random_range(0..COLORS))]);
        if let Ok(memory) = server.map(&color, Bytes::from_kib(random.random_range(1..200))) {
            for word in (0..memory.size() / 8).step_by(29) {
                // SAFETY: within the memory; if it is another's too, that is what shows here.
                unsafe {
                    let place = memory.base().cast::<u64>().add(word);
                    if place.read_volatile() != 0 {
                        println!("found {:#x}", place.read_volatile());
                    }
                    place.write_volatile(mark);
                }
            }
            held.push(memory);
        }
        for memory in &held {
            for word in (0..memory.size() / 8).step_by(29) {
                // SAFETY: as above.
                let seen = unsafe { memory.base().cast::<u64>().add(word).read_volatile() };
                if seen != mark {
                    println!("lost {seen:#x}");
                }
            }
        }
        if held.len() > random.random_range(0..4) {
            server.give_back(held.swap_remove(0)).unwrap();
        }
    }
}

fn clients_that_are_killed_lose_nothing_and_share_nothing() -> Outcome {
    if let Some(socket) = std::env::var_os(SOCKET) {
        client(Path::new(&socket));
    }
    let kills: u64 = std::env::var("WARMSET_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(192);
    let server = Running::start(COLORS, claimed(COLORS, EACH));
    server.grant_me(&format!("0-{}", COLORS - 1));
    let all = u64::from(COLORS) * (EACH * TILE_PAGES) as u64;
    let frames = server.frames();
    let next = AtomicU64::new(0);
    let complaints: Vec<String> = std::thread::scope(|scope| {
        let runners: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (server, next) = (&server, &next);
                scope.spawn(move || {
                    let mut complaints = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= kills {
                            return complaints;
                        }
                        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(number);
                        let mut child = Command::new(std::env::current_exe().unwrap())
                            .args([
                                "clients_that_are_killed_lose_nothing_and_share_nothing",
                                "--exact",
                                "--nocapture",
                            ])
                            .env(SOCKET, &server.socket)
                            .stdout(Stdio::piped())
                            .spawn()
                            .unwrap();
                        let mut lines = BufReader::new(child.stdout.take().unwrap())
                            .lines()
                            .map_while(Result::ok);
                        assert!(
                            lines.any(|line| line.contains("begun")),
                            "the client did not begin"
                        );
                        std::thread::sleep(Duration::from_micros(random.random_range(0..40_000)));
                        child.kill().unwrap();
                        child.wait().unwrap();
                        complaints.extend(
                            lines.filter(|l| l.starts_with("found") || l.starts_with("lost")),
                        );
                        if number > 0 && number.is_multiple_of(1000) {
                            eprintln!("{number} killed");
                        }
                    }
                })
            })
            .collect();
        runners
            .into_iter()
            .flat_map(|r| r.join().unwrap())
            .collect()
    });
    assert!(complaints.is_empty(), "{complaints:?}");
    let all = all - server.wait_for_all(all);
    // The frames are those of before, each once.
    let shown = match (frames, server.frames()) {
        (Some(before), Some(after)) => {
            assert_eq!(after.len() as u64, all);
            let distinct: HashSet<u64> = after.iter().copied().collect();
            assert_eq!(distinct.len() as u64, all, "a frame is in two tiles");
            assert!(distinct.is_subset(&before.into_iter().collect()));
            Ok(())
        }
        _ => Err(NotRun::because(
            "all holds but for which frames they are: frame numbers are withheld (no CAP_SYS_ADMIN)",
        )),
    };
    // And all of it is zero for the next.
    let mut client = server.connect();
    let colors = Colors::first(COLORS);
    for color in colors.iter().map(|color| Colors::from_iter([color])) {
        while let Ok(memory) = client.map(&color, Bytes::from_kib(64)) {
            assert!(memory.bytes().iter().all(|b| *b == 0));
            std::mem::forget(memory);
        }
    }
    shown
}

testing::tests!(clients_that_are_killed_lose_nothing_and_share_nothing);
