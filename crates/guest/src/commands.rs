//! The command `warmset` within the guest: what `--engine` makes of a run there.

use crate::archive;
use crate::case;
use crate::ordinary::Look;
use crate::programs;
use model::watch::Silent;
use model::{Error, Result};
use partition::client::Connection;
use partition::ledger::{Access, Holder};
use partition::listen::Socket;
use partition::protocol::Request;
use partition::server::Server;
use partition::tile::Tile;
use partition::{Color, Colors, Selection};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Where it is, if the guest was given it.
const WARMSET: &str = "/warmset";
/// Which one call is made instead of all, and how often: `NAME TIMES`.
const ASKED: &str = "/calls";

/// A call of it, what its exit status is to be, and what it is to say.
struct Call {
    name: &'static str,
    /// The set, as a case has it, or as a file has it; empty: the call has none.
    set: &'static str,
    /// Its words; `SET` and `TRACE` stand for the names of files, `EFFORTS` for that of the set with
    /// best-effort work, `OUT` for that of a directory, `COLORS` for the socket of a memory server,
    /// `DOOR` for one by which a program joins that is started beside it.
    line: &'static str,
    /// Exit statuses that are well.
    status: &'static [i32],
    says: &'static [&'static str],
}

/// What a line begins with that is shown.
const LATENCY: &str = "release to first instruction:";

const SET: &str = "random:6:2.2:21";

/// Programs beside a thread, as a file has them.
const PROGRAMS: &str = r#"
[[task]]
name = "crowd"
wcet = "3ms"
period = "20ms"
workload = { exec = ["/init", "program", "crowd"], beyond_budget = "best-effort" }
[[task]]
name = "naps"
wcet = "2ms"
period = "15ms"
workload = { exec = ["/init", "program", "naps"] }
[[task]]
name = "thread"
wcet = "4ms"
period = "30ms"
"#;

/// Programs that ask for their jobs, one of which somebody else starts.
const ASKS: &str = r#"
[[task]]
name = "asks"
wcet = "3ms"
period = "20ms"
workload = { program = ["/init", "program", "asks", "2000000"] }
[[task]]
name = "joins"
wcet = "2ms"
period = "15ms"
workload = { kind = "join" }
[[task]]
name = "thread"
wcet = "4ms"
period = "30ms"
"#;

/// A thread and a program that fill what jobs leave.
const EFFORTS: &str = r#"
[[best_effort]]
name = "fill"
workload = { kind = "spin" }
[[best_effort]]
name = "more"
workload = { exec = ["/init", "program", "crowd"] }
"#;

/// A program that comes to its end, and nothing else.
const ENDS: &str = r#"
[[task]]
name = "ends"
wcet = "5ms"
period = "20ms"
workload = { exec = ["/init", "program", "ends"] }
"#;

/// One that fails.
const FAILS: &str = r#"
[[task]]
name = "fails"
wcet = "5ms"
period = "20ms"
workload = { exec = ["/init", "program", "no such kind"] }
"#;

/// Working sets of 64 KiB and 512 KiB, and the 96 KiB of three matrices.
const WALKS: &str = r#"
[[task]]
name = "small"
wcet = "2ms"
period = "20ms"
wss = "64KiB"
workload = { kind = "walk" }
[[task]]
name = "large"
wcet = "3ms"
period = "40ms"
wss = "512KiB"
workload = { kind = "walk", write_ratio = 0.25, pattern = "random" }
[[task]]
name = "product"
wcet = "3ms"
period = "40ms"
workload = { kind = "matrix" }
"#;

