//! Interrupts between processors on their way: which of those that were sent is the one that
//! arrives.

use super::Open;
use model::TaskId;
use std::collections::VecDeque;

/// Takes out the interrupt that arrives: the first that was sent. Of those that were sent at one
/// moment, whose order says nothing, it is the one that serves this job, or else one that was sent
/// before its job was known.
pub fn arrived(sent: &mut VecDeque<Open>, job: Option<(TaskId, u64)>) -> Option<Open> {
    let moment = sent.front()?.since;
    let together = sent.iter().take_while(|open| open.since == moment).count();
    let of = |job| sent.iter().take(together).position(|open| open.job == job);
    let at = of(job).or_else(|| of(None)).unwrap_or(0);
    sent.remove(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Instant;
    use model::Overhead;

    fn open(job: Option<u64>, since: u64) -> Open {
        Open {
            overhead: Overhead::IpiLatency,
            job: job.map(|number| (TaskId(0), number)),
            since: Instant::from_nanos(since),
            within: model::Duration::ZERO,
        }
    }

    #[test]
    fn of_interrupts_sent_at_one_moment_the_one_of_the_job_arrives() {
        let job = |number| Some((TaskId(0), number));
        let mut sent: VecDeque<Open> = [(None, 5), (Some(1), 5), (Some(2), 6)]
            .map(|(job, since)| open(job, since))
            .into();
        assert_eq!(arrived(&mut sent, job(1)).unwrap().job, job(1));
        // Sent for nobody yet: it serves whom it finds.
        assert_eq!(arrived(&mut sent, job(7)).unwrap().job, None);
        // The only one that is left was sent for another job, which is for the caller to see.
        assert_eq!(arrived(&mut sent, job(3)).unwrap().job, job(2));
        assert!(arrived(&mut sent, job(3)).is_none());
    }
}
