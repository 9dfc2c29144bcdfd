//! Judges what a guest has brought out: each trace by the checker, and by the simulator.

use crate::archive;
use crate::decisions::{self, Compared};
use crate::quanta;
use model::{CpuId, Duration, Error, Instant, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use trace::check::Options;
use trace::{Checker, Event, EventKind, Overhead, Reader, Sink, VecSink, Verdict};

/// What is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a decision may be overdue.
    pub tolerance: Duration,
    /// How long a choice that is made at a quantum may be on its way to a processor.
    pub way: Duration,
    /// Of all decisions that were overdue, those of a thousand but one may be so by this.
    pub usual: Duration,
    /// The part of all processors' time, in thousandths, for which decisions may be overdue in all.
    pub inverted_permille: u64,
    /// So many decisions are compared with the simulator's, as far as there are so many, which has
    /// to be `least`.
    pub decisions: usize,
    /// The least.
    pub least: usize,
    /// So many of a hundred jobs may be too close to tell.
    pub close_percent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            tolerance: Duration::from_millis(2),
            way: Duration::from_millis(2),
            usual: Duration::from_millis(1),
            inverted_permille: 50,
            decisions: 500,
            least: 1,
            close_percent: 20,
        }
    }
}

/// What came of one case.
#[derive(Debug)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// The policy.
    pub policy: String,
    /// Jobs that completed.
    pub jobs: usize,
    /// What the checker says.
    pub verdict: Verdict,
    /// What the simulator says, where it was asked.
    pub compared: Option<Compared>,
    /// What is wrong.
    pub faults: Vec<String>,
}

/// Unpacks an archive into a directory.
///
/// # Errors
/// It cannot be read, is cut off, or a file cannot be written.
pub fn unpack(archive: &Path, into: &Path) -> Result<Vec<String>> {
    let file = File::open(archive).map_err(|e| Error::io(archive, "read the archive", &e))?;
    let files = archive::read(&mut BufReader::new(file)).map_err(|e| e.at(archive.display()))?;
    fs::create_dir_all(into).map_err(|e| Error::io(into, "make the directory", &e))?;
    let mut names = Vec::new();
    for (name, bytes) in files {
        if name.contains('/') {
            return Err(Error::new(format!("`{name}` is no name of a trace")).at(archive.display()));
        }
        let path = into.join(&name);
        fs::write(&path, bytes).map_err(|e| Error::io(&path, "write the trace", &e))?;
        names.push(name);
    }
    Ok(names)
}

/// The longest time for which a decision was on its way to a processor: while it is, nobody minds
/// what runs there.
fn longest_way(events: &[Event]) -> Option<(CpuId, Duration)> {
    // The one that was sent last ends first: a decision is made while another one is on its way.
    let mut sent: BTreeMap<CpuId, Vec<Instant>> = BTreeMap::new();
    let mut longest = None;
    for event in events {
        let Some(cpu) = event.cpu() else { continue };
        if event.overhead_kind() != Some(Overhead::IpiLatency) {
            continue;
        }
        let sent = sent.entry(cpu).or_default();
        if event.kind == EventKind::OverheadBegin {
            sent.push(event.time);
        } else if let Some(begun) = sent.pop() {
            longest = longest.max(Some((event.time.since(begun), cpu)));
        }
    }
    longest.map(|(time, cpu)| (cpu, time))
}

/// Judges one trace.
///
/// # Errors
/// It cannot be read.
pub fn judge(path: &Path, limits: &Limits) -> Result<Judged> {
    let mut reader = Reader::open(path)?;
    let mut all = VecSink::default();
    let condition = reader.replay(&mut all)?;
    let header = reader.header().clone();
    let options = Options {
        tolerance: limits.tolerance,
        ..Options::for_trace(&header)
    };
    let mut checker = Checker::new(header.clone(), options)?;
    for event in &all.events {
        checker.record(*event);
    }
    let verdict = checker.finish();
    let mut faults: Vec<String> = verdict
        .first
        .iter()
        .map(|v| format!("{}: {}", v.rule, v.text))
        .collect();
    if !condition.is_whole() {
        faults.push("the trace is not whole".to_owned());
    }
    if verdict.lost > 0 {
        faults.push(format!("{} events are lost", verdict.lost));
    }
    if verdict.overdue.p999_ns > limits.usual.nanos() {
        faults.push(format!(
            "decisions are overdue by {} at 999 of 1000",
            Duration::from_nanos(verdict.overdue.p999_ns)
        ));
    }
    if let Some((cpu, longest)) = longest_way(&all.events).filter(|w| w.1 > limits.way) {
        faults.push(format!(
            "a choice was on its way to P{} for {longest}",
            cpu.0
        ));
    }
    let cpus = header.platform.usable().len() as u64;
    let whole = all.events.last().map_or(0, |event| event.time.nanos()) * cpus;
    if verdict.overdue.total_ns * 1000 > whole * limits.inverted_permille {
        faults.push(format!(
            "decisions are overdue for {} in all, of {}",
            Duration::from_nanos(verdict.overdue.total_ns).rounded(),
            Duration::from_nanos(whole).rounded()
        ));
    }
    let completions = all
        .events
        .iter()
        .filter(|e| e.kind == EventKind::Completion);
    let jobs = completions.count();
    if jobs == 0 {
        faults.push("no job is complete".to_owned());
    }
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let compared = match name.starts_with("sim-") {
        true => {
            let most = limits.decisions;
            Some(match header.stages[0].quantum {
                Some(quantum) => quanta::compare(&header, &all.events, quantum, most)?,
                None => {
                    let simulated = decisions::simulated(&header, &all.events)?;
                    decisions::compare(&header, &all.events, &simulated, most)
                }
            })
        }
        false => None,
    };
    if let Some(compared) = &compared {
        faults.extend(compared.different.iter().take(5).cloned());
        if compared.decisions < limits.least {
            faults.push(format!(
                "{} decisions are compared with the simulator's, of {} that are wanted",
                compared.decisions, limits.least
            ));
        }
        if compared.close * 100 > compared.jobs * limits.close_percent {
            faults.push(format!(
                "{} of {} jobs are too close to tell",
                compared.close, compared.jobs
            ));
        }
    }
    Ok(Judged {
        name,
        policy: header.stages[0].policy.clone(),
        jobs,
        verdict,
        compared,
        faults,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_way_of_a_choice_is_found() {
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let begin = |us, cpu, what| Event::overhead_begin(at(us), CpuId(cpu), what, None);
        let end = |us, cpu, what| Event::overhead_end(at(us), CpuId(cpu), what, None);
        let (way, other) = (Overhead::IpiLatency, Overhead::ContextSwitch);
        let events = [
            begin(10, 0, way),
            begin(20, 1, way),
            begin(21, 2, other),
            begin(25, 0, way),
            end(30, 0, way),
            end(47, 1, way),
            end(50, 0, way),
            end(90, 2, other),
        ];
        assert_eq!(
            longest_way(&events),
            Some((CpuId(0), Duration::from_micros(40)))
        );
        assert_eq!(longest_way(&events[..2]), None);
    }
}
