//! The calling thread: its stack, and how often it was switched.

/// The lowest address that the calling thread may use for its stack: above its guard. `None` where
/// the C library does not say.
pub fn stack_end() -> Option<usize> {
    // SAFETY: the attributes are filled in by the first call and read only if it succeeded; they
    // and the places for the answers live through the calls, and they are given back once.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut low, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
        let known = libc::pthread_attr_getstack(&attributes, &mut low, &mut size) == 0
            && libc::pthread_attr_getguardsize(&attributes, &mut guard) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        known.then_some(low as usize + guard)
    }
}

/// How often the calling thread has given its processor away since it began, and how often it has
/// lost it (getrusage(2), `RUSAGE_THREAD`).
pub fn switches() -> (u64, u64) {
    // SAFETY: all zero is a valid `rusage`, a place for the answer that lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_as_large_as_it_was_asked_for() {
        const SIZE: usize = 1 << 20;
        let thread = std::thread::Builder::new().stack_size(SIZE).spawn(|| {
            let here = 0u8;
            (&raw const here as usize) - stack_end().unwrap()
        });
        let room = thread.unwrap().join().unwrap();
        assert!(room > SIZE / 2 && room < 2 * SIZE, "{room}");
    }

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let before = switches().0;
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(switches().0 > before);
    }
}
