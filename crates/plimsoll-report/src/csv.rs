//! The numbers as they are in the result: unrounded, unit last in each header, absence empty.

mod generation;
mod sheet;

use plimsoll_model::cost::{Cost, CostFigure, HostCost};
use plimsoll_model::counters::Counter;
use plimsoll_model::event::{Bound, UnexpectedCount};
use plimsoll_model::limit::{Evidence, Limit};
use plimsoll_model::result::{NotCounted, PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BytesPerSec;

use self::generation::{generation_columns, goodput_columns};
use self::sheet::{OfPoint, all};
use crate::sentences;
use crate::view::metric;

pub(crate) use self::sheet::Sheet;

/// Renders `points.csv`, `ops.csv`, `timeline.csv`, `errors.csv`, `resources.csv`, `costs.csv`,
/// `limits.csv` and `curve.csv` as (file name, text).
/// Times are in nanoseconds; `kind` separates points of the ladder from probes of the search.
pub fn csv(run: &RunResult) -> Vec<(String, String)> {
    [
        ("points.csv", points(run)),
        ("ops.csv", ops(run)),
        ("timeline.csv", timeline(run)),
        ("errors.csv", errors(run)),
        ("resources.csv", resources(run)),
        ("costs.csv", costs(run)),
        ("limits.csv", limits(run)),
        ("curve.csv", curve(run)),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .to_vec()
}

fn points(run: &RunResult) -> String {
    let verdicts = Sheet::of_points(run, |_| [()])
        .point("valid", |p| Some(p.valid))
        .point("reasons", |p| {
            let rules: Vec<_> = p.reasons.iter().map(|reason| reason.rule.name()).collect();
            Some(rules.join(" "))
        })
        .point("not_counted", |p| p.not_counted.map(NotCounted::as_str))
        .point("offered_ops_per_s", |p| p.offered_ops_per_s)
        .point("achieved_ops_per_s", |p| p.achieved_ops_per_s)
        .point("clients_requested", |p| p.clients_requested)
        .point("clients_participating", |p| p.clients_participating)
        .point("window_s", |p| p.seconds);
    let counted = Counter::ALL
        .iter()
        .fold(verdicts, |sheet, it| sheet.point(it.columns().0, |p| p.counter(*it)));
    let timed = counted
        .point("generator_cpu_busy_ratio_max", |p| p.generator.cpu_busy_ratio_max)
        .point("generator_run_delay_ratio_max", |p| p.generator.run_delay_ratio_max)
        .point("generator_cpu_per_op_ns", |p| p.generator.cpu_ns_per_op)
        .point("monitor_cpu_ratio", |p| p.generator.monitor_cpu_ratio)
        .point("pacing", |p| p.generator.pacing.clone())
        .times("response", |it| it.point.response_ns)
        .times("service", |it| it.point.service_ns)
        .times("send_lag", |it| it.point.send_lag_ns)
        .bounds(["achieved_low_ops_per_s", "achieved_high_ops_per_s"], |it| {
            it.point.achieved_interval_ops_per_s
        })
        .point("receive_lag_p50_ns", |p| p.receive_lag_ns?.p50)
        .point("receive_lag_p99_ns", |p| p.receive_lag_ns?.p99)
        .column("headline_bound", |it| headline_bound(run, it.kind))
        .intervals("response", |it| it.point.response_interval_ns)
        .intervals("service", |it| it.point.service_interval_ns)
        .point("limit_kind", |p| Some(p.limit.kind.as_str()))
        .point("limit_place", |p| p.limit.place.as_ref())
        .point("limit_text", |p| Some(sentences::limit::text(&p.limit)))
        .point("unfinished_ops", |p| Some(p.censored?.unfinished))
        .point("response_exact_to_ns", |p| Some(p.censored?.response_exact_to_ns));
    of_some_suites(run, timed).text()
}

/// Adds the columns of points that only some suites fill.
fn of_some_suites<'r>(run: &RunResult, points: Sheet<OfPoint<'r, ()>>) -> Sheet<OfPoint<'r, ()>> {
    let any = |has: fn(&PointResult) -> bool| all(run).any(|(_, point)| has(point));
    let rate = |point: &PointResult| point.achieved_bytes_per_s.map(BytesPerSec);
    points
        .columns_if(metric(run) == Metric::Bytes, |points| {
            points
                .point("achieved_bytes_per_s", |p| p.achieved_bytes_per_s)
                .point("achieved_mib_per_s", |p| Some(rate(p)?.mib_per_s()))
                .point("achieved_mbit_per_s", |p| Some(rate(p)?.mbit_per_s()))
        })
        .columns_if(any(|p| p.think_s.is_some()), |points| {
            points.point("think_used_s", |p| p.think_s)
        })
        .columns_if(any(|p| p.score.is_some()), |points| points.point("score_per_s", |p| p.score))
        .columns_if(any(|p| !p.cost.is_empty()), |points| {
            let costs = CostFigure::ALL.into_iter().fold(points, |points, figure| {
                points.point(&format!("server_{}", cost_column(figure)), |p| {
                    p.server_cost(figure).map(|(_, cost)| cost.value)
                })
            });
            costs.point("data_set_bytes", |p| p.data_set_bytes)
        })
        .columns_if(any(|p| p.page_cache.is_some()), |points| {
            let predicted = |p: &PointResult| p.page_cache.as_ref()?.predicted.as_ref()?.miss_ratio;
            points
                .point("miss_ratio", |p| Some(p.page_cache.as_ref()?.miss_ratio))
                .point("miss_ratio_predicted", predicted)
                .point("memory_for_files_bytes", |p| p.page_cache.as_ref()?.available_bytes)
        })
        .columns_if(any(|p| p.journeys.is_some()), |points| {
            let of = |p: &PointResult| p.journeys.clone();
            points
                .point("journeys_begun", move |p| Some(of(p)?.begun))
                .point("journeys_completed", move |p| Some(of(p)?.completed))
                .point("journeys_failed", move |p| Some(of(p)?.failed))
                .point("journeys_abandoned", move |p| Some(of(p)?.abandoned))
                .point("journeys_completed_per_s", move |p| of(p)?.completed_per_s)
                .point("journey_p50_ns", move |p| of(p)?.time_ns?.p50)
                .point("journey_p95_ns", move |p| of(p)?.time_ns?.p95)
                .point("journey_busy_p50_ns", move |p| of(p)?.busy_ns?.p50)
        })
        .columns_if(any(|p| p.compound_calls.is_some()), |points| {
            let of = |p: &PointResult| p.compound_calls;
            points
                .point("compounds_per_s", move |p| of(p)?.compounds_per_s)
                .point("operations_per_s", move |p| of(p)?.operations_per_s)
                .point("opens_per_s", move |p| of(p)?.opens_per_s)
                .point("open_p50_ns", move |p| of(p)?.open_ns?.p50)
                .point("open_p99_ns", move |p| of(p)?.open_ns?.p99)
                .point("close_p50_ns", move |p| of(p)?.close_ns?.p50)
                .point("close_p99_ns", move |p| of(p)?.close_ns?.p99)
                .point("slot_wait_p50_ns", move |p| of(p)?.slot_wait_ns?.p50)
                .point("slot_wait_p99_ns", move |p| of(p)?.slot_wait_ns?.p99)
        })
        .columns_if(any(|p| p.generation.is_some()), generation_columns)
        .columns_if(any(|p| p.goodput.is_some()), goodput_columns)
}

