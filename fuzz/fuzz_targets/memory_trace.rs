//! Any bytes as a trace of memory accesses: refused, or accesses that the caches of a platform of
//! several processors take.
#![no_main]

use cache::{Pages, Rules, Shape, Simulation, trace};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = trace::Reader::new(bytes) else {
        return;
    };
    let platform = model::Platform::builtin("i7-2600").unwrap();
    let shape = Shape::of(&platform).unwrap();
    let pages = Pages::as_traced(4096).unwrap();
    let mut caches = Simulation::new(shape, Rules::Lines, pages, 1).unwrap();
    while let Ok(Some(access)) = reader.read() {
        // Other processors than those of the platform are refused.
        let _ = caches.access(&access);
    }
    for row in caches.rows() {
        assert!(row.counts.misses() <= row.counts.accesses());
    }
});
