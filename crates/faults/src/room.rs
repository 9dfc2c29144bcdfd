//! Where trials take place: namespaces of their own, so that whatever is new in them is theirs.
//!
//! `/tmp`, `/run` and `/dev/shm` are empty memory of this process and its descendants alone, and
//! nobody else's sockets are seen (mount, network and IPC namespaces; namespaces(7)). Processes
//! are not hidden: the kernel's record of switches names them by their numbers.

use crate::fault::{Fault, Limit};
use crate::scenario::{Line, OUT, TRACE};
use crate::system::{self, Start};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, unmount};
use rustix::thread::UnshareFlags;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Emptied for trials.
const OWN: [&str; 3] = ["/tmp", "/run", "/dev/shm"];
/// Programs of trials.
const PROGRAMS: &str = "/run/faults";
/// The directory that a command works in.
pub const WORK: &str = "/tmp/work";
/// What a command says.
pub const SAID: &str = "/tmp/said";
/// Where the kernel's tracing is.
const TRACEFS: &str = "/sys/kernel/tracing";

/// The namespaces, entered.
#[derive(Debug)]
pub struct Room {
    /// The command that is tried.
    pub warmset: PathBuf,
    /// This program.
    pub helper: PathBuf,
    /// May the kernel's tracing be used?
    pub has_tracefs: bool,
    /// The directory for what is kept, which may lie where something else stands now.
    pub keep: PathBuf,
    _keep: OwnedFd,
}

/// Says which step failed.
fn step<T, E: Into<io::Error>>(what: &str, done: Result<T, E>) -> Result<T, String> {
    done.map_err(|e| format!("cannot {what}: {}", e.into()))
}

impl Room {
    /// Enters it, with all threads: there must be one only.
    ///
    /// # Errors
    /// The right to it is missing (`CAP_SYS_ADMIN`), or a program is not there.
    pub fn enter(warmset: &Path, keep: &Path) -> Result<Self, String> {
        let open = |path: &Path, what: &str| {
            let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
            step(
                &format!("open {what} `{}`", path.display()),
                rustix::fs::open(path, flags, rustix::fs::Mode::empty()),
            )
        };
        let apart = UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
        // SAFETY: the table of descriptors stays as it is.
        let done = unsafe { rustix::thread::unshare_unsafe(apart) };
        step("get namespaces (as root)", done)?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        step("keep mounts to itself", mount_change("/", private))?;
        // Only what is opened here, before other things stand in its place, can be mounted there.
        let program = open(warmset, "the command")?;
        let this = step("find this program", std::env::current_exe())?;
        let this = open(&this, "this program")?;
        step("make the directory for results", fs::create_dir_all(keep))?;
        let kept = open(keep, "the directory for results")?;
        for path in OWN {
            let made = mount("faults", path, "tmpfs", MountFlags::empty(), None);
            step(&format!("mount memory at {path}"), made)?;
        }
        step("make a directory", fs::create_dir(PROGRAMS))?;
        let bind = |from: &OwnedFd, name: &str| {
            let to = Path::new(PROGRAMS).join(name);
            step("make a file", fs::File::create(&to))?;
            let from = format!("/proc/self/fd/{}", from.as_raw_fd());
            step("mount a program", mount_bind(from, &to)).map(|()| to)
        };
        let room = Room {
            warmset: bind(&program, "warmset")?,
            helper: bind(&this, "faults")?,
            has_tracefs: has_tracefs(),
            keep: PathBuf::from(format!("/proc/self/fd/{}", kept.as_raw_fd())),
            _keep: kept,
        };
        step("make a directory", fs::create_dir(SAID))?;
        Ok(room)
    }

    /// An empty directory for a command, with what it writes in `disk` bytes of memory, if any.
    pub fn prepare(&self, disk: Option<u64>) -> Result<(), String> {
        self.clear();
        step(
            "make a directory",
            fs::DirBuilder::new().mode(0o755).create(WORK),
        )?;
        let out = Path::new(WORK).join(OUT);
        step("make a directory", fs::create_dir(&out))?;
        if let Some(bytes) = disk {
            let size = std::ffi::CString::new(format!("size={bytes}")).expect("no zero byte");
            let made = mount(
                "faults-disk",
                &out,
                "tmpfs",
                MountFlags::empty(),
                size.as_c_str(),
            );
            step("mount a small disk", made)?;
        }
        Ok(())
    }

