//! What is found on machines that are made up: files below a directory, and tasks.

use super::*;
use machine::{Probes, detect};
use model::assignment::{Clustered, Slice, Slices};
use model::{CpuSet, Timing};

/// A machine of two processors that tells little else but these files.
struct Made {
    dir: tempfile::TempDir,
    assignment: Option<Assignment>,
    part: u64,
    enforcement: Enforcement,
    awake: bool,
}

impl Made {
    fn of(files: &[(&str, &str)]) -> Self {
        let made = Made {
            dir: tempfile::tempdir().unwrap(),
            assignment: None,
            part: 100,
            enforcement: Enforcement::Off,
            awake: false,
        };
        for cpu in 0..2 {
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            made.write(&format!("{topology}/core_id"), "0");
            made.write(&format!("{topology}/physical_package_id"), "0");
            made.write(&format!("{topology}/core_cpus_list"), "0-1");
        }
        for list in ["online", "possible", "present"] {
            made.write(&format!("sys/devices/system/cpu/{list}"), "0-1");
        }
        for (path, text) in files {
            made.write(path, text);
        }
        made
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// What is found for tasks of utilization 0.6 and 0.3 on it.
    fn look(&self) -> Vec<Finding> {
        let timings = vec![
            Timing::implicit(Duration::from_millis(6), Duration::from_millis(10)),
            Timing::implicit(Duration::from_micros(150), Duration::from_micros(500)),
        ];
        let probes = Probes {
            realtime: machine::Outcome::Worked,
            ..Probes::default()
        };
        look(&Intent {
            machine: &detect(self.dir.path(), &probes).unwrap(),
            tree: &Tree::new(self.dir.path()),
            cpus: &[CpuId(0), CpuId(1)],
            set: &TaskSet::from_timings(timings).unwrap(),
            assignment: self.assignment.as_ref(),
            part: Ratio::new(self.part, 100).unwrap(),
            enforcement: self.enforcement,
            quantum: None,
            awake: self.awake,
            boundary: None,
        })
    }
}

fn findings(part: u64, assignment: Option<&Assignment>, enforcement: Enforcement) -> Vec<Finding> {
    Made {
        assignment: assignment.cloned(),
        part,
        enforcement,
        awake: true,
        ..Made::of(&[])
    }
    .look()
}

/// The only finding of a name, with its remedy.
fn only(files: &[(&str, &str)], name: &str) -> (Level, String, String) {
    let found = Made::of(files).look();
    let mut named = found.iter().filter(|f| f.name == name);
    let finding = named.next().unwrap();
    assert!(named.next().is_none(), "{name} is told twice");
    (finding.level, finding.seen.clone(), finding.remedy.clone())
}

fn of<'a>(findings: &'a [Finding], name: &str) -> Vec<(Level, &'a str)> {
    let named = findings.iter().filter(|f| f.name == name);
    named.map(|f| (f.level, f.seen.as_str())).collect()
}

#[test]
fn what_does_not_fit_below_the_fair_server_is_refused_where_it_runs() {
    let fine = findings(100, None, Enforcement::Off);
    assert_eq!(
        of(&fine, "utilization"),
        [(Level::Fine, "jobs take 45.0 % of 2 processors")]
    );
    let one: CpuSet = [CpuId(0)].into_iter().collect();
    let other: CpuSet = [CpuId(1)].into_iter().collect();
    let clustered = |cluster_of: Vec<u32>| {
        Assignment::Clustered(Clustered {
            clusters: vec![one.clone(), other.clone()],
            cluster_of,
        })
    };
    // 60 % and 30 % on one processor.
    let both = findings(100, Some(&clustered(vec![0, 0])), Enforcement::Off);
    assert_eq!(of(&both, "utilization")[0].0, Level::Fine);
    let more = findings(110, Some(&clustered(vec![0, 0])), Enforcement::Off);
    assert_eq!(of(&more, "utilization")[0].0, Level::Refuse);
    let refused = permit(&more).unwrap_err().to_string();
    assert!(refused.contains("99.0 % of 1 processor (0)"), "{refused}");
    let apart = findings(110, Some(&clustered(vec![0, 1])), Enforcement::Off);
    assert!(
        of(&apart, "utilization")
            .iter()
            .all(|(level, _)| *level == Level::Fine)
    );
}

