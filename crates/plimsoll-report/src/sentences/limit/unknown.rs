//! Why no resource is named for a load that is saturated.

use plimsoll_model::limit::{Limit, LimitFacts, NearlyFull, OtherPrograms};
use plimsoll_model::units::{grouped, three_digits, whole_percent};

use super::processors::foremost;

pub(super) fn text(facts: &LimitFacts, others: Option<&OtherPrograms>) -> Option<String> {
    Some(format!("saturated; {}", unknown_resource(facts, others)?))
}

/// Why no resource is named, without the word that the load is saturated; of a limit that is known
/// its text.
pub fn unknown(limit: &Limit) -> String {
    unknown_resource(&limit.facts, limit.others.as_ref()).unwrap_or_else(|| super::text(limit))
}

fn unknown_resource(facts: &LimitFacts, others: Option<&OtherPrograms>) -> Option<String> {
    let because = match facts {
        LimitFacts::NotWatched => "the server's host was not watched".to_owned(),
        LimitFacts::OtherPrograms => format!(
            "other programs had {} of the server's cores{}",
            whole_percent(others.map_or(0.0, |others| others.cores_ratio)),
            others.map(foremost).unwrap_or_default(),
        ),
        LimitFacts::NothingFull { nearest } => {
            let nearest = nearest.as_ref().map(|it| format!("; nearest to it {}", nearly_full(it)));
            format!("none that was watched was full with a queue{}", nearest.unwrap_or_default())
        }
        LimitFacts::Swings { slow_ops_per_s, fast_ops_per_s } => format!(
            "within a second throughput swings between {} ops/s, in the slowest quarter of the \
             time, and {}, in the fastest: two resources take turns or one pauses, which averages \
             over the window do not show",
            grouped(slow_ops_per_s.round()),
            grouped(fast_ops_per_s.round()),
        ),
        _ => return None,
    };
    Some(format!("which resource is not known: {because}"))
}

fn nearly_full(nearest: &NearlyFull) -> String {
    let label = nearest.cores.label();
    let cores = match (nearest.cores.count > 1.0, nearest.cores.of_host) {
        (true, false) => format!("the {label} it may use"),
        (true, true) => format!("the {label} of its host"),
        (false, _) => label,
    };
    format!(
        "{cores}: {} busy, of {} that count as full, with {} threads waiting on average",
        whole_percent(nearest.busy_ratio),
        whole_percent(nearest.full_ratio),
        three_digits(nearest.waiting_threads),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "not_watched"}"#,
            "saturated; which resource is not known: the server's host was not watched",
        ),
        (
            r#"{"kind": "other_programs"}"#,
            "saturated; which resource is not known: other programs had 0 % of the server's cores",
        ),
        (
            r#"{"kind": "nothing_full", "nearest": null}"#,
            "saturated; which resource is not known: none that was watched was full with a queue",
        ),
        (
            r#"{"kind": "nothing_full", "nearest": {"cores": {"count": 4.0, "number": null},
               "busy_ratio": 0.9, "full_ratio": 0.97, "waiting_threads": 1.5}}"#,
            "saturated; which resource is not known: none that was watched was full with a queue; \
             nearest to it the 4 cores it may use: 90 % busy, of 97 % that count as full, with \
             1.50 threads waiting on average",
        ),
        (
            r#"{"kind": "nothing_full", "nearest": {"cores": {"count": 4.0, "number": null,
               "of_host": true}, "busy_ratio": 0.9, "full_ratio": 0.97, "waiting_threads": 1.5}}"#,
            "saturated; which resource is not known: none that was watched was full with a queue; \
             nearest to it the 4 cores of its host: 90 % busy, of 97 % that count as full, with \
             1.50 threads waiting on average",
        ),
        (
            r#"{"kind": "nothing_full", "nearest": {"cores": {"count": 1.0, "number": 2},
               "busy_ratio": 0.9, "full_ratio": 0.97, "waiting_threads": 1.5}}"#,
            "saturated; which resource is not known: none that was watched was full with a queue; \
             nearest to it core 2: 90 % busy, of 97 % that count as full, with 1.50 threads \
             waiting on average",
        ),
        (
            r#"{"kind": "swings", "slow_ops_per_s": 1000.4, "fast_ops_per_s": 9000.4}"#,
            "saturated; which resource is not known: within a second throughput swings between \
             1,000 ops/s, in the slowest quarter of the time, and 9,000, in the fastest: two \
             resources take turns or one pauses, which averages over the window do not show",
        ),
    ];

    #[test]
    fn each_limit_has_its_sentence() {
        check(SENTENCES);
    }
}
