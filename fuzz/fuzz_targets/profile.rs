//! Any bytes as a profile, in TOML or as a table of SchedCAT: refused, or read into one that writes
//! and reads back the same.
#![no_main]

use model::schedcat::{Meaning, import};
use model::{Load, Profile, Provenance, Statistic, profilefile};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = model::input::text_of(bytes.to_vec()) else {
        return;
    };
    let meaning = Meaning {
        statistic: Statistic::Maximum,
        load: Load::Idle,
        write_ratio: 0.25,
        policy: String::new(),
    };
    let table = import(&Profile::new("x", Provenance::default()), &text, &meaning)
        .map(|(profile, _)| profile);
    for profile in [profilefile::from_toml(&text), table].into_iter().flatten() {
        let again = profilefile::from_toml(&profilefile::to_toml(&profile));
        assert_eq!(again.as_ref(), Ok(&profile));
    }
});
