//! Parts of studies on a cluster of Dask, by the Python package `warmset`: a process of Python that
//! stands between this one and the scheduler.
//!
//! It is told a study and its parts, a line each, and answers with counts, a line each
//! (`crates/python/python/warmset/_dask.py`). It ends when its standard input does, so that it
//! outlives no command, however that ends; and where a client is gone, Dask drops its work.

use model::watch::Watch;
use model::{Error, Result};
use serde::Deserialize;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use study::{Arrivals, Counts, Executor, Part, Texts, Work};

/// Names the interpreter that has the package.
const PYTHON: &str = "WARMSET_PYTHON";

/// Imports nothing from the directory in which the command is called.
const PROGRAM: &str = "\
import sys
sys.path[:] = [place for place in sys.path if place]
try:
    from warmset._dask import main
except ModuleNotFoundError as e:
    print('missing', e.name)
else:
    main()
";

/// How often the wish to stop is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Lines that wait to be read; more make the other process wait.
const WAITING: usize = 1024;
/// How long the last words of a process that has ended are waited for.
const FAREWELL: Duration = Duration::from_secs(2);

/// The workers of a scheduler of Dask.
pub(crate) struct Dask {
    bridge: Mutex<Bridge>,
}

/// The process of Python.
struct Bridge {
    python: PathBuf,
    address: String,
    child: Child,
    /// `None`: it was ended.
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
    /// The last line that it said on standard error, when that has ended.
    said: Receiver<String>,
}

/// An error as Python writes it.
#[derive(Deserialize)]
struct Told {
    cause: String,
    place: String,
    remedy: String,
}

impl Dask {
    /// Connects with the scheduler at an address such as `tcp://10.0.0.1:8786`.
    ///
    /// # Errors
    /// There is no Python with the package and Dask, or of another version; no scheduler answers;
    /// the user stopped it.
    pub(crate) fn connect(address: &str, watch: &dyn Watch) -> Result<Self> {
        let mut command = Command::new(python());
        command.args(["-c", PROGRAM, address]);
        Dask::by(command, address, watch)
    }

    fn by(mut command: Command, address: &str, watch: &dyn Watch) -> Result<Self> {
        let python = PathBuf::from(command.get_program());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for this process, which keeps what is counted and ends the other one.
            .process_group(0)
            .spawn()
            .map_err(|e| {
                Error::io(&python, "start Python", &e).remedy(format!(
                    "install Python 3.10 or later with the package `warmset`, or name it by `{PYTHON}`"
                ))
            })?;
        let (send, answers) = sync_channel(WAITING);
        let (last, said) = sync_channel(1);
        let orders = child.stdin.take();
        if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
            // Both end with the process.
            thread::spawn(move || hand_on(out, &send));
            // Where nobody asks any more, nobody needs to know.
            thread::spawn(move || last.send(last_line(err)));
        }
        let bridge = Bridge {
            python,
            address: address.to_owned(),
            child,
            orders,
            answers,
            said,
        };
        bridge.greeted(watch)?;
        Ok(Dask {
            bridge: Mutex::new(bridge),
        })
    }
}

impl Executor for Dask {
    fn run(
        &self,
        work: &Work<'_>,
        parts: &[Part],
        keep: &(dyn Fn(Counts) -> Result<()> + Sync),
        watch: &dyn Watch,
    ) -> Result<()> {
        let mut bridge = self.bridge.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut orders) = bridge.orders.take() else {
            return Err(bridge.ended());
        };
        let arrivals = Arrivals::new(work, parts, keep, watch);
        let texts = Texts::of(work.study());
        let done = thread::scope(|scope| {
            let sender = scope.spawn(|| send(&mut orders, &texts, parts));
            let done = bridge.receive(&arrivals, watch);
            if !matches!(done, Ok(true)) {
                // The sender waits for a reader no longer.
                bridge.end();
            }
            // That nobody reads what is sent is told better by what was received.
            let _ = sender.join();
            done
        });
        if done? {
            bridge.orders = Some(orders);
        }
        Ok(())
    }
}