/// Is the headline the server's limit, or only the requested load? For the ladder only.
fn headline_bound(run: &RunResult, kind: &str) -> Option<&'static str> {
    match run.summary.bound {
        _ if kind != "ladder" || run.summary.value.is_none() => None,
        Bound::Exact => Some("exact"),
        Bound::AtLeast => Some("at_least"),
    }
}

/// The shape of throughput over load: each figure that there is, with its interval.
fn curve(run: &RunResult) -> String {
    let shape = run.summary.curve.clone().unwrap_or_default();
    let (load, unit) = (run.axis.unit.as_str(), shape.unit.as_str());
    let per_client = format!("{unit} per client");
    let bounds = shape.asymptotes;
    let law = shape.scalability;
    let figures = [
        ("per_client", per_client.as_str(), bounds.map(|it| it.per_client), None),
        ("ceiling", unit, bounds.map(|it| it.ceiling), None),
        ("queueing_from", load, bounds.and_then(|it| it.queueing_from), None),
        ("knee", load, shape.knee.map(|it| it.load), shape.knee.map(|it| [it.low, it.high])),
        ("not_followed_from", load, shape.not_followed_from, None),
        ("peak_load", load, shape.peak.map(|it| it.load), None),
        ("peak", unit, shape.peak.map(|it| it.throughput), None),
        ("scalability_gamma", unit, law.map(|it| it.gamma), None),
        ("scalability_alpha", "", law.map(|it| it.alpha), law.map(|it| it.alpha_interval)),
        ("scalability_beta", "", law.map(|it| it.beta), law.map(|it| it.beta_interval)),
    ];
    Sheet::new(figures.into_iter().filter(|(_, _, value, _)| value.is_some()))
        .column("figure", |(figure, ..)| Some(*figure))
        .column("unit", |(_, unit, ..)| Some(*unit))
        .column("value", |(_, _, value, _)| *value)
        .bounds(["low", "high"], |(.., interval)| *interval)
        .text()
}

/// Each limit of a point with each figure behind it; other limits at the same load have a later
/// `rank`.
fn limits(run: &RunResult) -> String {
    Sheet::of_points(run, limit_figures)
        .item("rank", |it| Some(it.rank))
        .item("limit_kind", |it| Some(it.limit.kind.as_str()))
        .item("limit_place", |it| it.limit.place.as_ref())
        .item("figure", |it| Some(&it.figure?.name))
        .item("unit", |it| Some(&it.figure?.unit))
        .item("value", |it| Some(it.figure?.value))
        .item("ceiling", |it| it.figure?.ceiling)
        .item("low_load_value", |it| it.figure?.low_load_value)
        .text()
}

