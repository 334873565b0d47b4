//! The search for a capacity in sentences.

use plimsoll_model::capacity::CapacityTry;
use plimsoll_model::units::{clients, grouped};

use super::level::Tries;
use super::{Answer, RERUNS, Search, Step};
use crate::climb::{Ceiling, Standing};

fn load_text(in_clients: bool, load: f64) -> String {
    if in_clients { clients(load) } else { format!("{} ops/s", grouped(load)) }
}

impl Search {
    /// What the search came to, and how.
    pub fn how(&self, answer: &Answer) -> String {
        let load_text = |load| load_text(self.config.clients, load);
        let text = format!(
            "{} stayed within the limits in {} of {} re-runs; {} load points were run in all; ",
            load_text(answer.value),
            answer.passed,
            answer.tries,
            self.tries.len(),
        );
        match self.lowest_beyond(answer.value) {
            None => text + "no load was too much: the server may carry more",
            Some((load, Ceiling::Generator)) => format!(
                "{text}{} was more than could be measured ({}): the server may carry more",
                load_text(load),
                self.why_not(load),
            ),
            Some((load, _)) => {
                format!("{text}{} was too much ({})", load_text(load), self.why_not(load))
            }
        }
    }

    /// A step, for a person.
    pub fn step_text(&self, step: &Step) -> String {
        let load_text = |load: &f64| load_text(self.config.clients, *load);
        match step {
            Step::Saturate => "all clients at once".to_owned(),
            Step::Probe { load } if self.tries.iter().any(|attempt| attempt.load == *load) => {
                format!("{} once more", load_text(load))
            }
            Step::Probe { load } => load_text(load),
            Step::Verify { load, number } => {
                let of = RERUNS.max(*number);
                format!("re-run {number} of {of} of {}", load_text(load))
            }
            Step::Found(answer) => format!("capacity {}", load_text(&answer.value)),
            Step::Nothing => "no load within the limits".to_owned(),
        }
    }

    fn why_not(&self, load: f64) -> String {
        let levels = self.claims().into_iter().chain(self.probed());
        let mut at = levels.filter(|level| level.load == load);
        let why = at.find_map(|level| level.failed().map(CapacityTry::why));
        why.unwrap_or_else(|| "no reason given".to_owned())
    }

    /// Why no load was found.
    pub fn why_none(&self) -> String {
        let claims = self.claims();
        let why = |level: &Tries<'_>, or: &str| {
            level.failed().map_or_else(|| or.to_owned(), CapacityTry::why)
        };
        if let Some(claim) = claims.last() {
            return format!(
                "no load passed {RERUNS} re-runs; the lowest of {} claims, {}, did not: {}; the \
                 figure scatters too much for so near a limit: measure longer (--profile \
                 standard), or take a wider limit",
                claims.len(),
                load_text(self.config.clients, claim.load),
                why(claim, "the time was over"),
            );
        }
        let probed = self.probed();
        let Some(lowest) = probed.iter().min_by(|a, b| a.load.total_cmp(&b.load)) else {
            return "no load was tried; run it again with more time".to_owned();
        };
        let load = load_text(self.config.clients, lowest.load);
        let why = why(lowest, "undecided");
        match lowest.standing(&self.config) {
            Standing::Missed(Ceiling::Generator) => format!(
                "nothing could be measured, down to {load}: {why}; mend that, and run it again"
            ),
            _ => format!(
                "no load is within the limits: the lowest that was tried, {load}, was not: {why}; \
                 take wider limits, or give the server more"
            ),
        }
    }
}
