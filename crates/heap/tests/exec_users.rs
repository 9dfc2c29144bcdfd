//! Programs in colors among users: root never runs code of another user, and never uses his memory;
//! nobody else is served, or delays those who are.
//!
//! Another user is this program, started again with the rights of a user that nobody is
//! (`as_user`), to do one of the parts (`part`).

mod common;
#[path = "exec_users/parts.rs"]
mod parts;

use heap::exec::{self, Part, Plan, Ran};
use model::Bytes;
use parts::part;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;
use testing::{NotRun, Outcome, trial};

/// A user that nobody is.
const OTHER: u32 = 54_321;
const ROLE: &str = "WARMSET_TEST_ROLE";
const VARIABLE: &str = "WARMSET_COLOR_EXEC";

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        part(&role, &arguments);
        return ExitCode::SUCCESS;
    }
    // One after the other: servers are forked, and would keep what other tests have open.
    macro_rules! trials {
        ($($name:ident),+ $(,)?) => { vec![$(trial(stringify!($name), $name)),+] };
    }
    testing::run_alone(trials![
        the_library_of_a_killed_supervisor_stays_its_users,
        programs_go_on_when_their_supervisor_is_killed,
        an_impostor_is_told_nothing_and_gives_no_memory,
        a_memory_server_of_another_user_is_refused,
        only_the_run_itself_is_served,
        a_program_that_gives_up_its_rights_goes_on_without_colors,
        who_connects_and_says_nothing_delays_nobody,
    ])
}

fn is_root() -> Outcome {
    // SAFETY: a call without arguments.
    match unsafe { libc::geteuid() } {
        0 => Ok(()),
        user => Err(NotRun::because(format!(
            "user {user} cannot act as another user: run the tests as root"
        ))),
    }
}

