//! Whether this build and the kernel that runs have what the engine needs, and what to do where
//! not.

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
/// The first of what [`lacks`] finds.
pub fn check(tree: &Tree) -> Result<()> {
    lacks(tree).into_iter().next().map_or(Ok(()), Err)
}

/// All that this build and the kernel that is told of by the files of a machine lack; empty:
/// nothing that can be told without loading the program.
pub fn lacks(tree: &Tree) -> Vec<Error> {
    let not_built = cfg!(not(feature = "load")).then(not_built);
    let there = match look(tree) {
        Support::There => None,
        Support::Missing => Some(
            Error::new("this kernel has no sched_ext")
                .at(PLACE)
                .remedy(REMEDY),
        ),
        Support::Taken(name) => Some(
            Error::new(format!(
                "the scheduler `{name}` is loaded, and the kernel has one at a time"
            ))
            .at(PLACE)
            .remedy("end the program that has loaded it"),
        ),
    };
    // Where the class is missing, the kernel that has it has this, too.
    let has_types = tree.exists(TYPES) || look(tree) == Support::Missing;
    let no_types = (!has_types).then(|| {
        Error::new(format!("the kernel does not describe its types ({TYPES})"))
            .at(PLACE)
            .remedy("boot a kernel with CONFIG_DEBUG_INFO_BTF")
    });
    let has_numbers = tree
        .inode(NUMBERS)
        .is_none_or(|space| space == FIRST_NUMBERS);
    let other_numbers = (!has_numbers).then(|| {
        Error::new("threads have other numbers here than in the kernel, as in a container")
            .at(PLACE)
            .remedy("run it outside, or start the container with `--pid=host`")
    });
    let all = not_built.into_iter().chain(there).chain(no_types);
    all.chain(other_numbers).collect()
}

/// Loads the program into this kernel on trial: nothing is scheduled by it.
///
/// # Errors
/// What [`lacks`] finds; the kernel or its verifier refuses the program, in its words.
pub fn trial() -> Result<()> {
    check(&Tree::new("/".as_ref()))?;
    #[cfg(feature = "load")]
    {
        let mut place = crate::loaded::Place::uninit();
        crate::loaded::Loaded::load_quietly(&mut place, &crate::Settings::default())?;
    }
    Ok(())
}

/// Why the kernel refuses a program, of what libbpf says: the first line of the verifier's that is
/// about that, or else libbpf's own first line.
pub fn refusal(said: &str) -> Option<&str> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    // The verifier shows each instruction that it has followed, by its number, and says what is
    // wrong behind the last of them.
    let is_instruction = |line: &str| {
        let number = line.split_once(':').map_or("", |(number, _)| number);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let log = || {
        lines()
            .skip_while(|line| !line.ends_with("-- BEGIN PROG LOAD LOG --"))
            .skip(1)
            .take_while(|line| !line.ends_with("-- END PROG LOAD LOG --"))
    };
    let followed = log().enumerate().filter(|(_, line)| is_instruction(line));
    let behind = followed.last().map_or(0, |(at, _)| at + 1);
    let is_wrong = |line: &&str| !line.starts_with(';') && !line.starts_with("processed ");
    let own = || lines().map(|line| line.strip_prefix("libbpf: ").unwrap_or(line));
    log().skip(behind).find(is_wrong).or_else(|| own().next())
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

/// Where the kernel describes its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The namespace of the numbers by which this process knows threads, and that of the numbers by
/// which the kernel does (`PROC_PID_INIT_INO`; pid_namespaces(7)).
const NUMBERS: &str = "/proc/self/ns/pid";
const FIRST_NUMBERS: u64 = 0xefff_fffc;

/// What gets a kernel with sched_ext.
const REMEDY: &str = "boot a kernel with CONFIG_SCHED_CLASS_EXT, such as that of Debian 13's \
                      backports or of Ubuntu 26.04 (docs/kernel.md)";

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
        let causes = |tree: &Tree| -> Vec<String> {
            let lacks = lacks(tree).into_iter();
            assert!(lacks.clone().all(|error| !error.advice().is_empty()));
            lacks.map(|error| error.cause().to_owned()).collect()
        };
        let types = causes(&tree).pop().unwrap();
        assert!(types.contains("does not describe its types"), "{types}");
        std::fs::create_dir_all(root.path().join("sys/kernel/btf")).unwrap();
        std::fs::write(root.path().join("sys/kernel/btf/vmlinux"), "").unwrap();
        assert_eq!(check(&tree).is_ok(), cfg!(feature = "load"));
        // Any file has another number than the first namespace.
        let namespaces = root.path().join("proc/self/ns");
        std::fs::create_dir_all(&namespaces).unwrap();
        std::fs::write(namespaces.join("pid"), "").unwrap();
        let numbers = causes(&tree).pop().unwrap();
        assert!(numbers.contains("as in a container"), "{numbers}");
        // All of it is told, and not the first alone.
        let empty = tempfile::tempdir().unwrap();
        let all = causes(&Tree::new(empty.path()));
        assert_eq!(all.len(), if cfg!(feature = "load") { 1 } else { 2 });
        assert!(all.iter().any(|cause| cause.contains("no sched_ext")));
    }

    /// What libbpf said when a bound was missing in this program, on Linux 7.0, shortened.
    #[test]
    fn a_refusal_is_told_in_the_words_of_the_verifier() {
        let said = "libbpf: prog 'warmset_start': BPF program load failed: -EACCES\n\
            libbpf: prog 'warmset_start': -- BEGIN PROG LOAD LOG --\n\
            0: R1=ctx() R10=fp0\n\
            ; int warmset_start(struct request *request) @ main.bpf.c:752\n\
            0: (b4) w0 = 1                        ; R0=1\n\
            ; asked[key].next = NEVER; @ main.bpf.c:789\n\
            287: (7b) *(u64 *)(r2 +24) = r1\n\
            R2 unbounded memory access, make sure to bounds check any such access\n\
            processed 25239 insns (limit 1000000) max_states_per_insn 14\n\
            -- END PROG LOAD LOG --\n\
            libbpf: prog 'warmset_start': failed to load: -EACCES\n";
        assert_eq!(
            refusal(said),
            Some("R2 unbounded memory access, make sure to bounds check any such access")
        );
        // An older kernel lacks a function.
        let said = "libbpf: extern (func ksym) 'scx_bpf_dsq_insert': not found in kernel or module \
            BTFs\nlibbpf: failed to load object 'main'\n";
        assert_eq!(
            refusal(said),
            Some("extern (func ksym) 'scx_bpf_dsq_insert': not found in kernel or module BTFs")
        );
        assert_eq!(refusal("\n"), None);
    }
}