struct LimitFigure<'r> {
    rank: usize,
    limit: &'r Limit,
    /// Absent of a limit without any.
    figure: Option<&'r Evidence>,
}

fn limit_figures(point: &PointResult) -> impl Iterator<Item = LimitFigure<'_>> {
    let limits = std::iter::once(&point.limit).chain(&point.limit.also);
    (1..).zip(limits).flat_map(|(rank, limit)| {
        let none = limit.evidence.is_empty().then_some(None);
        let figures = limit.evidence.iter().map(Some).chain(none);
        figures.map(move |figure| LimitFigure { rank, limit, figure })
    })
}

fn ops(run: &RunResult) -> String {
    Sheet::of_points(run, |point| &point.ops)
        .item("op", |(name, _)| Some(*name))
        .item("count", |(_, op)| Some(op.count))
        .item("errors", |(_, op)| Some(op.errors))
        .item("expected_failures", |(_, op)| Some(op.expected_failures))
        .item("share_ratio", |(_, op)| op.share_ratio)
        .item("wanted_ratio", |(_, op)| op.wanted_ratio)
        .times("response", |it| it.item.1.response_ns)
        .times("service", |it| it.item.1.service_ns)
        .text()
}

fn timeline(run: &RunResult) -> String {
    Sheet::of_points(run, |point| &point.timeline)
        .item("second_s", |it| Some(it.second))
        .item("phase", |it| Some(&it.phase))
        .item("achieved_ops_per_s", |it| Some(it.ops_per_s))
        .item("errors", |it| Some(it.errors))
        .item("response_p50_ns", |it| it.response_p50_ns)
        .item("response_p99_ns", |it| it.response_p99_ns)
        .item("response_max_ns", |it| it.response_max_ns)
        .item("generator_busy_ratio", |it| it.generator_busy_ratio)
        .columns_if(run.load_shape.is_some(), |sheet| {
            sheet
                .item("requested", |it| it.requested)
                .item("outstanding_ops", |it| it.outstanding_ops)
        })
        .text()
}

/// Errors by class, then statuses other than expected; the latter have op and statuses.
fn errors(run: &RunResult) -> String {
    let unexpected = all(run).flat_map(|(_, point)| &point.unexpected);
    let is_named = unexpected.filter(|it| it.actual_name.is_some()).count() > 0;
    Sheet::of_points(run, point_errors)
        .item("class", |it| Some(it.class))
        .item("op", |it| Some(&it.unexpected?.op))
        .item("expected_status", |it| Some(it.unexpected?.expected))
        .item("actual_status", |it| Some(it.unexpected?.actual))
        .item("ops", |it| Some(it.ops))
        .columns_if(is_named, |sheet| {
            sheet
                .item("expected_name", |it| it.unexpected?.expected_name.as_ref())
                .item("actual_name", |it| it.unexpected?.actual_name.as_ref())
        })
        .text()
}

struct ErrorCount<'r> {
    class: &'r str,
    ops: u64,
    unexpected: Option<&'r UnexpectedCount>,
}

fn point_errors(point: &PointResult) -> impl Iterator<Item = ErrorCount<'_>> {
    let errors = point.errors.iter();
    let by_class = errors.map(|(class, ops)| ErrorCount { class, ops: *ops, unexpected: None });
    by_class.chain(point.unexpected.iter().map(|it| ErrorCount {
        class: "unexpected",
        ops: it.count,
        unexpected: Some(it),
    }))
}

/// A cost's column, with its unit.
fn cost_column(figure: CostFigure) -> String {
    let unit = match figure {
        CostFigure::CpuPerOp => "_ns",
        CostFigure::Memory | CostFigure::PageCache => "_bytes",
        figure if figure.is_share() => "_ratio",
        _ => "",
    };
    format!("{}{unit}", figure.as_str())
}

/// What an op cost each host, a figure a row; `source` is empty for this host.
fn costs(run: &RunResult) -> String {
    Sheet::of_points(run, host_costs)
        .item("of", |(host, ..)| Some(host.of.as_str()))
        .item("source", |(host, ..)| host.source.as_ref())
        .item("figure", |(_, figure, _)| Some(cost_column(*figure)))
        .item("value", |(.., cost)| Some(cost.value))
        .bounds(["low", "high"], |it| it.item.2.interval)
        .text()
}

fn host_costs(point: &PointResult) -> impl Iterator<Item = (&HostCost, CostFigure, &Cost)> {
    point.cost.iter().flat_map(|host| host.figures.iter().map(move |(it, cost)| (host, *it, cost)))
}

/// The unit of mean and max is a column, since each resource has its own. `source` is empty for
/// this host.
fn resources(run: &RunResult) -> String {
    Sheet::of_points(run, |point| &point.resources)
        .item("resource", |it| Some(&it.name))
        .item("unit", |it| Some(&it.unit))
        .item("mean", |it| Some(it.mean))
        .item("max", |it| Some(it.max))
        .item("source", |it| it.source.as_ref())
        .text()
}
