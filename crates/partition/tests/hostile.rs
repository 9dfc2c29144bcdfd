//! Users who mean harm, each a process of its own user: what they hold keeps nobody else from being
//! served, what they kept shows nothing of others, and what they break is theirs.
//!
//! `WARMSET_HOSTILE=10000 cargo test -p warmset-partition --test hostile` makes as many requests
//! and prints how long an ordinary user's took.

#[path = "hostile/roles.rs"]
mod roles;
mod running;

use partition::ledger::{Access, Holder};
use partition::protocol::Request;
use partition::server::MOST_OF_USER;
use partition::tile::{TILE, TILE_PAGES};
use roles::roles;
use running::{Running, claimed};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use testing::{NotRun, Outcome};

/// Names the socket, and what to do, to the processes that these tests start of themselves.
const SOCKET: &str = "WARMSET_TEST_HOSTILE_SOCKET";
const ROLE: &str = "WARMSET_TEST_HOSTILE_ROLE";
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
        |color: usize| server.summary().pages[color].free + server.summary().struck[color] == all;
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
