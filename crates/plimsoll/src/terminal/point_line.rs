//! One load point on one line: while it runs, and when it has finished.

use plimsoll_analysis::search::ProbeOutcome;
use plimsoll_model::assignment::Phases;
use plimsoll_model::capacity::Figure;
use plimsoll_model::finding::Finding;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::PointResult;
use plimsoll_model::units::{BytesPerSec, Nanos, grouped};
use plimsoll_report::sentences::finding;
use plimsoll_run::LoadUnit;

use super::Style;

/// Printed before the first point of a ladder: the amount of work.
pub(crate) fn opening_line(loads: &[f64], unit: LoadUnit, phases: &Phases) -> String {
    let lengths = lengths(phases);
    match loads {
        [load] => format!("{}, {lengths}", unit.text(*load)),
        loads => format!("{} load points, {lengths} each", loads.len()),
    }
}

/// `5 s warm-up + 30 s`.
pub(super) fn lengths(phases: &Phases) -> String {
    let window = match phases.ops {
        Some(ops) => format!("{} ops in all", grouped(ops as f64)),
        None => span(phases.measure_ns),
    };
    match warm_up(phases) {
        Some(warm_up) => format!("{warm_up} + {window}"),
        None => window,
    }
}

/// `5 s warm-up`, where there is one.
pub(super) fn warm_up(phases: &Phases) -> Option<String> {
    let length = Some(phases.warm_up_ns).filter(|length| *length > Nanos::ZERO);
    length.map(|length| format!("{} warm-up", span(length)))
}

/// `5 s`, since people mostly write whole numbers.
fn span(length: Nanos) -> String {
    match length.as_secs_f64() {
        seconds if seconds >= 1.0 && seconds.fract() == 0.0 => format!("{seconds} s"),
        _ => length.to_string(),
    }
}

/// Printed when a point of the ladder has finished.
pub(crate) fn finished_line(title: &str, point: &PointResult, style: Style) -> String {
    let verdict = match (point.reasons.first(), &point.not_counted_because) {
        (Some(reason), _) => format!("{} ({})", style.bad("invalid"), rule_text(reason)),
        (None, Some(why)) => format!("{} ({})", style.mixed("not counted"), rule_text(why)),
        (None, None) if point.valid => style.good("valid"),
        (None, None) => style.bad("invalid"),
    };
    format!("{}, {verdict}", figures(title, point))
}

/// The rule alone; the end of the run gives the full reason.
fn rule_text(finding: &Finding) -> String {
    finding.rule.name().replace('_', " ")
}

/// Printed when a step of the search has finished. A search looks for loads that are too high: they
/// are no fault of the run.
pub(crate) fn search_line(title: &str, point: &PointResult, style: Style) -> String {
    let figures = figures(title, point);
    let outcome = ProbeOutcome::from_point(point);
    // The closed probe requests no load that could be sustained.
    let open = outcome.offered.is_some();
    match outcome.why_not {
        None if open => format!("{figures}, {}", style.good("held")),
        None => figures,
        Some(rule) if open => {
            format!("{figures}, {}: {}", style.mixed("not held"), finding::cause(&rule))
        }
        Some(rule) => format!("{figures}, {}", finding::cause(&rule)),
    }
}

fn figures(title: &str, point: &PointResult) -> String {
    let errors: u64 = point.errors.values().sum();
    let ops = point.achieved_ops_per_s.map_or("–".to_owned(), grouped);
    let bytes = point.achieved_bytes_per_s;
    let bytes = bytes.map_or(String::new(), |rate| format!("{}, ", BytesPerSec(rate)));
    let clients = match (point.clients_requested, point.clients_participating) {
        (Some(requested), Some(stayed)) if stayed < requested => {
            format!("{stayed} of {requested} clients, ")
        }
        _ => String::new(),
    };
    format!(
        "{title}: {clients}{bytes}{ops}/s, p50 {}, p99 {}, {errors} errors",
        response(point, Figure::P50),
        response(point, Figure::P99),
    )
}

/// A time, or a dash if the sample is too small.
pub(super) fn time(ns: Option<u64>) -> String {
    ns.map_or("–".to_owned(), |ns| Nanos(ns).to_string())
}

