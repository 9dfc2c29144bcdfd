//! Whether this build and the kernel that runs have what the engine needs, and what to do where not.

use machine::Tree;
use model::{Error, Result};

/// What the kernel says of sched_ext.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Support {
    /// It has it, and no scheduler is loaded.
    There,
    /// It has it, and another scheduler rules, of this name.
    Taken(String),
    /// It does not have it.
    Missing,
}

/// Looks at the files of a machine.
pub fn look(tree: &Tree) -> Support {
    match tree.text("/sys/kernel/sched_ext/state").as_deref() {
        None => Support::Missing,
        Some("disabled") => Support::There,
        Some(_) => Support::Taken(
            tree.text("/sys/kernel/sched_ext/root/ops")
                .unwrap_or_else(|| "unknown".to_owned()),
        ),
    }
}

/// Can this build, on the kernel that is told of by the files of a machine?
///
/// # Errors
/// It is built without the engine, this kernel has no sched_ext, or another scheduler is loaded.
pub fn check(tree: &Tree) -> Result<()> {
    if cfg!(not(feature = "load")) {
        return Err(not_built());
    }
    match look(tree) {
        Support::There => Ok(()),
        Support::Missing => Err(Error::new("this kernel has no sched_ext")
            .at(PLACE)
            .remedy(REMEDY)),
        Support::Taken(name) => Err(Error::new(format!(
            "the scheduler `{name}` is loaded, and the kernel has one at a time"
        ))
        .at(PLACE)
        .remedy("end the program that has loaded it")),
    }
}

/// This build has no engine in the kernel.
pub(crate) fn not_built() -> Error {
    Error::new("this warmset was built without the engine in the kernel")
        .at(PLACE)
        .remedy(
            "install libelf-dev and zlib1g-dev and build it with `cargo build --release --locked -p \
             warmset --features in-kernel`",
        )
}

/// The option that asks for this engine.
pub(crate) const PLACE: &str = "--engine kernel";

/// What gets a kernel with sched_ext.
const REMEDY: &str =
    "boot a kernel with CONFIG_SCHED_CLASS_EXT, such as 7.0 of Debian's backports (docs/kernel.md)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_its_remedy() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::new(root.path());
        assert_eq!(look(&tree), Support::Missing);
        let error = check(&tree).unwrap_err();
        assert_eq!(error.place(), PLACE);
        assert!(!error.advice().is_empty(), "{error}");
        let dir = root.path().join("sys/kernel/sched_ext/root");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("../state"), "enabled\n").unwrap();
        std::fs::write(dir.join("ops"), "other\n").unwrap();
        assert_eq!(look(&tree), Support::Taken("other".to_owned()));
        std::fs::write(dir.join("../state"), "disabled\n").unwrap();
        assert_eq!(look(&tree), Support::There);
        assert_eq!(check(&tree).is_ok(), cfg!(feature = "load"));
    }
}
