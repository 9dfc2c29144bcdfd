//! Programs that would do harm if a run let them. They are this test itself, started with a name,
//! and shells.

use crate::support::{Live, Ran, SpinFor, ms, set_of};
use execute::kernel::Thread;
use execute::{Effort, Efforts, How, JoinSocket, Launch, Manner, Performer, Rights, Settings};
use machine::user::User;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use testing::{NotRun, Outcome};
use workload::Work;

/// What one of these programs does.
pub fn main(name: &str, arguments: &[String]) -> ExitCode {
    match name {
        "cutter" => cutter(),
        "teller" => teller(),
        "comer" => comer(Path::new(&arguments[0])),
        other => panic!("{other}"),
    }
    ExitCode::SUCCESS
}

fn this() -> String {
    std::env::current_exe()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

fn spin() {
    SpinFor(ms(1)).job(0, &AtomicBool::new(false));
}

fn launch(command: &[&str], manner: Manner) -> Launch {
    Launch {
        command: command.iter().map(|w| (*w).to_owned()).collect(),
        manner,
        rights: Rights::default(),
        output: None,
    }
}

fn run(live: &Live, works: Vec<Performer>, settings: Settings) -> Ran {
    let set = set_of(&[(5, 20), (2, 20)]);
    let settings = Settings {
        horizon: ms(500),
        ..settings
    };
    live.run_works("g-edf", &set, None, works, &settings)
        .unwrap()
}

/// A program that does nothing for longer than any of these tests.
pub fn sleeper() -> Performer {
    let hold = Manner::Unmodified(model::Beyond::Hold);
    Performer::Program(launch(&["sleep", "60"], hold))
}

fn beside() -> Performer {
    Performer::Work(Box::new(SpinFor(ms(1))))
}

/// Tries to shorten each of its pages, and does its jobs.
fn cutter() {
    let pages = std::env::var(warmset_task::DESCRIPTORS).unwrap();
    let pages: Vec<i32> = pages.split(',').map(|fd| fd.parse().unwrap()).collect();
    assert_eq!(pages.len(), 3);
    // Joining closes the descriptors.
    // SAFETY: calls without pointers.
    let copies: Vec<i32> = pages.iter().map(|fd| unsafe { libc::dup(*fd) }).collect();
    let mut task = warmset_task::Task::join().unwrap();
    for copy in copies {
        // SAFETY: as above.
        assert_ne!(unsafe { libc::ftruncate(copy, 0) }, 0);
    }
    while task.wait().is_some() {
        spin();
    }
}

pub fn a_program_that_cuts_off_its_pages_harms_nobody(live: &Live) {
    let program = launch(&[&this(), "program", "cutter"], Manner::Written);
    let ran = run(
        live,
        vec![Performer::Program(program), beside()],
        Settings::default(),
    );
    ran.is_sound();
    assert_eq!(ran.outcome.programs[0].how, How::Told);
    assert!(ran.statistics.tasks[0].jobs >= 20);
}

/// Says what it may do: what the kernel says of it, whether it can raise itself, and where it is at
/// home.
fn teller() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let raised = Thread::current().raise(99).is_ok();
    let home = std::env::var("HOME").unwrap_or_default();
    println!("{status}raised: {raised}\nhome: {home}");
}

/// What a program with these rights says of itself, by name.
fn told(live: &Live, rights: Rights) -> impl Fn(&str) -> String + use<> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("told");
    let program = Launch {
        rights,
        output: Some(std::fs::File::create(&file).unwrap()),
        ..launch(
            &[&this(), "program", "teller"],
            Manner::Unmodified(model::Beyond::Hold),
        )
    };
    run(
        live,
        vec![Performer::Program(program), beside()],
        Settings::default(),
    )
    .is_sound();
    let text = std::fs::read_to_string(&file).unwrap();
    move |name| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let words: Vec<&str> = line
            .unwrap_or_else(|| panic!("{name}: {text}"))
            .split_whitespace()
            .collect();
        words.join(" ")
    }
}

/// Can this process start programs as another user?
fn is_root() -> Outcome {
    let own = rustix::process::getuid();
    match own.is_root() {
        true => Ok(()),
        false => Err(NotRun::because(format!(
            "user {} cannot act as another user: run the tests as root",
            own.as_raw()
        ))),
    }
}

const SETS: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

