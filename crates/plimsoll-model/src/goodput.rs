//! Limits that an op must keep to be a good one, and how many of the ops were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Nanos, SpanText, span_text};

/// What an op must keep: it ended well, and within all of these. A suite's table `[goodput]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GoodLimits {
    /// Longest time to first output.
    #[serde(with = "optional_span", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub first_output: Option<Nanos>,
    /// Longest time per output token.
    #[serde(with = "optional_span", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub tpot: Option<Nanos>,
    /// Longest response time.
    #[serde(with = "optional_span", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub response: Option<Nanos>,
}

mod optional_span {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Nanos, SpanText};

    pub(super) fn serialize<S: Serializer>(
        span: &Option<Nanos>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        span.map(SpanText).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Nanos>, D::Error> {
        Ok(Option::<SpanText>::deserialize(deserializer)?.map(|SpanText(span)| span))
    }
}

impl GoodLimits {
    /// Names and limits, as suites and `--goodput` write them.
    pub fn each(self) -> impl Iterator<Item = (&'static str, Nanos)> {
        let all =
            [("first_output", self.first_output), ("tpot", self.tpot), ("response", self.response)];
        all.into_iter().filter_map(|(name, limit)| Some((name, limit?)))
    }

    /// They limit figures that only replies in streams have.
    pub const fn need_streams(self) -> bool {
        self.first_output.is_some() || self.tpot.is_some()
    }

    /// An op that ended well after `response` kept all of them. One without a first output, where
    /// that is limited, kept none; one without a time per token, since it had one token, has no
    /// such time to be too long.
    pub fn are_kept(
        self,
        response: Nanos,
        first_output: Option<Nanos>,
        token_time: Option<Nanos>,
    ) -> bool {
        let within = |limit: Option<Nanos>, time: Nanos| limit.is_none_or(|limit| time < limit);
        within(self.response, response)
            && within(self.first_output, first_output.unwrap_or(Nanos::MAX))
            && within(self.tpot, token_time.unwrap_or(Nanos::ZERO))
    }

    /// `first_output<500ms,tpot<50ms`.
    pub fn text(self) -> String {
        let limits = self.each().map(|(name, limit)| format!("{name}<{}", span_text(limit)));
        limits.collect::<Vec<_>>().join(",")
    }
}

/// How many ops of a load point were good.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goodput {
    /// What they had to keep.
    pub limits: GoodLimits,
    /// Share of good ops in all that were due in the window; failed, unfinished and unsent ones
    /// are not good. `null` where none was due.
    pub share_ratio: Option<f64>,
    /// Uncertainty interval of it.
    pub share_interval_ratio: Option<[f64; 2]>,
    /// Good ops that ended within the window, per second.
    pub per_s: Option<f64>,
    /// Uncertainty interval of it.
    pub interval_per_s: Option<[f64; 2]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_is_good_that_kept_every_limit_it_can_be_held_against() {
        let ms = Nanos::from_millis;
        let limits = GoodLimits { first_output: Some(ms(500)), tpot: Some(ms(50)), response: None };
        let kept = |first: Option<u64>, token: Option<u64>| {
            limits.are_kept(ms(9_000), first.map(ms), token.map(ms))
        };
        assert!(kept(Some(499), Some(49)));
        assert!(!kept(Some(500), Some(49)) && !kept(Some(499), Some(50)));
        assert!(kept(Some(499), None), "one token has no time between tokens");
        assert!(!kept(None, None), "no output came");
        assert!(GoodLimits::default().are_kept(ms(1), None, None));
        let response = GoodLimits { response: Some(ms(10)), ..GoodLimits::default() };
        assert!(!response.are_kept(ms(10), None, None) && !response.need_streams());
        assert_eq!(limits.text(), "first_output<500ms,tpot<50ms");
    }
}