/// Starts a part of this program, with the rights of a user.
fn as_user(user: u32, part: &str, arguments: &[&str]) -> Child {
    Command::new("/proc/self/exe")
        .args(arguments)
        .env(ROLE, part)
        .uid(user)
        .gid(user)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a part says until its end.
fn said(child: Child) -> String {
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{:?}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

fn plan() -> Plan {
    Plan {
        colors: partition::Colors::first(2),
        by_task: false,
        parts: Part::ALL.to_vec(),
        stack: Bytes::from_kib(256),
        segments: Bytes::from_mib(8),
        strict: false,
    }
}

/// A script in colors whose supervisor is a process of its own.
struct Supervised {
    supervisor: Child,
    script: u32,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _server: common::Served,
}

impl Supervised {
    /// It says its number first, and waits for a line.
    fn start(script: &str) -> Self {
        let server = common::serve(2, 400);
        let script = format!("echo $$; read go; {script}");
        // SAFETY: a call without arguments.
        let own = unsafe { libc::geteuid() };
        let mut supervisor = as_user(
            own,
            "supervise",
            &[server.socket.to_str().unwrap(), &script],
        );
        let to = supervisor.stdin.take().unwrap();
        let mut from = BufReader::new(supervisor.stdout.take().unwrap());
        let mut number = String::new();
        from.read_line(&mut number).unwrap();
        Supervised {
            supervisor,
            script: number.trim().parse().unwrap(),
            to,
            from,
            _server: server,
        }
    }

    fn environment(&self, name: &str) -> String {
        let all = std::fs::read(format!("/proc/{}/environ", self.script)).unwrap();
        let all = String::from_utf8(all).unwrap();
        let prefix = format!("{name}=");
        let found = all.split('\0').find_map(|v| v.strip_prefix(&prefix));
        found.unwrap().to_owned()
    }

    fn kill_supervisor(&mut self) {
        self.supervisor.kill().unwrap();
        self.supervisor.wait().unwrap();
    }

    /// Lets the script go on; what it says to its end.
    fn go_on(mut self) -> String {
        self.to.write_all(b"go\n").unwrap();
        let mut said = String::new();
        self.from.read_to_string(&mut said).unwrap();
        said
    }
}

/// A path of the process's number came to mean another user's file when the supervisor was killed
/// and the number was given away: the next program loaded it as root.
fn the_library_of_a_killed_supervisor_stays_its_users() -> Outcome {
    is_root()?;
    let mut run = Supervised::start("grep -o '/.*libwarmset.*' /proc/self/maps | sort -u");
    let library = run.environment("LD_PRELOAD");
    let socket = run.environment(VARIABLE);
    let socket = socket.split(';').next().unwrap().to_owned();
    run.kill_supervisor();
    for path in [&library, &socket] {
        let path = Path::new(path);
        assert!(
            path.is_absolute() && !path.starts_with("/proc"),
            "{}",
            path.display()
        );
        for part in path.ancestors() {
            let meta = part.symlink_metadata().unwrap();
            assert_eq!(meta.uid(), 0, "{}", part.display());
            assert_eq!(meta.mode() & 0o022, 0, "{}", part.display());
        }
    }
    let tried = said(as_user(OTHER, "take-over", &[&library, &socket]));
    assert_eq!(tried, "tried\n");
    // A program that begins now loads what it would have loaded before.
    assert_eq!(run.go_on().trim(), library);
    // And the next run takes away what the killed one left.
    let left = Path::new(&library).parent().unwrap().to_owned();
    assert!(left.exists());
    let server = common::serve(2, 100);
    let ran = exec::run(&server.socket, &plan(), Path::new("true"), &[]).unwrap();
    assert!(ran.status.success());
    assert!(!left.exists());
    Ok(())
}

fn programs_go_on_when_their_supervisor_is_killed() {
    // More than the shell has colored memory for, and programs that begin without a supervisor.
    let script = "x=$(seq 1 300000); echo ${#x}; echo $x | tr ' ' '\\n' | sort -rn | head -1; \
                  sh -c 'echo $((6 * 7))' 2>&1";
    let mut run = Supervised::start(script);
    run.kill_supervisor();
    assert_eq!(run.go_on(), "1988894\n300000\n42\n");
}

/// Starts somebody who listens in a directory of his own.
fn listener_of(user: u32) -> (Child, BufReader<ChildStdout>, tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(user), Some(user)).unwrap();
    let socket = dir.path().join("socket");
    let mut child = as_user(user, "listen", &[socket.to_str().unwrap()]);
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert_eq!(line, "listening\n");
    (child, from, dir, socket)
}

/// What came over the connection to him.
fn heard(
    (mut child, mut from, _dir, _): (Child, BufReader<ChildStdout>, tempfile::TempDir, PathBuf),
) -> String {
    let mut said = String::new();
    from.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    said
}

/// The name of the socket was free once the supervisor had ended: another user took it, handed out
/// memory and read what root wrote there.
fn an_impostor_is_told_nothing_and_gives_no_memory() -> Outcome {
    is_root()?;
    let server = common::serve(2, 400);
    // Another user where the supervisor should be; and root, by another process than it should be.
    for user in [OTHER, 0] {
        let impostor = listener_of(user);
        let number = match user {
            0 => std::process::id(),
            _ => impostor.0.id(),
        };
        let script = format!(
            "rest=${{{VARIABLE}#*;}}; rest=${{rest#*;}}; \
             {VARIABLE}=\"{};{number};$rest\" sort /proc/self/status -o /dev/null",
            impostor.3.display()
        );
        let script = ["-c".into(), OsString::from(script)];
        let ran = exec::run(&server.socket, &plan(), Path::new("sh"), &script).unwrap();
        assert!(ran.status.success(), "{:?}", ran.status);
        assert!(ran.reports.iter().all(|report| report.name != "sort"));
        assert_eq!(heard(impostor), "0 bytes\n", "of user {user}");
    }
    Ok(())
}

fn a_memory_server_of_another_user_is_refused() -> Outcome {
    is_root()?;
    let server = listener_of(OTHER);
    let e = exec::run(&server.3, &plan(), Path::new("true"), &[])
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("run by user 54321") && e.contains("socket"),
        "{e}"
    );
    assert_eq!(heard(server), "0 bytes\n");
    let server = listener_of(OTHER);
    let options = heap::Options {
        socket: Some(server.3.clone()),
        ..heap::Options::default()
    };
    let e = heap::attach(&options).unwrap_err().to_string();
    assert!(e.contains("run by user 54321"), "{e}");
    assert_eq!(heard(server), "0 bytes\n");
    Ok(())
}

/// A script in colors within this process that goes on when it is told to, step by step.
struct Steps {
    dir: tempfile::TempDir,
    run: std::thread::JoinHandle<Ran>,
}

impl Steps {
    /// After each step it waits for the next one.
    fn start(steps: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        let mut script = format!("echo \"${VARIABLE}\" > {at}/variable; ");
        for (number, step) in steps.iter().enumerate() {
            script += &format!(
                "touch {at}/ended.{number}; \
                 while [ ! -e {at}/begin.{number} ]; do [ -d {at} ] || exit 9; sleep 0.02; done; \
                 {step} || exit 1; "
            );
        }
        let script = ["-c".into(), OsString::from(script)];
        let run = std::thread::spawn(move || {
            let server = common::serve(2, 400);
            exec::run(&server.socket, &plan(), Path::new("sh"), &script).unwrap()
        });
        Steps { dir, run }
    }

