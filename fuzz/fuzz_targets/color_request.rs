//! Any line that a client of the memory server may send: read or refused, and what is read is
//! written and read again.
#![no_main]

use partition::protocol::{line, parse};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = parse(bytes) {
        let written = line(&request);
        assert_eq!(parse(&written), Ok(request));
    }
});
