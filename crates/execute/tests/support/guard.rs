//! What must hold whatever goes wrong: a shell answers throughout, and afterwards all is as it was
//! before.

use execute::kernel::Thread;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The watchdog lets ordinary programs wait for two seconds before it ends a run; one more for a
/// machine that has much to do.
const MOST: Duration = Duration::from_secs(3);

/// Settings of the machine that runs could have to do with.
const SETTINGS: [&str; 5] = [
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/sched_rt_period_us",
    "/proc/sys/kernel/sched_autogroup_enabled",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/overcommit_memory",
];

fn settings() -> Vec<Option<String>> {
    SETTINGS
        .iter()
        .map(|path| std::fs::read_to_string(path).ok())
        .collect()
}

/// A shell of ordinary priority that is asked for an answer again and again, and settings as they
/// were.
pub struct Guard {
    shell: Child,
    asking: Option<JoinHandle<(u64, Duration)>>,
    stop: Arc<AtomicBool>,
    before: Vec<Option<String>>,
}

impl Guard {
    /// Begins to ask.
    pub fn new() -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", "while read word; do echo $word; done"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut ask, answers) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let asking = std::thread::spawn(move || {
            let (mut answers, mut line) = (BufReader::new(answers), String::new());
            let (mut count, mut longest) = (0, Duration::ZERO);
            let mut last = Instant::now();
            while !until.load(Ordering::Relaxed) {
                writeln!(ask, "{count}").unwrap();
                line.clear();
                answers.read_line(&mut line).unwrap();
                assert_eq!(line.trim(), count.to_string());
                count += 1;
                std::thread::sleep(Duration::from_millis(5));
                // From answer to answer: that this thread did not get to run counts too.
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            (count, longest)
        });
        Guard {
            shell,
            asking: Some(asking),
            stop,
            before: settings(),
        }
    }

    /// The children of this process but the shell.
    pub fn others(&self) -> impl Iterator<Item = i32> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let children = tasks
            .flatten()
            .map(|t| std::fs::read_to_string(t.path().join("children")));
        let children = children.flatten().flat_map(|c| {
            let all: Vec<i32> = c
                .split_whitespace()
                .filter_map(|p| p.parse().ok())
                .collect();
            all
        });
        let shell = self.shell.id() as i32;
        children.filter(move |child| *child != shell)
    }

    /// The shell has answered throughout, no thread of this process is at real-time priority, no
    /// process was left behind, and the settings are as before.
    pub fn all_is_quiet(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let (count, longest) = self.asking.take().unwrap().join().unwrap();
        // Its input is closed now.
        assert!(self.shell.wait().unwrap().success());
        assert!(
            count > 0 && longest < MOST,
            "{count} answers, {longest:?} between two of them"
        );
        for entry in std::fs::read_dir("/proc/self/task").unwrap() {
            let tid = entry
                .unwrap()
                .file_name()
                .to_string_lossy()
                .parse()
                .unwrap();
            // A thread that ends just now is quiet too.
            if let Ok(scheduling) = Thread(tid).scheduling() {
                // Those that did not come back get what nobody else wants.
                let quiet = [(libc::SCHED_OTHER, 0), (libc::SCHED_IDLE, 0)];
                assert!(quiet.contains(&scheduling), "thread {tid}: {scheduling:?}");
            }
        }
        // Processes that end what a killed run has left come to this process, and end soon.
        let until = Instant::now() + Duration::from_secs(20);
        // SAFETY: waits for children; none is left in the end.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } >= 0 {
            assert!(Instant::now() < until, "a process was left behind");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(settings(), self.before);
    }
}

impl Drop for Guard {
    /// A test that has failed leaves no shell to the tests behind it, which would find a process.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