#[test]
fn what_is_too_short_to_be_policed_is_refused_with_the_number() {
    assert_eq!(of(&findings(50, None, Enforcement::Off), "shortest interval"), []);
    let budgets = findings(50, None, Enforcement::Exact);
    let (level, seen) = of(&budgets, "shortest interval")[0];
    assert!(
        level == Level::Refuse && seen.contains("the budget of T2 lasts 150us"),
        "{seen}"
    );
    let slice = |us: u64| Slice {
        cpu: CpuId(0),
        budget: Duration::from_micros(us),
        window: Duration::from_millis(5),
    };
    let slices = Assignment::Slices(Slices {
        cpus: vec![CpuId(0), CpuId(1)],
        tasks: vec![vec![slice(1000), slice(70)], vec![slice(150)]],
    });
    let slices = findings(50, Some(&slices), Enforcement::Off);
    let (level, seen) = of(&slices, "shortest interval")[0];
    assert!(
        level == Level::Refuse && seen.contains("a slice of T1 lasts 70us"),
        "{seen}"
    );
}

#[test]
fn processors_of_one_core_are_warned_of() {
    let found = findings(50, None, Enforcement::Off);
    assert_eq!(of(&found, "hardware threads")[0].0, Level::Warn);
    assert_eq!(of(&found, "idle states")[0].0, Level::Fine);
    assert!(
        found
            .iter()
            .all(|f| f.level == Level::Fine || !f.remedy.is_empty()),
        "{found:#?}"
    );
}

#[test]
fn every_kind_of_assignment_is_added_up_by_processor() {
    use model::assignment::{Serve, Slots, Timetable, Turn, Turns};
    let ms = Duration::from_millis;
    let cpus = vec![CpuId(0), CpuId(1)];
    let refused = |assignment: Assignment| {
        of(&findings(110, Some(&assignment), Enforcement::Off), "utilization")[0]
            .1
            .to_owned()
    };
    // 0.9 times 1.1 on the one processor, nothing on the other.
    let turns = Turns {
        cpus: cpus.clone(),
        tasks: vec![Turn::fixed(CpuId(1)), Turn::fixed(CpuId(1))],
    };
    assert!(refused(Assignment::Turns(turns)).starts_with("jobs take 99.0 % of 1 processor (1);"));
    let shared = Turn {
        first: CpuId(0),
        second: CpuId(1),
        part: 1,
        whole: 2,
    };
    let turns = Turns {
        cpus: cpus.clone(),
        tasks: vec![shared, Turn::fixed(CpuId(1))],
    };
    assert_eq!(
        refused(Assignment::Turns(turns)),
        "jobs take 66.0 % of 1 processor (1)"
    );
    let slice = |cpu: u32, us: u64| Slice {
        cpu: CpuId(cpu),
        budget: Duration::from_micros(us),
        window: ms(5),
    };
    let slices = Slices {
        cpus: cpus.clone(),
        tasks: vec![vec![slice(0, 4_500), slice(1, 1_500)], vec![slice(0, 150)]],
    };
    assert_eq!(
        refused(Assignment::Slices(slices)),
        "jobs take 82.5 % of 1 processor (0)"
    );
    let serve = |start: u64, end: u64, server: u32| Serve {
        start: ms(start),
        end: ms(end),
        server,
    };
    let slots = Slots {
        slot: ms(10),
        server_of: vec![0, 1],
        timetables: vec![
            Timetable {
                cpu: CpuId(0),
                turns: vec![serve(0, 6, 0)],
            },
            Timetable {
                cpu: CpuId(1),
                turns: vec![serve(0, 4, 1), serve(6, 7, 0)],
            },
        ],
    };
    // Server 0 is served by processor 0 for six sevenths of its time.
    assert_eq!(
        refused(Assignment::Slots(slots)),
        "jobs take 56.6 % of 1 processor (0)"
    );
}

