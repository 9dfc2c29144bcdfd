//! Any bytes as a task set in TOML: refused, or read into a set that writes and reads back the
//! same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = model::input::text_of(bytes.to_vec()) else {
        return;
    };
    if let Ok(set) = model::taskfile::from_toml(&text) {
        let again = model::taskfile::from_toml(&model::taskfile::to_toml(&set));
        assert_eq!(again.as_ref(), Ok(&set));
    }
});