impl Bridge {
    /// Waits for the first answer.
    fn greeted(&self, watch: &dyn Watch) -> Result<()> {
        loop {
            if watch.stopped() {
                return Err(Error::new("stopped before a scheduler answered").at(&self.address));
            }
            let Some(line) = self.next()? else { continue };
            let own = env!("CARGO_PKG_VERSION");
            return match line.split_once(' ') {
                Some(("ready", version)) if version == own => Ok(()),
                Some(("ready", version)) => Err(Error::new(format!(
                    "the package `warmset` of Python is of version {version}, this command of {own}"
                ))
                .at(self.python.display())
                .remedy("install the package of the same version")),
                Some(("missing", name)) => Err(Error::new(format!(
                    "Python has no package `{name}`, which `--dask` needs"
                ))
                .at(self.python.display())
                .remedy(format!(
                    "run `pip install target/wheels/*.whl distributed` after `make wheel`; `{PYTHON}` \
                     names another interpreter"
                ))),
                _ => Err(self.other(&line)),
            };
        }
    }

    /// Takes answers until all parts are there, which is `true`, or the watch stops.
    fn receive(&self, arrivals: &Arrivals<'_>, watch: &dyn Watch) -> Result<bool> {
        while !watch.stopped() {
            let Some(line) = self.next()? else { continue };
            match line.split_once(' ') {
                Some(("counts", counts)) => arrivals.take(counts)?,
                Some(("note", text)) => watch.note(text),
                Some(("done", _)) => {
                    return match arrivals.left() {
                        0 => Ok(true),
                        left => Err(Error::new(format!("{left} parts did not come back"))
                            .at(&self.address)
                            .remedy("run it again: parts that were kept are not run again")),
                    };
                }
                _ => return Err(self.other(&line)),
            }
        }
        Ok(false)
    }

    /// The next line, if one comes within a moment.
    fn next(&self) -> Result<Option<String>> {
        match self.answers.recv_timeout(LOOK) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// A line that is an error, or none that is known.
    fn other(&self, line: &str) -> Error {
        let told = line
            .strip_prefix("error ")
            .map(serde_json::from_str::<Told>);
        match told {
            Some(Ok(told)) => {
                let error = Error::new(told.cause).at(told.place).remedy(told.remedy);
                match error.place().is_empty() {
                    true => error.at(&self.address),
                    false => error,
                }
            }
            _ => Error::new(format!("what Python said is not understood: {line}"))
                .at(self.python.display())
                .remedy("install the package of the same version"),
        }
    }

    fn ended(&self) -> Error {
        // It is on its way: standard output has ended, and with it the process.
        let cause = match self.said.recv_timeout(FAREWELL) {
            Ok(line) if !line.is_empty() => format!("Python ended: {line}"),
            _ => "Python ended without a word".to_owned(),
        };
        Error::new(cause)
            .at(self.python.display())
            .remedy("run it again: parts that were kept are not run again")
    }

    fn end(&mut self) {
        self.orders = None;
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.end();
    }
}

/// The interpreter: the one that is named, the one of the environment into which `pip` installed
/// this command, or the first one on the path.
fn python() -> PathBuf {
    let named = std::env::var_os(PYTHON).filter(|name| !name.is_empty());
    let beside = || {
        let beside = std::env::current_exe().ok()?.with_file_name("python3");
        beside.exists().then_some(beside)
    };
    named
        .map(PathBuf::from)
        .or_else(beside)
        .unwrap_or_else(|| PathBuf::from("python3"))
}

/// Sends a study and its parts: the lightest last, as [`study::Threads`] takes them.
fn send(orders: &mut ChildStdin, texts: &Texts, parts: &[Part]) -> std::io::Result<()> {
    let mut orders = BufWriter::new(orders);
    let study = serde_json::to_string(texts)?;
    serde_json::to_writer(&mut orders, &(study, parts.len()))?;
    writeln!(orders)?;
    for part in parts.iter().rev() {
        writeln!(orders, "[{},{},{}]", part.cap, part.first, part.sets)?;
    }
    orders.flush()
}

fn hand_on(out: impl Read, to: &SyncSender<String>) {
    for line in BufReader::new(out).lines() {
        // Nobody listens any more: the process is being ended.
        let Ok(Ok(())) = line.map(|line| to.send(line)) else {
            return;
        };
    }
}

/// The last line that says anything.
fn last_line(err: impl Read) -> String {
    let mut last = String::new();
    for line in BufReader::new(err).split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            last = line.trim().to_owned();
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::watch::Silent;
    use study::presets;

    /// A script stands in for Python.
    fn connect(script: &str) -> Result<Dask> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Dask::by(command, "tcp://nowhere:1", &Silent)
    }

