//! Detection on saved trees of machines of different shapes: what is read, what is said to be
//! missing, what people see.
//!
//! `trees/*.tree` holds one file a line, `path<TAB>content`, a directory with a `/` at its end;
//! `trees/README.md` says where each is from. A new shape is a new file: every test here takes it.

use machine::render::machine_text;
use machine::{Machine, Outcome, Probes, State, detect};
use model::{Bytes, Duration, Resumption};
use std::fs;
use std::path::Path;

/// Unpacks a saved tree into a directory.
fn unpack(name: &str) -> tempfile::TempDir {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/trees")
        .join(name);
    let dir = tempfile::tempdir().unwrap();
    for line in fs::read_to_string(file)
        .unwrap()
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let (path, content) = line.split_once('\t').unwrap_or((line, ""));
        let target = dir.path().join(path.trim_start_matches('/'));
        if path.ends_with('/') {
            fs::create_dir_all(target).unwrap();
            continue;
        }
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let content = content
            .replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\\\\", "\\");
        fs::write(target, content + "\n").unwrap();
    }
    dir
}

/// What the kernel of each machine would answer. The attempts are made up; the files are not.
fn probes(name: &str) -> Probes {
    let refused = Outcome::Refused(libc::EPERM);
    let user = Probes {
        page_size: Some(Bytes::from_kib(4)),
        tick: Some(Duration::from_millis(4)),
        realtime: refused.clone(),
        lock: Outcome::Worked,
        bpf: refused.clone(),
        hardware_counter: Outcome::Refused(libc::EACCES),
        software_counter: Outcome::Refused(libc::EACCES),
        frame_number: Some(false),
        ..Probes::default()
    };
    let root = Probes {
        realtime: Outcome::Worked,
        bpf: Outcome::Worked,
        hardware_counter: Outcome::Worked,
        software_counter: Outcome::Worked,
        frame_number: Some(true),
        ..user.clone()
    };
    match name {
        n if n.starts_with("desktop-smt") => user,
        n if n.starts_with("desktop-split") => root,
        n if n.starts_with("vm-") => Probes {
            hypervisor: Some("KVM".to_owned()),
            hardware_counter: Outcome::Refused(libc::ENOENT),
            ..root
        },
        n if n.starts_with("server-numa") => Probes {
            realtime: refused,
            ..root
        },
        _ => Probes::default(),
    }
}

fn names() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees");
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.ends_with(".tree"))
        .collect();
    names.sort();
    names
}

fn machine(name: &str) -> Machine {
    let name = format!("{name}.tree");
    detect(unpack(&name).path(), &probes(&name)).unwrap()
}

#[test]
fn every_saved_machine_is_read_and_shown() {
    let names = names();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let machine = detect(unpack(&name).path(), &probes(&name)).unwrap();
        machine.platform.check().unwrap();
        insta::assert_snapshot!(name.trim_end_matches(".tree"), machine_text(&machine));
        // What is read can be written and read again.
        let text = model::platformfile::to_toml(&machine.platform);
        assert_eq!(
            model::platformfile::from_toml(&text).unwrap(),
            machine.platform,
            "{name}"
        );
    }
}

#[test]
fn a_split_l3_makes_migrations_through_memory_within_a_socket() {
    let platform = machine("desktop-split-l3-ryzen-3900x").platform;
    let kinds: Vec<String> = platform
        .resumptions()
        .iter()
        .map(Resumption::to_string)
        .collect();
    // Level 1 is between the two threads of a core.
    assert_eq!(
        kinds,
        [
            "preemption",
            "L1-migration",
            "L3-migration",
            "memory-migration"
        ]
    );
}

#[test]
fn a_cpuset_and_the_affinity_mask_leave_processors_out() {
    let desktop = machine("desktop-smt-i7-6700").platform;
    assert_eq!(desktop.usable().to_string(), "0-1,4-7");
    let server = machine("server-numa-opteron-8218").platform;
    assert_eq!(server.usable().to_string(), "4-7,12-15");
    let name = "desktop-smt-i7-6700.tree";
    let probes = Probes {
        affinity: Some("1,5".parse().unwrap()),
        ..probes(name)
    };
    let masked = detect(unpack(name).path(), &probes).unwrap().platform;
    assert_eq!(masked.usable().to_string(), "1,5");
    assert_eq!(masked.processors.len(), 8);
}

#[test]
fn a_cpuset_that_leaves_nothing_is_an_error_where_processors_are_needed() {
    let name = "desktop-smt-i7-6700.tree";
    let probes = Probes {
        affinity: Some("2-3".parse().unwrap()),
        ..probes(name)
    };
    let platform = detect(unpack(name).path(), &probes).unwrap().platform;
    let e = platform
        .clusters(model::ClusterSpec::Global)
        .unwrap_err()
        .to_string();
    assert!(e.contains("no processor") && e.contains("cpuset"), "{e}");
}

