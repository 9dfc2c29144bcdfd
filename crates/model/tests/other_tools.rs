//! Files of other tools with anything wrong in them: every reader answers or refuses in one line,
//! and never panics; what it takes can be written and read again.

use model::rtapp::{Reading, from_rt_app, to_rt_app};
use model::{Duration, cheddar, latency, simso};
use proptest::prelude::*;

const RT_APP: &str = r#"{"tasks": {"a": {"policy": "SCHED_FIFO", "instance": 2, "cpus": [0, 1],
"phases": {"p": {"loop": 3, "run": 20, "lock": "m", "sleep": 80}, "q": {"runtime1": 7, "sleep": 9}}},
"b": {"suspend", "exec": 5, "period": 9}, "c": {"run": 1, "timer": {"ref": "t", "period": 5}}}}"#;

const SIMSO: &str = r#"<simulation duration="1" cycles_per_ms="1" etm="wcet"><sched class="x" overhead="1"/>
<processors><processor name="C" id="1" speed="1.0"/></processors><tasks><task name="A" task_type="Periodic"
period="5.0" activationDate="0.5" deadline="5" WCET="1e-1" priority="3"/></tasks></simulation>"#;

const CHEDDAR: &str = r#"<cheddar><processors><mono_core_processor><name>p</name><core ref="1"/>
</mono_core_processor><multi_cores_processor><name>q</name><cores><core/><core/></cores>
</multi_cores_processor></processors><tasks><periodic_task><name>a</name><cpu_name>q</cpu_name>
<capacity>2</capacity><period>10</period><deadline>8</deadline><jitter>1</jitter><priority>4</priority>
</periodic_task></tasks></cheddar>"#;

const CYCLICTEST: &str = "# Histogram
000003 000010\t000002
000004 000080\t000006
# Avg Latencies: 00004 00004
# Max Latencies: 00041 00005
# Histogram Overflows: 00003 00000
# Thread 0: 00011
# Thread 1:
";

const LINES: &str = "T: 0 ( 11) P:80 I:1000 C: 10 Min: 3 Act: 5 Avg: 4 Max: 6\n";

const RTLA: &str = "# RTLA timerlat histogram
# Time unit is nanoseconds (ns)
Index   IRQ-000   Thr-000
count:     1000      1000
avg:          0         5
max:          1        58
";

/// A good text with some pieces cut out, doubled or replaced.
fn spoiled() -> impl Strategy<Value = String> {
    let texts = prop_oneof![
        Just(RT_APP),
        Just(SIMSO),
        Just(CHEDDAR),
        Just(CYCLICTEST),
        Just(LINES),
        Just(RTLA)
    ];
    let piece = prop_oneof![
        Just(String::new()),
        Just("18446744073709551615".to_owned()),
        Just("0".to_owned()),
        Just("-1".to_owned()),
        Just("1e300".to_owned()),
        Just("\"".to_owned()),
        Just("{".to_owned()),
        Just("<task".to_owned()),
        "[ -~µ]{1,3}",
    ];
    let change = (any::<prop::sample::Index>(), 0_usize..12, piece);
    (texts, proptest::collection::vec(change, 0..4)).prop_map(|(text, changes)| {
        changes
            .into_iter()
            .fold(text.to_owned(), |text, (at, length, piece)| {
                let all: Vec<char> = text.chars().collect();
                if all.is_empty() {
                    return piece;
                }
                let at = at.index(all.len());
                let end = (at + length).min(all.len());
                all[..at]
                    .iter()
                    .copied()
                    .chain(piece.chars())
                    .chain(all[end..].iter().copied())
                    .collect()
            })
    })
}

fn is_one_line(e: &model::Error) -> bool {
    !e.to_string().contains('\n') && !e.cause().is_empty()
}

proptest! {
    #[test]
    fn files_of_other_tools_never_panic(text in spoiled(), sleep_as_period: bool) {
        let second = Duration::from_secs(1);
        match from_rt_app(&text, Reading { sleep_as_period }) {
            Ok(read) => {
                let (written, _) = to_rt_app(&read.set, second).unwrap();
                let again = from_rt_app(&written, Reading::default()).unwrap();
                prop_assert_eq!(again.set, read.set);
            }
            Err(e) => prop_assert!(is_one_line(&e), "{}", e),
        }
        match simso::from_simso(&text) {
            Ok(read) => {
                if let Ok((written, _)) = simso::to_simso(&read.set, second, 2) {
                    let again = simso::from_simso(&written).unwrap();
                    prop_assert_eq!(again.set.timings(), read.set.timings());
                }
            }
            Err(e) => prop_assert!(is_one_line(&e), "{}", e),
        }
        let unit = Duration::from_micros(1);
        match cheddar::from_cheddar(&text, unit) {
            Ok(read) => {
                let (written, _) = cheddar::to_cheddar(&read.set, unit, 2).unwrap();
                let again = cheddar::from_cheddar(&written, unit).unwrap();
                prop_assert_eq!(again.set.timings(), read.set.timings());
            }
            Err(e) => prop_assert!(is_one_line(&e), "{}", e),
        }
        match latency::read(&text) {
            Ok(Some(latencies)) => prop_assert!(latencies.average <= latencies.maximum),
            Ok(None) => {}
            Err(e) => prop_assert!(is_one_line(&e), "{}", e),
        }
    }
}
