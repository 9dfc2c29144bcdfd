//! The transfer of a line between two processors of this machine.

use measure::line::measure;
use model::CpuId;
use testing::{NotRun, Outcome};

fn a_line_takes_time_between_two_processors() -> Outcome {
    let cpus: Vec<CpuId> = machine::realtime::affinity().unwrap().iter().collect();
    let [a, b, ..] = cpus[..] else {
        return Err(NotRun::because(
            "this process may use one processor only, and lines go from one to another",
        ));
    };
    let transfers = measure(&[(a, b)]).unwrap();
    assert_eq!(transfers.len(), 1);
    assert!(!transfers[0].time.is_zero());
    Ok(())
}

testing::tests!(a_line_takes_time_between_two_processors);
