//! Upper ends of intervals that a sample does not show: infinite here, `null` in JSON, which has no
//! such number.

use serde::{Deserialize, Deserializer};

/// Reads an interval whose upper end may be `null`.
pub(crate) fn open_interval<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<[f64; 2]>, D::Error> {
    let ends = Option::<(f64, Option<f64>)>::deserialize(from)?;
    Ok(ends.map(|(low, high)| [low, high.unwrap_or(f64::INFINITY)]))
}

/// Reads a number that may be `null`.
pub(crate) fn open_number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

#[cfg(test)]
mod tests {
    use crate::result::{TimeIntervals, Uncertainty};

    #[test]
    fn an_open_end_is_null_and_reads_back() {
        let intervals = TimeIntervals {
            p50: Some([1.0, 2.0]),
            p99: Some([3.0, f64::INFINITY]),
            ..TimeIntervals::default()
        };
        let json = serde_json::to_string(&intervals).unwrap();
        assert!(json.contains("\"p99\":[3.0,null]"), "{json}");
        assert_eq!(serde_json::from_str::<TimeIntervals>(&json).unwrap(), intervals);
        let parts = Uncertainty { sample_above: f64::INFINITY, ..Uncertainty::default() };
        let json = serde_json::to_string(&parts).unwrap();
        assert_eq!(serde_json::from_str::<Uncertainty>(&json).unwrap(), parts);
    }

    #[test]
    fn parts_of_an_earlier_version_read() {
        let json = r#"{"value": 1.0, "generator": 0.0, "sample_below": 0.1, "sample_above": 0.1,
            "other_runs": 0.02, "resolution": 0.0}"#;
        assert_eq!(serde_json::from_str::<Uncertainty>(json).unwrap().sample_above, 0.1);
        let json = r#"{"mean": [1.0, 2.0], "p50": null, "p90": null, "p95": null, "p99": null}"#;
        assert_eq!(serde_json::from_str::<TimeIntervals>(json).unwrap().p999, None);
    }
}
