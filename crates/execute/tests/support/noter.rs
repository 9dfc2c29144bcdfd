//! A program that is written for it: notes its jobs (000 §3.3, the control page). Takes 3 ms of
//! processor time for each.

use std::io::Write;
use std::path::Path;

/// `noter FILE [SOCKET NAME]`: a line for each job: number, release, deadline, when it began,
/// preemptions and migrations up to its end, longest length of a preemption seen in it.
pub fn main(arguments: &[String]) {
    let mut task = match arguments {
        [_] => warmset_task::Task::join(),
        [_, socket, name] => warmset_task::Task::join_at(Path::new(socket), name),
        _ => panic!("{arguments:?}"),
    }
    .unwrap();
    let mut text = String::new();
    while let Some(job) = task.wait() {
        let began = execute::kernel::monotonic();
        let mut longest = 0;
        let end = machine::clock::thread_time().nanos() + 3_000_000;
        while machine::clock::thread_time().nanos() < end {
            let now = task.look();
            // SAFETY: takes no argument.
            let here = unsafe { libc::sched_getcpu() as u32 };
            // It cannot be moved between these two unless it is preempted, which the page says
            // then.
            if task.look() == now {
                assert_eq!(now.processor, here, "{now:?}");
            }
            longest = longest.max(now.preemption_length);
        }
        let after = task.look();
        assert_eq!(after.number, job.number);
        text += &format!(
            "{} {} {} {} {} {} {}\n",
            job.number,
            job.release,
            job.deadline,
            began,
            after.preemptions,
            after.migrations,
            longest
        );
    }
    std::fs::File::create(&arguments[0])
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// The numbers of each line.
pub fn read(file: &Path) -> Vec<Vec<u64>> {
    let text = std::fs::read_to_string(file).unwrap();
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().unwrap()).collect();
    text.lines().map(numbers).collect()
}