#[test]
fn throttling_and_fair_servers_say_what_tasks_may_take() {
    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    const PERIOD: (&str, &str) = ("proc/sys/kernel/sched_rt_period_us", "1000000");
    let (level, seen, _) = only(&[(RUNTIME, "950000"), PERIOD], "throttling");
    assert!(
        level == Level::Fine && seen.contains("950ms of every 1s"),
        "{seen}"
    );
    let (level, _, remedy) = only(&[(RUNTIME, "-1"), PERIOD], "throttling");
    assert!(
        level == Level::Warn && remedy.contains("sched_rt_runtime_us=950000"),
        "{remedy}"
    );
    assert_eq!(only(&[], "throttling").0, Level::Warn);
    let tight = only(&[(RUNTIME, "400000"), PERIOD], "utilization");
    assert!(
        tight.0 == Level::Refuse && tight.1.contains("45.0 % of 2 processors; 39 % can be had"),
        "{tight:?}"
    );

    const SERVER: &str = "sys/kernel/debug/sched/fair_server/cpu1";
    let (runtime, period) = (format!("{SERVER}/runtime"), format!("{SERVER}/period"));
    let served = |time: &'static str| [(runtime.as_str(), time), (period.as_str(), "1000000000")];
    let (level, seen, _) = only(&served("50000000"), "fair server");
    assert!(
        level == Level::Fine && seen.contains("50ms of every 1s"),
        "{seen}"
    );
    let (level, seen, remedy) = only(&served("0"), "fair server");
    assert!(
        level == Level::Warn && seen.contains("processor 1 has none"),
        "{seen}"
    );
    assert!(
        remedy.contains("echo 50000000 > /sys/kernel/debug/sched/fair_server/cpu1/runtime"),
        "{remedy}"
    );
    let generous = only(&served("600000000"), "utilization");
    assert!(
        generous.0 == Level::Refuse && generous.1.contains("39 % can be had"),
        "{generous:?}"
    );
    assert!(only(&[], "fair server").1.contains("not shown"));
}

/// A process in group `/jobs` of version 1, all controllers mounted.
const VERSION_1: [(&str, &str); 2] = [
    (
        "proc/self/cgroup",
        "3:memory:/jobs\n2:cpu,cpuacct:/jobs\n1:cpuset:/jobs",
    ),
    (
        "proc/self/mountinfo",
        "30 25 0:26 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
         31 25 0:27 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n\
         32 25 0:28 / /cg/memory rw - cgroup cgroup rw,memory",
    ),
];
/// The same of version 2, in `/user/jobs`.
const VERSION_2: [(&str, &str); 2] = [
    ("proc/self/cgroup", "0::/user/jobs"),
    ("proc/self/mountinfo", "30 25 0:26 / /cg rw - cgroup2 cgroup2 rw"),
];

fn with(
    base: [(&'static str, &'static str); 2],
    more: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    base.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn control_groups_of_version_1_are_looked_at() {
    const SHARE: &str = "cg/cpu/jobs/cpu.rt_runtime_us";
    const PERIOD: (&str, &str) = ("cg/cpu/jobs/cpu.rt_period_us", "1000000");
    let none = only(&with(VERSION_1, &[(SHARE, "0"), PERIOD]), "control group");
    assert!(
        none.0 == Level::Refuse && none.2.contains("echo 400000 > /cg/cpu/jobs/cpu.rt_runtime_us"),
        "{none:?}"
    );
    let little = with(VERSION_1, &[(SHARE, "300000"), PERIOD]);
    assert_eq!(only(&little, "control group").0, Level::Fine);
    assert_eq!(only(&little, "utilization").0, Level::Refuse);
    let cpus = only(
        &with(VERSION_1, &[("cg/cpuset/jobs/cpuset.effective_cpus", "0")]),
        "cpuset",
    );
    assert!(
        cpus.0 == Level::Refuse && cpus.1.contains("processor 1 is not in it"),
        "{cpus:?}"
    );
    let quota = with(
        VERSION_1,
        &[
            ("cg/cpu/jobs/cpu.cfs_quota_us", "-1"),
            ("cg/cpu/jobs/cpu.cfs_period_us", "100000"),
            ("cg/cpu/cpu.cfs_quota_us", "5000"),
            ("cg/cpu/cpu.cfs_period_us", "100000"),
        ],
    );
    let quota = only(&quota, "time of ordinary threads");
    assert!(
        quota.0 == Level::Warn && quota.1.contains("5ms of every 100ms (/cg/cpu/cpu.cfs_quota_us)"),
        "{quota:?}"
    );
    let memory = |limit: &'static str| {
        Made::of(&with(
            VERSION_1,
            &[("cg/memory/jobs/memory.limit_in_bytes", limit)],
        ))
        .look()
    };
    assert_eq!(of(&memory("9223372036854771712"), "memory limit"), []);
    assert_eq!(of(&memory("1073741824"), "memory limit")[0].0, Level::Fine);
    let found = memory("1048576");
    let (level, seen) = of(&found, "memory limit")[0];
    assert!(
        level == Level::Refuse && seen.contains("64MiB") && seen.contains("1MiB"),
        "{seen}"
    );
}

