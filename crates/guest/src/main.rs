//! The program of `make test-kernel`: packs itself into the first file system of a guest, is the
//! first process there, and judges what comes out.

use guest::{case, judge, pack};
use model::{Duration, Error, Result};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "warmset-guest pack CASES OUT [PATH=FILE…] | judge ARCHIVE DIRECTORY CASES";

fn main() -> ExitCode {
    #[cfg(feature = "init")]
    if std::process::id() == 1 {
        guest::init::main();
        return ExitCode::FAILURE;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["pack", cases, out, ref files @ ..] => pack_all(cases, out, files).map(|()| true),
        ["judge", archive, into, cases] => judge_all(archive, into, cases),
        #[cfg(feature = "init")]
        ["run", case] => guest::init::run(case).map(|()| true),
        #[cfg(feature = "init")]
        [guest::programs::WORD, ref words @ ..] => guest::programs::be(words).map(|()| true),
        #[cfg(feature = "init")]
        ["round", seed, number] => guest::rounds::round(seed, number).map(|()| true),
        _ => Err(Error::new("no such call").remedy(USAGE)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

fn read(path: &str) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| Error::io(path, "read it", &e))
}

/// Packs the cases, and files with the paths that they have in the guest.
fn pack_all(cases: &str, out: &str, files: &[&str]) -> Result<()> {
    let text = read(cases)?;
    // A mistake is found here, and not within the guest.
    case::read(&String::from_utf8_lossy(&text))?;
    let mut packed = vec![("cases".to_owned(), text)];
    for named in files {
        let Some((path, file)) = named.split_once('=') else {
            return Err(Error::new(format!("`{named}` has no path")).remedy(USAGE));
        };
        packed.push((path.trim_start_matches('/').to_owned(), read(file)?));
    }
    let file = File::create(out).map_err(|e| Error::io(out, "make it", &e))?;
    let mut file = BufWriter::new(file);
    pack::initramfs(&mut file, &packed).map_err(|e| Error::io(out, "write it", &e))
}

/// Judges all that an archive holds. Returns whether there is something of each case and nothing is
/// wrong. What is said of a case with which nothing is wrong stands in `NAME.passed`, too.
fn judge_all(archive: &str, into: &str, cases: &str) -> Result<bool> {
    let cases = case::read(&String::from_utf8_lossy(&read(cases)?))?;
    let into = Path::new(into);
    let names = judge::unpack(Path::new(archive), into)?;
    let limits = judge::Limits::default();
    let mut good = true;
    println!(
        "case             policy      jobs  events  lost  overdue: p50     p999     max     all  simulator"
    );
    for case in &cases {
        let name = format!("{}.result", case.name);
        let result = fs::read_to_string(into.join(&name)).unwrap_or_else(|_| "none".to_owned());
        if result != "well" {
            println!("{}: {result}", case.name);
            good = false;
        }
        if case.kill.is_some() {
            println!(
                "{:<16} {:<10} killed: {result}",
                case.name,
                case.policy.to_string()
            );
        } else if case.ring.is_some() || case.waits.is_some() || case.lent.is_some() {
            let what = match (case.ring, case.lent) {
                (Some(_), _) => "events are lost and counted",
                (_, Some(_)) => "a priority is lent to a thread, and the run ends",
                _ => "ordinary threads have their processors",
            };
            println!(
                "{:<16} {:<10} {what}: {result}",
                case.name,
                case.policy.to_string()
            );
        } else if names.contains(&format!("{}.wtrace", case.name)) {
            let limits = judge::Limits {
                tolerance: case.tolerance.unwrap_or(limits.tolerance),
                usual: case.usual.unwrap_or(limits.usual),
                least: case.decisions,
                ..limits
            };
            let (row, well) = judge_one(into, &case.name, &limits);
            if well && result == "well" {
                let path = into.join(format!("{}.passed", case.name));
                fs::write(&path, row).map_err(|e| Error::io(&path, "write it", &e))?;
            }
            good &= well;
        } else {
            println!("{}: the guest has brought out no trace of it", case.name);
            good = false;
        }
    }
    let is_case = |name: &str| cases.iter().any(|case| case.name == name);
    let others = names.iter().filter_map(|name| name.strip_suffix(".wtrace"));
    for name in others.filter(|name| !is_case(name)) {
        good &= judge_one(into, name, &limits).1;
    }
    println!(
        "{} cases; where a case says nothing else, each decision within {} of when it was due, \
         999 of 1000 within {}, overdue for {} ‰ of the time in all",
        cases.len(),
        limits.tolerance,
        limits.usual,
        limits.inverted_permille
    );
    for (file, what) in [
        ("commands", "calls of warmset"),
        ("faults", "rounds of faults"),
    ] {
        if let Ok(text) = fs::read_to_string(into.join(format!("{file}.result"))) {
            let bad: Vec<&str> = text.lines().filter(|line| line.contains(" BAD ")).collect();
            println!(
                "{}: {what}, {} of them bad",
                text.lines().count(),
                bad.len()
            );
            for line in &bad {
                println!("    {line}");
            }
            good &= bad.is_empty();
        }
    }
    Ok(good)
}

/// Judges one trace, and says what came of it. Returns the row of the table, and whether nothing is
/// wrong.
fn judge_one(into: &Path, name: &str, limits: &judge::Limits) -> (String, bool) {
    let judged = match judge::judge(&into.join(format!("{name}.wtrace")), limits) {
        Ok(judged) => judged,
        Err(e) => {
            println!("{name}: {e}");
            return (String::new(), false);
        }
    };
    let (verdict, time) = (&judged.verdict, |ns| {
        Duration::from_nanos(ns).rounded().to_string()
    });
    let compared = judged.compared.as_ref().map(|c| {
        let same = c.jobs - c.close - c.different.len();
        format!(
            "{} decisions: {same} {} same, {} close",
            c.decisions, c.what, c.close
        )
    });
    let row = format!(
        "{:<16} {:<10} {:>5} {:>7} {:>5} {:>12} {:>8} {:>7} {:>7}  {}",
        judged.name,
        judged.policy,
        judged.jobs,
        verdict.events,
        verdict.lost,
        time(verdict.overdue.median_ns),
        time(verdict.overdue.p999_ns),
        time(verdict.overdue.max_ns),
        time(verdict.overdue.total_ns),
        compared.unwrap_or_default()
    );
    println!("{row}");
    for fault in &judged.faults {
        println!("    {fault}");
    }
    (row, judged.faults.is_empty())
}
