//! A program that is a task of `warmset run`: counts, and says of every hundredth job how it went.
//!
//! `cargo build --example counter -p warmset-task`, then `workload = { program =
//! ["target/debug/examples/counter"] }`; or, to join from outside, give the path of the socket and
//! the name of the task.

use std::hint::black_box;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut task = match (arguments.next(), arguments.next()) {
        (Some(path), Some(name)) => warmset_task::Task::join_at(path, &name)?,
        _ => warmset_task::Task::join()?,
    };
    let mut sum = 0u64;
    while let Some(job) = task.wait() {
        for n in 0..200_000u64 {
            sum = black_box(sum.wrapping_add(n));
        }
        let after = task.look();
        if job.number % 100 == 0 {
            println!(
                "job {}: on processor {}, {} preemptions and {} migrations up to now, the last one for {} us",
                after.number,
                after.processor,
                after.preemptions,
                after.migrations,
                after.preemption_length / 1000
            );
        }
    }
    println!("the run is over, the sum is {sum}");
    Ok(())
}
