//! Looking into `/proc` without taking memory or locks: for dispatchers, and for the watchdog after
//! its fork.
//!
//! The one place that tells a process by its number and its birth ([`Identity`]), its state, its
//! relatives and its limits.
//!
//! Source: proc(5). Everything is read with plain system calls into buffers on the stack. What has
//! gone meanwhile is no error: it is not there. That nothing could be opened, for want of
//! descriptors or memory, is noted ([`shortage`]): whoever looks would take what it has not seen
//! for gone.
//!
//! **Who has gone is not looked for.** The kernel drops what it remembers of a process when that is
//! waited for, and when somebody looks for it who finds it gone. Who comes second waits for the
//! first in a loop (`shrink_dcache_parent`, up to 6.18 at least): a thread at real-time priority
//! for good, if the first one is an ordinary thread of its own processor. So the kernel is asked by
//! number, without a file, whether a process is there before any file of it is opened.

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::CStr;
use std::fmt::{Arguments, Write};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Why something could not be opened lately, as an error number; 0: everything could.
static SHORT: AtomicI32 = AtomicI32::new(0);

/// Why something in `/proc` could not be opened since this was last asked, though it may be there.
pub fn shortage() -> Option<model::Error> {
    let e = match SHORT.load(Ordering::Relaxed) {
        0 => return None,
        _ => io::Error::from_raw_os_error(SHORT.swap(0, Ordering::Relaxed)),
    };
    let remedy = match e.raw_os_error() {
        Some(libc::EMFILE) => {
            "give it more with `ulimit -n`, or let programs start fewer processes"
        }
        _ => "see `sysctl fs.file-nr` and how much memory is left",
    };
    Some(
        model::Error::new(format!("cannot look after the processes of programs: {e}"))
            .remedy(remedy),
    )
}

/// Could something in `/proc` not be opened since [`shortage`] was asked?
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed) != 0
}

/// A path below `/proc`, ended by a zero.
struct Path {
    bytes: [u8; 96],
    len: usize,
}

impl Path {
    fn of(text: Arguments<'_>) -> Self {
        let mut path = Path {
            bytes: [0; 96],
            len: 0,
        };
        // Longer than it can be: cut short, then there is no such file.
        let _ = path.write_fmt(text);
        path
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        // One zero stays at the end.
        let room = self.bytes.len() - 1 - self.len;
        let part = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        Ok(())
    }
}

/// Has a process, or a thread, this number? One that nobody has waited for yet has.
fn is_there(number: i32) -> bool {
    // The signal 0 is sent to nobody; that it may not be sent says that somebody is there.
    Pid::from_raw(number.max(0))
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Opens a file or directory of a process to read, or nothing if it has gone.
fn open_of(process: i32, name: Arguments<'_>) -> Option<OwnedFd> {
    is_there(process)
        .then(|| open(format_args!("/proc/{process}/{name}")))
        .flatten()
}

/// Opens a file of `/proc` to read. Of a process: [`open_of`].
fn open(path: Arguments<'_>) -> Option<OwnedFd> {
    let path = Path::of(path);
    let path = CStr::from_bytes_until_nul(&path.bytes).ok()?;
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    if let Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) = opened {
        SHORT.store(error.raw_os_error(), Ordering::Relaxed);
    }
    opened.ok()
}

/// Reads from an offset on; how many bytes there were, 0 at the end or where it fails.
pub fn read(file: impl AsFd, into: &mut [u8], offset: u64) -> usize {
    rustix::io::pread(file, into, offset).unwrap_or(0)
}

/// Calls `each` with every entry of a directory whose name is a number.
fn numbers(directory: OwnedFd, mut each: impl FnMut(i32)) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(number) = number(entry.file_name().to_bytes()) {
            each(number);
        }
    }
}

/// The number at the beginning of a name, up to a zero.
fn number(name: &[u8]) -> Option<i32> {
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    std::str::from_utf8(&name[..end]).ok()?.parse().ok()
}