    /// Waits until so many steps have been done.
    fn wait(&self, number: usize) {
        let file = self.dir.path().join(format!("ended.{number}"));
        while !file.exists() {
            assert!(
                !self.run.is_finished(),
                "the program ended before step {number}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn begin(&self, number: usize) {
        std::fs::write(self.dir.path().join(format!("begin.{number}")), "").unwrap();
    }

    /// Where its supervisor listens, and the secret.
    fn supervisor(&self) -> (PathBuf, Vec<u8>) {
        let text = std::fs::read_to_string(self.dir.path().join("variable")).unwrap();
        let mut fields = text.split(';');
        let socket = PathBuf::from(fields.next().unwrap());
        let secret = fields.nth(1).unwrap().as_bytes();
        let byte = |d: &[u8]| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
        (socket, secret.chunks(2).map(byte).collect())
    }
}

/// Give me tiles of these colors; and I begin a program, what I had returns.
const TAKE: u32 = 1;
const BEGIN: u32 = 5;

/// What is answered to a request.
fn answer(socket: &Path, secret: &[u8], kind: u32, list: &[u8]) -> Vec<u8> {
    let body = [secret, &kind.to_ne_bytes(), list].concat();
    let mut stream = UnixStream::connect(socket).unwrap();
    stream
        .write_all(&(body.len() as u32).to_ne_bytes())
        .unwrap();
    // It may be cut off before it has sent all.
    let _ = stream.write_all(&body);
    let mut answer = Vec::new();
    if let Err(e) = stream.read_to_end(&mut answer) {
        assert_eq!(e.kind(), ErrorKind::ConnectionReset);
    }
    answer
}

/// Any user got tiles of root's colors.
fn only_the_run_itself_is_served() -> Outcome {
    let run = Steps::start(&["sort /proc/self/status -o /dev/null"]);
    run.wait(0);
    let (socket, secret) = run.supervisor();
    let colors = [0, 0, 1, 0];
    assert_eq!(
        answer(&socket, &[0; 16], TAKE, &colors).len(),
        0,
        "without the secret"
    );
    assert_eq!(
        answer(&socket, &secret, TAKE, &colors).len(),
        4 + 2 * 4,
        "with it"
    );
    assert_eq!(answer(&socket, &secret, BEGIN, &[]), [0; 4]);
    let others = is_root().map(|()| {
        let met = said(as_user(OTHER, "connect", &[socket.to_str().unwrap()]));
        assert_eq!(met, "PermissionDenied\n");
    });
    run.begin(0);
    let ran = run.run.join().unwrap();
    assert!(ran.status.success() && !ran.ran_out);
    others
}

fn a_program_that_gives_up_its_rights_goes_on_without_colors() -> Outcome {
    is_root()?;
    exec::check(Path::new("setpriv")).map_err(NotRun::because)?;
    let dir = tempfile::tempdir().unwrap();
    let err = dir.path().join("err");
    let script = format!(
        "setpriv --reuid={OTHER} --regid={OTHER} --clear-groups \
         sh -c 'seq 100000 | sort -rn | head -1' > {0}.out 2> {0}",
        err.display()
    );
    let server = common::serve(2, 400);
    let script = ["-c".into(), OsString::from(script)];
    let ran = exec::run(&server.socket, &plan(), Path::new("sh"), &script).unwrap();
    assert!(ran.status.success());
    assert_eq!(std::fs::read_to_string(&err).unwrap(), "");
    let out = std::fs::read_to_string(err.with_extension("out")).unwrap();
    assert_eq!(out, "100000\n");
    // The shell of root is colored, the programs of the other user are not known.
    let names: Vec<&str> = ran
        .reports
        .iter()
        .map(|report| report.name.as_str())
        .collect();
    assert!(
        names.contains(&"sh") && !names.contains(&"sort"),
        "{names:?}"
    );
    Ok(())
}

/// Each such connection made root's `malloc` wait for two seconds.
fn who_connects_and_says_nothing_delays_nobody() {
    let sort = "sort /proc/self/status -o /dev/null";
    let run = Steps::start(&[sort, sort, "true"]);
    run.wait(0);
    let (socket, secret) = run.supervisor();
    let connect = |number: usize| -> Vec<UnixStream> {
        (0..number)
            .map(|place| {
                let mut stream = UnixStream::connect(&socket).unwrap();
                // Some begin a request and do not end it.
                let some = [&24_u32.to_ne_bytes()[..], &secret].concat();
                stream.write_all(&some[..place % some.len()]).unwrap();
                stream.set_nonblocking(true).unwrap();
                stream
            })
            .collect()
    };
    let is_open = |mut stream: &UnixStream| match stream.read(&mut [0; 1]) {
        Err(e) => e.kind() == ErrorKind::WouldBlock,
        Ok(_) => false,
    };
    let idle = connect(150);
    run.begin(0);
    run.wait(1);
    // The program was served before any of them had to go.
    assert!(idle.iter().all(is_open));
    // More than there is room for: the oldest have to go.
    let more = connect(400);
    run.begin(1);
    run.wait(2);
    assert!(!idle.iter().any(is_open));
    assert!(is_open(more.last().unwrap()));
    run.begin(2);
    let ran = run.run.join().unwrap();
    assert!(ran.status.success() && !ran.ran_out, "{:?}", ran.status);
    let sorts = ran.reports.iter().filter(|report| report.name == "sort");
    assert_eq!(sorts.count(), 2);
}
