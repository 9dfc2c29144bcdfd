//! The memory server, live: what clients get, what comes back when they die, and what is never
//! handed out twice.

mod running;

use model::Bytes;
use partition::tile::{TILE, TILE_PAGES};
use partition::{Color, Colors};
use running::{Running, claimed};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn a_client_gets_zeroed_memory_of_what_was_granted_and_nothing_else() {
    let server = Running::start(4, claimed(4, 4));
    let mut client = server.connect();
    assert_eq!(client.colors().unwrap(), (Colors::new(), 4));
    let one: Colors = "1".parse().unwrap();
    let e = client
        .map(&one, Bytes::from_kib(64))
        .unwrap_err()
        .to_string();
    assert!(e.contains("color 1 is not granted"), "{e}");
    server.grant_me("1-2");
    let memory = client
        .map(&"1-2".parse().unwrap(), Bytes::from_kib(100))
        .unwrap();
    assert_eq!(memory.size(), 2 * TILE);
    assert_eq!(memory.color_of(0), Some(Color(1)));
    assert_eq!(memory.color_of(TILE_PAGES), Some(Color(2)));
    for i in 0..memory.size() {
        // SAFETY: within the memory, which is this test's alone.
        unsafe {
            assert_eq!(memory.base().add(i).read(), 0);
            memory.base().add(i).write(0xaa);
        }
    }
    client.give_back(memory).unwrap();
    assert_eq!(server.pages(), (16 * TILE_PAGES as u64, 0, 0));
    let again = client
        .map(&"1-2".parse().unwrap(), Bytes::from_kib(512))
        .unwrap();
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(again.base(), again.size()) };
    assert!(
        bytes.iter().all(|b| *b == 0),
        "what was written before shows"
    );
    let e = client
        .map(&one, Bytes::from_kib(64))
        .unwrap_err()
        .to_string();
    assert!(e.contains("are free"), "{e}");
}

#[test]
fn pages_follow_each_other_in_all_colors_alike() {
    let server = Running::start(4, claimed(4, 2));
    server.grant_me("0-2");
    let mut client = server.connect();
    let mut memory = client
        .map_pages(&"0-2".parse().unwrap(), Bytes::from_kib(4 * 49))
        .unwrap();
    assert_eq!(memory.size(), 49 * 4096);
    let seen: Vec<u16> = (0..49)
        .filter_map(|p| Some(memory.color_of(p)?.0))
        .collect();
    assert!(
        seen.iter()
            .enumerate()
            .all(|(at, color)| usize::from(*color) == at % 3)
    );
    assert_eq!(memory.tiles().len(), 4, "17, 16 and 16 pages");
    memory.bytes_mut().fill(1);
    client.give_back(memory).unwrap();
    assert_eq!(server.pages(), (8 * TILE_PAGES as u64, 0, 0));
}

#[test]
fn a_region_is_recolored_in_place_with_its_contents_and_back() {
    let server = Running::start(4, claimed(4, 1));
    server.grant_me("1,3");
    let mut client = server.connect();
    let pages = 20;
    let area = machine::memory::Area::map(Bytes::from_kib(4 * pages)).unwrap();
    let base = area.base().cast::<u8>();
    // SAFETY: the area is this test's alone, as everywhere below.
    let bytes = || unsafe { std::slice::from_raw_parts_mut(base, area.size()) };
    let contents: Vec<u8> = (0..area.size()).map(|i| (i % 253) as u8).collect();
    bytes().copy_from_slice(&contents);
    let colors: Vec<Color> = (0..pages)
        .map(|p| Color(if p % 3 == 0 { 3 } else { 1 }))
        .collect();
    // A color that was not granted, and more than there is: nothing changes.
    for wrong in [[Color(2); 20], [Color(1); 20]] {
        // SAFETY: as above; nobody writes meanwhile.
        let e = unsafe { client.recolor(base, &wrong) }
            .unwrap_err()
            .to_string();
        assert!(e.contains("not granted") || e.contains("are free"), "{e}");
    }
    assert_eq!(server.pages().1, 0);
    // SAFETY: as above.
    let region = unsafe { client.recolor(base, &colors) }.unwrap();
    assert_eq!(region.colors(), colors);
    assert_eq!(bytes(), contents);
    assert_eq!(server.pages().1, 2 * TILE_PAGES as u64);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let at = format!("{:x}-", base as usize);
    let line = maps.lines().find(|l| l.starts_with(&at)).unwrap();
    assert!(line.contains("warmset-color"), "{line}");
    bytes()[70_000] = 99;
    // SAFETY: as above.
    unsafe { client.uncolor(region) }.unwrap();
    assert_eq!(bytes()[70_000], 99);
    bytes()[70_000] = contents[70_000];
    assert_eq!(bytes(), contents);
    assert_eq!(server.pages(), (4 * TILE_PAGES as u64, 0, 0));
}

