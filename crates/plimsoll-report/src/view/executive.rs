//! What a reader in a hurry must know: peak, response at it and below, what limits it, capacity.

use plimsoll_model::capacity::Figure;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult};

use super::capacity;
use super::generation;
use super::headline::{self, headline_point};
use super::load_shape;
use super::promises;
use crate::sentences::finding;
use crate::text::{capitalised, load, number};

/// In this order, each as far as known. A price, if any, comes last.
pub(super) fn sentences(run: &RunResult) -> Vec<String> {
    let lost = run.server_lost().map(|rule| capitalised(&format!("{}.", finding::cause(rule))));
    if run.points.is_empty() {
        return lost.into_iter().collect();
    }
    let point = headline_point(run);
    let generated = [
        point.and_then(|point| generation::sentence(run, point)),
        point.and_then(generation::goodput_sentence),
    ];
    let promised = promises::sentence(run);
    let recovered = load_shape::sentences(run);
    let all = [lost].into_iter().chain(recovered.into_iter().map(Some));
    let all = all.chain([Some(peak(run))]).chain(generated);
    all.chain([promised, limit(run), capacity(run)]).flatten().collect()
}

fn peak(run: &RunResult) -> String {
    let point = headline_point(run).filter(|point| point.counts());
    let (Some(point), Some(_)) = (point, run.summary.value) else {
        return format!("No load point counts: there is no {}.", run.summary.metric);
    };
    let what = match run.suite {
        Some(_) => "The server reached",
        None => "The curve reaches",
    };
    let score =
        run.summary.score_note.as_ref().map(|_| match ReportedFigure::score(&run.summary) {
            Some(score) => format!(" The score is {} tps.", number(Some(score.value))),
            None => " There is no score.".to_owned(),
        });
    let (value, load_text, response) = (headline::value(run), at_load(run, point), response(point));
    format!("{what} {value}{load_text}{response}.{}", score.unwrap_or_default())
}

fn at_load(run: &RunResult, point: &PointResult) -> String {
    match run.axis.unit.as_str() {
        // The load already gives the figure.
        "ops/s" => String::new(),
        "clients" => format!(" at {}", load(point.requested, &run.axis)),
        "" => format!(" at {}", load(point.requested, &run.axis)),
        _ => format!(" at a {} of {}", run.axis.name, load(point.requested, &run.axis)),
    }
}

fn response(point: &PointResult) -> String {
    let [median, p99] = [Figure::P50, Figure::P99]
        .map(|which| ReportedFigure::response(point, which).map(|time| time.short_time_text()));
    match (median, p99) {
        (Some(median), Some(p99)) => {
            format!(", with a response time of {median} at the median and {p99} at p99")
        }
        (Some(median), None) => format!(", with a response time of {median} at the median"),
        _ => {
            let mean = ReportedFigure::response(point, Figure::Mean)
                .or(ReportedFigure::service(point, Figure::Mean));
            mean.map(|mean| format!(", with a mean time of {}", mean.short_time_text()))
                .unwrap_or_default()
        }
    }
}

fn limit(run: &RunResult) -> Option<String> {
    let text = run.summary.limit.as_deref()?.trim_end_matches('.');
    Some(format!("What limited it: {text}."))
}

fn capacity(run: &RunResult) -> Option<String> {
    Some(format!("Capacity: {}", capacity::view(run)?.claim))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::result::{Axis, Summary, TimeSummary};

    use super::*;

    fn run(value: Option<f64>, unit: &str) -> RunResult {
        let times = TimeSummary { n: 9, p50: Some(310_000), p99: None, ..TimeSummary::default() };
        let point = PointResult {
            valid: true,
            requested: 16.0,
            achieved_ops_per_s: Some(900.0),
            response_ns: Some(times),
            ..PointResult::default()
        };
        RunResult {
            suite: Some(plimsoll_model::result::SuiteSummary::default()),
            axis: Axis { name: "load".to_owned(), unit: unit.to_owned() },
            summary: Summary {
                metric: "peak".to_owned(),
                unit: "ops/s".to_owned(),
                value,
                limit: Some("core 1 was full".to_owned()),
                ..Summary::default()
            },
            points: vec![point],
            ..RunResult::default()
        }
    }

    #[test]
    fn the_sentences_say_peak_response_and_limit_as_far_as_they_are_known() {
        assert_eq!(
            sentences(&run(Some(900.0), "clients")),
            [
                "The server reached 900 ops/s at 16 clients, with a response time of 310 µs at the \
                 median.",
                "What limited it: core 1 was full.",
            ]
        );
        assert_eq!(sentences(&run(None, ""))[0], "No load point counts: there is no peak.");
        let open = sentences(&run(Some(900.0), "ops/s"));
        assert!(open[0].starts_with("The server reached 900 ops/s, with"), "{open:?}");
        assert!(sentences(&RunResult::default()).is_empty());
    }
}