/// The rights of the engine are its own: a program has none of them unless the user says so.
/// Only root gives it those of another user.
pub fn a_program_has_no_rights_of_the_engine_unless_it_is_told_to(live: &Live) -> Outcome {
    let of = told(live, Rights::Dropped);
    for set in SETS {
        assert_eq!(u64::from_str_radix(&of(set), 16), Ok(0), "{set}");
    }
    // Real, effective, saved and that of file systems.
    let four = |id: u32| vec![id.to_string(); 4].join(" ");
    let own = rustix::process::getuid().as_raw();
    assert_eq!(
        (of("NoNewPrivs").as_str(), of("raised").as_str()),
        ("1", "false")
    );
    assert_eq!(of("Uid"), four(own));

    let of = told(live, Rights::Kept);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let here = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .unwrap();
    assert_eq!(
        (of("CapEff").as_str(), of("NoNewPrivs").as_str()),
        (here.trim(), "0")
    );

    is_root()?;
    let user = User::find("nobody").unwrap();
    let of = told(live, Rights::Of(user.clone()));
    assert_eq!(of("Uid"), four(user.uid));
    assert_eq!(of("Gid"), four(user.gid));
    let groups: Vec<String> = user.groups.iter().map(u32::to_string).collect();
    assert_eq!(of("Groups"), groups.join(" "));
    assert_eq!(
        (of("CapEff").as_str(), of("raised").as_str()),
        ("0000000000000000", "false")
    );
    assert_eq!(of("home"), user.home);
    Ok(())
}

/// `comer SOCKET`: comes as T1 and does its jobs.
fn comer(socket: &Path) {
    let mut task = warmset_task::Task::join_at(socket, "T1").unwrap();
    while task.wait().is_some() {
        spin();
    }
}

/// Whatever the umask is, a user who is not meant does not become a task; who says nothing keeps
/// nobody waiting.
pub fn a_stranger_at_the_door_is_sent_away(live: &Live) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("door");
    // SAFETY: calls without pointers; no other thread of this test makes files now.
    let before = unsafe { libc::umask(0) };
    let door = Arc::new(JoinSocket::open(&socket).unwrap());
    // SAFETY: as above.
    unsafe { libc::umask(before) };
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    // Somebody opens it to all.
    let opened = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    opened(dir.path(), 0o755);
    opened(&socket, 0o777);
    let mut silent = UnixStream::connect(&socket).unwrap();
    silent.write_all(b"T").unwrap();
    let come = |uid: u32| {
        Command::new(this())
            .args(["program", "comer", socket.to_str().unwrap()])
            .uid(uid)
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut stranger = is_root().map(|()| come(65_533));
    // It comes first, and has asked to come in when the run begins to look.
    if let Ok(stranger) = &stranger {
        let path = format!("/proc/{}/wchan", stranger.id());
        for _ in 0..1_000 {
            let sleeps = std::fs::read_to_string(&path).is_ok_and(|at| at.contains("unix_stream"));
            if sleeps {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    let mut guest = come(rustix::process::getuid().as_raw());
    let ran = run(
        live,
        vec![Performer::Outside(door), beside()],
        Settings::default(),
    );
    ran.is_sound();
    assert!(guest.wait().unwrap().success());
    if let Ok(stranger) = &mut stranger {
        assert!(!stranger.wait().unwrap().success(), "it became a task");
    }
    // This process itself was sent away as well.
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
    stranger.map(drop)
}

/// Best-effort programs may start what they like, in sessions of their own and without an
/// environment: it ends with the run.
pub fn what_best_effort_programs_start_ends_with_the_run(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    let path = there.display();
    let child = |trap: &str| {
        format!(
            "env -i setsid sh -c '{trap} echo $$ >> {path}; while :; do sleep 0.05; done' < /dev/null > /dev/null 2>&1 &"
        )
    };
    let script = format!(
        "n=0; while [ $n -lt 4 ]; do n=$((n+1)); {} {} done; wait",
        child(""),
        child("trap \"\" TERM;")
    );
    let gone = format!("{} exit 0", child(""));
    let effort = |name: &str, script: &str| {
        let effort = Effort::Program {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            rights: Rights::default(),
        };
        (name.to_owned(), effort)
    };
    let settings = Settings {
        best_effort: Efforts::new(vec![effort("many", &script), effort("gone", &gone)]),
        ..Settings::default()
    };
    let ran = run(live, vec![beside(), beside()], settings);
    ran.is_sound();
    let who = std::fs::read_to_string(&there).unwrap();
    assert!(!who.is_empty());
    for process in who.lines() {
        assert!(
            !Path::new("/proc").join(process).exists(),
            "{process} was left"
        );
    }
    // Nor is anybody left to be waited for.
    // SAFETY: asks for a child to be waited for.
    let left = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(left, -1);
}
