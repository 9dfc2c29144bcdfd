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

/// Judges all traces of an archive. Returns whether there is one for each case and nothing is wrong.
fn judge_all(archive: &str, into: &str, cases: &str) -> Result<bool> {
    let cases = case::read(&String::from_utf8_lossy(&read(cases)?))?;
    let into = Path::new(into);
    let names = judge::unpack(Path::new(archive), into)?;
    let limits = judge::Limits::default();
    let mut good = true;
    println!(
        "case             policy      jobs  events  lost  overdue: p50     p999     max  simulator"
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
            continue;
        }
        let name = format!("{}.wtrace", case.name);
        if !names.contains(&name) {
            println!("{}: the guest has brought out no trace of it", case.name);
            good = false;
            continue;
        }
        let judged = match judge::judge(&into.join(&name), &limits) {
            Ok(judged) => judged,
            Err(e) => {
                println!("{}: {e}", case.name);
                good = false;
                continue;
            }
        };
        let (verdict, time) = (&judged.verdict, |ns| {
            Duration::from_nanos(ns).rounded().to_string()
        });
        let compared = judged.compared.as_ref().map(|c| {
            let same = c.jobs - c.close - c.different.len();
            format!(
                "{} decisions: {same} jobs same, {} close",
                c.decisions, c.close
            )
        });
        println!(
            "{:<16} {:<10} {:>5} {:>7} {:>5} {:>12} {:>8} {:>7}  {}",
            judged.name,
            judged.policy,
            judged.jobs,
            verdict.events,
            verdict.lost,
            time(verdict.overdue.median_ns),
            time(verdict.overdue.p999_ns),
            time(verdict.overdue.max_ns),
            compared.unwrap_or_default()
        );
        for fault in &judged.faults {
            println!("    {fault}");
            good = false;
        }
    }
    println!(
        "{} cases, each decision within {} of when it was due",
        cases.len(),
        limits.tolerance
    );
    Ok(good)
}