#[test]
fn control_groups_of_version_2_are_looked_at() {
    let cpus = |list: &'static str| {
        only(
            &with(VERSION_2, &[("cg/user/cpuset.cpus.effective", list)]),
            "cpuset",
        )
    };
    assert_eq!(cpus("0-1").0, Level::Fine);
    let one = cpus("1");
    assert!(
        one.0 == Level::Refuse && one.1.contains("processor 0 is not in it (/cg/user has 1)"),
        "{one:?}"
    );
    let time = |text: &'static str| Made::of(&with(VERSION_2, &[("cg/user/jobs/cpu.max", text)])).look();
    assert_eq!(of(&time("max 100000"), "time of ordinary threads"), []);
    assert_eq!(
        of(&time("50000 100000"), "time of ordinary threads")[0].0,
        Level::Fine
    );
    assert_eq!(
        of(&time("500 100000"), "time of ordinary threads")[0].0,
        Level::Warn
    );
    let memory = Made::of(&with(VERSION_2, &[("cg/user/memory.max", "1048576")])).look();
    assert_eq!(of(&memory, "memory limit")[0].0, Level::Refuse);
}

#[test]
fn a_kernel_that_cannot_be_preempted_is_warned_of() {
    let version = |text: &'static str| ("proc/sys/kernel/version", text);
    let of = |files: &[(&str, &str)]| only(files, "kernel preemption");
    for text in ["#1 SMP PREEMPT_RT Debian 6.1.90-1", "#3 SMP PREEMPT Mon Jan 1"] {
        assert_eq!(of(&[version(text)]).0, Level::Fine, "{text}");
    }
    let never = of(&[version("#1 SMP Debian 5.10.218-1")]);
    assert!(
        never.0 == Level::Warn && never.1.contains("cannot be preempted") && never.2.contains("PREEMPT_RT"),
        "{never:?}"
    );
    let dynamic = version("#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1");
    let shown = |choice: &'static str| of(&[dynamic, ("sys/kernel/debug/sched/preempt", choice)]);
    assert_eq!(shown("none voluntary (full)").0, Level::Fine);
    assert_eq!(shown("none voluntary full (lazy)").0, Level::Fine);
    let none = shown("(none) voluntary full");
    assert!(
        none.0 == Level::Warn && none.1.contains("preempt=none") && none.2.contains("echo full >"),
        "{none:?}"
    );
    let booted = |line: &'static str| of(&[dynamic, ("proc/cmdline", line)]);
    assert_eq!(booted("quiet preempt=none preempt=full").0, Level::Fine);
    assert!(booted("quiet preempt=voluntary").1.contains("preempt=voluntary"));
    let silent = booted("quiet");
    assert!(
        silent.0 == Level::Warn && silent.1.contains("does not tell"),
        "{silent:?}"
    );
}

#[test]
fn idle_states_are_told_with_what_they_take_to_leave() {
    const STATE: &str = "sys/devices/system/cpu/cpu1/cpuidle/state2";
    let (name, latency, off) = (
        format!("{STATE}/name"),
        format!("{STATE}/latency"),
        format!("{STATE}/disable"),
    );
    let state = |us: &'static str, disabled: &'static str| {
        only(
            &[
                (&name, "C6"),
                (&latency, us),
                (&off, disabled),
                ("dev/cpu_dma_latency", ""),
            ],
            "idle states",
        )
    };
    let deep = state("133", "0");
    assert!(
        deep.0 == Level::Warn && deep.1.contains("C6, which takes 133 us") && deep.2.contains("--awake"),
        "{deep:?}"
    );
    assert_eq!(state("1", "0").0, Level::Fine);
    let off = state("133", "1");
    assert!(off.0 == Level::Warn && off.1.contains("does not tell"), "{off:?}");
    assert!(
        only(&[], "idle states").2.contains("cpuidle.off=1"),
        "no such device"
    );
}

