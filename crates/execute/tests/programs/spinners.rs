//! A program of the tests' own: threads that spin and note when they were on which processor.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// From when until when it was seen on a processor, in nanoseconds, without being off for
/// longer than [`HOLE`].
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub from: u64,
    pub to: u64,
    pub cpu: u32,
}
const HOLE: u64 = 5_000;

fn cpu() -> u32 {
    // SAFETY: takes no argument.
    unsafe { libc::sched_getcpu() as u32 }
}

fn spin(threads: usize, file: &Path, length: u64) {
    let end = execute::kernel::monotonic() + length;
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            std::thread::spawn(move || {
                let mut all: Vec<Seen> = Vec::with_capacity(1 << 16);
                let mut rounds = 0u32;
                loop {
                    let before = cpu();
                    let now = execute::kernel::monotonic();
                    if now > end {
                        return all;
                    }
                    // Moved in between: it is not known where it was at that moment.
                    if cpu() != before {
                        continue;
                    }
                    match all.last_mut() {
                        Some(s) if s.cpu == before && now - s.to < HOLE => s.to = now,
                        _ => all.push(Seen {
                            from: now,
                            to: now,
                            cpu: before,
                        }),
                    }
                    rounds = rounds.wrapping_add(1);
                    if rounds.is_multiple_of(2_000) {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut text = String::new();
    for (index, thread) in threads.into_iter().enumerate() {
        for s in thread.join().unwrap() {
            text += &format!("{index} {} {} {}\n", s.from, s.to, s.cpu);
        }
    }
    File::create(file)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// `spinners THREADS FILE MILLISECONDS`
pub fn main(arguments: &[String]) {
    let [threads, file, length] = arguments else {
        panic!()
    };
    let length: u64 = length.parse().unwrap();
    spin(
        threads.parse().unwrap(),
        Path::new(file),
        length * 1_000_000,
    );
}

/// What they noted, by thread.
pub fn read(file: &Path) -> Vec<Vec<Seen>> {
    let mut all: Vec<Vec<Seen>> = Vec::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let n: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let [thread, from, to, cpu] = n[..] else {
            panic!("{line}")
        };
        all.resize(all.len().max(thread as usize + 1), Vec::new());
        all[thread as usize].push(Seen {
            from,
            to,
            cpu: cpu as u32,
        });
    }
    all
}
