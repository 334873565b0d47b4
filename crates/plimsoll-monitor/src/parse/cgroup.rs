//! `/proc/self/cgroup`, `cpu.max` and `cpu.stat`, of both versions.

/// Where a process sits in one hierarchy (cgroups(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPath {
    /// Controllers of a version 1 hierarchy; empty for version 2.
    pub controllers: Vec<String>,
    /// Path below the hierarchy's mount.
    pub path: String,
}

impl CgroupPath {
    /// Is this the hierarchy of version 2.
    pub fn is_v2(&self) -> bool {
        self.controllers.is_empty()
    }
}

/// Reads `/proc/self/cgroup`.
pub fn parse_cgroup_paths(text: &str) -> Vec<CgroupPath> {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let controllers = controllers.split(',').filter(|name| !name.is_empty());
            Some(CgroupPath {
                controllers: controllers.map(str::to_owned).collect(),
                path: path.to_owned(),
            })
        })
        .collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_hierarchies_are_listed() {
        let paths = parse_cgroup_paths("9:name=systemd:/\n1:cpu,cpuacct:/docker/1:2\n0::/user\n");
        assert_eq!(paths.len(), 3);
        assert_eq!(paths[1].controllers, ["cpu", "cpuacct"]);
        assert_eq!(paths[1].path, "/docker/1:2");
        assert!(paths[2].is_v2() && !paths[0].is_v2());
    }

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
}
