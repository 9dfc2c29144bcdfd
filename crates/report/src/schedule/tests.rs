//! What a figure of a schedule draws.

use super::drawing::{label_of, round_step};
use super::*;

#[test]
fn ticks_are_round() {
    for (least, step) in [(0, 1), (3, 5), (900_000, 1_000_000), (1_000_001, 2_000_000)] {
        assert_eq!(round_step(least), step);
    }
    assert_eq!(label_of(2_500_000, 1_000_000), "2.5");
    assert_eq!(label_of(2_000_000, 1_000_000), "2");
}

#[test]
fn the_window_around_a_moment_stays_in_time() {
    let (from, to) = around(Instant::from_nanos(5), Duration::from_nanos(10));
    assert_eq!((from.nanos(), to.nanos()), (0, 25));
}
