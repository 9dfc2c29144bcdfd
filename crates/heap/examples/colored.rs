//! A program whose own memory and one of whose tables have colors:
//! `cargo run -p warmset-heap --example colored`.
//!
//! Needs a memory server and a grant: `warmset color serve` and
//! `warmset color grant uid:$(id -u) 0-3`.

use allocator_api2::vec::Vec as ColoredVec;
use heap::{Colored, Heap, Options};

#[global_allocator]
static HEAP: Colored = Colored;

fn main() -> model::Result<()> {
    let attached = heap::attach(&Options::from_env()?)?;
    println!(
        "{} colors, of page colors {}",
        attached.heaps, attached.colors
    );
    // The global allocator takes color 0.
    let words: Vec<String> = (0..3).map(|i| i.to_string()).collect();
    // This table has the last one.
    let mut table = ColoredVec::new_in(Heap::color(attached.heaps - 1)?);
    table.extend(0..10_000_u64);
    println!(
        "words: {:?}, table: {:?}",
        Heap::of(words.as_ptr()),
        Heap::of(table.as_ptr())
    );
    Ok(())
}