#[test]
fn memory_of_a_dead_client_stays_away_while_a_child_maps_it() {
    let server = Running::start(1, claimed(1, 2));
    server.grant_me("0");
    let all = 2 * TILE_PAGES as u64;
    let mut client = server.connect();
    let memory = client
        .map(&"0".parse().unwrap(), Bytes::from_kib(64))
        .unwrap();
    // SAFETY: the child only waits and ends, without running anything of this process.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::pause();
            libc::_exit(0);
        }
        child
    };
    assert!(child > 0);
    drop(memory);
    drop(client);
    std::thread::sleep(std::time::Duration::from_millis(300));
    // The child inherited the connection, too: to the server, the client lives.
    assert_ne!(server.pages().0, all, "a tile that is mapped was taken in");
    // SAFETY: ends and reaps the child made above.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    assert!(server.wait_for_free(all), "{:?}", server.pages());
}

/// A byte now and then kept a connection, and a thread of the server, for as long as one liked.
#[test]
fn a_line_whose_bytes_come_one_by_one_is_cut_off() {
    let server = Running::start(2, claimed(2, 1));
    let mut slow = UnixStream::connect(&server.socket).unwrap();
    let pause = Duration::from_millis(500);
    slow.set_read_timeout(Some(pause)).unwrap();
    let mut said = Vec::new();
    // Longer than the server waits for a line; each byte comes long before it takes its sender for
    // gone.
    let is_cut_off = (0..120).any(|_| {
        // The other end may be closed by now, with its reason in front of the end.
        let _ = slow.write_all(b"x");
        loop {
            let mut part = [0; 256];
            match slow.read(&mut part) {
                Ok(0) => return true,
                Ok(got) => said.extend(&part[..got]),
                Err(e) => return e.kind() != ErrorKind::WouldBlock,
            }
        }
    });
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(is_cut_off && said.contains("not ended"), "{said}");
    assert_eq!(server.connect().colors().unwrap().1, 2, "others are served");
}

#[test]
fn memory_outlives_the_server() {
    let server = Running::start(1, claimed(1, 2));
    server.grant_me("0");
    let mut client = server.connect();
    let memory = client
        .map(&"0".parse().unwrap(), Bytes::from_kib(128))
        .unwrap();
    // SAFETY: within the memory, which is this test's alone.
    unsafe { memory.base().add(70_000).write(7) };
    drop(server);
    // SAFETY: as above.
    unsafe {
        assert_eq!(memory.base().add(70_000).read(), 7);
        memory.base().write(8);
    }
    let e = client.colors().unwrap_err().to_string();
    assert!(e.contains("is gone"), "{e}");
}

/// 64 clients at once that end at any moment: nothing is lost, nothing is handed to two, nothing is
/// left unzeroed.
#[test]
fn clients_that_die_at_random_lose_nothing_and_share_nothing() {
    use rand::{RngExt, SeedableRng};
    // WARMSET_ROUNDS=160 makes it more than 10,000 clients.
    let rounds: u64 = std::env::var("WARMSET_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(25);
    let server = Running::start(8, claimed(8, 24));
    server.grant_me("0-7");
    let all = 8 * 24 * TILE_PAGES as u64;
    let clash = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for id in 0..64_u64 {
            let (server, clash) = (&server, &clash);
            scope.spawn(move || {
                let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(id);
                for round in 0..rounds {
                    let mut client = server.connect();
                    for _ in 0..random.random_range(1..4) {
                        let color = Colors::from_iter([Color(random.random_range(0..8))]);
                        let Ok(memory) =
                            client.map(&color, Bytes::from_kib(random.random_range(1..200)))
                        else {
                            continue;
                        };
                        let mark = id << 32 | round << 8 | 1;
                        for word in (0..memory.size() / 8).step_by(61) {
                            // SAFETY: within the memory; if it is another's too, that is what shows
                            // here.
                            unsafe {
                                let place = memory.base().cast::<u64>().add(word);
                                if place.read_volatile() != 0 {
                                    clash.store(true, Ordering::Relaxed);
                                }
                                place.write_volatile(mark);
                            }
                        }
                        std::thread::yield_now();
                        for word in (0..memory.size() / 8).step_by(61) {
                            // SAFETY: as above.
                            if unsafe { memory.base().cast::<u64>().add(word).read_volatile() }
                                != mark
                            {
                                clash.store(true, Ordering::Relaxed);
                            }
                        }
                        if random.random_range(0..3) == 0 {
                            client.give_back(memory).unwrap();
                        }
                    }
                    // The rest returns because the connection ends.
                }
            });
        }
    });
    assert!(
        !clash.load(Ordering::Relaxed),
        "memory was shared, or not zeroed"
    );
    server.wait_for_all(all);
}