/// Calls `each` with the number of every process.
pub fn processes(each: impl FnMut(i32)) {
    if let Some(all) = open(format_args!("/proc")) {
        numbers(all, each);
    }
}

/// Opens the directory of a process's threads.
pub fn open_threads(process: i32) -> Option<OwnedFd> {
    open_of(process, format_args!("task"))
}

/// Calls `each` with the number of every thread of a process.
pub fn threads(process: i32, each: impl FnMut(i32)) {
    if let Some(directory) = open_threads(process) {
        numbers(directory, each);
    }
}

/// Calls `each` with every child of a thread of a process (`CONFIG_PROC_CHILDREN`).
pub fn children(process: i32, thread: i32, mut each: impl FnMut(i32)) {
    if !is_there(thread) {
        return;
    }
    let Some(file) = open_of(process, format_args!("task/{thread}/children")) else {
        return;
    };
    let mut buffer = [0u8; 1024];
    // What a read broke off goes on in the next one.
    let (mut number, mut offset) = (0i32, 0);
    loop {
        let got = read(&file, &mut buffer, offset);
        if got == 0 {
            return;
        }
        offset += got as u64;
        for byte in &buffer[..got] {
            match byte {
                b'0'..=b'9' => {
                    number = number
                        .saturating_mul(10)
                        .saturating_add(i32::from(byte - b'0'))
                }
                _ if number != 0 => each(std::mem::take(&mut number)),
                _ => {}
            }
        }
    }
}

/// Calls `each` with a process and with every one that descends from it, as far as their parents
/// are alive. Takes no memory.
pub fn family(process: i32, each: &mut dyn FnMut(i32)) {
    /// More generations than there are, and little of a stack.
    const GENERATIONS: u32 = 64;
    fn visit(process: i32, left: u32, each: &mut dyn FnMut(i32)) {
        each(process);
        if left > 0 {
            threads(process, |tid| {
                children(process, tid, |child| visit(child, left - 1, each));
            });
        }
    }
    visit(process, GENERATIONS, each);
}

/// Does the kernel tell who is whose child?
pub fn tells_children() -> bool {
    let this = std::process::id() as i32;
    open_of(this, format_args!("task/{this}/children")).is_some()
}

/// Is this text within the environment that a process was started with?
pub fn has_in_environment(process: i32, text: &[u8]) -> bool {
    const KEPT: usize = 128;
    let Some(file) = open_of(process, format_args!("environ")) else {
        return false;
    };
    let mut buffer = [0u8; 4096 + KEPT];
    let (mut kept, mut offset) = (0, 0);
    loop {
        let got = read(&file, &mut buffer[kept..], offset);
        if got == 0 {
            return false;
        }
        offset += got as u64;
        let end = kept + got;
        if buffer[..end].windows(text.len()).any(|w| w == text) {
            return true;
        }
        // It may begin in this piece and end in the next.
        let from = end.saturating_sub(KEPT.min(text.len()));
        buffer.copy_within(from..end, 0);
        kept = end - from;
    }
}

/// The soft and the hard limit of a process to its real-time execution without sleep, in
/// microseconds. `u64::MAX`: no limit.
pub fn realtime_limit(process: i32) -> Option<(u64, u64)> {
    let file = open_of(process, format_args!("limits"))?;
    let mut buffer = [0u8; 4096];
    let got = read(&file, &mut buffer, 0);
    let line = buffer[..got]
        .split(|b| *b == b'\n')
        .find_map(|line| line.strip_prefix(b"Max realtime timeout"))?;
    let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let mut limit = || match std::str::from_utf8(words.next()?).ok()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    Some((limit()?, limit()?))
}

/// What the kernel says of a process.
#[derive(Clone, Copy)]
struct Stat {
    state: u8,
    parent: i32,
    group: i32,
    born: u64,
}

fn stat(process: i32) -> Option<Stat> {
    let file = open_of(process, format_args!("stat"))?;
    let mut buffer = [0u8; 512];
    let got = read(&file, &mut buffer, 0);
    stat_of(&buffer[..got])
}

