//! The list of users of this machine (getpwnam(3), getgrouplist(3)).

use std::ffi::{CStr, CString};

/// An entry of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The user's name.
    pub name: CString,
    /// Its number.
    pub uid: u32,
    /// Its own group.
    pub gid: u32,
    /// Its home directory.
    pub home: CString,
}

/// Room for an entry; what is longer counts as not there.
const ROOM: usize = 1 << 16;
/// More groups than the kernel gives to a process.
const GROUPS: usize = 65_536;

/// The user of this name.
pub fn by_name(name: &CStr) -> Option<Entry> {
    // SAFETY: the name ends with a zero; the rest is as `found` says.
    found(|entry, room, size, answer| unsafe {
        libc::getpwnam_r(name.as_ptr(), entry, room, size, answer)
    })
}

/// The user with this number.
pub fn by_number(uid: u32) -> Option<Entry> {
    // SAFETY: as `found` says.
    found(|entry, room, size, answer| unsafe { libc::getpwuid_r(uid, entry, room, size, answer) })
}

/// `ask` gets an entry, room for its texts with the size of that, and a place for the answer. All
/// of them are valid for as long as it runs.
fn found(
    ask: impl FnOnce(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
) -> Option<Entry> {
    let mut room = vec![0; ROOM];
    // SAFETY: all zero is a valid `passwd`: null pointers.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut answer: *mut libc::passwd = std::ptr::null_mut();
    let done = ask(&mut entry, room.as_mut_ptr(), ROOM, &mut answer);
    if done != 0 || answer.is_null() {
        return None;
    }
    // SAFETY: the entry was filled in: its texts end with a zero and lie in the room, which is
    // still there.
    let [name, home] = unsafe { [CStr::from_ptr(entry.pw_name), CStr::from_ptr(entry.pw_dir)] };
    Some(Entry {
        name: name.to_owned(),
        uid: entry.pw_uid,
        gid: entry.pw_gid,
        home: home.to_owned(),
    })
}

/// All groups of a user, its own one `gid` among them. `None`: more than a process can have.
pub fn groups(name: &CStr, gid: u32) -> Option<Vec<u32>> {
    let mut groups = vec![0; GROUPS];
    let mut count = GROUPS as libc::c_int;
    // SAFETY: the name ends with a zero, and there is room for so many groups as `count` says.
    let listed = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
    if listed < 0 {
        return None;
    }
    groups.truncate(usize::try_from(count).unwrap_or(0));
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_there_by_name_and_number() {
        let root = by_name(c"root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(by_number(0).unwrap(), root);
        assert!(groups(&root.name, root.gid).unwrap().contains(&0));
        assert_eq!(by_name(c"nobody-of-that-name"), None);
        assert_eq!(by_number(4_294_967_290), None);
    }
}
