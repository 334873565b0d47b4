//! The files of control groups, of both versions.

/// Cores a `cpu.max` allows (`200000 100000` is two); `None` for `max` and for odd text.
pub fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota_us: u64 = words.next()?.parse().ok()?;
    let period_us: u64 = words.next()?.parse().ok()?;
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// How often and how long a quota held the group back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the quota ran out.
    pub periods: Option<u64>,
    /// Nanoseconds the group's processes were kept from running, summed over processors.
    pub throttled_ns: Option<u64>,
}

/// Reads `cpu.stat`: version 2 counts microseconds, version 1 nanoseconds.
pub fn parse_throttling(text: &str) -> Throttling {
    let mut throttling = Throttling::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else { continue };
        let count = || value.trim().parse::<u64>().ok();
        match key {
            "nr_throttled" => throttling.periods = count(),
            "throttled_usec" => {
                throttling.throttled_ns = count().and_then(|us| us.checked_mul(1_000));
            }
            "throttled_time" => throttling.throttled_ns = count(),
            _ => {}
        }
    }
    throttling
}

/// Transfers of one device: counts since the group was made, or limits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceRates {
    /// Read requests.
    pub reads: Option<u64>,
    /// Write requests.
    pub writes: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
}

impl DeviceRates {
    /// Of two limits the smaller holds.
    pub fn keep_smaller(&mut self, other: &Self) {
        let smaller = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().min();
        self.reads = smaller(self.reads, other.reads);
        self.writes = smaller(self.writes, other.writes);
        self.read_bytes = smaller(self.read_bytes, other.read_bytes);
        self.written_bytes = smaller(self.written_bytes, other.written_bytes);
    }
}

/// Reads `blkio.throttle.io_serviced` or, of `bytes`, `io_service_bytes` into `devices`: lines of
/// `254:0 Read 12` (kernel, cgroup-v1/blkio-controller).
pub fn parse_device_lines(text: &str, bytes: bool, devices: &mut Vec<(String, DeviceRates)>) {
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, way, count] = words.as_slice() else { continue };
        let position = devices.iter().position(|(known, _)| known == device).unwrap_or_else(|| {
            devices.push(((*device).to_owned(), DeviceRates::default()));
            devices.len() - 1
        });
        let rates = &mut devices[position].1;
        let place = match (*way, bytes) {
            ("Read", false) => &mut rates.reads,
            ("Write", false) => &mut rates.writes,
            ("Read", true) => &mut rates.read_bytes,
            ("Write", true) => &mut rates.written_bytes,
            _ => continue,
        };
        *place = count.parse().ok();
    }
}

/// Reads `io.stat` or `io.max` of version 2: `254:0 rbytes=1 wbytes=2 rios=3 wios=4` and
/// `254:0 rbps=max wbps=max riops=800 wiops=max` (kernel, cgroup-v2).
pub fn parse_device_limits(text: &str) -> Vec<(String, DeviceRates)> {
    let line = |line: &str| {
        let (device, rest) = line.split_once(' ')?;
        let mut rates = DeviceRates::default();
        for (key, value) in rest.split_whitespace().filter_map(|word| word.split_once('=')) {
            let place = match key {
                "rios" | "riops" => &mut rates.reads,
                "wios" | "wiops" => &mut rates.writes,
                "rbytes" | "rbps" => &mut rates.read_bytes,
                "wbytes" | "wbps" => &mut rates.written_bytes,
                _ => continue,
            };
            *place = value.parse().ok();
        }
        Some((device.to_owned(), rates))
    };
    text.lines().filter_map(line).collect()
}

/// Pages of a group that were read again soon after memory had no room for them, from
/// `memory.stat`; of version 1 with those of the groups below.
pub fn parse_refaults(text: &str) -> Option<u64> {
    let sum = |prefix: &str| {
        let counts = text.lines().filter_map(|line| {
            let (key, value) = line.split_once(' ')?;
            key.starts_with(prefix).then(|| value.trim().parse::<u64>().ok()).flatten()
        });
        let counts: Vec<u64> = counts.collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    };
    sum("total_workingset_refault").or_else(|| sum("workingset_refault"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_in_cores_and_max_is_none() {
        assert_eq!(parse_cpu_max("250000 100000\n"), Some(2.5));
        for none in ["max 100000", "100000 0", "-1 100000", ""] {
            assert_eq!(parse_cpu_max(none), None, "{none:?}");
        }
    }

    #[test]
    fn throttling_is_in_nanoseconds_for_both_versions() {
        let v2 = parse_throttling("usage_usec 9\nnr_periods 8\nnr_throttled 3\nthrottled_usec 7\n");
        assert_eq!(v2, Throttling { periods: Some(3), throttled_ns: Some(7_000) });
        let v1 = parse_throttling("nr_periods 8\nnr_throttled 3\nthrottled_time 7000\n");
        assert_eq!(v1, v2);
        assert_eq!(parse_throttling("usage_usec 9"), Throttling::default());
    }

    #[test]
    fn transfers_of_both_versions_are_by_device() {
        let mut v1 = Vec::new();
        parse_device_lines("254:0 Read 7\n254:0 Write 2\n254:0 Total 9\nTotal 9\n", false, &mut v1);
        parse_device_lines("254:0 Read 4096\n254:0 Write 512\n", true, &mut v1);
        let v2 = parse_device_limits("254:0 rbytes=4096 wbytes=512 rios=7 wios=2 dbytes=0\n");
        assert_eq!(v1, v2);
        let limits = parse_device_limits("8:0 rbps=max wbps=max riops=800 wiops=max\n");
        assert_eq!(limits[0].1, DeviceRates { reads: Some(800), ..DeviceRates::default() });
        let mut smaller = limits[0].1;
        smaller.keep_smaller(&DeviceRates { reads: Some(90), writes: Some(5), ..smaller });
        assert_eq!((smaller.reads, smaller.writes), (Some(90), Some(5)));
    }

    #[test]
    fn refaults_are_summed_over_kinds_and_groups_below() {
        let text = "workingset_refault_anon 1\nworkingset_refault_file 2\n";
        assert_eq!(parse_refaults(text), Some(3));
        let v1 =
            format!("{text}total_workingset_refault_anon 4\ntotal_workingset_refault_file 9\n");
        assert_eq!(parse_refaults(&v1), Some(13));
        assert_eq!(parse_refaults("cache 4\n"), None);
    }
}
