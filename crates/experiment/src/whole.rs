//! Times that are means or medians, written as whole nanoseconds; what is no number as null.

use serde::{Serialize, Serializer};

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

fn whole(ns: f64) -> Option<i64> {
    ns.is_finite().then(|| ns.round() as i64)
}

/// Writes nanoseconds.
pub fn one<S: Serializer>(ns: &f64, to: S) -> Result<S::Ok, S::Error> {
    whole(*ns).serialize(to)
}

/// Writes nanoseconds, each.
pub fn each<S: Serializer, const N: usize>(ns: &[f64; N], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(ns.map(whole))
}

/// Writes seconds as nanoseconds, each.
pub fn each_of_seconds<S: Serializer, const N: usize>(
    seconds: &[f64; N],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(seconds.map(|s| whole(s * SECOND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_null() {
        #[derive(Serialize)]
        struct Row {
            #[serde(serialize_with = "one")]
            min_ns: f64,
            #[serde(serialize_with = "each")]
            loss_ns: [f64; 3],
            #[serde(serialize_with = "each_of_seconds")]
            total_ns: [f64; 2],
        }
        let row = Row {
            min_ns: 71.6,
            loss_ns: [-0.6, f64::NAN, 2.4],
            total_ns: [2.2, f64::INFINITY],
        };
        assert_eq!(
            serde_json::to_value(row).unwrap(),
            serde_json::json!({
                "min_ns": 72, "loss_ns": [-1, null, 2], "total_ns": [2_200_000_000_i64, null],
            })
        );
    }
}
