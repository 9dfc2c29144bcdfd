//! Single-writer partitioning, live (001 §5.3): others read pages of a protected color, and a write
//! is prevented and reported.

mod running;

use model::Bytes;
use partition::client::Connection;
use partition::ledger::{Access, Holder};
use partition::protocol::Request;
use partition::tile::TILE;
use partition::{Colors, violation};
use running::{Running, claimed};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// Names the socket to the process that this test starts of itself.
const SOCKET: &str = "WARMSET_TEST_SINGLE_WRITER";

fn colors(text: &str) -> Colors {
    text.parse().unwrap()
}

/// The other task: reads what it may, then writes to it.
fn other_task(socket: &Path) {
    violation::report().unwrap();
    let mut client = Connection::open(socket).unwrap();
    let contents: Vec<u8> = (0..TILE + 10).map(|i| (i % 251) as u8).collect();
    let memory = client
        .map_read_only(&colors("0,2"), Bytes::from_kib(128), &contents)
        .unwrap();
    assert_eq!(&memory.bytes()[..contents.len()], &contents[..]);
    assert!(memory.bytes()[contents.len()..].iter().all(|b| *b == 0));
    println!("read");
    let second = memory.base().wrapping_add(TILE + 5);
    // SAFETY: the mapping allows no writing to it, and its library not either: it must not get past
    // the next line.
    unsafe {
        assert_eq!(
            libc::mprotect(
                memory.base().cast(),
                TILE,
                libc::PROT_READ | libc::PROT_WRITE
            ),
            -1
        );
        second.write_volatile(1);
    }
    println!("written");
}

#[test]
fn a_write_of_another_task_is_prevented_and_reported() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        return other_task(Path::new(&socket));
    }
    let server = Running::start(4, claimed(4, 2));
    // The protected task is this process, the other task a child of the same user.
    let owner = Holder::Pid(std::process::id());
    server.operator(&Request::Grant {
        holder: owner.clone(),
        colors: colors("0-2").into(),
        pages: None,
        access: Access::Full,
    });
    // SAFETY: a call without arguments.
    let uid = unsafe { libc::geteuid() };
    server.operator(&Request::Grant {
        holder: Holder::Uid(uid),
        colors: colors("0,2").into(),
        pages: None,
        access: Access::ReadOnly,
    });
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "a_write_of_another_task_is_prevented_and_reported",
            "--exact",
            "--nocapture",
        ])
        .env(SOCKET, &server.socket)
        .output()
        .unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGSEGV),
        "{said}{complained}"
    );
    assert!(said.contains("read") && !said.contains("written"), "{said}");
    let expected = format!(
        "a write to a page of color 2, which belongs to {owner}: this process may only read it"
    );
    assert!(complained.contains(&expected), "{complained}");
    let reported = || {
        server
            .summary()
            .violations
            .iter()
            .any(|v| v.color.0 == 2 && v.count == 1)
    };
    let seen = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        reported()
    });
    assert!(seen, "{:?}", server.summary().violations);
}

#[test]
fn asking_to_write_to_a_protected_color_is_refused_and_reported() {
    let server = Running::start(2, claimed(2, 2));
    // SAFETY: a call without arguments.
    let uid = unsafe { libc::geteuid() };
    for (holder, access) in [
        (Holder::Group("video".to_owned()), Access::Full),
        (Holder::Uid(uid), Access::ReadOnly),
    ] {
        server.operator(&Request::Grant {
            holder,
            colors: colors("1").into(),
            pages: None,
            access,
        });
    }
    let mut client = server.connect();
    assert_eq!(client.colors().unwrap().0, Colors::new());
    assert_eq!(client.read_only_colors().unwrap(), colors("1"));
    let e = client
        .map(&colors("1"), Bytes::from_kib(64))
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("color 1 belongs to group:video: this process may only read it"),
        "{e}"
    );
    let violations = server.summary().violations;
    assert_eq!((violations.len(), violations[0].count), (1, 1));
    // What was read comes back as all else does, and is zero for the next.
    let memory = client
        .map_read_only(&colors("1"), Bytes::from_kib(64), &[7; 100])
        .unwrap();
    client.give_back(memory).unwrap();
    let again = client
        .map_read_only(&colors("1"), Bytes::from_kib(128), &[])
        .unwrap();
    assert!(again.bytes().iter().all(|b| *b == 0));
}

/// Any other file may keep its reader waiting for as long as its owner likes.
#[test]
fn a_file_that_is_not_in_memory_is_refused() {
    let server = Running::start(2, claimed(2, 2));
    // SAFETY: a call without arguments.
    let uid = unsafe { libc::geteuid() };
    server.operator(&Request::Grant {
        holder: Holder::Uid(uid),
        colors: colors("1").into(),
        pages: None,
        access: Access::ReadOnly,
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("contents");
    std::fs::write(&path, [7; 100]).unwrap();
    for path in [&path, Path::new("/dev/zero")] {
        let stream = std::os::unix::net::UnixStream::connect(&server.socket).unwrap();
        let file = std::fs::File::open(path).unwrap();
        let line = b"{\"do\":\"take\",\"color\":1,\"pages\":16,\"access\":\"read-only\"}\n";
        partition::socket::send(&stream, line, &[file]).unwrap();
        let answer = partition::socket::Lines::new(stream)
            .next_line()
            .unwrap()
            .unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.contains("refused") && answer.contains("memfd_create"),
            "{answer}"
        );
    }
    // The tiles that were to be filled are not lost.
    assert!(server.wait_for_free(4 * 16), "{:?}", server.pages());
}
