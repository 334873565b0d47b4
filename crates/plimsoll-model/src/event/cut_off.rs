//! Ops that failed while their requests were still being sent.

use serde::{Deserialize, Serialize};

use crate::outcome::ErrorClass;

/// What became of ops whose requests the socket had not taken whole. A server that answers before
/// it has read a body, and closes, resets the connection: some clients get its status, others only
/// the reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutOff {
    /// Ops that got a status other than the expected one: each status and how many.
    pub answered: Vec<(u32, u64)>,
    /// Ops that lost their connection, before the reply began or within it.
    pub lost: u64,
}

impl CutOff {
    /// There were none.
    pub fn is_empty(&self) -> bool {
        self.lost == 0 && self.answered.is_empty()
    }

    /// Counts one more, if its request was cut off by the server.
    pub fn count(&mut self, class: ErrorClass) {
        match class {
            ErrorClass::Status(status) => self.answer(status, 1),
            ErrorClass::Transport | ErrorClass::Truncated => self.lost += 1,
            _ => {}
        }
    }

    /// Adds what another worker saw.
    pub fn add(&mut self, other: Self) {
        self.lost += other.lost;
        for (status, count) in other.answered {
            self.answer(status, count);
        }
    }

    fn answer(&mut self, status: u32, more: u64) {
        match self.answered.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += more,
            None => self.answered.push((status, more)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_losses_add_up_over_workers_and_are_left_out_of_a_journal_without_any() {
        let mut sum = CutOff::default();
        assert!(sum.is_empty());
        sum.count(ErrorClass::Timeout);
        assert!(sum.is_empty(), "a server that is silent has cut nothing off");
        for class in [ErrorClass::Status(413), ErrorClass::Transport, ErrorClass::Truncated] {
            sum.count(class);
        }
        sum.add(sum.clone());
        let told = serde_json::to_string(&sum).unwrap();
        assert_eq!(told, r#"{"answered":[[413,2]],"lost":4}"#);
        assert_eq!(serde_json::from_str::<CutOff>(&told).unwrap(), sum);
    }
}