#[test]
fn whoever_has_no_right_is_told_how_to_get_it() {
    let made = Made::of(&[]);
    let probes = Probes {
        realtime: machine::Outcome::Refused(libc::EPERM),
        lock: machine::Outcome::Refused(libc::EPERM),
        ..Probes::default()
    };
    let machine = detect(made.dir.path(), &probes).unwrap();
    let set = TaskSet::from_timings(vec![Timing::implicit(
        Duration::from_millis(1),
        Duration::from_millis(9),
    )])
    .unwrap();
    let found = look(&Intent {
        machine: &machine,
        tree: &Tree::new(made.dir.path()),
        cpus: &[CpuId(0)],
        set: &set,
        assignment: None,
        part: Ratio::new(1, 1).unwrap(),
        enforcement: Enforcement::Off,
        quantum: None,
        awake: false,
        boundary: None,
    });
    let refused = permit(&found).unwrap_err().to_string();
    assert!(
        refused.contains("real-time priority") && refused.contains("cap_sys_nice"),
        "{refused}"
    );
    assert_eq!(of(&found, "memory locking")[0].0, Level::Warn);
}

#[test]
fn dispatchers_wait_where_there_is_time_for_it() {
    let made = Made::of(&[]);
    let machine = detect(made.dir.path(), &Probes::default()).unwrap();
    let early_for = |wcet_us: u64, period_us: u64| {
        let (wcet, period) = (Duration::from_micros(wcet_us), Duration::from_micros(period_us));
        early(&Intent {
            machine: &machine,
            tree: &Tree::new(made.dir.path()),
            cpus: &[CpuId(0), CpuId(1)],
            set: &TaskSet::from_timings(vec![Timing::implicit(wcet, period); 2]).unwrap(),
            assignment: None,
            part: Ratio::ONE,
            enforcement: Enforcement::Off,
            quantum: None,
            awake: true,
            boundary: None,
        })
    };
    assert_eq!(early_for(5_000, 10_000), Duration::from_micros(100));
    // 90 % are taken; or 4000 releases a second would wait for 40 % of the time.
    assert_eq!(early_for(9_000, 10_000), Duration::ZERO);
    assert_eq!(early_for(250, 500), Duration::ZERO);
}

/// What `/proc` says of a thread: its name, flags, priority and class.
fn stat(name: &str, flags: u64, priority: u32, class: u32) -> String {
    let zeros = |n: usize| vec!["0"; n].join(" ");
    format!(
        "71 ({name}) S 1 1 1 0 -1 {flags} {} {priority} {class} {}",
        zeros(30),
        zeros(11)
    )
}

#[test]
fn other_real_time_programs_are_named_with_their_process() {
    let name = "other real-time programs";
    let (jack, low, migration) = (
        stat("jackd", 0, 70, 1),
        stat("low", 0, 10, 2),
        stat("migration/0", 0x20_0000, 99, 1),
    );
    let (level, seen, _) = only(
        &[("proc/5/task/5/stat", &migration), ("proc/6/task/6/stat", &low)],
        name,
    );
    assert_eq!(
        (level, seen.as_str()),
        (Level::Fine, "none at priority 38 or above")
    );
    let (level, seen, remedy) = only(
        &[
            ("proc/71/task/71/stat", &stat("jackd", 0, 0, 0)),
            ("proc/71/task/72/stat", &jack),
            ("proc/71/task/73/stat", &stat("jackd", 0, 60, 1)),
        ],
        name,
    );
    assert_eq!(level, Level::Warn);
    assert_eq!(
        seen,
        "process 71 has `jackd` (thread 72) as SCHED_FIFO at 70, the highest of 2 threads: it may take time from jobs"
    );
    assert!(remedy.starts_with("end it (`kill 71`)"), "{remedy}");
    // Above everything, but elsewhere.
    let (dl, there) = (stat("dl", 0, 0, 6), "Cpus_allowed_list:\t4-7");
    let elsewhere = [
        ("proc/8/task/8/stat", dl.as_str()),
        ("proc/8/task/8/status", there),
    ];
    assert_eq!(only(&elsewhere, name).0, Level::Fine);
    let (_, seen, _) = only(&elsewhere[..1], name);
    assert!(
        seen.contains("as SCHED_DEADLINE: it may keep dispatchers waiting"),
        "{seen}"
    );
    // Each program on its own.
    let many: Vec<(String, String)> = (100..112)
        .map(|p| (format!("proc/{p}/task/{p}/stat"), stat("x", 0, 50, 1)))
        .collect();
    let files: Vec<(&str, &str)> = many.iter().map(|(p, s)| (p.as_str(), s.as_str())).collect();
    let found = Made::of(&files).look();
    let told: Vec<&Finding> = found.iter().filter(|f| f.name == name).collect();
    assert_eq!(told.len(), 9);
    assert_eq!(told[8].seen, "and 4 more");
}