fn stat_of(text: &[u8]) -> Option<Stat> {
    // The name, in parentheses, may hold anything; what follows the last one is fields.
    let name = text.iter().rposition(|b| *b == b')')?;
    let mut fields = text[name + 1..]
        .split(|b| *b == b' ')
        .filter(|f| !f.is_empty());
    let state = *fields.next()?.first()?;
    let mut number = |skipped: usize| {
        std::str::from_utf8(fields.nth(skipped)?)
            .ok()?
            .parse::<i64>()
            .ok()
    };
    let (parent, group) = (number(0)? as i32, number(0)? as i32);
    // The 22nd field of all; the group is the 5th.
    let born = number(16)? as u64;
    Some(Stat {
        state,
        parent,
        group,
        born,
    })
}

/// When a process was born, in the kernel's ticks since it was started.
pub fn born(process: i32) -> Option<u64> {
    stat(process).map(|s| s.born)
}

/// A process, told from a later one of the same number by its birth. One that has ended and that
/// nobody has waited for is still there, see [`Identity::of_living`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its number.
    pub process: i32,
    /// When it was born.
    pub born: u64,
}

impl Identity {
    /// The one that has this number now.
    pub fn of(process: i32) -> Option<Self> {
        born(process).map(|born| Identity { process, born })
    }

    /// The one that has this number now and has not ended, which one has that nobody has waited for
    /// yet.
    pub fn of_living(process: i32) -> Option<Self> {
        let stat = stat(process)?;
        (!matches!(stat.state, b'Z' | b'X' | b'x')).then_some(Identity {
            process,
            born: stat.born,
        })
    }

    /// Is it there? One that is not waited for yet is.
    pub fn exists(self) -> bool {
        born(self.process) == Some(self.born)
    }
}

/// State and process group of a process.
pub fn state(process: i32) -> Option<(u8, i32)> {
    stat(process).map(|s| (s.state, s.group))
}

/// Was a process started by another one, or by one that was, and so on? That of one whose parents
/// end at this moment is not known; then the answer is yes.
pub fn descends(process: i32, from: i32) -> bool {
    /// More generations than there are, and time enough for parents that end.
    const STEPS: usize = 10_000;
    let mut at = process;
    for _ in 0..STEPS {
        at = match stat(at).map(|s| s.parent) {
            Some(parent) if parent == from => return true,
            Some(parent) if parent <= 1 => return false,
            Some(parent) => parent,
            None if at == process => return false,
            // A parent has ended in the meantime, and somebody has taken its children in.
            None => process,
        };
    }
    true
}

/// Tells whether any thread or process was born on this machine since an earlier look: the number
/// that the kernel gave last, as `/proc/loadavg` has it.
#[derive(Debug)]
pub struct Births(OwnedFd);

impl Births {
    /// Opens it.
    pub fn open() -> Option<Self> {
        open(format_args!("/proc/loadavg")).map(Births)
    }
    /// The number that was given last.
    pub fn last(&self) -> i32 {
        let mut buffer = [0u8; 128];
        let got = read(&self.0, &mut buffer, 0);
        let line = buffer[..got].trim_ascii();
        let at = line.iter().rposition(|b| *b == b' ').map_or(0, |at| at + 1);
        number(&line[at..]).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_children_and_environments_are_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env("WARMSET_TEST", "a mark of a test")
            .env("A_LONG_ONE", "x".repeat(9000))
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let this = std::process::id() as i32;
        let mut mine = Vec::new();
        threads(this, |tid| children(this, tid, |c| mine.push(c)));
        assert!(mine.contains(&pid), "{mine:?}");
        let mut of_child = Vec::new();
        threads(pid, |tid| of_child.push(tid));
        assert_eq!(of_child, [pid]);
        // The kernel lets go of the parent a little before the environment of the new program can
        // be read.
        while std::fs::read(format!("/proc/{pid}/environ"))
            .unwrap()
            .is_empty()
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(has_in_environment(pid, b"WARMSET_TEST=a mark of a test\0"));
        assert!(!has_in_environment(pid, b"WARMSET_TEST=another\0"));
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert_eq!(state(pid).unwrap().1, group);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(state(pid), None);
        threads(pid, |tid| panic!("{tid}"));
    }