const CALLS: [Call; 16] = [
    Call {
        name: "platform",
        set: "",
        line: "platform",
        status: &[0],
        says: &[
            "sched_ext",
            "this build has it, and this kernel takes its program",
        ],
    },
    Call {
        name: "run-kernel",
        set: SET,
        line: "run SET --engine kernel --policy g-edf --for 1s \
               --jobs-end clock --tolerance 2ms --trace TRACE",
        status: &[0],
        says: &["by the kernel's scheduler", "decisions in the kernel"],
    },
    Call {
        name: "run-nps-f",
        set: SET,
        line: "run SET --engine kernel --policy nps-f --for 1s \
               --jobs-end clock --tolerance 2ms --trace TRACE",
        status: &[0],
        says: &["by the kernel's scheduler", "decisions in the kernel"],
    },
    Call {
        name: "run-c-nps-f",
        set: SET,
        line: "run SET --engine kernel --policy c-nps-f --for 1s \
               --jobs-end clock --tolerance 2ms --trace TRACE",
        status: &[0],
        says: &["by the kernel's scheduler", "decisions in the kernel"],
    },
    Call {
        name: "run-colors",
        set: SET,
        line: "run SET --engine kernel --policy g-edf --for 500ms --jobs-end clock \
               --tolerance 2ms --colors s2 --color-level 2 --color-server COLORS --trace TRACE",
        status: &[0],
        says: &["by the kernel's scheduler", "memory of /run/colors.sock"],
    },
    Call {
        name: "run-programs",
        set: PROGRAMS,
        line: "run SET --engine kernel --policy g-edf --for 500ms --jobs-end clock \
               --tolerance 2ms --trace TRACE",
        status: &[0],
        says: &["by the kernel's scheduler", "ended when it was told to"],
    },
    Call {
        name: "run-asks",
        set: ASKS,
        line: "run SET --engine kernel --policy g-edf --for 500ms --jobs-end clock \
               --socket DOOR --trace TRACE",
        status: &[0],
        says: &["by the kernel's scheduler", "ended when it was told to"],
    },
    // By how much jobs overrun where an emulated machine looks at its pages is no matter of this.
    Call {
        name: "run-profiled",
        set: WALKS,
        line: "run SET --engine kernel --policy ca-edf:cache=8MiB,wss=profiled --for 2s \
               --format json --trace TRACE",
        status: &[0, 1],
        says: &[
            "\"engine\": \"kernel\"",
            "\"profiled_by\": \"pages\"",
            "\"wss_bytes\": 65536",
            "\"wss_bytes\": 524288",
            "\"wss_bytes\": 98304",
        ],
    },
    Call {
        name: "run-programs-end",
        set: ENDS,
        line: "run SET --engine kernel --policy p-edf --for 60s --format json --tolerance 2ms \
               --trace TRACE",
        status: &[0],
        says: &["\"ended_by\": \"programs\"", "ended with status 0"],
    },
    Call {
        name: "run-program-fails",
        set: FAILS,
        line: "run SET --engine kernel --policy p-edf --for 60s",
        status: &[2],
        says: &["task fails: its program `/init program no such kind` ended with status 2"],
    },
    Call {
        name: "run-best-effort",
        set: SET,
        line: "run EFFORTS --engine kernel --policy g-edf --for 500ms --jobs-end clock \
               --tolerance 2ms --trace TRACE",
        status: &[0],
        says: &["by the kernel's scheduler", "best effort", "fill", "more"],
    },
    // The same from user space, to see latencies side by side. Whether all of its deadlines are met
    // where processors are emulated one after another is no matter of this test.
    Call {
        name: "run-user",
        set: SET,
        line: "run SET --policy g-edf --for 1s --jobs-end clock --tolerance 5ms",
        status: &[0, 1],
        says: &[LATENCY],
    },
    Call {
        name: "run-auto",
        set: SET,
        line: "run SET --engine auto --policy p-edf --for 500ms \
               --jobs-end clock --tolerance 5ms --format json --trace TRACE",
        status: &[0],
        says: &[
            "\"engine\": \"kernel\"",
            "the kernel's scheduler carries it out",
        ],
    },
    Call {
        name: "overheads",
        set: "",
        line: "measure overheads --engine kernel --policy p-edf,g-edf,nps-f --tasks 12 --sets 2 \
               --for 1s -o OUT",
        status: &[0],
        says: &[
            "release",
            "scheduling",
            "context switch",
            "IPI latency",
            "tick",
            "Of the engine in the kernel",
            "this machine is emulated",
        ],
    },
    Call {
        name: "refused",
        set: SET,
        line: "run SET --engine kernel --policy g-edf:quantum=100us",
        status: &[2],
        says: &["the engine in the kernel cannot run `g-edf:quantum=100us`"],
    },
    Call {
        name: "auto-refused",
        set: SET,
        line: "run SET --engine auto --policy g-edf:quantum=100us --preflight",
        // Whether this machine is fit for it is no matter of this test.
        status: &[0, 1, 2],
        says: &["from user space: the engine in the kernel cannot run `g-edf:quantum=100us`"],
    },
];

/// Calls it in each way, and writes what came of that, and traces.
///
/// # Errors
/// The port cannot be written; a set cannot be made.
pub(crate) fn all(look: &Look, port: &mut impl Write) -> Result<()> {
    if !Path::new(WARMSET).exists() {
        return Ok(());
    }
    let broken = |e: std::io::Error| Error::new(format!("cannot write to the port: {e}"));
    // What the kernel records is asked for by `measure overheads`.
    crate::init::mount_tracefs()?;
    serve_colors()?;
    let mut results = String::new();
    for (name, call) in asked()? {
        std::thread::sleep(crate::init::BEFORE);
        let begun = Instant::now();
        let said = one(&name, call).and_then(|()| look.again());
        let line = match said {
            Ok(()) => format!("{name} well"),
            Err(e) => format!("{name} BAD {e}"),
        };
        println!("guest: warmset: {line} in {:.1?}", begun.elapsed());
        results += &line;
        results.push('\n');
        for (file, kept) in [
            (trace_of(&name), "wtrace"),
            (format!("{}/overheads.json", directory_of(&name)), "json"),
        ] {
            if let Ok(bytes) = fs::read(file) {
                archive::write(port, &format!("{name}.{kept}"), &bytes).map_err(broken)?;
            }
        }
        if let Some(seen) = crate::init::seen_by_kernel() {
            archive::write(port, &format!("{name}.ftrace"), &seen).map_err(broken)?;
        }
    }
    archive::write(port, "commands.result", results.as_bytes()).map_err(broken)
}

