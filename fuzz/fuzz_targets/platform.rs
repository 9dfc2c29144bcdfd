//! Any bytes as a platform in TOML: refused, or read into one that is sound, can be drawn, and
//! reads back the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = model::input::text_of(bytes.to_vec()) else {
        return;
    };
    if let Ok(platform) = model::platformfile::from_toml(&text) {
        assert_eq!(platform.check(), Ok(()));
        model::hierarchy::Hierarchy::of(&platform).to_text();
        let again = model::platformfile::from_toml(&model::platformfile::to_toml(&platform));
        assert_eq!(again.as_ref(), Ok(&platform));
    }
});