    #[test]
    fn whoever_was_started_by_one_who_was_started_descends() {
        use std::io::Read;
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0u8; 32];
        let got = shell.stdout.as_mut().unwrap().read(&mut line).unwrap();
        let grandchild = number(line[..got].trim_ascii()).unwrap();
        let (this, child) = (std::process::id() as i32, shell.id() as i32);
        let mut all = Vec::new();
        family(child, &mut |process| all.push(process));
        assert_eq!(all, [child, grandchild]);
        let ages = [this, child, grandchild].map(|p| born(p).unwrap());
        assert!(ages.is_sorted() && ages[0] > 0, "{ages:?}");
        assert!(descends(child, this) && descends(grandchild, this) && descends(grandchild, child));
        assert!(!descends(this, child) && !descends(child, grandchild) && !descends(child, child));
        // The process that was found to be ours.
        let grandchild_pid = rustix::process::Pid::from_raw(grandchild).unwrap();
        rustix::process::kill_process(grandchild_pid, rustix::process::Signal::KILL).unwrap();
        shell.wait().unwrap();
        assert!(!descends(child, this) && !descends(grandchild, this));
    }

    #[test]
    fn names_may_hold_anything() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let stat = stat_of(format!("12 (a) b) {rest}").as_bytes()).unwrap();
        assert_eq!(
            (stat.state, stat.parent, stat.group, stat.born),
            (b'S', 1, 2, 4711)
        );
        assert!(stat_of(b"12 (a").is_none());
    }

    #[test]
    fn one_that_nobody_has_waited_for_is_there_and_does_not_live() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while Identity::of_living(pid).is_some() {
            assert!(std::time::Instant::now() < until, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(Identity::of(pid).unwrap().exists());
        child.wait().unwrap();
        assert_eq!(Identity::of(pid), None);
    }

    /// In a process that may open nothing more, whatever is opened all the same is noted.
    #[test]
    fn no_file_is_opened_of_one_who_has_gone() {
        /// Everything that is read of a process.
        fn read_all(process: i32) {
            threads(process, |_| ());
            children(process, process, |_| ());
            children(std::process::id() as i32, process, |_| ());
            family(process, &mut |_| ());
            let _ = (stat(process), realtime_limit(process));
            let _ = (open_threads(process), has_in_environment(process, b"X="));
        }
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id() as i32;
        child.wait().unwrap();
        let [no_one, this] = [gone, std::process::id() as i32].map(|process| {
            // SAFETY: the child makes plain system calls, and ends.
            let reader = unsafe { sys::process::fork() }.unwrap();
            let Some(reader) = reader else {
                let none = rustix::process::Rlimit {
                    current: Some(0),
                    maximum: Some(0),
                };
                let denied = rustix::process::setrlimit(rustix::process::Resource::Nofile, none);
                SHORT.store(0, Ordering::Relaxed);
                read_all(process);
                sys::process::exit(match denied {
                    Ok(()) => i32::from(is_short()),
                    Err(_) => 2,
                });
            };
            let (_, status) = rustix::process::waitpid(
                Pid::from_raw(reader),
                rustix::process::WaitOptions::empty(),
            )
            .unwrap()
            .unwrap();
            status.exit_status()
        });
        assert_eq!((no_one, this), (Some(0), Some(1)));
    }

    #[test]
    fn a_birth_anywhere_is_noticed() {
        let births = Births::open().unwrap();
        let before = births.last();
        assert!(before > 0);
        std::thread::spawn(|| ()).join().unwrap();
        assert_ne!(births.last(), before);
    }
}
