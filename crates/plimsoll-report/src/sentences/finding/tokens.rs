//! Are the tokens of answers what they should be?

use plimsoll_model::finding::{Rule, TokenFault};
use plimsoll_model::units::{grouped, percent};

use super::{Text, advised, count};

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::Tokens { fault, requests, of_requests } => of_fault(*fault, *requests, *of_requests),
        Rule::TokensApart { server_per_s, answers_per_s, limit_ratio } => Text::from(format!(
            "the server's /metrics counted {} output tokens/s and the answers have {} (limit \
             {} apart)",
            grouped(*server_per_s),
            grouped(*answers_per_s),
            percent(*limit_ratio),
        ))
        .advise(match server_per_s > answers_per_s {
            true => {
                "others use this server, or answers were lost on their way: have it for \
                 yourself, and look at the errors"
            }
            false => {
                "the page is of one server and others answer too, or it counts otherwise: \
                 measure the servers one by one"
            }
        }),
        _ => return None,
    })
}

fn of_fault(fault: TokenFault, requests: u64, of_requests: u64) -> Text {
    let of = format!("{} of {} answers", count(requests), count(of_requests));
    match fault {
        TokenFault::Uncounted if requests == of_requests => advised(
            "no answer says how many tokens it has, so there are chunks and characters a second, \
             and no tokens",
            "ask the server for usage in streams (stream_options.include_usage), if it has that",
        ),
        TokenFault::Uncounted => advised(
            format!("{of} do not say how many tokens they have; the rate of tokens is the others'"),
            "look for answers that were cut off, or for a proxy that drops the last chunk",
        ),
        TokenFault::Mismatched => advised(
            format!("{of} say that they have fewer tokens than chunks with text, which cannot be"),
            "do not rely on figures of tokens; those of chunks and characters hold",
        ),
        TokenFault::Contradictory => Text::from(format!(
            "{of} have a usage that contradicts itself: total_tokens is not prompt_tokens and \
             completion_tokens together, or reasoning_tokens are more than completion_tokens; \
             reasoning outside of completion_tokens was counted with it, by total_tokens"
        ))
        .advise("compare output tokens/s with the server's own counters, or by characters/s"),
        TokenFault::CutAtLength => Text::from(format!(
            "{of} have fewer tokens than were asked for, and the server says that it ended \
             them at a length (finish_reason length)"
        ))
        .advise(
            "raise the server's limit of tokens of an answer or of its context, or ask for fewer",
        ),
        TokenFault::CutShort => Text::from(format!(
            "{of} have fewer tokens than were asked for: the model ended them, or the server \
             did and does not say so"
        ))
        .advise(
            "the lengths in the result are those that were measured; a server that takes \
             ignore_eos or min_tokens gives all",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "tokens", "fault": "uncounted", "requests": 9, "of_requests": 9}"#,
            "no answer says how many tokens it has, so there are chunks and characters a second, \
             and no tokens; ask the server for usage in streams (stream_options.include_usage), if \
             it has that",
        ),
        (
            r#"{"kind": "tokens", "fault": "uncounted", "requests": 4, "of_requests": 9}"#,
            "4 of 9 answers do not say how many tokens they have; the rate of tokens is the \
             others'; look for answers that were cut off, or for a proxy that drops the last chunk",
        ),
        (
            r#"{"kind": "tokens", "fault": "mismatched", "requests": 4, "of_requests": 9}"#,
            "4 of 9 answers say that they have fewer tokens than chunks with text, which cannot \
             be; do not rely on figures of tokens; those of chunks and characters hold",
        ),
        (
            r#"{"kind": "tokens", "fault": "contradictory", "requests": 4, "of_requests": 9}"#,
            "4 of 9 answers have a usage that contradicts itself: total_tokens is not \
             prompt_tokens and completion_tokens together, or reasoning_tokens are more than \
             completion_tokens; reasoning outside of completion_tokens was counted with it, by \
             total_tokens; compare output tokens/s with the server's own counters, or by \
             characters/s",
        ),
        (
            r#"{"kind": "tokens", "fault": "cut_short", "requests": 4, "of_requests": 9}"#,
            "4 of 9 answers have fewer tokens than were asked for: the model ended them, or the \
             server did and does not say so; the lengths in the result are those that were \
             measured; a server that takes ignore_eos or min_tokens gives all",
        ),
        (
            r#"{"kind": "tokens", "fault": "cut_at_length", "requests": 4, "of_requests": 9}"#,
            "4 of 9 answers have fewer tokens than were asked for, and the server says that it \
             ended them at a length (finish_reason length); raise the server's limit of tokens of \
             an answer or of its context, or ask for fewer",
        ),
        (
            r#"{"kind": "tokens_apart", "server_per_s": 1200.0, "answers_per_s": 1000.0,
               "limit_ratio": 0.05}"#,
            "the server's /metrics counted 1,200 output tokens/s and the answers have 1,000 \
             (limit 5 % apart); others use this server, or answers were lost on their way: have it \
             for yourself, and look at the errors",
        ),
        (
            r#"{"kind": "tokens_apart", "server_per_s": 800.0, "answers_per_s": 1000.0,
               "limit_ratio": 0.05}"#,
            "the server's /metrics counted 800 output tokens/s and the answers have 1,000 (limit \
             5 % apart); the page is of one server and others answer too, or it counts otherwise: \
             measure the servers one by one",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
