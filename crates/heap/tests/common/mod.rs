//! A memory server for tests: over tiles whose colors nobody checked, in a process of its own.

use model::watch::Watch;
use partition::client::Connection;
use partition::holder::{Access, Holder};
use partition::protocol::Request;
use partition::server::Server;
use partition::tile::Tile;
use partition::{Color, Colors};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

/// Stops with the process that started the server.
struct UntilParentEnds(libc::pid_t);

impl Watch for UntilParentEnds {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, text: &str) {
        eprintln!("{text}");
    }
    fn stopped(&self) -> bool {
        // SAFETY: a call without arguments.
        unsafe { libc::getppid() != self.0 }
    }
}

/// A server that ends with this value, or with this process.
pub struct Served {
    pub socket: PathBuf,
    child: libc::pid_t,
    _dir: tempfile::TempDir,
}

/// Serves so many tiles of each of so many colors, all of them granted to this user.
pub fn serve(colors: u16, each: usize) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("color.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // SAFETY: the child runs the server and nothing of the test, and ends with its parent.
    let (parent, child) = unsafe { (libc::getpid(), libc::fork()) };
    if child == 0 {
        let tiles = (0..colors)
            .flat_map(|c| (0..each).map(move |_| Tile::fresh(Color(c)).unwrap()))
            .collect();
        Server::new(colors, tiles)
            .serve(&listener, &UntilParentEnds(parent))
            .unwrap();
        std::process::exit(0);
    }
    assert!(child > 0);
    // SAFETY: a call without arguments.
    let uid = unsafe { libc::geteuid() };
    let grant = Request::Grant {
        holder: Holder::Uid(uid),
        colors: Colors::first(colors).into(),
        pages: None,
        access: Access::Full,
    };
    Connection::open(&socket).unwrap().ask(&grant).unwrap();
    Served {
        socket,
        child,
        _dir: dir,
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // SAFETY: ends the child that was forked above, and waits for it.
        unsafe {
            libc::kill(self.child, libc::SIGKILL);
            libc::waitpid(self.child, std::ptr::null_mut(), 0);
        }
    }
}
