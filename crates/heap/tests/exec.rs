//! Unmodified programs in colors: what they compute stays the same, and their pages are the
//! server's.

mod common;

use heap::exec::{self, Part, Plan, Ran};
use heap::inspect::Report;
use model::Bytes;
use partition::Color;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use testing::{NotRun, Outcome};

const COLORS: u16 = 2;

fn plan() -> Plan {
    Plan {
        colors: partition::Colors::first(COLORS),
        by_task: false,
        parts: Part::ALL.to_vec(),
        stack: Bytes::from_kib(256),
        segments: Bytes::from_mib(8),
        strict: false,
    }
}

fn run(tiles: usize, plan: &Plan, program: &str, arguments: &[&str]) -> Ran {
    let server = common::serve(COLORS, tiles);
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    exec::run(&server.socket, plan, Path::new(program), &arguments).unwrap()
}

/// Is the program there?
fn has(program: &str) -> Outcome {
    match exec::check(Path::new(program)) {
        Ok(_) => Ok(()),
        Err(why) => Err(NotRun::because(why)),
    }
}

/// Were the frames looked at?
fn checked(report: &Report) -> Outcome {
    match report.checked {
        true => Ok(()),
        false => Err(NotRun::because(
            "all holds but for which frames they are: frame numbers are withheld (no CAP_SYS_ADMIN)",
        )),
    }
}

/// A program of these tests, compiled.
fn compiled(dir: &tempfile::TempDir, source: &str) -> Result<PathBuf, NotRun> {
    has("c++")?;
    let program = dir.path().join("program");
    let status = std::process::Command::new("c++")
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests")
                .join(source),
        )
        .status()
        .unwrap();
    assert!(status.success());
    Ok(program)
}

fn pages(report: &Report, part: &str) -> (u64, u64) {
    report
        .rows
        .iter()
        .find(|r| r.part == part)
        .map_or((0, 0), |r| (r.colored, r.pages))
}

/// What a program wrote, through a shell that compares.
fn shell(tiles: usize, plan: &Plan, script: &str) -> Ran {
    let ran = run(tiles, plan, "sh", &["-c", script]);
    assert!(ran.status.success(), "{script}: {:?}", ran.status);
    ran
}

fn a_program_is_colored_and_its_frames_say_so() -> Outcome {
    let ran = run(
        256,
        &plan(),
        "sort",
        &["/proc/self/status", "-o", "/dev/null"],
    );
    assert!(ran.status.success(), "{:?}", ran.status);
    let report = &ran.reports[0];
    assert_eq!(report.name, "sort");
    checked(report)?;
    let (heap, of) = pages(report, "heap");
    assert!(heap > 0 && heap == of, "{report:?}");
    let (stack, _) = pages(report, "stacks");
    assert!(stack >= 64, "{report:?}");
    let (code, of) = pages(report, "code");
    assert!(code * 10 >= of * 7, "{report:?}");
    let colors = &report
        .rows
        .iter()
        .find(|r| r.part == "heap")
        .unwrap()
        .colors;
    assert!(colors.iter().all(|c| *c < Color(COLORS)));
    Ok(())
}

fn programs_compute_what_they_compute() {
    shell(
        512,
        &plan(),
        "test \"$(seq 100000 | sort -rn | head -1)\" = 100000",
    );
    shell(
        512,
        &plan(),
        "test \"$(printf 'a b\\n' | sed s/a/c/)\" = 'c b'",
    );
}

/// Shells end by `_exit`, which passes by what the C library does at the end.
fn a_program_that_ends_at_once_is_looked_at_and_its_code_makes_room_for_others() -> Outcome {
    let plan = Plan {
        segments: Bytes::from_mib(6),
        ..plan()
    };
    let script = "for i in 1 2 3 4 5 6; do sort /proc/self/status -o /dev/null; done; exit 3";
    let ran = run(400, &plan, "sh", &["-c", script]);
    assert_eq!(ran.status.code(), Some(3));
    assert_eq!(ran.reports[0].process, ran.process, "{:?}", ran.reports);
    let sorts: Vec<&Report> = ran.reports.iter().filter(|r| r.name == "sort").collect();
    assert_eq!(sorts.len(), 6);
    checked(&ran.reports[0])?;
    // Six times as much as may be colored at once.
    let colored: Vec<u64> = sorts.iter().map(|r| pages(r, "code").0).collect();
    assert!(colored.iter().all(|c| *c >= 64), "{colored:?}");
    Ok(())
}

