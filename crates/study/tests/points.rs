//! The Parquet file of a study, read back: every count, and nothing else than the table has.

use model::watch::Silent;
use model::{Bytes, Load, Platform, Profile};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use study::{file, run_in, wilson};

#[test]
fn every_point_is_a_row() {
    let text = "name = \"mine\"\nplatform = \"xeon-l7455\"\nprofile = \"xeon-l7455\"\nload = \"idle\"\n\
                policies = [\"p-edf\", \"c-edf:l3\", \"GFB\", \"nps-f:delta=4\"]\nguarantee = \"hard\"\n\
                utilizations = \"uniform-heavy\"\nperiods = \"short\"\ncaps = [6, 12, 18]\nsets = 12\n\
                working_sets = [\"0B\", \"64KiB\"]\n";
    let study = file::from_toml(text, Platform::find, Profile::find).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let results = run_in(dir.path(), &study, &Silent).unwrap();
    let path = dir.path().join("points.parquet");
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let place = |name: &str| columns.iter().position(|c| c.name() == name).unwrap();
    let rows: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows.len(), 4 * 3 * 2);
    let mut rows = rows.iter();
    for (p, policy) in results.policies.iter().enumerate() {
        for shard in &results.shards {
            for at in 0..2 {
                let row = rows.next().unwrap();
                let text = |name: &str| row.get_string(place(name)).unwrap().as_str();
                let long = |name: &str| row.get_long(place(name)).unwrap();
                let double = |name: &str| row.get_double(place(name)).unwrap();
                assert_eq!((text("study"), text("policy")), ("mine", policy.as_str()));
                assert_eq!(
                    text("scenario"),
                    "hard, uniform-heavy, short, implicit, xeon-l7455"
                );
                assert_eq!(
                    (double("cap"), double("value")),
                    (shard.cap.to_f64(), [0.0, 65_536.0][at])
                );
                assert_eq!(
                    (text("axis"), text("unit"), text("load")),
                    ("working_set", "B", "idle")
                );
                assert_eq!(
                    (text("accounting"), text("statistic")),
                    ("warmset", "maximum")
                );
                let (sets, accepted) = (shard.sets, shard.accepted[p][at]);
                assert_eq!((long("sets"), long("accepted")), (12, i64::from(accepted)));
                assert_eq!(double("share"), f64::from(accepted) / 12.0);
                assert_eq!((double("low"), double("high")), wilson(accepted, sets));
                assert_eq!(row.get_int(place("processors")).unwrap(), 24);
                assert_eq!(long("cost_ns") == 0, at == 0);
                assert!(!text("test").is_empty(), "{policy}");
            }
        }
    }
    assert_eq!(reader.metadata().num_row_groups(), 1);
}

/// A policy that names its load has the costs of that load, and says so.
#[test]
fn each_policy_tells_its_load_and_what_it_costs() {
    let text = "platform = \"xeon-l7455\"\nprofile = \"xeon-l7455\"\n\
                policies = [\"p-edf@idle\", \"p-edf@load\", \"g-edf\"]\nguarantee = \"hard\"\n\
                utilizations = \"uniform-heavy\"\nperiods = \"short\"\ncaps = [6]\nsets = 1\n\
                working_sets = [\"0B\", \"64KiB\"]\n";
    let study = file::from_toml(text, Platform::find, Profile::find).unwrap();
    let dir = tempfile::tempdir().unwrap();
    run_in(dir.path(), &study, &Silent).unwrap();
    let path = dir.path().join("points.parquet");
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let place = |name: &str| columns.iter().position(|c| c.name() == name).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let told: Vec<(String, i64)> = rows
        .map(|row| {
            let load = row.get_string(place("load")).unwrap().clone();
            (load, row.get_long(place("cost_ns")).unwrap())
        })
        .collect();
    let cost = |load: Load| {
        let charged = study::Charged {
            load,
            ..study.charged.clone()
        };
        let longest = charged.longest_delay(Bytes::from_kib(64), &study.platform, study.guarantee);
        longest.unwrap().nanos() as i64
    };
    let (idle, load) = (cost(Load::Idle), cost(Load::Load));
    assert!(0 < idle && idle < load);
    let expected = [
        ("idle", 0),
        ("idle", idle),
        ("load", 0),
        ("load", load),
        ("load", 0),
        ("load", load),
    ];
    assert_eq!(told, expected.map(|(name, cost)| (name.to_owned(), cost)));
}
