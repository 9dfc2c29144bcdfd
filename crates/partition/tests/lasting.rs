//! What lasts: clients' memory and grants, from one server to the next.

mod running;

use model::Bytes;
use partition::Colors;
use partition::client::Connection;
use partition::ledger::{Access, Holder};
use partition::protocol::Request;
use partition::server::Server;
use partition::state::State;
use partition::tile::TILE_PAGES;
use running::claimed;
use std::path::Path;
use testing::{NotRun, Outcome};

/// Names the socket to the process that the test starts of itself.
const SOCKET: &str = "WARMSET_TEST_LASTING";

fn colors(text: &str) -> Colors {
    text.parse().unwrap()
}

/// A client of two servers: takes memory of the first, keeps it when that one is gone, gives it
/// back to the second.
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

/// Starts a client of this server that holds two tiles, and waits until it does.
fn holding(
    server: &running::Running,
) -> (std::process::Child, impl Iterator<Item = String> + use<>) {
    use std::io::{BufRead, BufReader};
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "grants_and_memory_outlive_a_server_and_return_to_the_next",
            "--exact",
            "--nocapture",
        ])
        .env(SOCKET, &server.socket)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(said.any(|line| line.contains("holds")));
    (child, said)
}

fn what_a_process_had_returns_though_it_ended_while_the_next_server_began() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("state");
    let mut server = Server::new(2, claimed(2, 4));
    server
        .keep_rights(kept.clone(), "a cache".to_owned())
        .unwrap();
    let first = running::Running::of(server);
    first.grant_me("0-1");
    let (mut child, _said) = holding(&first);
    let socket = first.socket.clone();
    let dir_of_socket = first.end();

    let before = State::read(&kept).unwrap().unwrap();
    let out = before.out();
    assert_eq!(out.len(), 2);
    let ours = out.iter().all(|o| o.file.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let mut server = Server::new(2, claimed(2, 4));
    server.succeed(&before, out).unwrap();
    let second = running::Running::at(server, socket, dir_of_socket);
    let free = if ours { 10 } else { 8 };
    assert!(
        second.wait_for_free(free * TILE_PAGES as u64),
        "{:?}",
        second.pages()
    );
    let held: u64 = second.summary().clients.iter().map(|c| c.pages).sum();
    assert_eq!(held, 0, "{:?}", second.summary().clients);
}

fn grants_and_memory_outlive_a_server_and_return_to_the_next() -> Outcome {
    use std::io::Write;
    if let Some(socket) = std::env::var_os(SOCKET) {
        client(Path::new(&socket));
        return Ok(());
    }
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("state");
    let mut server = Server::new(2, claimed(2, 4));
    server
        .keep_rights(kept.clone(), "a cache".to_owned())
        .unwrap();
    let first = running::Running::of(server);
    first.grant_me("0-1");
    let (mut child, mut said) = holding(&first);
    let mut tell = child.stdin.take().unwrap();
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
        colors: colors("1").into(),
        access: Access::Full,
    });
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains(&child.id().to_string())
    );
    writeln!(tell, "restarted").unwrap();
    assert!(said.any(|line| line.contains("returned")));
    // Tiles that the second server could open are its own now, and zero; others went back to the
    // system.
    let free = if ours { 10 } else { 8 };
    assert!(second.wait_for_free(free * tile), "{:?}", second.pages());
    let shown = if ours {
        let mut all = second.connect();
        let memory = all.map(&colors("1"), Bytes::from_kib(6 * 64)).unwrap();
        assert!(memory.bytes().iter().all(|b| *b == 0));
        Ok(())
    } else {
        Err(NotRun::because(
            "all holds but that tiles return to the next server: that takes CAP_CHECKPOINT_RESTORE",
        ))
    };
    writeln!(tell, "end").unwrap();
    assert!(child.wait().unwrap().success());
    shown
}

testing::tests!(
    what_a_process_had_returns_though_it_ended_while_the_next_server_began,
    grants_and_memory_outlive_a_server_and_return_to_the_next,
);
