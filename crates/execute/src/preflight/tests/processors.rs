//! What may disturb a run: shared cores, sleep.

use super::*;

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
fn a_processor_outside_of_the_run_on_one_of_its_cores_is_named() {
    const CPU: &str = "sys/devices/system/cpu";
    let own_core = [
        (format!("{CPU}/cpu0/topology/core_cpus_list"), "0"),
        (format!("{CPU}/cpu1/topology/core_cpus_list"), "1"),
        (format!("{CPU}/cpu1/topology/core_id"), "1"),
    ];
    let own_core: Vec<(&str, &str)> = own_core.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    let found = |files: &[(&str, &str)]| {
        let made = Made {
            cpus: vec![CpuId(0)],
            ..Made::of(files)
        };
        let mut found = made.look();
        found.retain(|f| f.name == "hardware threads");
        found
    };
    let shared = found(&[]);
    assert_eq!(shared.len(), 1);
    assert!(
        shared[0].level == Level::Warn
            && shared[0].seen.contains("processor 1 shares a core")
            && shared[0]
                .remedy
                .contains("echo 0 > /sys/devices/system/cpu/cpu1/online"),
        "{shared:?}"
    );
    // A core of its own; switched off.
    assert_eq!(found(&own_core)[0].level, Level::Fine);
    let online = format!("{CPU}/online");
    assert_eq!(found(&[(online.as_str(), "0")])[0].level, Level::Fine);
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
        deep.0 == Level::Warn
            && deep.1.contains("C6, which takes 133 us")
            && deep.2.contains("--awake"),
        "{deep:?}"
    );
    assert_eq!(state("1", "0").0, Level::Fine);
    let off = state("133", "1");
    assert!(
        off.0 == Level::Warn && off.1.contains("does not tell"),
        "{off:?}"
    );
    assert!(
        only(&[], "idle states").2.contains("cpuidle.off=1"),
        "no such device"
    );
}
