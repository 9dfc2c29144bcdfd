//! Any text as a file of rt-app: refused, or read into a set that writes and reads back the same.
#![no_main]

use model::rtapp::{Reading, from_rt_app, to_rt_app};

libfuzzer_sys::fuzz_target!(|text: &str| {
    for sleep_as_period in [false, true] {
        if let Ok(read) = from_rt_app(text, Reading { sleep_as_period }) {
            let second = model::Duration::from_secs(1);
            let (written, _) = to_rt_app(&read.set, second).expect("whole microseconds came in");
            let again = from_rt_app(&written, Reading::default());
            assert_eq!(again.expect("what was written reads back").set, read.set);
        }
    }
});
