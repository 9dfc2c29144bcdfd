//! A memory server that runs for as long as a test needs it.
#![allow(dead_code, reason = "no test uses all of it")]

use partition::Color;
use partition::client::Connection;
use partition::ledger::{Access, Holder, Pages, Summary};
use partition::listen::Socket;
use partition::protocol::{Answer, Request};
use partition::server::Server;
use partition::tile::Tile;
use std::path::PathBuf;
use std::sync::Arc;

use testing::watching::Switch;

/// A server that runs until this is dropped.
pub struct Running {
    until: Arc<Switch>,
    thread: Option<std::thread::JoinHandle<()>>,
    pub socket: PathBuf,
    server: Arc<Server>,
    dir: Option<tempfile::TempDir>,
}

impl Running {
    pub fn start(colors: u16, tiles: Vec<Tile>) -> Self {
        Self::of(Server::new(colors, tiles))
    }
    pub fn of(server: Server) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("color.sock");
        Self::at(server, socket, dir)
    }
    /// At the place of a server before.
    pub fn at(server: Server, socket: PathBuf, dir: tempfile::TempDir) -> Self {
        let bound = Socket::bind(socket.clone()).unwrap();
        let until = Arc::new(Switch::default());
        let theirs = Arc::clone(&until);
        let server = Arc::new(server);
        let own = Arc::clone(&server);
        let thread = std::thread::spawn(move || own.serve(bound.listener(), &*theirs).unwrap());
        Running {
            until,
            thread: Some(thread),
            socket,
            server,
            dir: Some(dir),
        }
    }
    /// Ends it; its directory stays for another.
    pub fn end(mut self) -> tempfile::TempDir {
        self.dir.take().unwrap()
    }
    /// The frames of all tiles, where the system tells them.
    pub fn frames(&self) -> Option<Vec<u64>> {
        self.server.frames()
    }
    pub fn connect(&self) -> Connection {
        Connection::open(&self.socket).unwrap()
    }
    /// What a process is forked from is mapped in it until it executes: where another test starts a
    /// program at this moment, memory does not return yet.
    pub fn operator(&self, request: &Request) -> Answer {
        let mut tries = 100;
        loop {
            match self.connect().ask(request) {
                Err(e) if e.to_string().contains("by a process that inherited it") && tries > 0 => {
                    tries -= 1;
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                answer => return answer.unwrap(),
            }
        }
    }
    pub fn grant_me(&self, colors: &str) {
        // SAFETY: a call without arguments.
        let uid = unsafe { libc::geteuid() };
        self.grant(Holder::Uid(uid), colors, None);
    }
    pub fn grant(&self, holder: Holder, colors: &str, pages: Option<u64>) {
        self.operator(&Request::Grant {
            holder,
            colors: colors.parse().unwrap(),
            pages,
            access: Access::Full,
        });
    }
    pub fn summary(&self) -> Summary {
        match self.operator(&Request::List {}) {
            Answer::List { summary } => summary,
            other => panic!("{other:?}"),
        }
    }
    /// Pages that are free, held, returning.
    pub fn pages(&self) -> (u64, u64, u64) {
        let pages: Pages = self.summary().pages.into_iter().sum();
        (pages.free, pages.held, pages.returning)
    }
    /// Waits until nobody is connected and all of these pages are free or struck off. Gives how
    /// many were struck off: few, for the system takes or refers to a frame now and then while it
    /// is given up.
    pub fn wait_for_all(&self, pages: u64) -> u64 {
        // Connections are taken in turn: when this one is answered, all before it are counted.
        self.summary();
        // Free pages alone tell nothing: what a client asked for before he was killed may be handed
        // out, and come back, long after.
        let quiet = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            self.server.connections() == 0
        });
        assert!(quiet, "{} are connected", self.server.connections());
        let settled = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let struck = self.summary().struck.iter().sum();
            (self.pages().0 + struck == pages).then_some(struck)
        });
        let struck = settled.unwrap_or_else(|| panic!("{:?} of {pages}", self.summary()));
        assert!(struck * 16 <= pages, "{struck} of {pages} were struck off");
        struck
    }
    /// Waits until as many pages are free.
    pub fn wait_for_free(&self, pages: u64) -> bool {
        (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            self.pages().0 == pages
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.until.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Tiles whose colors nobody checked: for all that does not depend on the cache.
pub fn claimed(colors: u16, each: usize) -> Vec<Tile> {
    (0..colors)
        .flat_map(|c| (0..each).map(move |_| Tile::fresh(Color(c)).unwrap()))
        .collect()
}