    fn refused(script: &str) -> String {
        let refused = connect(script).err().expect("no answer of a scheduler");
        refused.to_string()
    }

    #[test]
    fn what_python_lacks_is_told_in_a_sentence_with_what_installs_it() {
        let told = refused("echo missing distributed");
        assert!(told.contains("no package `distributed`"), "{told}");
        assert!(told.contains("pip install"), "{told}");
        let told = refused("echo ready 0.0.1");
        assert!(told.contains("of version 0.0.1"), "{told}");
        let told = refused("echo one >&2; echo two >&2; echo >&2");
        assert!(told.contains("Python ended: two"), "{told}");
        let told = refused("echo hello");
        assert!(told.contains("not understood: hello"), "{told}");
        let error = r#"error {"cause":"no scheduler answers","place":"","remedy":"start one"}"#;
        assert_eq!(
            refused(&format!("echo '{error}'")),
            "tcp://nowhere:1: no scheduler answers; start one"
        );
        let none = Dask::by(Command::new("/nowhere/python3"), "", &Silent);
        let told = none.err().expect("no program").to_string();
        assert!(
            told.contains("/nowhere/python3") && told.contains(PYTHON),
            "{told}"
        );
    }

    /// Asks for a stop when the study has begun.
    struct Stopping;

    impl Watch for Stopping {
        fn begin(&self, _: &str, _: u64) {}
        fn advance(&self, _: u64) {}
        fn note(&self, _: &str) {}
        fn stopped(&self) -> bool {
            true
        }
    }

    /// What is sent is more than a pipe holds, and nobody reads it.
    #[test]
    fn a_stop_ends_the_process_that_does_not_listen() {
        let ready = format!("echo ready {}; exec sleep 1000", env!("CARGO_PKG_VERSION"));
        let dask = connect(&ready).unwrap();
        let study = presets::find("ospert10-fig5").unwrap();
        let work = Work::new(&study).unwrap();
        let keep = |_: Counts| panic!("nothing is counted");
        dask.run(&work, &work.parts(), &keep, &Stopping).unwrap();
        let mut bridge = dask.bridge.into_inner().unwrap();
        assert!(bridge.child.try_wait().unwrap().is_some());
        drop(bridge);
    }

    #[test]
    fn parts_that_do_not_come_back_are_told() {
        let script = format!(
            "echo ready {}; read -r study; echo note on the way; echo done .; exec cat >/dev/null",
            env!("CARGO_PKG_VERSION")
        );
        let dask = connect(&script).unwrap();
        let study = presets::find("ospert10-fig5").unwrap();
        let work = Work::new(&study).unwrap();
        let keep = |_: Counts| panic!("nothing is counted");
        let parts = work.parts();
        let told = dask.run(&work, &parts, &keep, &Silent).unwrap_err();
        let left = format!("{} parts did not come back", parts.len());
        assert_eq!(told.cause(), left);
        // The process is gone, and says so when it is asked once more.
        let told = dask.run(&work, &parts, &keep, &Silent).unwrap_err();
        assert!(told.cause().starts_with("Python ended"), "{told}");
    }
}
