//! `--goodput "first_output<500ms,tpot<50ms,response<10s"`.

use std::str::FromStr;

use super::{Condition, ConditionError, ConditionFigure, LimitUnit, Side};
use crate::goodput::GoodLimits;
use crate::units::Nanos;

/// What a good op is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoodFigure {
    FirstOutput,
    Tpot,
    Response,
}

impl ConditionFigure for GoodFigure {
    const OF: &'static str = "a single op";
    const EXAMPLES: &'static str = "first_output<500ms,tpot<50ms,response<10s";

    fn known() -> Vec<(String, Self)> {
        [("first_output", Self::FirstOutput), ("tpot", Self::Tpot), ("response", Self::Response)]
            .map(|(name, figure)| (name.to_owned(), figure))
            .into()
    }

    fn unit(self) -> LimitUnit {
        LimitUnit::Time
    }
}

impl FromStr for GoodLimits {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut limits = Self::default();
        for part in text.split(',') {
            let wrong = |error| ConditionError::Part(part.trim().to_owned(), Box::new(error));
            let limit: Condition<GoodFigure> = part.parse().map_err(wrong)?;
            if limit.side != Side::Below {
                return Err(wrong(ConditionError::NoUpperBound(GoodFigure::EXAMPLES)));
            }
            let of = match limit.figure {
                GoodFigure::FirstOutput => &mut limits.first_output,
                GoodFigure::Tpot => &mut limits.tpot,
                GoodFigure::Response => &mut limits.response,
            };
            if of.replace(Nanos(limit.limit as u64)).is_some() {
                let name = part.split('<').next().unwrap_or(part).trim().to_owned();
                return Err(wrong(ConditionError::Twice(name)));
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_good_op_read_as_people_write_them() {
        let limits: GoodLimits = "first_output < 500ms, tpot<50ms ,response<10s".parse().unwrap();
        assert_eq!(limits.text(), "first_output<500ms,tpot<50ms,response<10s");
        assert_eq!(
            "response<2s".parse::<GoodLimits>().unwrap().response,
            Some(Nanos::from_secs(2))
        );
    }

    #[test]
    fn what_is_no_limit_of_an_op_says_what_to_write() {
        let said = |text: &str| text.parse::<GoodLimits>().unwrap_err().to_string();
        assert!(said("first_output.p90<500ms").contains("no figure of a single op"));
        assert!(said("ttft<500ms").contains("known are first_output, tpot, response"));
        assert!(said("tpot>50ms").contains("upper bound"));
        assert!(said("tpot<50ms,tpot<60ms").contains("already"));
        assert!(said("tpot<50").contains("with its unit"));
    }
}