/// A response time, with its interval if that is wide, or a dash if the sample is too small.
pub(super) fn response(point: &PointResult, figure: Figure) -> String {
    let reported = ReportedFigure::response(point, figure);
    reported.map_or("–".to_owned(), |reported| reported.short_time_text())
}

#[cfg(test)]
mod tests {
    use plimsoll_model::finding::{OpsLeft, Rule};
    use plimsoll_model::result::NotCounted;

    use super::*;

    fn late() -> Finding {
        let (due, not_sent, unfinished, failed) = (2_000, 0, 0, 0);
        let rate = Rule::Rate {
            achieved_ops_per_s: 1_234.0,
            scheduled_ops_per_s: 2_000.0,
            off_ratio: 0.38,
            limit_ratio: 0.05,
            ops: OpsLeft { due, not_sent, unfinished, failed },
        };
        rate.of_run()
    }

    #[test]
    fn a_finished_point_says_why_it_is_invalid() {
        let mut point = PointResult { achieved_ops_per_s: Some(1234.0), ..PointResult::default() };
        point.reasons.push(late());
        assert_eq!(
            finished_line("point 1/2", &point, Style::new(false)),
            "point 1/2: 1,234/s, p50 –, p99 –, 0 errors, invalid (rate)"
        );
    }

    #[test]
    fn a_point_that_the_suite_does_not_count_is_not_called_invalid() {
        let above = Rule::ResponseCap { mean_ms: 50.0, cap_ms: 40.0 }.of_point(3);
        let point = PointResult {
            valid: true,
            not_counted: Some(NotCounted::Cap),
            not_counted_because: Some(above),
            ..PointResult::default()
        };
        let line = finished_line("point 3/3", &point, Style::new(false));
        assert!(line.ends_with(", not counted (response cap)"), "{line}");
    }

    #[test]
    fn a_search_step_is_held_or_not_and_never_invalid() {
        let point = PointResult {
            achieved_ops_per_s: Some(1234.0),
            offered_ops_per_s: Some(1234.0),
            ..PointResult::default()
        };
        let line = |point: &PointResult| search_line("probe", point, Style::new(false));
        assert!(line(&point).ends_with("0 errors, held"), "{}", line(&point));
        let saturating = PointResult { offered_ops_per_s: None, ..point.clone() };
        assert!(line(&saturating).ends_with("0 errors"), "{}", line(&saturating));
        let mut missed = point;
        missed.reasons.push(late());
        let line = line(&missed);
        assert!(line.contains("not held: load not held: achieved 1,234 of 2,000 ops/s"), "{line}");
        assert!(!line.contains("ask for less"), "{line}");
    }

    #[test]
    fn a_ladder_opens_with_what_there_is_to_do() {
        let phases = Phases {
            warm_up_ns: Nanos::from_secs(5),
            measure_ns: Nanos::from_millis(1_500),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: Nanos::ZERO,
            ops: None,
        };
        let opening = |phases| opening_line(&[64.0], LoadUnit::Clients, &phases);
        assert_eq!(opening(phases), "64 clients, 5 s warm-up + 1.50 s");
        assert_eq!(
            opening_line(&[1.0, 2.0], LoadUnit::Rate("ops/s"), &phases),
            "2 load points, 5 s warm-up + 1.50 s each"
        );
        let counted = Phases { ops: Some(1_000), ..phases };
        assert_eq!(opening(counted), "64 clients, 5 s warm-up + 1,000 ops in all");
        let cold = Phases { warm_up_ns: Nanos::ZERO, ..phases };
        assert_eq!(opening(cold), "64 clients, 1.50 s");
        assert_eq!(opening(Phases { ops: Some(5), ..cold }), "64 clients, 5 ops in all");
    }

    #[test]
    fn a_point_of_file_serving_shows_its_bytes_and_who_took_part() {
        let point = PointResult {
            achieved_ops_per_s: Some(1234.0),
            achieved_bytes_per_s: Some(8_398_371.0),
            clients_requested: Some(28),
            clients_participating: Some(24),
            valid: true,
            ..PointResult::default()
        };
        let line = finished_line("point 8/16", &point, Style::new(false));
        let begin = "point 8/16: 24 of 28 clients, 8.01 MiB/s, 1,234/s, p50";
        assert!(line.starts_with(begin), "{line}");
    }
}
