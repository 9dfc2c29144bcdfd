//! Any text as a file of SimSo or of Cheddar: refused, or read into a set that writes and reads back
//! the same.
#![no_main]

use model::{Duration, cheddar, simso};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let second = Duration::from_secs(1);
    if let Ok(read) = simso::from_simso(text)
        && let Ok((written, _)) = simso::to_simso(&read.set, second, 2)
    {
        let again = simso::from_simso(&written).expect("what was written reads back");
        assert_eq!(again.set.timings(), read.set.timings());
    }
    let unit = Duration::from_micros(1);
    if let Ok(read) = cheddar::from_cheddar(text, unit) {
        let (written, _) = cheddar::to_cheddar(&read.set, unit, 2).expect("whole units came in");
        let again = cheddar::from_cheddar(&written, unit).expect("what was written reads back");
        assert_eq!(again.set.timings(), read.set.timings());
    }
});