fn an_interpreter_with_threads_and_children_works() -> Outcome {
    has("python3")?;
    let script = "
import threading, os, mmap, subprocess, sys
results = []
def work(n):
    def deep(k): return 0 if k == 0 else 1 + deep(k - 1)
    results.append(sum(i * i for i in range(n)) + deep(500))
threads = [threading.Thread(target=work, args=(20000,)) for _ in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
assert results == [results[0]] * 6
m = mmap.mmap(-1, 300000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m[:3] = b'abc'
assert m[:4] == b'abc\\0'
data = list(range(50000))
def child():
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        data[0] = 'child'
        os.write(w, b'x' if data[49999] == 49999 and m[:3] == b'abc' else b'-')
        m[:3] = b'xyz'
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(r, 1) == b'x'
    assert data[0] == 0 and m[:3] == b'abc'
child()
t = threading.Thread(target=child); t.start(); t.join()
assert subprocess.run(['sh', '-c', 'echo $((6 * 7))'], capture_output=True).stdout == b'42\\n'
m.close()
print('fine')
";
    let ran = run(700, &plan(), "python3", &["-c", script]);
    assert!(ran.status.success(), "{:?}", ran.status);
    let report = &ran.reports[0];
    let (heap, of) = pages(report, "heap");
    checked(report)?;
    assert!(heap == of && heap > 0, "{report:?}");
    Ok(())
}

/// Each thread its own color, by its number (004 §III-E): a thread gets no more than there is of
/// one color, and the next thread as much again, which is of the other one.
fn threads_can_have_a_color_each() -> Outcome {
    // Of each color 16 MiB, and a little of them for all else.
    const EACH: usize = 256;
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(&dir, "threads.cpp")?;
    let by_thread = |by_task: bool, threads: &str| -> Vec<u64> {
        let file = dir.path().join("said");
        let plan = Plan {
            by_task,
            parts: vec![Part::Heap],
            strict: true,
            ..plan()
        };
        let said = file.to_str().unwrap();
        let ran = run(
            EACH,
            &plan,
            program.to_str().unwrap(),
            &[threads, "24", said],
        );
        assert!(ran.status.success(), "{:?}", ran.status);
        let text = std::fs::read_to_string(&file).unwrap();
        text.split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect()
    };
    // In MiB. Where threads have no color of their own, one may have all of both.
    assert_eq!(by_thread(false, "1"), [24]);
    let each = by_thread(true, "2");
    assert_eq!(each.len(), 2);
    assert!(each.iter().all(|mib| (10..=16).contains(mib)), "{each:?}");
    Ok(())
}

fn in_strict_mode_a_program_that_runs_out_of_colors_gets_no_memory() -> Outcome {
    has("python3")?;
    let plan = Plan {
        parts: vec![Part::Heap, Part::Mappings],
        strict: true,
        ..plan()
    };
    let script = "
try:
    x = bytearray(100 << 20)
    raise SystemExit(3)
except MemoryError:
    raise SystemExit(0)
";
    let ran = run(256, &plan, "python3", &["-c", script]);
    assert_eq!(ran.status.code(), Some(0), "{:?}", ran.status);
    assert!(ran.ran_out);
    Ok(())
}

/// Colored memory for a few MiB, and a program that needs a hundred times as much: as a block, as
/// many small blocks, as mappings that are dropped and protected, in threads and in children.
fn a_program_that_runs_out_of_colors_goes_on_in_ordinary_memory() -> Outcome {
    has("python3")?;
    let script = "
import mmap, os, subprocess, threading
x = bytearray(100 << 20)
x[::4096] = b'x' * len(x[::4096])
data = [str(i) for i in range(400000)]
m = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m[5 << 20] = 7
m.madvise(mmap.MADV_DONTNEED)
assert m[5 << 20] == 0
m[9 << 20] = 9
results = []
def work():
    mine = [i * 7 for i in range(100000)]
    results.append(sum(mine))
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert results == [results[0]] * 8
pid = os.fork()
if pid == 0:
    m[9 << 20] = 1
    x[0] = 1
    big = bytearray(50 << 20)
    os._exit(0 if data[399999] == '399999' and x[4096] == 120 and not any(big[::99999]) else 1)
assert os.waitpid(pid, 0)[1] == 0
assert m[9 << 20] == 9 and x[0] == 120
m.close()
assert subprocess.run(['sh', '-c', 'echo $((6 * 7))'], capture_output=True).stdout == b'42\\n'
";
    for by_task in [false, true] {
        let plan = Plan { by_task, ..plan() };
        let ran = run(64, &plan, "python3", &["-c", script]);
        assert!(ran.status.success(), "by task: {by_task}, {:?}", ran.status);
        assert!(ran.ran_out);
        let report = &ran.reports[0];
        assert_eq!(report.process, ran.process);
        // 100 MiB as a block, and more.
        assert!(report.lacking > 100 << 8, "{report:?}");
        assert!(ran.most_held <= Bytes::from_mib(8), "{}", ran.most_held);
        let (colored, of) = pages(report, "heap");
        assert!(colored < of && of > 0, "{report:?}");
    }
    Ok(())
}

/// Stacks and most libraries take few tiles. When all of them began with the first color, that one
/// ran out while the others had plenty, and the program died.
fn small_parts_take_all_colors_in_turn() -> Outcome {
    let plan = Plan {
        colors: partition::Colors::first(4),
        strict: true,
        ..plan()
    };
    let server = common::serve(4, 28);
    for _ in 0..3 {
        let arguments = ["-d".into(), "/".into()];
        let ran = exec::run(&server.socket, &plan, Path::new("ls"), &arguments).unwrap();
        assert!(ran.status.success() && !ran.ran_out, "{ran:?}");
        let report = &ran.reports[0];
        let code = report.rows.iter().find(|r| r.part == "code").unwrap();
        checked(report)?;
        assert_eq!(code.colors.len(), 4, "{report:?}");
    }
    Ok(())
}

fn a_compiler_works() -> Outcome {
    has("cc")?;
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {} && printf '#include <stdio.h>\\nint main(void){{return puts(\"hello\")<0;}}' > a.c && cc a.c && test \"$(./a.out)\" = hello",
        dir.path().display()
    );
    shell(1024, &plan(), &script);
    Ok(())
}

fn what_no_library_can_be_loaded_into_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let e = exec::check(Path::new("no-such-program"))
        .unwrap_err()
        .to_string();
    assert!(e.contains("there is no program"), "{e}");
    let text = dir.path().join("text");
    std::fs::write(&text, "hello").unwrap();
    let e = exec::check(&text).unwrap_err().to_string();
    assert!(e.contains("no 64-bit program"), "{e}");
    let setuid: PathBuf = dir.path().join("setuid");
    std::fs::copy(exec::check(Path::new("sort")).unwrap(), &setuid).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&setuid, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let e = exec::check(&setuid).unwrap_err().to_string();
    assert!(e.contains("setuid"), "{e}");
    // A header without program headers: nothing names a loader.
    let fixed = dir.path().join("static");
    let mut header = vec![0; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    std::fs::write(&fixed, header).unwrap();
    let e = exec::check(&fixed).unwrap_err().to_string();
    assert!(e.contains("statically linked"), "{e}");
}

/// Threads that return, exit and are cancelled, exceptions, deep stacks, forks from every stack,
/// mappings in pieces.
fn what_ordinary_programs_do_works() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(&dir, "program.cpp")?;
    for by_task in [false, true] {
        let plan = Plan { by_task, ..plan() };
        let ran = run(700, &plan, program.to_str().unwrap(), &[]);
        assert_eq!(
            ran.status.code(),
            Some(0),
            "by task: {by_task}, {:?}",
            ran.status
        );
    }
    Ok(())
}

testing::tests!(
    a_program_is_colored_and_its_frames_say_so,
    programs_compute_what_they_compute,
    a_program_that_ends_at_once_is_looked_at_and_its_code_makes_room_for_others,
    an_interpreter_with_threads_and_children_works,
    threads_can_have_a_color_each,
    in_strict_mode_a_program_that_runs_out_of_colors_gets_no_memory,
    a_program_that_runs_out_of_colors_goes_on_in_ordinary_memory,
    small_parts_take_all_colors_in_turn,
    a_compiler_works,
    what_no_library_can_be_loaded_into_is_refused,
    what_ordinary_programs_do_works,
);
