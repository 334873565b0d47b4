//! When a source did not answer, and whether its host's clock was set in mid-run. Pure.

use plimsoll_model::units::NANOS_PER_SECOND;

/// The gaps of a run.
#[derive(Debug, Default)]
pub(super) struct Outages {
    since_ns: Option<u64>,
    last_ns: u64,
    count: u32,
    total_ns: u64,
    /// Why, the last time.
    reason: String,
}

impl Outages {
    /// The source did not answer; it may have been so before.
    pub(super) fn begin(&mut self, now_ns: u64, reason: String) {
        self.reason = reason;
        self.last_ns = now_ns;
        if self.since_ns.is_none() {
            self.since_ns = Some(now_ns);
            self.count += 1;
        }
    }

    /// It answered.
    pub(super) fn end(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.since_ns.take() {
            self.total_ns += now_ns.saturating_sub(since_ns);
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.since_ns.is_some()
    }

    /// For a person; `None` when there were none.
    pub(super) fn text(&self) -> Option<String> {
        let open_ns = self.since_ns.map_or(0, |since_ns| self.last_ns.saturating_sub(since_ns));
        let seconds = (self.total_ns + open_ns) as f64 / NANOS_PER_SECOND as f64;
        let times = match self.count {
            0 => return None,
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        let end = if self.is_away() { ", and was away at the end" } else { "" };
        Some(format!("did not answer {times}, {seconds:.1} s in all{end} ({})", self.reason))
    }
}

/// Steps of the clock, in seconds.
///
/// The kernel reports its boot time by the wall clock (`btime` in `/proc/stat`). That moves when
/// somebody sets the clock, by whole seconds, and not when NTP makes it go faster or slower.
#[derive(Debug, Default)]
pub(super) struct ClockSteps {
    began_s: Option<i64>,
    steps_s: Vec<i64>,
}

impl ClockSteps {
    /// Takes the boot time of a sample, in seconds since the Unix epoch.
    pub(super) fn update(&mut self, boot_unix_s: Option<u64>) {
        let Some(now_s) = boot_unix_s.and_then(|s| i64::try_from(s).ok()) else { return };
        if let Some(before_s) = self.began_s.replace(now_s)
            && before_s != now_s
        {
            self.steps_s.push(now_s - before_s);
        }
    }

    /// The host was away, and may have begun anew.
    pub(super) fn forget(&mut self) {
        self.began_s = None;
    }

    /// For a person; `None` when nobody set it.
    pub(super) fn text(&self) -> Option<String> {
        let each = self.steps_s.iter().map(|step_s| {
            let direction = if *step_s < 0 { "back" } else { "forward" };
            format!("{} s {direction}", step_s.unsigned_abs())
        });
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| each.join(", then "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = NANOS_PER_SECOND;

    #[test]
    fn gaps_are_counted_and_told_with_the_last_words() {
        let mut outages = Outages::default();
        assert_eq!(outages.text(), None);
        outages.begin(SECOND, "no answer".into());
        outages.begin(3 * SECOND, "refused".into());
        outages.end(5 * SECOND);
        outages.end(6 * SECOND);
        let text = outages.text().unwrap();
        assert_eq!(text, "did not answer once, 4.0 s in all (refused)");
        outages.begin(8 * SECOND, "gone".into());
        outages.begin(9 * SECOND, "gone".into());
        let text = outages.text().unwrap();
        assert_eq!(text, "did not answer 2 times, 5.0 s in all, and was away at the end (gone)");
    }

    #[test]
    fn a_clock_that_is_set_is_told_with_how_much_and_a_host_that_began_anew_is_not() {
        let mut steps = ClockSteps::default();
        for began_s in [1_700_000_000, 1_700_000_000, 1_700_003_600, 1_699_996_400] {
            steps.update(Some(began_s));
        }
        assert_eq!(steps.text().as_deref(), Some("3600 s forward, then 7200 s back"));
        let mut steps = ClockSteps::default();
        steps.update(Some(1_700_000_000));
        steps.update(None);
        steps.update(Some(u64::MAX));
        steps.forget();
        steps.update(Some(1_700_009_999));
        assert_eq!(steps.text(), None);
    }
}
