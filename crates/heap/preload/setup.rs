//! Learns from the environment who the supervisor is, and opens the heaps; asks the supervisor for
//! tiles.

use crate::alloc::arena::{ARENA, MOST_COLORS, Source};
use crate::alloc::class::SLOT;
use crate::alloc::{fork, sys, thread};
use crate::message::{BEGIN, GIVE_BACK, MAPPING, MOST_TILES, SECRET, TAKE, VARIABLE};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    static environ: *const *const c_char;
}

/// Nothing is known yet.
const UNKNOWN: u8 = 0;
/// It is being found out.
const STARTING: u8 = 1;
/// There are heaps.
const COLORED: u8 = 2;
/// This program has no supervisor.
const PLAIN: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static PARTS: AtomicU32 = AtomicU32::new(0);
static STACK: AtomicUsize = AtomicUsize::new(0);
/// Does an allocation fail where colored memory runs out?
static STRICT: AtomicBool = AtomicBool::new(false);
static SAID: AtomicBool = AtomicBool::new(false);
/// The process that these words are of: a child that borrows them (`vfork`) has another number.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Where the supervisor is, and how it knows that this process is one of its run.
struct Supervisor {
    socket: [u8; 108],
    length: usize,
    process: u32,
    secret: [u8; SECRET],
}

struct Known(UnsafeCell<Supervisor>);
// SAFETY: written once, before the state is `COLORED`.
unsafe impl Sync for Known {}
static SUPERVISOR: Known = Known(UnsafeCell::new(Supervisor {
    socket: [0; 108],
    length: 0,
    process: 0,
    secret: [0; SECRET],
}));

/// Are there heaps? Opens them if it can be done.
#[inline(always)]
pub fn ready() -> bool {
    STATE.load(Ordering::Acquire) == COLORED || start()
}

#[cold]
fn start() -> bool {
    // SAFETY: a word of the C library, null before that is set up.
    if unsafe { environ.is_null() } {
        return false;
    }
    if STATE
        .compare_exchange(UNKNOWN, STARTING, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        return STATE.load(Ordering::Acquire) == COLORED;
    }
    // SAFETY: a C string of the environment, or null.
    let found = unsafe {
        let text = getenv(VARIABLE.as_ptr());
        (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes())
    };
    let state = match found {
        None => PLAIN,
        Some(text) => match open(text) {
            Some(true) => COLORED,
            // Its supervisor is gone, or another user's: this program goes on without colors.
            Some(false) => PLAIN,
            None => {
                sys::end(b"the environment of this program does not say where its colored memory comes from")
            }
        },
    };
    STATE.store(state, Ordering::Release);
    state == COLORED
}

fn number(text: &[u8]) -> Option<usize> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