/// The socket by which a program joins.
const DOOR: &str = "/out/door";
/// The socket of a memory server.
const COLORS: &str = "/run/colors.sock";
/// The colors of its memory, and the tiles of each.
const SERVED: (u16, usize) = (16, 2);

/// Starts a memory server until the guest ends. An emulated cache takes no time, so that nobody
/// could find colors here: the memory is what the server says that it is.
///
/// # Errors
/// There is no memory or no place for it.
fn serve_colors() -> Result<()> {
    let tiles = (0..SERVED.0).flat_map(|color| (0..SERVED.1).map(move |_| color));
    let tiles = tiles.map(|color| Tile::fresh(Color(color)));
    let server = Server::new(SERVED.0, tiles.collect::<Result<Vec<_>>>()?);
    fs::create_dir_all("/run").map_err(|e| Error::io("/run", "make it", &e))?;
    let bound = Socket::bind(COLORS.into())?;
    std::thread::spawn(move || {
        if let Err(e) = server.serve(bound.listener(), &Silent) {
            println!("guest: the memory server: {e}");
        }
    });
    let grant = Request::Grant {
        holder: Holder::Uid(0),
        colors: Selection::These(Colors::first(SERVED.0)),
        pages: None,
        access: Access::Full,
    };
    Connection::open(Path::new(COLORS))?.ask(&grant)?;
    Ok(())
}

/// The calls that are made, each with the name of its files.
///
/// # Errors
/// Another one is asked for, or it is not said how often.
fn asked() -> Result<Vec<(String, &'static Call)>> {
    let Ok(text) = fs::read_to_string(ASKED) else {
        return Ok(CALLS.iter().map(|c| (c.name.to_owned(), c)).collect());
    };
    repeated(&text)
}

fn repeated(text: &str) -> Result<Vec<(String, &'static Call)>> {
    let found = || {
        let (name, times) = text.trim().split_once(' ')?;
        let call = CALLS.iter().find(|call| call.name == name)?;
        let times: usize = times.parse().ok()?;
        Some((1..=times).map(move |time| (format!("{name}-{time}"), call)))
    };
    match found() {
        Some(calls) => Ok(calls.collect()),
        None => Err(Error::new(format!("`{}` names no call", text.trim()))
            .remedy("write `NAME TIMES`, such as `run-best-effort 40`")),
    }
}

fn trace_of(name: &str) -> String {
    format!("/out/{name}.wtrace")
}

fn directory_of(name: &str) -> String {
    format!("/out/{name}")
}

fn one(name: &str, call: &Call) -> Result<()> {
    let set = format!("/out/{name}.toml");
    if !call.set.is_empty() {
        let line = format!("{name} g-edf 1s {}", call.set);
        let mut text = match call.set.contains("[[task]]") {
            true => call.set.to_owned(),
            false => {
                let tasks = case::read(&line)?[0].tasks(|_| Err(Error::new("no file")))?;
                model::taskfile::to_toml(&tasks)
            }
        };
        if call.line.contains("EFFORTS") {
            text += EFFORTS;
        }
        fs::write(&set, text).map_err(|e| Error::io(&set, "write it", &e))?;
    }
    let words = call.line.split_whitespace().map(|word| match word {
        "SET" | "EFFORTS" => set.clone(),
        "TRACE" => trace_of(name),
        "OUT" => directory_of(name),
        "COLORS" => COLORS.to_owned(),
        "DOOR" => DOOR.to_owned(),
        word => word.to_owned(),
    });
    let joins = match call.line.contains("DOOR") {
        true => Some(programs::start_joining(DOOR, "joins", "1000000")?),
        false => None,
    };
    let output = (Command::new(WARMSET).args(words).output())
        .map_err(|e| Error::io(WARMSET, "start it", &e))?;
    joins.map_or(Ok(()), programs::end_joining)?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    for line in said.lines().filter(|line| line.starts_with(LATENCY)) {
        println!("guest: warmset: {name}: {line}");
    }
    let code = output.status.code().unwrap_or(-1);
    if !call.status.contains(&code) {
        let status = output.status;
        return Err(Error::new(format!("it ended with {status}: {said}")));
    }
    match call.says.iter().find(|words| !said.contains(**words)) {
        Some(words) => Err(Error::new(format!("it does not say `{words}`: {said}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_can_be_made_often() {
        let names =
            |text| repeated(text).map(|all| all.into_iter().map(|(name, _)| name).collect());
        let twice: Vec<String> = names("run-auto 2\n").unwrap();
        assert_eq!(twice, ["run-auto-1", "run-auto-2"]);
        for bad in ["", "run-auto", "run-auto x", "run 2"] {
            assert!(repeated(bad).is_err(), "{bad}");
        }
    }
}
