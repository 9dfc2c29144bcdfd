//! Registers are files here: a directory for each processor, as `/dev/cpu` has them.

use super::*;
use rustix::process::{Pid, Signal};
use std::process::{Child, Command, Stdio};

/// What the registers of two processors hold: bits that are none of ours among them.
const HELD: [u64; 2] = [0x20, 0x0];

/// Devices of two processors of this kind.
fn planted(dir: &Path, control: Control) -> CpuSet {
    for (cpu, value) in HELD.iter().enumerate() {
        let path = device(dir, cpu as u32);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        control.write(&path, *value).unwrap();
    }
    "0-1".parse().unwrap()
}

fn held(dir: &Path, control: Control) -> Vec<u64> {
    let cpus = 0..HELD.len() as u32;
    cpus.map(|cpu| control.read(&device(dir, cpu)).unwrap())
        .collect()
}

fn records(dir: &Path) -> Records {
    Records::at(dir.join("records")).unwrap()
}

fn off(dir: &Path, control: Control, cpus: &CpuSet) -> Result<Off> {
    turn_off_noting(Some(control), dir, cpus, || Ok(records(dir)))
}

#[test]
fn they_are_off_while_it_lives_and_as_before_after_it() {
    for control in [INTEL, AMD] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let cpus = planted(dir, control);
        let before = control.state(dir, &cpus);
        assert_eq!(before == State::On, control == INTEL, "bit 5 is of AMD's");
        let off = off(dir, control, &cpus).unwrap();
        assert_eq!(held(dir, control), HELD.map(|value| value | control.bits));
        assert_eq!(control.state(dir, &cpus), State::Off);
        drop(off);
        assert_eq!(held(dir, control), HELD);
        assert!(records(dir).left(KIND).is_empty());
        let left = std::fs::read_dir(dir.join("records")).unwrap();
        assert_eq!(left.count(), 0, "the record is done");
    }
}

#[test]
fn a_panic_turns_them_on_again() {
    let dir = tempfile::tempdir().unwrap();
    let cpus = planted(dir.path(), INTEL);
    let result = std::panic::catch_unwind(|| {
        let _off = off(dir.path(), INTEL, &cpus).unwrap();
        panic!("on purpose");
    });
    assert!(result.is_err());
    assert_eq!(held(dir.path(), INTEL), HELD);
}

#[test]
fn where_one_processor_fails_the_others_are_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    planted(dir, INTEL);
    let e = off(dir, INTEL, &"0-2".parse().unwrap())
        .unwrap_err()
        .to_string();
    assert!(e.contains("/2/msr") && e.contains("modprobe msr"), "{e}");
    assert_eq!(held(dir, INTEL), HELD);
    // A device that takes what is written and keeps what it has.
    let deaf = device(dir, 1);
    std::fs::remove_file(&deaf).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &deaf).unwrap();
    let e = off(dir, INTEL, &"0-1".parse().unwrap())
        .unwrap_err()
        .to_string();
    assert!(e.contains("keeps its hardware prefetchers on"), "{e}");
    assert_eq!(INTEL.read(&device(dir, 0)).unwrap(), HELD[0]);
    assert!(records(dir).left(KIND).is_empty());
}

#[test]
fn what_is_missing_is_one_sentence_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let cpus: CpuSet = "0-1".parse().unwrap();
    let unknown = turn_off(None, dir.path(), &cpus).unwrap_err().to_string();
    assert!(unknown.contains("not known"), "{unknown}");
    assert!(unknown.contains("firmware"), "{unknown}");
    let missing = turn_off(Some(INTEL), dir.path(), &cpus).unwrap_err();
    let said = missing.to_string();
    assert!(
        said.contains("0/msr") && said.contains("modprobe msr"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    assert_eq!(INTEL.state(dir.path(), &cpus), State::Unknown);
}

#[test]
fn processors_are_told_apart() {
    assert_eq!(Control::of("GenuineIntel", 6, false), Some(INTEL));
    assert_eq!(Control::of("GenuineIntel", 15, false), None);
    assert_eq!(Control::of("AuthenticAMD", 25, true), Some(AMD));
    assert_eq!(Control::of("AuthenticAMD", 23, false), None);
    assert_eq!(Control::of("HygonGenuine", 24, true), None);
}

#[test]
fn those_that_are_off_already_stay_off_and_some_are_neither() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let cpus = planted(dir, INTEL);
    INTEL.write(&device(dir, 0), 0xf).unwrap();
    assert_eq!(INTEL.state(dir, &cpus), State::Unknown);
    INTEL.write(&device(dir, 1), 0xf).unwrap();
    assert_eq!(INTEL.state(dir, &cpus), State::Off);
    drop(off(dir, INTEL, &cpus).unwrap());
    assert_eq!(held(dir, INTEL), [0xf, 0xf]);
}

const PLACE: &str = "WARMSET_TEST_PREFETCHERS";

/// Another process, of a group of its own, that has turned them off: this test again, by its name.
fn turned_off_by_another(test: &str, dir: &Path) -> Child {
    if let Some(dir) = std::env::var_os(PLACE) {
        let dir = Path::new(&dir);
        let _off = off(dir, INTEL, &"0-1".parse().unwrap()).unwrap();
        println!("changed");
        std::thread::sleep(std::time::Duration::from_secs(60));
        std::process::exit(0);
    }
    planted(dir, INTEL);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            &format!("prefetchers::tests::{test}"),
            "--exact",
            "--nocapture",
        ])
        .env(PLACE, dir)
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let lines = io::BufRead::lines(io::BufReader::new(child.stdout.take().unwrap()));
    let mut lines = lines.map_while(std::result::Result::ok);
    assert!(lines.any(|line| line.contains("changed")));
    assert_eq!(held(dir, INTEL), HELD.map(|value| value | INTEL.bits));
    child
}

use std::os::unix::process::CommandExt;

/// The guard that a process has posted.
fn guard_of(child: &Child) -> Pid {
    // It was started by the thread of the test, which is not the first one.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let children = tasks
        .flatten()
        .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default())
        .collect::<String>();
    Pid::from_raw(children.trim().parse().unwrap()).unwrap()
}

/// The guard is not of the group that is killed.
#[test]
fn what_is_killed_with_its_group_is_restored_by_its_guard() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let test = "what_is_killed_with_its_group_is_restored_by_its_guard";
    let mut child = turned_off_by_another(test, dir);
    rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let is_restored = || held(dir, INTEL) == HELD && records(dir).left(KIND).is_empty();
    let restored = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_restored()
    });
    assert!(restored, "{:x?}", held(dir, INTEL));
}

/// The guard is killed first: whoever comes next restores it, once, and only what nobody has
/// changed since.
#[test]
fn what_is_killed_with_its_guard_is_restored_by_whoever_comes_next() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let test = "what_is_killed_with_its_guard_is_restored_by_whoever_comes_next";
    let mut child = turned_off_by_another(test, dir);
    assert!(restore_from(&records(dir)).is_empty(), "its process lives");
    rustix::process::kill_process(guard_of(&child), Signal::KILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Somebody has given the second one a value of his own.
    INTEL.write(&device(dir, 1), 0x1).unwrap();
    let told = restore_from(&records(dir));
    assert_eq!(held(dir, INTEL), [HELD[0], 0x1]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("0/msr"), "{told:?}");
    assert!(restore_from(&records(dir)).is_empty(), "once is enough");
}
