//! Profiles: the built-in one against the paper's text, files that read back, SchedCAT's tables,
//! refusals.

use model::profile::{Code, Intervals, OverheadCurve, OverheadKind, OverheadPoint, Untrimmed};
use model::schedcat::{Meaning, export_cpmd, export_overheads, import};
use model::{
    Bytes, CpmdCurve, CpmdPoint, Delay, Duration, Load, Profile, Provenance, Resumption, Statistic,
    profilefile,
};
use proptest::prelude::*;

/// Tables A.1 to A.4 as the text of 002 has them.
const TABLES: &str = include_str!("data/002-tables-a1-a4.txt");

const RESUMPTIONS: [Resumption; 4] = [
    Resumption::Preemption,
    Resumption::Migration(2),
    Resumption::Migration(3),
    Resumption::Memory,
];

/// `1,027.77` microseconds as nanoseconds.
fn cell(text: &str) -> i64 {
    let text = text.replace(',', "");
    let (whole, fraction) = text.split_once('.').unwrap();
    let sign = if whole.starts_with('-') { -1 } else { 1 };
    let whole: i64 = whole.trim_start_matches('-').parse().unwrap();
    sign * (whole * 1_000 + format!("{fraction:0<3}").parse::<i64>().unwrap())
}

/// The rows of a table: the size and the cells behind it.
fn rows(number: usize) -> Vec<(Bytes, Vec<i64>)> {
    let before = format!("Table A.{}", number - 1);
    let from = TABLES.find(&before).unwrap_or(0);
    let to = TABLES.find(&format!("Table A.{number}")).unwrap();
    TABLES[from..to]
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| {
            let mut cells = line.split('\t');
            let kib = cells.next().unwrap().replace(',', "").parse().unwrap();
            (Bytes::from_kib(kib), cells.map(cell).collect())
        })
        .collect()
}

fn curve(profile: &Profile, resumption: Resumption, load: Load) -> &CpmdCurve {
    profile
        .cpmd
        .iter()
        .find(|c| c.resumption == resumption && c.load == load)
        .unwrap()
}

/// 002 Tables A.1 and A.2 hold maxima, A.3 and A.4 averages with deviations; under load first, idle
/// second.
#[test]
fn the_xeon_holds_tables_a1_to_a4_of_002_in_full() {
    let profile = Profile::builtin("xeon-l7455").unwrap();
    assert_eq!(profile.cpmd.len(), 8, "four ways to resume under two loads");
    let mut cells = 0;
    for (maxima, averages, load) in [(1, 3, Load::Load), (2, 4, Load::Idle)] {
        let (maxima, averages) = (rows(maxima), rows(averages));
        assert_eq!((maxima.len(), averages.len()), (14, 14));
        for (column, resumption) in RESUMPTIONS.into_iter().enumerate() {
            let points = &curve(&profile, resumption, load).points;
            assert_eq!(points.len(), 14);
            for (point, ((wss, maximum), (again, average))) in
                points.iter().zip(maxima.iter().zip(&averages))
            {
                assert_eq!((point.wss, point.wss), (*wss, *again));
                assert_eq!(point.samples, 5_000);
                assert_eq!(point.maximum, Some(Delay::from_nanos(maximum[column])));
                assert_eq!(point.average, Some(Delay::from_nanos(average[2 * column])));
                let deviation = u64::try_from(average[2 * column + 1]).unwrap();
                assert_eq!(point.deviation, Some(Duration::from_nanos(deviation)));
                cells += 3;
            }
        }
    }
    assert_eq!(cells, 336);
}

/// 000 §4.2, Observations 2 and 3.
#[test]
fn readings_agree_with_what_the_paper_observes() {
    let profile = Profile::builtin("xeon-l7455").unwrap();
    let read = |load, kib, statistic| {
        profile
            .worst_cpmd(&RESUMPTIONS, load, Bytes::from_kib(kib), statistic)
            .unwrap()
    };
    let worst = read(Load::Load, 256, Statistic::Maximum);
    assert!(worst.value > Delay::from_nanos(1_000_000) && !worst.extrapolated);
    let idle = read(Load::Idle, 3072, Statistic::Maximum);
    assert_eq!(idle.value, Delay::from_nanos(2_675_710));
    assert!(read(Load::Load, 16 * 1024, Statistic::Average).extrapolated);
    assert!(read(Load::Load, 2, Statistic::Average).extrapolated);
}