fn hexadecimal(text: &[u8]) -> Option<[u8; SECRET]> {
    let mut bytes = [0; SECRET];
    if text.len() != 2 * SECRET {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn supervisor(socket: &[u8], process: &[u8], secret: &[u8]) -> Option<Supervisor> {
    let mut supervisor = Supervisor {
        socket: [0; 108],
        length: socket.len(),
        process: number(process)? as u32,
        secret: hexadecimal(secret)?,
    };
    if socket.is_empty() {
        return None;
    }
    // A zero follows.
    supervisor.socket.get_mut(..107)?.get_mut(..socket.len())?.copy_from_slice(socket);
    Some(supervisor)
}

/// Opens the heaps. Says whether there is a supervisor; nothing where that cannot be read.
fn open(text: &[u8]) -> Option<bool> {
    let mut fields = text.split(|b| *b == b';');
    let known = supervisor(fields.next()?, fields.next()?, fields.next()?)?;
    let colors = fields.next()?;
    let mut next = || fields.next().and_then(number);
    let (heaps, by_task, parts, stack, strict) = (next()?, next()?, next()?, next()?, next()?);
    let mut numbers = [0_u16; MOST_COLORS];
    let mut found = 0;
    for color in colors.split(|b| *b == b',') {
        *numbers.get_mut(found)? = number(color)? as u16;
        found += 1;
    }
    if heaps == 0 || heaps > found {
        return None;
    }
    // SAFETY: nobody reads it before the state says so.
    unsafe { *SUPERVISOR.0.get() = known };
    thread::BY_TASK.store(by_task != 0, Ordering::Relaxed);
    PARTS.store(parts as u32, Ordering::Relaxed);
    STACK.store(stack, Ordering::Relaxed);
    STRICT.store(strict != 0, Ordering::Relaxed);
    forked();
    let mut answer = [1; 4];
    let begun = ask(&BEGIN.to_ne_bytes(), &mut answer, &mut []).is_some() && answer == [0; 4];
    if !begun && strict == 0 {
        return Some(false);
    }
    // In strict mode, it is said when memory is asked for that nobody answers.
    let more = fork::More {
        copy: crate::ranges::copy,
        done: crate::ranges::done,
    };
    let source = Source {
        fetch,
        give_back,
        ordinary: strict == 0,
    };
    Some(fork::watch(Some(more)) && ARENA.open(&numbers[..found], heaps, source))
}

/// This process is another one since a fork.
pub fn forked() {
    PROCESS.store(sys::process(), Ordering::Relaxed);
    REPORTED.store(false, Ordering::Relaxed);
}

/// Is it still to be told what is colored in this process?
pub fn to_report() -> bool {
    STATE.load(Ordering::Acquire) == COLORED
        && PROCESS.load(Ordering::Relaxed) == sys::process()
        && !REPORTED.swap(true, Ordering::Relaxed)
}

/// Is this part to be colored?
pub fn colors(part: u32) -> bool {
    ready() && PARTS.load(Ordering::Relaxed) >> part & 1 == 1
}

/// Does an allocation fail where colored memory runs out? Otherwise it gets ordinary memory.
pub fn is_strict() -> bool {
    STRICT.load(Ordering::Relaxed)
}

/// Bytes of a stack that are colored.
pub fn stack() -> usize {
    STACK.load(Ordering::Relaxed)
}

/// Sends a request and receives the answer: its bytes, and its files. Nothing is asked of, or
/// taken from, a process that is not the supervisor.
pub fn ask(request: &[u8], answer: &mut [u8], files: &mut [c_int]) -> Option<(usize, usize)> {
    // SAFETY: written before the state said so.
    let known = unsafe { &*SUPERVISOR.0.get() };
    let socket = sys::connect(&known.socket[..known.length]);
    if socket < 0 {
        return None;
    }
    let mut head = [0; 4 + SECRET];
    head[..4].copy_from_slice(&((SECRET + request.len()) as u32).to_ne_bytes());
    head[4..].copy_from_slice(&known.secret);
    let got = if is_supervisor(socket, known)
        && sys::send(socket, &head)
        && sys::send(socket, request)
    {
        sys::receive(socket, answer, files)
    } else {
        None
    };
    // SAFETY: opened above.
    unsafe { sys::close(socket) };
    got
}

/// Is the supervisor at the other end, with the rights that this process has? Memory of another
/// user could be read and changed by him. The path leads to a directory of this user's alone, but
/// an environment may name any path.
fn is_supervisor(socket: c_int, known: &Supervisor) -> bool {
    sys::peer(socket).is_some_and(|(process, user)| {
        user == sys::user() && (process == known.process || process == 0)
    })
}

fn fetch(at: *mut u8, colors: &[u16], tiles: &mut [u32]) -> usize {
    take(TAKE, at, colors, tiles)
}

/// Maps tiles for a stack or a segment, by the kind of request: as many as there are, without a
/// message where they are fewer. They begin with another color each time: stacks and most segments
/// take few tiles, and would all take the first colors of a heap.
pub fn fetch_range(kind: u32, heap: usize, at: *mut u8, tiles: &mut [u32]) -> usize {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let number = tiles.len().min(MOST_TILES);
    let first = TURN.fetch_add(number, Ordering::Relaxed);
    let mut colors = [0; MOST_TILES];
    for (i, color) in colors.iter_mut().enumerate() {
        *color = ARENA.color(heap, first.wrapping_add(i));
    }
    take(kind, at, &colors[..number], &mut tiles[..number])
}

fn take(kind: u32, at: *mut u8, colors: &[u16], tiles: &mut [u32]) -> usize {
    let error = sys::errno();
    let mut request = [0_u8; 4 + 2 * MOST_TILES];
    request[..4].copy_from_slice(&kind.to_ne_bytes());
    for (to, color) in request[4..].chunks_exact_mut(2).zip(colors) {
        to.copy_from_slice(&color.to_ne_bytes());
    }
    let mut answer = [0_u8; 4 + 4 * MOST_TILES + 256];
    let mut files = [-1; MOST_TILES];
    let got = ask(&request[..4 + 2 * colors.len()], &mut answer, &mut files);
    let (length, number) = got.unwrap_or((0, 0));
    let fine = length == 4 + 4 * number && answer[..4] == [0; 4] && number <= colors.len();
    let mut mapped = 0;
    for (place, file) in files.iter().enumerate().take(number) {
        // SAFETY: whoever asked has these addresses for itself; the file is ours.
        unsafe {
            if fine && mapped == place && sys::file_at(at.wrapping_add(place * SLOT), SLOT, *file) {
                mapped += 1;
            }
            sys::close(*file);
        }
    }
    let mut given = [0; MOST_TILES];
    for (tile, bytes) in given.iter_mut().zip(answer[4..].chunks_exact(4)) {
        *tile = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    tiles[..mapped].copy_from_slice(&given[..mapped]);
    if fine && mapped < number {
        give_back(&given[mapped..number]);
    }
    // Who goes on in ordinary memory learns of it at the end, and not amid its own messages.
    if mapped < colors.len() && kind == TAKE && is_strict() && !SAID.swap(true, Ordering::Relaxed) {
        let why = match length {
            0..4 => &b"the supervisor is gone"[..],
            _ if fine => b"too many mappings: raise `sysctl vm.max_map_count`",
            _ => &answer[4..length],
        };
        sys::say(&[b"warmset: no more colored memory: ", why, b"\n"]);
    }
    sys::set_errno(error);
    mapped
}

/// Gives tiles back that are not mapped any more.
pub fn give_back(tiles: &[u32]) {
    let error = sys::errno();
    let mut request = [0_u8; 4 + 4 * MOST_TILES];
    for part in tiles.chunks(MOST_TILES) {
        request[..4].copy_from_slice(&GIVE_BACK.to_ne_bytes());
        for (to, tile) in request[4..].chunks_exact_mut(4).zip(part) {
            to.copy_from_slice(&tile.to_ne_bytes());
        }
        // Where nobody answers, they return when this process ends.
        let _ = ask(&request[..4 + 4 * part.len()], &mut [0; 4], &mut []);
    }
    sys::set_errno(error);
}

const _: () = assert!(MAPPING < 32);
