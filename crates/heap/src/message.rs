//! What the loaded library and its supervisor say to each other: one message a connection, numbers
//! in the machine's order.
//!
//! A request is the number of bytes that follow, the secret of the run, a kind, and a list; an
//! answer is 0 and a list, with as many open files where tiles are given, or another number and why
//! not.

/// Bytes of the secret that a run draws at random and its environment tells to what it starts. A
/// process that does not know it is not answered.
pub const SECRET: usize = 16;

/// Give me tiles of these colors (u16 each), in this order. Where colored memory runs out there are
/// fewer than asked for, or none; in strict mode the request is refused then.
pub const TAKE: u32 = 1;
/// The same, for code and data of the program, of which there is a limit: as many as there are.
pub const TAKE_SEGMENT: u32 = 2;
/// These tiles (u32 each) are not mapped any more.
pub const GIVE_BACK: u32 = 3;
/// These are my colored ranges ([`Entry`] each); I end now and wait until they were looked at.
pub const REPORT: u32 = 4;

/// This process begins a program: what it had as another one returns.
pub const BEGIN: u32 = 5;
/// As [`TAKE`], for a stack: as many as there are.
pub const TAKE_STACK: u32 = 6;

/// The most tiles of a request.
pub const MOST_TILES: usize = 64;
/// The most ranges of a report; further ones are left out.
pub const MOST_ENTRIES: usize = 2000;
/// The variable of the environment that tells a program of its supervisor: the path of its socket,
/// the number of its process, the secret as hexadecimal digits, colors, number of heaps, whether
/// tasks choose, parts, bytes of stacks, whether it is strict; separated by semicolons, colors by
/// commas.
pub const VARIABLE: &core::ffi::CStr = c"WARMSET_COLOR_EXEC";

/// What a range is. Also the bits, as `1 << kind`, of the parts that are to be colored.
pub const HEAP: u32 = 0;
/// What the program mapped.
pub const MAPPING: u32 = 1;
/// Part of a thread's stack.
pub const STACK: u32 = 2;
/// Code or data of the program or a library.
pub const SEGMENT: u32 = 3;

/// Not a range, but how many bytes of heap and mappings had ordinary memory at a time, at most,
/// because colored memory had run out: the size of such an entry.
pub const LACK: u32 = 31;

/// A range of addresses in a report.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub start: u64,
    pub size: u64,
    pub kind: u32,
    /// 1: it lies in ordinary memory; 0: in tiles.
    pub ordinary: u32,
}
