//! Frame numbers, where the system tells them.

use machine::memory::Area;
use model::Bytes;
use partition::frame::{FrameNumbers, pages};
use testing::{NotRun, Outcome};

fn frames_of_different_pages_differ() -> Outcome {
    let Some(numbers) = FrameNumbers::of_this_process() else {
        return Err(NotRun::because(
            "frame numbers are withheld (no CAP_SYS_ADMIN)",
        ));
    };
    let area = Area::map(Bytes::from_kib(64)).unwrap();
    let mut frames: Vec<u64> = numbers.of(&pages(&area)).into_iter().flatten().collect();
    assert_eq!(frames.len(), 16);
    frames.sort_unstable();
    frames.dedup();
    assert_eq!(frames.len(), 16);
    Ok(())
}

testing::tests!(frames_of_different_pages_differ);
