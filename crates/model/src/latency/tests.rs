//! Outputs of both tools: what is read, and what it becomes in a profile.

use super::*;
use crate::profile::Statistic;
use crate::provenance::Provenance;

/// As cyclictest prints with `-t2 -h 6 -q`, here with 3 latencies beyond the histogram.
const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000000
000003 000010\t000002
000004 000080\t000006
000005 000007\t000002

# Total: 000000097 000000010
# Min Latencies: 00003 00003
# Avg Latencies: 00004 00004
# Max Latencies: 00041 00005
# Histogram Overflows: 00003 00000
# Histogram Overflow at cycle number:
# Thread 0: 00011 00054 00099
# Thread 1:

";

const RTLA: &str = "# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:01
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
0          1000         0      1000         0
5             0       990         0       999
58            0        10         0         1
over:         0         0         0         0
count:     1000      1000      1000      1000
min:          0         5         0         5
avg:          0         5         0         6
max:          1        58         2        58
ALL:        IRQ       Thr
count:     2000      2000
min:          0         5
avg:          0         5
max:          2        58
";

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn a_histogram_of_cyclictest_is_added_up_and_never_understated() {
    let read = read(HISTOGRAM).unwrap().unwrap();
    // 97 + 3 latencies of one thread, of which only the average is known, 4; and 10 of the other.
    let sum = 100 * 4 + 2 * 3 + 6 * 4 + 2 * 5;
    let average = Duration::from_nanos(((sum + 110) * 1000_u64).div_ceil(110));
    assert_eq!(
        read,
        Latencies {
            tool: "cyclictest",
            threads: 2,
            samples: 110,
            average,
            maximum: us(42)
        }
    );
    // The column of sums of `-H` is no thread.
    let mut with_sums = String::new();
    for line in HISTOGRAM.lines() {
        let more = match line {
            "000003 000010\t000002" => "\t000012",
            "000004 000080\t000006" => "\t000086",
            "000005 000007\t000002" => "\t000009",
            line if line.starts_with("# Max") => " 00041",
            line if line.starts_with("# Histogram Overflows") => " 00003",
            _ => "",
        };
        with_sums.push_str(&format!("{line}{more}\n"));
    }
    assert_eq!(super::read(&with_sums).unwrap().unwrap(), read);
}

/// What cyclictest 2.4 printed here with `-m -p 80 -t 2 -a -h 30 -q -D 3` while a compiler ran.
#[test]
fn what_cyclictest_prints_is_read() {
    let text = include_str!("cyclictest.txt");
    let read = read(text).unwrap().unwrap();
    assert_eq!((read.threads, read.samples), (2, 1846 + 1148 + 1627 + 1357));
    assert_eq!(read.maximum, us(4361));
    // 2994 latencies of 30 us and a bit each, 2984 of 34 us.
    let average: u64 = ((2994 * 31 + 2984 * 35) * 1000_u64).div_ceil(2994 + 2984);
    assert_eq!(read.average, Duration::from_nanos(average));
}

#[test]
fn lines_of_threads_are_read_and_the_last_one_counts() {
    let text = "# /dev/cpu_dma_latency set to 0us
policy: fifo: loadavg: 0.00 0.01 0.05 1/123 4567
T: 0 ( 4566) P:80 I:1000 C:     10 Min:      3 Act:    5 Avg:    9 Max:      99
T: 0 ( 4566) P:80 I:1000 C:    100 Min:      3 Act:    5 Avg:    6 Max:     120
T: 1 ( 4567) P:80 I:1500 C:    300 Min:      2 Act:    2 Avg:    2 Max:      17
";
    assert_eq!(
        read(text).unwrap().unwrap(),
        Latencies {
            tool: "cyclictest",
            threads: 2,
            samples: 400,
            average: us(4),
            maximum: us(121)
        }
    );
}

#[test]
fn rtla_says_its_unit_and_its_threads() {
    let expected = |average, maximum| Latencies {
        tool: "rtla timerlat",
        threads: 2,
        samples: 2000,
        average,
        maximum,
    };
    let half = Duration::from_nanos(6500);
    assert_eq!(read(RTLA).unwrap().unwrap(), expected(half, us(59)));
    let fine = RTLA.replace("microseconds (us)", "nanoseconds (ns)");
    let ns = Duration::from_nanos;
    assert_eq!(read(&fine).unwrap().unwrap(), expected(ns(7), ns(59)));
}

#[test]
fn latencies_become_the_overhead_of_releases() {
    let latencies = read(RTLA).unwrap().unwrap();
    let empty = Profile::new("board", Provenance::default());
    let profile = add(&empty, &latencies, "").unwrap();
    let curve = profile
        .overhead_curve(OverheadKind::Release, "g-edf")
        .expect("of any policy");
    assert_eq!(
        curve.at(2, Statistic::Maximum).unwrap().value.cost(),
        us(59)
    );
    assert_eq!(curve.points[0].samples, 2000);
    assert_eq!(profile.provenance.warnings, [WARNING]);
    // It can be written and read.
    let text = crate::profilefile::to_toml(&profile);
    assert_eq!(crate::profilefile::from_toml(&text).unwrap(), profile);
    let e = add(&profile, &latencies, "").unwrap_err().to_string();
    assert!(
        e.contains("has the overhead `release` of 2 tasks already"),
        "{e}"
    );
    let both = add(&profile, &latencies, "g-edf").unwrap();
    assert_eq!(
        (both.overheads.len(), both.provenance.warnings.len()),
        (2, 1)
    );
}

#[test]
fn what_is_cut_off_or_changed_is_refused_in_one_sentence() {
    for (text, message) in [
        (
            HISTOGRAM.split("# Max").next().unwrap().to_owned(),
            "the line `# Max Latencies:` is missing",
        ),
        (
            HISTOGRAM.replace("000080\t000006", "000080"),
            "line 5: 1 counts for 2 threads",
        ),
        (
            HISTOGRAM.replace("000080", "many"),
            "line 5: `many` is no number",
        ),
        (
            "# Histogram\n# Avg Latencies:\n# Max Latencies:\n# Histogram Overflows:\n".to_owned(),
            "for 0 threads",
        ),
        (
            "T: 0 ( 1) P:80 I:1000 C: 0 Min: 3 Act: 5 Avg: 0 Max: 0".to_owned(),
            "nothing was measured",
        ),
        (
            "T: 0 ( 1) P:80 I:1000".to_owned(),
            "line 1: there is no `C:`",
        ),
        (
            RTLA.split("avg:").next().unwrap().to_owned(),
            "the line `avg:` is missing",
        ),
        (RTLA.replace("Index", ""), "the line `Index` is missing"),
        (RTLA.replace("Thr", "Usr"), "the line `Thr-` is missing"),
        (
            RTLA.replace("max:          1 ", "max: "),
            "4 columns, and 4 counts, 4 averages and 3 maxima",
        ),
        (RTLA.replace("(us)", "(min)"), "is no unit of rtla"),
    ] {
        let e = read(&text).unwrap_err().to_string();
        assert!(e.contains(message), "{message}: {e}");
    }
    assert_eq!(read("WSS, L1\n4, 1.0\n").unwrap(), None);
}
