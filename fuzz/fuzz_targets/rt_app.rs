//! Any text as a file of rt-app: refused, or read into a set that writes and reads back the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(read) = model::rtapp::from_rt_app(text) {
        let second = model::Duration::from_secs(1);
        let (written, _) =
            model::rtapp::to_rt_app(&read.set, second).expect("whole microseconds came in");
        let again = model::rtapp::from_rt_app(&written).expect("what was written reads back");
        assert_eq!(again.set, read.set);
    }
});