fn delay() -> impl Strategy<Value = Delay> {
    (-1_000_000..1_000_000_000i64).prop_map(Delay::from_nanos)
}

fn cpmd_points() -> impl Strategy<Value = Vec<CpmdPoint>> {
    let point = (
        1..1u64 << 30,
        0..10_000u64,
        delay(),
        delay(),
        proptest::option::of(0..1_000_000u64),
        0..3u8,
        proptest::bool::ANY,
    );
    prop::collection::vec(point, 1..6).prop_map(|mut points| {
        points.sort_by_key(|p| p.0);
        points.dedup_by_key(|p| p.0);
        points
            .into_iter()
            .map(|(wss, samples, a, b, deviation, which, more)| CpmdPoint {
                wss: Bytes::new(wss),
                samples,
                average: (which != 1).then_some(a.min(b)),
                deviation: deviation.map(Duration::from_nanos),
                maximum: (which != 2).then_some(a.max(b)),
                percentiles: if more {
                    vec![(50.0, a), (99.9, b)]
                } else {
                    Vec::new()
                },
                average_interval: more.then_some((a.min(b), a.max(b))),
                maximum_interval: (which == 0).then_some((a.min(b), a.max(b))),
            })
            .collect()
    })
}

fn profiles() -> impl Strategy<Value = Profile> {
    let overhead =
        (1..10_000u32, 0..1_000_000u64, 0..1_000_000u64).prop_map(|(tasks, a, b)| OverheadPoint {
            tasks,
            samples: u64::from(tasks),
            average: Some(Duration::from_nanos(a.min(b))),
            maximum: Some(Duration::from_nanos(a.max(b))),
            untrimmed: (a > b).then(|| Untrimmed {
                outliers: b,
                average: Duration::from_nanos(a),
                maximum: Duration::from_nanos(a + b),
            }),
            intervals: match tasks % 3 {
                0 => Intervals::default(),
                n => Intervals {
                    groups: tasks,
                    average: Some((
                        Duration::from_nanos(a.min(b)),
                        Duration::from_nanos(a.max(b)),
                    )),
                    maximum: (n == 1).then(|| (Duration::ZERO, Duration::from_nanos(a))),
                    untrimmed_average: None,
                    untrimmed_maximum: (n == 2).then(|| (Duration::ZERO, Duration::from_nanos(b))),
                },
            },
        });
    (
        "\\PC*",
        "[ -~\\n\"\\\\]*",
        any::<Option<u64>>(),
        prop::collection::vec(cpmd_points(), 0..4),
        prop::collection::vec(overhead, 0..3),
    )
        .prop_map(|(platform, text, seed, cpmd, mut overheads)| {
            let mut profile = Profile::new(
                platform,
                Provenance {
                    source: text.clone(),
                    seed,
                    warnings: vec![text.clone()],
                    settings: [(text.clone(), text)].into(),
                    ..Provenance::default()
                },
            );
            for (points, resumption) in cpmd.into_iter().zip(RESUMPTIONS) {
                profile.cpmd.push(CpmdCurve {
                    resumption,
                    load: Load::Idle,
                    write_ratio: 1.0 / 128.0,
                    points,
                });
            }
            overheads.sort_by_key(|p| p.tasks);
            overheads.dedup_by_key(|p| p.tasks);
            if !overheads.is_empty() {
                profile.overheads.push(OverheadCurve {
                    kind: OverheadKind::IpiLatency,
                    policy: "g-edf".into(),
                    code: Some(Code::Both),
                    points: overheads,
                });
            }
            profile
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_profile_that_is_written_reads_back_equal(profile in profiles()) {
        let text = profilefile::to_toml(&profile);
        prop_assert_eq!(profilefile::from_toml(&text).unwrap(), profile, "{}", text);
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in "\\PC*", table in "[A-Z0-9,.\\-\\n ]*") {
        let _ = profilefile::from_toml(&text);
        let _ = import(
            &Profile::new("x", Provenance::default()),
            &table,
            &meaning(Statistic::Average),
        );
    }

    #[test]
    fn cache_delays_go_through_schedcats_table_and_back(
        values in prop::collection::vec(prop::collection::vec(-1_000..10_000_000i64, 4), 1..8),
    ) {
        let mut text = "WSS,L1,L2,L3,MEM\n".to_owned();
        for (row, cells) in values.iter().enumerate() {
            text += &(4 << row).to_string();
            for ns in cells {
                let sign = if *ns < 0 { "-" } else { "" };
                text += &format!(",{sign}{}.{:03}", ns.abs() / 1_000, ns.abs() % 1_000);
            }
            text.push('\n');
        }
        let (profile, skipped) = import(
            &Profile::new("x", Provenance::default()),
            &text,
            &meaning(Statistic::Maximum),
        )
        .unwrap();
        prop_assert!(skipped.is_empty());
        for (row, cells) in values.iter().enumerate() {
            for (column, ns) in cells.iter().enumerate() {
                let point = &curve(&profile, RESUMPTIONS[column], Load::Load).points[row];
                prop_assert_eq!(point.maximum, Some(Delay::from_nanos(*ns)));
                prop_assert_eq!(point.average, None);
            }
        }
        let (again, left_out) = export_cpmd(&profile, &meaning(Statistic::Maximum)).unwrap();
        prop_assert!(left_out.is_empty());
        let (reread, _) = import(
            &Profile::new("x", Provenance::default()),
            &again,
            &meaning(Statistic::Maximum),
        )
        .unwrap();
        prop_assert_eq!(reread, profile);
    }
}

fn meaning(statistic: Statistic) -> Meaning {
    Meaning {
        statistic,
        load: Load::Load,
        write_ratio: 0.25,
        policy: String::new(),
    }
}

/// The table of averages under load that SchedCAT ships as an example is Table A.3 of 002.
#[test]
fn the_xeon_exports_as_schedcat_reads_it() {
    let profile = Profile::builtin("xeon-l7455").unwrap();
    let (text, left_out) = export_cpmd(&profile, &meaning(Statistic::Average)).unwrap();
    assert!(left_out.is_empty());
    insta::assert_snapshot!(text);
}

/// Padding and tabs as SchedCAT's own files have them; values finer than a nanosecond round up.
#[test]
fn overheads_are_imported_by_number_of_tasks() {
    let table = "\tTASK-COUNT,\tCXS,\tRELEASE-LATENCY,\tSCHEDULE\n\t 2,\t6.72978,\t29.7,\t14.5\n\t 4,\t5.50067,\t37.6,\t11\n";
    let empty = Profile::new("ludwig", Provenance::default());
    let (profile, skipped) = import(&empty, table, &meaning(Statistic::Average)).unwrap();
    assert_eq!(skipped, ["RELEASE-LATENCY"]);
    let switch = profile
        .overheads
        .iter()
        .find(|c| c.kind == OverheadKind::ContextSwitch)
        .unwrap();
    assert_eq!(switch.points[0].average, Some(Duration::from_nanos(6_730)));
    // Monotone: the dip at four tasks does not count.
    let reading = switch.at(4, Statistic::Average).unwrap();
    assert_eq!(
        (reading.value.nanos(), reading.extrapolated),
        (6_730, false)
    );
    assert_eq!(switch.at(4, Statistic::Maximum), None);
    // The maxima of a second table join the averages.
    let maxima = "TASK-COUNT,CXS\n2,10\n4,20\n";
    let (both, _) = import(&profile, maxima, &meaning(Statistic::Maximum)).unwrap();
    let (text, left_out) = export_overheads(&both, &meaning(Statistic::Maximum)).unwrap();
    assert_eq!((text.as_str(), left_out.len()), (maxima, 0));
    let (text, _) = export_overheads(&both, &meaning(Statistic::Average)).unwrap();
    assert_eq!(text, "TASK-COUNT,SCHEDULE,CXS\n2,14.5,6.73\n4,11,5.501\n");
}

#[test]
fn tables_that_are_none_of_schedcats_are_refused_with_line_and_column() {
    let empty = Profile::new("x", Provenance::default());
    let (full, _) = import(&empty, "WSS,L1\n4,1\n", &meaning(Statistic::Average)).unwrap();
    let refusals: Vec<String> = [
        "",
        "WSS,L1\n",
        "wss,L1\n4,1\n",
        "WSS,L4\n4,1\n",
        "WSS,RELEASE-LATENCY\n4,1\n",
        "TASK-COUNT,CSX\n4,1\n",
        "WSS,L1\n4\n",
        "WSS,L1\n4,five\n",
        "WSS,L1\n8,1\n4,1\n",
        "WSS,L1,L1\n8,1,1\n",
        "WSS,L1\n18446744073709551615,1\n",
        "TASK-COUNT,CXS\n4,-1\n",
        "WSS,L1\n4,9223372036854775807\n",
        "WSS,L1\n4,2\n",
    ]
    .iter()
    .map(|text| {
        import(&full, text, &meaning(Statistic::Average))
            .unwrap_err()
            .to_string()
    })
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn files_that_are_no_profiles_are_refused_with_line_and_key() {
    let head = "version = 1\nplatform = \"x\"\n";
    let cpmd = "[[cpmd]]\nresumption = \"preemption\"\nload = \"idle\"\nwrite_ratio = 0.25\n";
    let refusals: Vec<String> = [
        "platform = \"x\"".to_owned(),
        "version = 2\nplatform = \"x\"\nnovelty = 1".to_owned(),
        "version = \"one\"\nplatform = \"x\"".to_owned(),
        format!("{head}cpdm = []"),
        format!("{head}[provenance]\nsorce = \"me\""),
        format!("{head}{cpmd}points = [{{ wss = \"4KiB\" }}]"),
        format!("{head}{cpmd}points = [{{ wss = \"4KiB\", averge = \"1us\" }}]"),
        format!("{head}{cpmd}points = [{{ wss = \"4KiB\", average = \"1\" }}]"),
        format!("{head}{cpmd}points = [{{ wss = \"4KiB\", average = \"2us\", maximum = \"1us\" }}]"),
        format!("{head}{cpmd}points = [\n{{ wss = \"8KiB\", average = \"1us\" }},\n{{ wss = \"4KiB\", average = \"1us\" }}]"),
        format!("{head}{cpmd}points = []\n{cpmd}points = []"),
        format!("{head}[[cpmd]]\nresumption = \"L-migration\"\nload = \"idle\"\nwrite_ratio = 0.25\npoints = []"),
        format!("{head}[[cpmd]]\nresumption = \"preemption\"\nload = \"busy\"\nwrite_ratio = 0.25\npoints = []"),
        format!("{head}[[cpmd]]\nresumption = \"preemption\"\nload = \"idle\"\nwrite_ratio = 25\npoints = []"),
        format!("{head}[[overheads]]\nkind = \"tock\"\npoints = []"),
        format!("{head}[[overheads]]\nkind = \"tick\"\npoints = [{{ tasks = -1, average = \"1us\" }}]"),
    ]
    .iter()
    .map(|text| profilefile::from_toml(text).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn an_unknown_profile_is_answered_with_the_list() {
    let e = Profile::find("xeon").unwrap_err().to_string();
    assert_eq!(
        e,
        "there is no built-in profile `xeon`; built in are `xeon-l7455`; a file such as `profile.toml` works too"
    );
}

#[test]
fn the_time_between_ticks_is_read_and_written() {
    let text = "version = 1\nplatform = \"board\"\ntick_period = \"4ms\"\n";
    let profile = model::profilefile::from_toml(text).unwrap();
    assert_eq!(profile.tick_period, Some(Duration::from_millis(4)));
    let again = model::profilefile::from_toml(&model::profilefile::to_toml(&profile)).unwrap();
    assert_eq!(again, profile);
    let without = model::profilefile::from_toml("version = 1\nplatform = \"board\"\n").unwrap();
    assert_eq!(without.tick_period, None);
    let zero = model::profilefile::from_toml(&text.replace("4ms", "0ms")).unwrap_err();
    assert!(
        zero.to_string()
            .contains("the time between two ticks is zero"),
        "{zero}"
    );
}
