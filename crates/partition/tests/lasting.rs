//! What lasts: knowledge of colors while a server serves, and clients' memory and grants from one server to the next.

mod running;

use model::watch::Silent;
use model::{Bytes, CpuSet, Duration};
use partition::client::Connection;
use partition::ledger::{Access, Holder};
use partition::protocol::{Answer, Request};
use partition::server::Server;
use partition::state::State;
use partition::tile::{self, TILE_PAGES, Tile};
use partition::upkeep::{Found, Upkeep};
use partition::{Colors, finder};
use running::claimed;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// Names the socket to the process that the test starts of itself.
const SOCKET: &str = "WARMSET_TEST_LASTING";

fn colors(text: &str) -> Colors {
    text.parse().unwrap()
}

/// A client of two servers: takes memory of the first, keeps it when that one is gone, gives it back to the second.
fn client(socket: &Path) {
    let wait_for = |what: &str| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        assert_eq!(line.trim(), what);
    };
    let mut first = Connection::open(socket).unwrap();
    let mut memory = first.map(&colors("1"), Bytes::from_kib(128)).unwrap();
    memory.bytes_mut().fill(0x5a);
    println!("holds");
    wait_for("restarted");
    assert!(first.colors().is_err(), "the server is gone");
    assert!(memory.bytes().iter().all(|b| *b == 0x5a), "memory stays");
    let mut second = Connection::open(socket).unwrap();
    assert_eq!(second.colors().unwrap().0, colors("0-1"), "grants stay");
    second.give_back(memory).unwrap();
    println!("returned");
    wait_for("end");
}

#[test]
fn grants_and_memory_outlive_a_server_and_return_to_the_next() {
    use std::io::{BufRead, BufReader, Write};
    if let Some(socket) = std::env::var_os(SOCKET) {
        return client(Path::new(&socket));
    }
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("state");
    let mut server = Server::new(2, claimed(2, 4));
    server.keep_rights(kept.clone(), "a cache".to_owned()).unwrap();
    let first = running::Running::of(server);
    first.grant_me("0-1");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "grants_and_memory_outlive_a_server_and_return_to_the_next",
            "--exact",
            "--nocapture",
        ])
        .env(SOCKET, &first.socket)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut tell = child.stdin.take().unwrap();
    assert!(said.any(|line| line.contains("holds")));
    let socket = first.socket.clone();
    let dir_of_socket = first.end();

    let before = State::read(&kept).unwrap().unwrap();
    let out = before.out();
    assert_eq!(out.len(), 2, "two tiles are mapped by the client");
    assert!(
        out.iter()
            .all(|o| o.peer.pid == child.id() && o.access == Access::Full)
    );
    let ours = out.iter().all(|o| o.file.is_some());
    let mut server = Server::new(2, claimed(2, 4));
    server.succeed(&before, out).unwrap();
    server.keep_rights(kept, "a cache".to_owned()).unwrap();
    let second = running::Running::at(server, socket, dir_of_socket);
    let tile = TILE_PAGES as u64;
    assert_eq!(
        second.pages(),
        (8 * tile, 2 * tile, 0),
        "what is out is on the books"
    );
    let grants = second.summary().grants;
    assert_eq!(
        (grants.len(), grants[0].colors.to_string()),
        (1, "0-1".to_owned())
    );
    // They are still in use: not to be taken back, and not another's.
    // SAFETY: a call without arguments.
    let uid = unsafe { libc::geteuid() };
    let refused = second.connect().ask(&Request::TakeBack {
        holder: Holder::Uid(uid),
        colors: colors("1"),
        access: Access::Full,
    });
    assert!(refused.unwrap_err().to_string().contains(&child.id().to_string()));
    writeln!(tell, "restarted").unwrap();
    assert!(said.any(|line| line.contains("returned")));
    // Tiles that the second server could open are its own now, and zero; others went back to the system.
    let free = if ours { 10 } else { 8 };
    assert!(second.wait_for_free(free * tile), "{:?}", second.pages());
    if ours {
        let mut all = second.connect();
        let memory = all.map(&colors("1"), Bytes::from_kib(6 * 64)).unwrap();
        assert!(memory.bytes().iter().all(|b| *b == 0));
    } else {
        eprintln!("not shown: tiles return to the next server (this takes CAP_CHECKPOINT_RESTORE)");
    }
    writeln!(tell, "end").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_tile_whose_frames_were_moved_is_noticed_and_struck_off() {
    let machine = machine::this_machine().unwrap();
    let Some(cpu) = machine.platform.usable().lowest() else {
        return;
    };
    let level = machine.platform.data_levels().into_iter().find(|level| {
        partition::Geometry::of(&machine.platform, *level, cpu).is_ok_and(|g| finder::colorable(&g).is_ok())
    });
    let Some(level) = level else {
        return eprintln!("skipped: no cache of this machine has colors");
    };
    let palette = match partition::find(&machine.platform, level, cpu, &Silent) {
        Ok(palette) if palette.confidence > 0.9 => palette,
        Ok(palette) => {
            return eprintln!(
                "skipped: the machine is too busy, confidence {}",
                palette.confidence
            );
        }
        Err(e) => return eprintln!("skipped: {e}"),
    };
    let on = CpuSet::from_iter([cpu]);
    let tiles = tile::make(&palette, Bytes::from_mib(8), &on, &Silent).unwrap();
    let [first, second, ..] = &tiles[..] else {
        return eprintln!("skipped: no two tiles could be kept together");
    };
    // Frames are taken away behind the server's back: others come in their place, of any color.
    let swap = |tile: &Tile| {
        let file = tile.open(Access::Full).unwrap();
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a call with plain numbers on an open file.
        let done = unsafe { libc::fallocate(file.as_raw_fd(), punch, 0, tile::TILE as libc::off_t) };
        assert_eq!(done, 0);
        std::os::unix::fs::FileExt::write_all_at(&file, &[1; tile::TILE], 0).unwrap();
    };
    swap(first);
    swap(second);
    let (number, of) = (tiles.len(), palette.colors());
    let server = Arc::new(Server::new(of, tiles));
    let find = move || partition::find(&machine.platform, level, cpu, &Silent);
    let upkeep = Upkeep::new(palette, on, Duration::from_secs(1), Box::new(find));
    let mut next = 0;
    let mut all = Found::default();
    // By frame numbers at once; without them, some tiles a round.
    for _ in 0..number {
        let found = server.look_again(&upkeep, &mut next, &Silent).unwrap();
        all.struck.extend(found.struck);
        all.recolored.extend(found.recolored);
        if [0, 1]
            .iter()
            .all(|id| all.struck.contains(id) || all.recolored.contains(id))
        {
            break;
        }
    }
    let gone: Vec<bool> = [0, 1].iter().map(|id| all.struck.contains(id)).collect();
    eprintln!("{all:?}");
    // Sixteen frames of one color by chance are less likely than any defect of this test.
    assert!(gone.iter().any(|g| *g), "{all:?}");
    let mut client = server.attach().unwrap();
    let Answer::List { summary } = client.ask(&Request::List {}).unwrap() else {
        panic!()
    };
    let pages: u64 = summary.pages.iter().map(|p| p.0).sum();
    assert_eq!(pages, ((number - all.struck.len()) * TILE_PAGES) as u64);
    assert!(
        summary.pages.len() == usize::from(of) && all.struck.len() * 10 < number.max(30),
        "{all:?} of {number}"
    );
}