#[test]
fn offline_processors_are_listed_and_not_used() {
    let platform = machine("server-offline-xeon-4s2c2t").platform;
    let offline: Vec<u32> = platform
        .processors
        .iter()
        .filter(|p| !p.online)
        .map(|p| p.id.0)
        .collect();
    assert_eq!(offline, [2, 5, 13, 14]);
    assert!(
        platform
            .caches
            .iter()
            .all(|c| c.shared_by.is_subset(&platform.usable()))
    );
}

#[test]
fn repeated_core_numbers_do_not_merge_cores() {
    let platform = machine("board-big-little-hikey960").platform;
    let cores: std::collections::BTreeSet<(u32, u32)> = platform
        .processors
        .iter()
        .map(|p| (p.socket, p.core))
        .collect();
    assert_eq!(cores.len(), 8);
}

#[test]
fn what_no_file_says_is_unknown_and_noted() {
    let machine = machine("board-missing-files-mop500");
    assert!(machine.platform.caches.is_empty());
    assert!(
        machine
            .platform
            .notes
            .iter()
            .any(|n| n.contains("no caches are described"))
    );
    for name in [
        "kernel",
        "preemption",
        "tick rate",
        "governor",
        "clock source",
    ] {
        assert_eq!(machine.fact(name), None, "{name}");
    }
    for fact in machine.facts.iter().filter(|f| f.value.is_none()) {
        assert!(fact.remedy.is_some(), "{}", fact.name);
    }
    for capability in &machine.capabilities {
        assert_eq!(capability.state, State::Unknown, "{}", capability.name);
    }
}

#[test]
fn whatever_lacks_has_its_remedy() {
    for name in names() {
        let machine = detect(unpack(&name).path(), &probes(&name)).unwrap();
        for c in &machine.capabilities {
            let lacks = matches!(c.state, State::No | State::Limited);
            assert!(!lacks || !c.remedy.is_empty(), "{name}: {}", c.name);
        }
    }
}

#[test]
fn an_empty_tree_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let e = detect(dir.path(), &Probes::default())
        .unwrap_err()
        .to_string();
    assert_eq!(
        e,
        "/sys/devices/system/cpu: no processor is described; mount sysfs on /sys, or describe the machine in a file (`--platform board.toml`)"
    );
}

/// `/proc/config.gz` comes before `/boot`.
#[test]
fn a_packed_configuration_is_read() {
    use std::io::Write;
    let dir = unpack("desktop-smt-i7-6700.tree");
    let file = fs::File::create(dir.path().join("proc/config.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(b"CONFIG_HZ=100\n").unwrap();
    packed.finish().unwrap();
    let machine = detect(dir.path(), &Probes::default()).unwrap();
    assert_eq!(machine.fact("tick rate").map(|t| &t[..6]), Some("100 Hz"));
}

/// The tick length of 300 Hz does not divide a second.
#[test]
fn without_a_configuration_the_coarse_clock_tells_the_tick() {
    let dir = unpack("server-offline-xeon-4s2c2t.tree");
    let probes = Probes {
        tick: Some(Duration::from_nanos(3_333_333)),
        ..Probes::default()
    };
    assert_eq!(
        detect(dir.path(), &probes).unwrap().fact("tick rate"),
        Some("300 Hz")
    );
}

/// Damaged files must not stop detection: whatever is in them.
#[test]
fn damaged_files_are_skipped() {
    let name = "vm-two-cpus.tree";
    for damage in [
        "",
        "\u{0}",
        "-1",
        "99999999999999999999",
        "0-63",
        "x,y",
        "[",
        "((",
        "::::",
    ] {
        let dir = unpack(name);
        let mut stack = vec![dir.path().to_owned()];
        while let Some(path) = stack.pop() {
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    stack.push(entry.path());
                } else {
                    fs::write(entry.path(), damage).unwrap();
                }
            }
        }
        // Either it is read somehow, or refused with a sentence.
        if let Ok(machine) = detect(dir.path(), &Probes::default()) {
            machine.platform.check().unwrap();
            machine_text(&machine);
        }
    }
}

/// This very machine: whatever it is, it has processors and its description holds together.
#[test]
fn this_machine_is_detected() {
    let machine = machine::this_machine().unwrap();
    machine.platform.check().unwrap();
    assert!(!machine.platform.usable().is_empty());
    assert_eq!(machine.capabilities.len(), 8);
}
