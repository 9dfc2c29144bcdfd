//! Any text as a time, a delay, a size, a list of processors: refused, or read and written back to
//! an equal value.
#![no_main]

use model::{Bytes, CpuSet, Delay, Duration};

fn round_trip<T: std::str::FromStr + std::fmt::Display + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert!(
            value
                .to_string()
                .parse::<T>()
                .is_ok_and(|again| again == value),
            "{text}: {value}"
        );
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    round_trip::<Duration>(text);
    round_trip::<Delay>(text);
    round_trip::<Bytes>(text);
    round_trip::<CpuSet>(text);
});
