//! The search for a capacity in sentences.

use plimsoll_model::units::grouped;

use super::level::Standing;
use super::{Answer, RERUNS, Search, Step};

/// A load in its unit.
fn load_text(search: &Search, load: f64) -> String {
    let unit = match search.config.clients {
        true if load == 1.0 => "client",
        true => "clients",
        false => "ops/s",
    };
    format!("{} {unit}", grouped(load))
}

impl Search {
    /// What the search came to, and how.
    pub fn how(&self, answer: &Answer) -> String {
        let claim = load_text(self, answer.value);
        let runs = self.tries.len();
        let text = format!(
            "{claim} stayed within the limits in {} of {} re-runs; {runs} load points were run in \
             all",
            answer.passed, answer.tries,
        );
        match self.lowest_beyond(answer.value) {
            None => text + "; no load was too much: the server may carry more",
            Some((load, Standing::Fault)) => format!(
                "{text}; {} was more than could be measured ({}): the server may carry more",
                load_text(self, load),
                self.why_not(load),
            ),
            Some((load, _)) => {
                format!("{text}; {} was too much ({})", load_text(self, load), self.why_not(load))
            }
        }
    }

    /// A step, for a person.
    pub fn step_text(&self, step: &Step) -> String {
        match step {
            Step::Saturate => "all clients at once".to_owned(),
            Step::Probe { load } if self.was_tried(*load) => {
                format!("{} once more", load_text(self, *load))
            }
            Step::Probe { load } => load_text(self, *load),
            Step::Verify { load, number } => {
                let of = RERUNS.max(*number);
                format!("re-run {number} of {of} of {}", load_text(self, *load))
            }
            Step::Found(answer) => format!("capacity {}", load_text(self, answer.value)),
            Step::Nothing { .. } => "no load within the limits".to_owned(),
        }
    }

    fn was_tried(&self, load: f64) -> bool {
        self.tries.iter().any(|attempt| attempt.load == load)
    }

    fn why_not(&self, load: f64) -> String {
        let levels = self.claims().into_iter().chain(self.probed());
        let mut at = levels.filter(|level| level.load == load);
        let why = at.find_map(|level| level.why_not().map(str::to_owned));
        why.unwrap_or_else(|| "no reason given".to_owned())
    }
}

/// Why no load was found.
pub(super) fn nothing(search: &Search) -> String {
    let claims = search.claims();
    if let Some(claim) = claims.last() {
        return format!(
            "no load passed {RERUNS} re-runs; the lowest of {} claims, {}, did not: {}; the figure \
             scatters too much for so near a limit: measure longer (--profile standard), or take a \
             wider limit",
            claims.len(),
            load_text(search, claim.load),
            claim.why_not().unwrap_or("the time was over"),
        );
    }
    let probed = search.probed();
    let Some(lowest) = probed.iter().min_by(|a, b| a.load.total_cmp(&b.load)) else {
        return "no load was tried; run it again with more time".to_owned();
    };
    let load = load_text(search, lowest.load);
    let why = lowest.why_not().unwrap_or("undecided");
    match lowest.standing(&search.config) {
        Standing::Fault => {
            format!("nothing could be measured, down to {load}: {why}; mend that, and run it again")
        }
        _ => format!(
            "no load is within the limits: the lowest that was tried, {load}, was not: {why}; take \
             wider limits, or give the server more"
        ),
    }
}
