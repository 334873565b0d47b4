//! Whether another host's clock was set in mid-run. Pure.
//!
//! The kernel tells when it began by the clock of the wall (`btime` in `/proc/stat`). That moves
//! when somebody sets the clock, by whole seconds, and not when NTP makes it go faster or slower.

/// Steps of the clock, in seconds.
#[derive(Debug, Default)]
pub(super) struct ClockSteps {
    began_s: Option<i64>,
    steps_s: Vec<i64>,
}

impl ClockSteps {
    /// What a frame says.
    pub(super) fn see(&mut self, stat: &str) {
        let told = stat.lines().find_map(|line| line.strip_prefix("btime "));
        let Some(now_s) = told.and_then(|text| text.trim().parse::<i64>().ok()) else { return };
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
            let way = if *step_s < 0 { "back" } else { "forward" };
            format!("{} s {way}", step_s.unsigned_abs())
        });
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| each.join(", then "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_told_with_how_much_and_a_host_that_began_anew_is_not() {
        let mut steps = ClockSteps::default();
        for began_s in [1_700_000_000, 1_700_000_000, 1_700_003_600, 1_699_996_400] {
            steps.see(&format!("cpu  1 2\nbtime {began_s}\nprocesses 7\n"));
        }
        assert_eq!(steps.text().as_deref(), Some("3600 s forward, then 7200 s back"));
        let mut steps = ClockSteps::default();
        steps.see("btime 1700000000\n");
        steps.see("cpu 1\n");
        steps.see("btime x\n");
        steps.forget();
        steps.see("btime 1700009999\n");
        assert_eq!(steps.text(), None);
    }
}
