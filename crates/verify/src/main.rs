//! `warmset-verify FILE`: verifies a certificate of `warmset check --certificate FILE`.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "warmset-verify FILE: verifies a certificate that `warmset check TASKS --certificate FILE` wrote.
Exit status: 0 every claim is verified, 1 some claim is not, 2 the file could not be read.
";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let (status, text) = match arguments.as_slice() {
        [flag] if flag == "--help" || flag == "-h" => (0, USAGE.to_owned()),
        [path] => verified(path.as_ref()),
        _ => (2, shown("warmset-verify: it takes one certificate: `warmset-verify FILE`")),
    };
    // A reader that closes the pipe has seen enough.
    let _ = match status {
        2 => std::io::stderr().write_all(text.as_bytes()),
        _ => std::io::stdout().write_all(text.as_bytes()),
    };
    ExitCode::from(status)
}

/// The exit status of a file, and what is said of it.
fn verified(path: &Path) -> (u8, String) {
    let read = std::fs::read_to_string(path).map_err(|e| e.to_string());
    match read.and_then(|text| verify::verify(&text)) {
        Ok(report) => (u8::from(!report.is_verified()), told(&report)),
        Err(why) => {
            let why = format!("warmset-verify: {}: {why}", path.display());
            (2, shown(&(why + "; give a file that `warmset check --certificate` wrote")))
        }
    }
}

/// One line a claim, in words.
fn told(report: &verify::Report) -> String {
    let claims = report.findings.iter().map(|f| match &f.wrong {
        Some(why) => format!("{}: NOT VERIFIED: {why}", f.about),
        None => format!("{}: {}: verified", f.about, f.says),
    });
    let without = report.without.iter().map(|(of, why)| format!("{of}: no certificate: {why}"));
    let nothing = report.findings.is_empty().then(|| "no claim is made".to_owned());
    claims.chain(without).chain(nothing).map(|line| shown(&line)).collect()
}

/// A line of text from the file, without characters that act on a terminal.
fn shown(line: &str) -> String {
    let safe = line.chars().take(800).map(|c| if c.is_control() { '\u{fffd}' } else { c });
    safe.chain(['\n']).collect()
}