    /// The command, with what is done to it from the start.
    ///
    /// A limit on the size of files would keep its sentence out of a file: then standard error is a
    /// pipe, whose end to read from is returned.
    ///
    /// # Errors
    /// A file for what it says cannot be made.
    pub fn command(
        &self,
        line: &Line,
        fault: &Fault,
        start: Arc<Start>,
    ) -> io::Result<(Command, Option<PipeReader>)> {
        let words = line.words.iter().map(|word| match fault {
            Fault::Device if word == TRACE => "/dev/full",
            _ => word.as_str(),
        });
        let said = |name: &str| fs::File::create(Path::new(SAID).join(name));
        let stdout = match fault {
            Fault::Device => fs::File::options().write(true).open("/dev/full")?,
            Fault::Disk(_) => fs::File::create(Path::new(WORK).join(OUT).join("stdout"))?,
            _ => said("stdout")?,
        };
        let mut command = Command::new(&self.warmset);
        command.args(words).current_dir(WORK).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let mut pipe = None;
        let stderr: Stdio = match fault {
            Fault::Limit(Limit::FileSize, _) => {
                let (reader, writer) = io::pipe()?;
                pipe = Some(reader);
                writer.into()
            }
            _ => said("stderr")?.into(),
        };
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        system::prepare(&mut command, start);
        Ok((command, pipe))
    }

    /// Keeps what came out of the pipe of [`Room::command`] where standard error is kept otherwise.
    /// The pipe holds 64 KiB, more than any command says there. Everybody who had its other end has
    /// ended, or is waited for in vain, which was told: so it is read as far as it goes.
    ///
    /// # Errors
    /// It cannot be read, or written to its file.
    pub fn keep_words(&self, mut pipe: PipeReader) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let mut words = Vec::new();
        match pipe.read_to_end(&mut words) {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => fs::write(Path::new(SAID).join("stderr"), words),
        }
    }

    /// Nothing of a trial is left.
    pub fn clear(&self) {
        // Only the trial before may have had a disk of its own.
        let _ = unmount(
            Path::new(WORK).join(OUT),
            rustix::mount::UnmountFlags::DETACH,
        );
        for path in OWN {
            for (entry, _) in listing(Path::new(path)) {
                let path = Path::new(&entry);
                if !path.starts_with(PROGRAMS) && path != Path::new(SAID) {
                    // Directories go after what is in them, by the call for their parent.
                    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
                }
            }
        }
        // Without it the next trial could not say anything, which it would tell.
        let _ = fs::create_dir_all(SAID);
    }

    /// All that is in the directories of this room but what commands say.
    pub fn files(&self) -> BTreeMap<String, char> {
        let mut all = BTreeMap::new();
        for path in OWN {
            all.extend(listing(Path::new(path)));
        }
        all.retain(|path, _| !Path::new(path).starts_with(SAID));
        all
    }
}

fn has_tracefs() -> bool {
    let there = || Path::new(TRACEFS).join("instances").is_dir();
    // Where the kernel has none, scenarios that need it are left out, which is told.
    there()
        || mount("faults", TRACEFS, "tracefs", MountFlags::empty(), None).is_ok_and(|()| there())
}

/// The instance of the kernel's tracing that the command of this number has made and left. It is
/// taken away, so that it is told once.
pub fn left_instance(engine: i32) -> Option<String> {
    let path = Path::new(TRACEFS).join(format!("instances/warmset-{engine}"));
    let there = path.is_dir();
    // One that cannot be removed takes memory until the machine ends.
    let _ = fs::remove_dir(&path);
    there.then(|| path.display().to_string())
}

/// All below a directory, with what each is: `f` a file, `d` a directory, `p` a FIFO, `s` a
/// socket, `?` anything else.
fn listing(path: &Path) -> Vec<(String, char)> {
    let mut found = Vec::new();
    let mut dirs = vec![path.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let letter = match () {
                () if kind.is_dir() => 'd',
                () if kind.is_file() => 'f',
                () if kind.is_fifo() => 'p',
                () if kind.is_socket() => 's',
                () => '?',
            };
            found.push((entry.path().display().to_string(), letter));
            if kind.is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    found
}
