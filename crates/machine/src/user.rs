//! Users of this machine, by name or number.

use model::{Error, Result};
use std::ffi::{CStr, CString};

/// A user, with what a process takes on to become that user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Its own group.
    pub gid: u32,
    /// All of its groups, its own among them.
    pub groups: Vec<u32>,
    /// Its home directory.
    pub home: String,
}

/// Room for an entry of the list of users; what is longer is refused.
const ROOM: usize = 1 << 16;
/// More groups than the kernel gives to a process.
const GROUPS: usize = 65_536;

impl User {
    /// Finds a user by its name, or by its number in digits.
    ///
    /// # Errors
    /// There is no such user.
    pub fn find(text: &str) -> Result<Self> {
        let unknown = || {
            Error::new(format!("there is no user `{text}`"))
                .remedy("see `getent passwd` for those that there are")
        };
        let name = CString::new(text).map_err(|_| unknown())?;
        let mut room = vec![0; ROOM];
        // SAFETY: an all-zero `passwd` is valid: null pointers.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found: *mut libc::passwd = std::ptr::null_mut();
        // SAFETY: name, entry and room live through the calls, and the room is as long as is said.
        let done = unsafe {
            match text.parse::<u32>() {
                Ok(uid) => libc::getpwuid_r(uid, &mut entry, room.as_mut_ptr(), ROOM, &mut found),
                Err(_) => libc::getpwnam_r(name.as_ptr(), &mut entry, room.as_mut_ptr(), ROOM, &mut found),
            }
        };
        if done != 0 || found.is_null() {
            return Err(unknown());
        }
        // SAFETY: the entry was filled in: its texts end with a zero and lie in the room, which is
        // still there.
        let [name, home] = unsafe { [CStr::from_ptr(entry.pw_name), CStr::from_ptr(entry.pw_dir)] };
        let mut groups = vec![0; GROUPS];
        let mut count = GROUPS as libc::c_int;
        // SAFETY: the name ends with a zero, and there is room for so many groups.
        let listed =
            unsafe { libc::getgrouplist(name.as_ptr(), entry.pw_gid, groups.as_mut_ptr(), &mut count) };
        if listed < 0 {
            return Err(Error::new(format!("user `{text}` has too many groups")));
        }
        groups.truncate(usize::try_from(count).unwrap_or(0));
        Ok(User {
            name: name.to_string_lossy().into_owned(),
            uid: entry.pw_uid,
            gid: entry.pw_gid,
            groups,
            home: home.to_string_lossy().into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let root = User::find("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0) && !root.home.is_empty());
        assert_eq!(User::find("0").unwrap(), root);
        for text in ["nobody-of-that-name", "", "a\0b", "4294967290"] {
            let e = User::find(text).unwrap_err().to_string();
            assert!(e.starts_with("there is no user"), "{e}");
        }
    }
}
