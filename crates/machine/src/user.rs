//! Users of this machine, by name or number.

use model::{Error, Result};
use std::ffi::CString;

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
        let found = match text.parse::<u32>() {
            Ok(uid) => sys::user::by_number(uid),
            Err(_) => sys::user::by_name(&name),
        };
        let entry = found.ok_or_else(unknown)?;
        let groups = sys::user::groups(&entry.name, entry.gid)
            .ok_or_else(|| Error::new(format!("user `{text}` has too many groups")))?;
        Ok(User {
            name: entry.name.to_string_lossy().into_owned(),
            uid: entry.uid,
            gid: entry.gid,
            groups,
            home: entry.home.to_string_lossy().into_owned(),
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
