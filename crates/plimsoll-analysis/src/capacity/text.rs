//! The search for a capacity in sentences.

use std::fmt;

use plimsoll_model::capacity::CapacityTry;
use plimsoll_model::units::{clients, grouped};

use super::{Answer, NoLoad, NoLoadCase, RERUNS, Search, Step};
use crate::climb::Ceiling;

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
            Step::Nothing(_) => "no load within the limits".to_owned(),
        }
    }

    fn why_not(&self, load: f64) -> String {
        let levels = self.claims().into_iter().chain(self.probed());
        let mut at = levels.filter(|level| level.load == load);
        let why = at.find_map(|level| level.failed().map(CapacityTry::why));
        why.unwrap_or_else(|| "no reason given".to_owned())
    }
}

impl fmt::Display for NoLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = load_text(self.clients, self.lowest);
        let why = |or: &str| self.failed.as_ref().map_or(or.to_owned(), CapacityTry::why);
        match self.case {
            NoLoadCase::Claims(claims) => write!(
                f,
                "no load passed {RERUNS} re-runs; the lowest of {claims} claims, {load}, did not: \
                 {}; the figure scatters too much for so near a limit: measure longer (--profile \
                 standard), or take a wider limit",
                why("the time was over"),
            ),
            NoLoadCase::Fault => write!(
                f,
                "nothing could be measured, down to {load}: {}; mend that, and run it again",
                why("undecided"),
            ),
            NoLoadCase::Beyond => write!(
                f,
                "no load is within the limits: the lowest that was tried, {load}, was not: {}; \
                 take wider limits, or give the server more",
                why("undecided"),
            ),
        }
    }
}
