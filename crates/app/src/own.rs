//! The profile of this machine that is in use: what `check`, `simulate` and `study` charge here
//! where no other is named.
//!
//! Nobody measures into it by accident: a measurement that is good is taken with `warmset profile
//! use FILE`.

use crate::Choice;
use ::measure::keep;
use model::{Error, Profile, Result, files, profilefile};
use std::path::{Path, PathBuf};

/// What stands for it where a profile is named.
pub const NAME: &str = "this-machine";
/// What stands for no profile.
pub const NONE: &str = "none";
/// The variable that names its file in the place of the usual one, or is `none`.
pub const VARIABLE: &str = "WARMSET_PROFILE";

/// Where it is kept: in the file that [`VARIABLE`] names, else `warmset/profile.toml` among the
/// user's data. `None`: none is wanted, or the user has no home.
pub fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match set(VARIABLE) {
        Some(value) if value == NONE => return None,
        Some(value) => return Some(PathBuf::from(value)),
        None => {}
    }
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/share")));
    Some(data?.join("warmset/profile.toml"))
}

/// The profile, if one is in use.
///
/// # Errors
/// The file is no profile, or one of another machine.
pub fn in_use() -> Result<Option<Profile>> {
    let Some(path) = path().filter(|path| path.exists()) else {
        return Ok(None);
    };
    let platform = machine::this_machine()?.platform;
    keep::there(&path, &platform)
        .map_err(|e| e.remedy("measure this machine, or `warmset profile use none`"))
}

/// The profile in use, where it was asked for by its name.
///
/// # Errors
/// As [`in_use`]; there is none.
pub fn named() -> Result<Profile> {
    in_use()?.ok_or_else(|| {
        Error::new("no profile of this machine is in use")
            .remedy("take one with `warmset profile use FILE`; `warmset measure` makes one")
    })
}

/// Takes a profile of this machine into use. Returns where it is kept.
///
/// # Errors
/// There is no such profile; it is of another machine; nowhere to keep it.
pub fn take(name: &str) -> Result<PathBuf> {
    let profile = Choice::<Profile>::Named(name.to_owned()).profile()?;
    let platform = machine::this_machine()?.platform;
    keep::fits(&profile, &platform).map_err(|e| e.at(name))?;
    let path = somewhere()?;
    if let Some(dir) = path.parent() {
        files::make_dir(dir)?;
    }
    files::write(&path, profilefile::to_toml(&profile))?;
    Ok(path)
}

/// Takes the profile out of use. Returns where it was, if there was one.
///
/// # Errors
/// It cannot be removed.
pub fn forget() -> Result<Option<PathBuf>> {
    let Some(path) = path().filter(|path| path.exists()) else {
        return Ok(None);
    };
    std::fs::remove_file(&path).map_err(|e| Error::io(&path, "remove the profile in use", &e))?;
    Ok(Some(path))
}

fn somewhere() -> Result<PathBuf> {
    path().ok_or_else(|| {
        Error::new("there is nowhere to keep the profile in use")
            .at(Path::new(VARIABLE).display())
            .remedy(format!("set HOME, or {VARIABLE} to a file"))
    })
}
