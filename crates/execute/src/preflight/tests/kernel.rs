//! What this process may do: priorities, its share of the time, its control groups, its memory.

use super::*;

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

#[test]
fn threads_of_the_kernel_that_work_for_long_are_named_with_what_turns_them_off() {
    const LARGE: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    const DAMON: &str = "sys/module/damon_stat/parameters/enabled";
    let told = |files: &[(&str, &str)]| {
        let found = Made::of(files).look_by(look_in_kernel);
        let own = found
            .into_iter()
            .find(|f| f.name == "the kernel's own threads");
        own.unwrap()
    };
    for files in [
        &[][..],
        &[(LARGE, "always [madvise] never"), (DAMON, "N")][..],
    ] {
        assert_eq!(told(files).level, Level::Fine);
    }
    let large = told(&[(LARGE, "[always] madvise never"), (DAMON, "N")]);
    assert_eq!(large.level, Level::Warn);
    assert!(
        large.seen.contains("khugepaged") && !large.seen.contains("kdamond"),
        "{large:?}"
    );
    let both = told(&[(LARGE, "[always] madvise never"), (DAMON, "Y")]);
    assert!(
        both.seen.contains("kdamond") && both.remedy.contains("echo madvise > /sys/kernel/mm"),
        "{both:?}"
    );
    // From user space jobs go before them.
    let found = Made::of(&[(LARGE, "[always] madvise never")]).look();
    assert!(found.iter().all(|f| f.name != "the kernel's own threads"));
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
    (
        "proc/self/mountinfo",
        "30 25 0:26 / /cg rw - cgroup2 cgroup2 rw",
    ),
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
        none.0 == Level::Refuse
            && none
                .2
                .contains("echo 400000 > /cg/cpu/jobs/cpu.rt_runtime_us"),
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
        quota.0 == Level::Warn
            && quota
                .1
                .contains("5ms of every 100ms (/cg/cpu/cpu.cfs_quota_us)"),
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
    let time =
        |text: &'static str| Made::of(&with(VERSION_2, &[("cg/user/jobs/cpu.max", text)])).look();
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
    for text in [
        "#1 SMP PREEMPT_RT Debian 6.1.90-1",
        "#3 SMP PREEMPT Mon Jan 1",
    ] {
        assert_eq!(of(&[version(text)]).0, Level::Fine, "{text}");
    }
    let never = of(&[version("#1 SMP Debian 5.10.218-1")]);
    assert!(
        never.0 == Level::Warn
            && never.1.contains("cannot be preempted")
            && never.2.contains("PREEMPT_RT"),
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
    assert!(
        booted("quiet preempt=voluntary")
            .1
            .contains("preempt=voluntary")
    );
    let silent = booted("quiet");
    assert!(
        silent.0 == Level::Warn && silent.1.contains("does not tell"),
        "{silent:?}"
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
        stages: &[stage("g-edf", None)],
        part: Ratio::new(1, 1).unwrap(),
        enforcement: Enforcement::Off,
        quantum: Duration::from_millis(1),
        awake: false,
        boundary: None,
        takes: &[],
    });
    let refused = permit(&found).unwrap_err().to_string();
    assert!(
        refused.contains("real-time priority") && refused.contains("cap_sys_nice"),
        "{refused}"
    );
    assert_eq!(of(&found, "memory locking")[0].0, Level::Warn);
}
