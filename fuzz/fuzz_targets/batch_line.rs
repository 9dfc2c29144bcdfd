//! Any text as a line of a batch file: refused, or read into a set that writes and reads back the
//! same.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(read) = model::taskfile::from_batch_line(text) {
        let line = model::taskfile::to_batch_line(&read.id, read.m, &read.set)
            .expect("whole microseconds came in");
        let again = model::taskfile::from_batch_line(&line).expect("what was written reads back");
        assert_eq!(again.set.timings(), read.set.timings());
    }
});
