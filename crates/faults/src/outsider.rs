//! The programs of trials: tasks that are written for a run, and who is beside it. Each is this
//! program, with the name of its part as its first word.

use crate::family::Process;
use crate::room::{Room, WORK};
use crate::scenario::{Outsider, SOCKET};
use crate::system;
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// How often is looked whether the command is there.
const PAUSE: Duration = Duration::from_millis(5);

/// Starts who is beside the command with this number.
///
/// # Errors
/// It cannot be started.
pub fn start(room: &Room, outsider: &Outsider, engine: i32) -> std::io::Result<i32> {
    let words = match outsider {
        Outsider::Joins(task) => ["join", task],
        Outsider::AsksFifo(path) => ["ask-fifo", path],
        Outsider::AsksSocket(path) => ["ask-socket", path],
    };
    let mut command = Command::new(&room.helper);
    command
        .args(words)
        .arg(engine.to_string())
        .current_dir(WORK)
        .env_clear();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    system::prepare(&mut command, Arc::default());
    command.spawn().map(|child| child.id() as i32)
}

/// Plays a part, if there is one of this name.
pub fn play(words: &[String]) -> Option<ExitCode> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Some(match words[..] {
        ["task"] => task(),
        ["join", name, engine] => join(name, engine.parse().ok()?),
        ["ask-fifo", path, engine] => ask(engine.parse().ok()?, || {
            let fifo = OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(path);
            // It may not be there yet, or not any more, or be full.
            let _ = fifo.and_then(|mut fifo| fifo.write_all(b"."));
        }),
        ["ask-socket", path, engine] => {
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            ask(engine.parse().ok()?, || {
                // As above.
                let _ = socket.send_to(b".", path);
            })
        }
        ["stand-by"] => loop {
            std::thread::park();
        },
        _ => return None,
    })
}

fn work(mut task: warmset_task::Task) {
    let mut sum = 0u64;
    while task.wait().is_some() {
        for n in 0..100_000u64 {
            sum = black_box(sum.wrapping_add(n));
        }
    }
}

/// Started by the run.
fn task() -> ExitCode {
    match warmset_task::Task::join() {
        Ok(task) => work(task),
        Err(e) => {
            eprintln!("a task could not join: {e}");
            return ExitCode::from(3);
        }
    }
    ExitCode::SUCCESS
}

fn is_there(engine: i32) -> bool {
    Process::find(engine).is_some_and(|p| p.state != 'Z')
}

/// Comes in as soon as there is a socket; afterwards it has to be an ordinary program again.
fn join(name: &str, engine: i32) -> ExitCode {
    let this = std::process::id() as i32;
    let processors = || rustix::thread::sched_getaffinity(None).ok();
    let before = (system::class_of(this), processors());
    let task = loop {
        match warmset_task::Task::join_at(Path::new(SOCKET), name) {
            Ok(task) => break task,
            Err(_) if is_there(engine) => std::thread::sleep(PAUSE),
            Err(_) => return ExitCode::SUCCESS,
        }
    };
    work(task);
    // The run, or its watchdog, lets go of it within some time after it was told.
    let mut rounds = 0;
    while (system::class_of(this), processors()) != before {
        if rounds == 1000 {
            return ExitCode::from(7);
        }
        rounds += 1;
        std::thread::sleep(PAUSE);
    }
    ExitCode::SUCCESS
}

fn ask(engine: i32, once: impl Fn()) -> ExitCode {
    while is_there(engine) {
        once();
        std::thread::sleep(3 * PAUSE);
    }
    ExitCode::SUCCESS
}
