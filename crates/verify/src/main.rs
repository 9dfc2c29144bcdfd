//! `warmset-verify FILE`: verifies a certificate of `warmset check --certificate FILE`.
//!
//! Exit status: 0 every claim is verified, 1 some claim is not, 2 the file could not be read.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;

const USAGE: &str = "warmset-verify FILE: verifies a certificate that `warmset check TASKS --certificate FILE` wrote.
Exit status: 0 every claim is verified, 1 some claim is not, 2 the file could not be read.
";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        return failed("it takes the name of one certificate: `warmset-verify FILE`");
    };
    if path == "--help" || path == "-h" {
        return print(USAGE, ExitCode::SUCCESS);
    }
    let read = std::fs::read_to_string(&path).map_err(|e| e.to_string());
    match read.and_then(|text| verify::verify(&text)) {
        Ok(report) => print(&told(&report), ExitCode::from(u8::from(!report.is_verified()))),
        Err(why) => {
            let path = path.display();
            failed(&format!("{path}: {why}; give a file that `warmset check --certificate` wrote"))
        }
    }
}

/// One line a claim, in words.
fn told(report: &verify::Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let words = match &finding.wrong {
            Some(why) => format!("NOT VERIFIED: {why}"),
            None => format!("{}: verified", finding.says),
        };
        text += &format!("{}: {}\n", shown(&finding.policy), shown(&words));
    }
    for (policy, why) in &report.without {
        text += &format!("{}: no certificate: {}\n", shown(policy), shown(why));
    }
    match report.findings.is_empty() {
        true => text + "no claim is made\n",
        false => text,
    }
}

/// Text from the file without characters that act on a terminal.
fn shown(text: &str) -> String {
    text.chars().take(400).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A reader that closes the pipe has seen enough.
fn print(text: &str, status: ExitCode) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    status
}

fn failed(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "warmset-verify: {}", shown(why));
    ExitCode::from(2)
}
