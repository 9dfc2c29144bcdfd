//! Sockets to the memory server, and the files that it sends.

use super::{INTERRUPTED, close, errno, number, syscall};
use core::ffi::{c_int, c_long};

/// A connection to a Unix socket by its path; below zero where nobody is there, or it is not this
/// user's to connect.
pub fn connect(path: &[u8]) -> c_int {
    const UNIX: c_long = 1;
    const STREAM: c_long = 1 | 0o2_000_000;
    let mut address = [0_u8; 110];
    address[..2].copy_from_slice(&(UNIX as u16).to_ne_bytes());
    let length = path.len().min(107);
    // After the family; a zero follows.
    address[2..2 + length].copy_from_slice(&path[..length]);
    // SAFETY: the address lives through the calls.
    unsafe {
        let socket = syscall(number::SOCKET, UNIX, STREAM, 0 as c_long) as c_int;
        while socket >= 0
            && syscall(
                number::CONNECT,
                c_long::from(socket),
                address.as_ptr(),
                (3 + length) as c_long,
            ) != 0
        {
            if errno() != INTERRUPTED {
                close(socket);
                return -1;
            }
        }
        socket
    }
}

/// Who listens at the other end of a connection, as the kernel knows since the listening began:
/// the number of the process, 0 where this process cannot see it (pid_namespaces(7)), and its user.
pub fn peer(socket: c_int) -> Option<(u32, u32)> {
    const SOCKET: c_long = 1;
    const CREDENTIALS: c_long = 17;
    // Process, user, group.
    let mut credentials = [0_u32; 3];
    let mut size = size_of_val(&credentials) as u32;
    // SAFETY: both live through the call, and the size is that of the first.
    let answer = unsafe {
        syscall(
            number::OPTION,
            c_long::from(socket),
            SOCKET,
            CREDENTIALS,
            credentials.as_mut_ptr(),
            &raw mut size,
        )
    };
    (answer == 0).then_some((credentials[0], credentials[1]))
}

/// The user whose rights this process has.
pub fn user() -> u32 {
    // SAFETY: a call without arguments.
    unsafe { syscall(number::USER) as u32 }
}

/// Sends all of a message.
pub fn send(socket: c_int, message: &[u8]) -> bool {
    const NO_SIGNAL: c_long = 0x4000;
    let mut sent = 0;
    while sent < message.len() {
        let rest = &message[sent..];
        // SAFETY: the message lives through the call; no address is given.
        let got = unsafe {
            syscall(
                number::SEND,
                c_long::from(socket),
                rest.as_ptr(),
                rest.len(),
                NO_SIGNAL,
                core::ptr::null::<u8>(),
                0 as c_long,
            )
        };
        if got < 0 && errno() != INTERRUPTED {
            return false;
        }
        sent += got.max(0) as usize;
    }
    true
}

/// Receives a message and the open files that come with it: how many bytes, how many files.
pub fn receive(socket: c_int, message: &mut [u8], files: &mut [c_int]) -> Option<(usize, usize)> {
    #[repr(C)]
    struct Part(*mut u8, usize);
    #[repr(C)]
    struct Head {
        name: *mut u8,
        name_length: u32,
        parts: *mut Part,
        number: usize,
        control: *mut u8,
        control_length: usize,
        flags: c_int,
    }
    const CLOSE_ON_EXEC: c_long = 0x4000_0000;
    // The head of ancillary data, a length and two numbers, and room for the files.
    let mut control = [0_u64; 2 + 32];
    let mut part = Part(message.as_mut_ptr(), message.len());
    let mut head = Head {
        name: core::ptr::null_mut(),
        name_length: 0,
        parts: &mut part,
        number: 1,
        control: control.as_mut_ptr().cast(),
        control_length: size_of_val(&control),
        flags: 0,
    };
    let got = loop {
        // SAFETY: all that the head points to lives through the call.
        let got = unsafe {
            syscall(
                number::RECEIVE,
                c_long::from(socket),
                &raw mut head,
                CLOSE_ON_EXEC,
            )
        };
        if got >= 0 || errno() != INTERRUPTED {
            break got;
        }
    };
    if got < 0 {
        return None;
    }
    let mut number = 0;
    if head.control_length >= 16 && control[0] > 16 {
        number = ((control[0] as usize - 16) / 4).min(files.len());
        // SAFETY: the kernel wrote so many numbers behind the head.
        unsafe {
            files
                .as_mut_ptr()
                .copy_from_nonoverlapping(control.as_ptr().add(2).cast(), number)
        };
    }
    Some((got as usize, number))
}
