//! Fields of a request that not every server knows: which are sent, and which a server has refused.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::parameters::{LlmWorkload, Offer};

/// The fields that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offers {
    /// The count of tokens at the end of a stream.
    pub(crate) include_usage: bool,
    /// The count so far with each chunk.
    pub(crate) continuous_usage: bool,
    /// Goes on after the model would have ended.
    pub(crate) ignore_eos: bool,
    /// No shorter answers.
    pub(crate) min_tokens: bool,
    /// What bounds the answer.
    pub(crate) limit: Limit,
}

/// Name of the field that bounds an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// As all servers but some of OpenAI's own know it.
    MaxTokens,
    /// As those do.
    MaxCompletionTokens,
}

impl Offers {
    /// Every field.
    pub(crate) const ALL: Self = Self {
        include_usage: true,
        continuous_usage: true,
        ignore_eos: true,
        min_tokens: true,
        limit: Limit::MaxTokens,
    };
    /// None that a server may refuse.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self {
        include_usage: false,
        continuous_usage: false,
        ignore_eos: false,
        min_tokens: false,
        limit: Limit::MaxTokens,
    };

    /// The fields that a suite requests.
    pub(crate) fn from_workload(workload: &LlmWorkload) -> Self {
        Self {
            continuous_usage: workload.continuous_usage != Offer::Off,
            ignore_eos: workload.ignore_eos != Offer::Off,
            min_tokens: workload.min_tokens != Offer::Off,
            ..Self::ALL
        }
    }

    /// What both servers take.
    pub(crate) fn and(self, other: Self) -> Self {
        let limit = match (self.limit, other.limit) {
            (Limit::MaxTokens, Limit::MaxTokens) => Limit::MaxTokens,
            _ => Limit::MaxCompletionTokens,
        };
        Self {
            include_usage: self.include_usage && other.include_usage,
            continuous_usage: self.continuous_usage && other.continuous_usage,
            ignore_eos: self.ignore_eos && other.ignore_eos,
            min_tokens: self.min_tokens && other.min_tokens,
            limit,
        }
    }

    /// Those with a value that is the same for all requests.
    pub(crate) fn fields(self) -> Vec<(&'static str, Json)> {
        let mut fields = vec![("stream", json!(true))];
        match (self.include_usage, self.continuous_usage) {
            (true, true) => fields.push((
                "stream_options",
                json!({"include_usage": true, "continuous_usage_stats": true}),
            )),
            (true, false) => fields.push(("stream_options", json!({"include_usage": true}))),
            (false, _) => {}
        }
        if self.ignore_eos {
            fields.push(("ignore_eos", json!(true)));
        }
        fields
    }

    /// The same without what a server's refusal names, and what that was; `None` where it names
    /// nothing that may be left out.
    pub(crate) fn without_refused(
        self,
        message: &str,
        workload: &LlmWorkload,
    ) -> Option<(Self, &'static str)> {
        let left = |offer: Offer, sent: bool| offer == Offer::Auto && sent;
        // What is longer comes first: one name ends another.
        let fields = [
            ("max_completion_tokens", false, self),
            (
                "max_tokens",
                message.contains("max_completion_tokens") && self.limit == Limit::MaxTokens,
                Self { limit: Limit::MaxCompletionTokens, ..self },
            ),
            (
                "continuous_usage_stats",
                left(workload.continuous_usage, self.continuous_usage),
                Self { continuous_usage: false, ..self },
            ),
            (
                "stream_options",
                self.include_usage,
                Self { include_usage: false, continuous_usage: false, ..self },
            ),
            (
                "include_usage",
                self.include_usage,
                Self { include_usage: false, continuous_usage: false, ..self },
            ),
            (
                "ignore_eos",
                left(workload.ignore_eos, self.ignore_eos),
                Self { ignore_eos: false, ..self },
            ),
            (
                "min_tokens",
                left(workload.min_tokens, self.min_tokens),
                Self { min_tokens: false, ..self },
            ),
        ];
        let named = |name: &str| message.contains(name);
        let refused = fields.into_iter().find(|(name, may_go, _)| *may_go && named(name));
        refused.map(|(name, _, without)| (without, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(message: &str, workload: &LlmWorkload) -> Option<&'static str> {
        Offers::from_workload(workload).without_refused(message, workload).map(|(_, name)| name)
    }

    #[test]
    fn a_refusal_that_names_a_field_takes_it_out() {
        let workload = LlmWorkload::default();
        for (message, name) in [
            ("Unrecognized request argument supplied: ignore_eos", Some("ignore_eos")),
            ("[{'loc': ('body', 'min_tokens'), 'msg': 'Extra inputs'}]", Some("min_tokens")),
            (
                "Unknown parameter: 'stream_options.continuous_usage_stats'.",
                Some("continuous_usage_stats"),
            ),
            ("stream_options is not supported", Some("stream_options")),
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                Some("max_tokens"),
            ),
            ("max_tokens is too large: 128", None),
            ("the model `m` does not exist", None),
        ] {
            assert_eq!(without(message, &workload), name, "{message}");
        }
        let (changed, _) = Offers::ALL
            .without_refused("'max_tokens': use 'max_completion_tokens'", &workload)
            .unwrap();
        assert_eq!(changed.limit, Limit::MaxCompletionTokens);
        assert_eq!(changed.without_refused("'max_completion_tokens' is bad", &workload), None);
    }

    #[test]
    fn what_a_suite_insists_on_stays() {
        let ignore_eos = Offer::On;
        let workload = LlmWorkload { ignore_eos, ..LlmWorkload::default() };
        assert_eq!(without("Unrecognized request argument: ignore_eos", &workload), None);
        let ignore_eos = Offer::Off;
        assert!(!Offers::from_workload(&LlmWorkload { ignore_eos, ..workload }).ignore_eos);
    }
}
