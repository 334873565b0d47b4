//! The numbers as they are in the result: unrounded, unit last in each header, absence empty.

mod generation;

use plimsoll_model::cost::CostFigure;
use plimsoll_model::counters::Counter;
use plimsoll_model::event::Bound;
use plimsoll_model::limit::{Evidence, Limit};
use plimsoll_model::result::{NotCounted, PointResult, RunResult, TimeIntervals, TimeSummary};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BytesPerSec;

use crate::view::metric;

/// Renders `points.csv`, `ops.csv`, `timeline.csv`, `errors.csv`, `resources.csv`, `costs.csv`,
/// `limits.csv` and `curve.csv` as (file name, text).
/// Times are in nanoseconds; `kind` tells points of the ladder from probes of the search.
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
    .map(|(name, sheet)| (name.to_owned(), sheet.text))
    .to_vec()
}

pub(crate) struct Sheet {
    pub(crate) text: String,
}

impl Sheet {
    pub(crate) fn new(header: &[String]) -> Self {
        let mut sheet = Self { text: String::new() };
        sheet.row(header.iter().cloned());
        sheet
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        for (i, cell) in cells.into_iter().enumerate() {
            if i > 0 {
                self.text.push(',');
            }
            self.text.push_str(&quoted(cell));
        }
        self.text.push('\n');
    }
}

/// RFC 4180.
fn quoted(cell: String) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn headers(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

/// Ladder and probes with what tells them apart.
fn all(run: &RunResult) -> impl Iterator<Item = (&'static str, &PointResult)> {
    run.points.iter().map(|p| ("ladder", p)).chain(run.probes.iter().map(|p| ("probe", p)))
}

fn key(kind: &str, point: &PointResult) -> Vec<String> {
    vec![kind.to_owned(), point.position.to_string(), point.requested.to_string()]
}

fn key_headers(run: &RunResult) -> Vec<String> {
    let unit = run.axis.unit.replace('/', "_per_").replace(' ', "_");
    let requested = format!("requested_{unit}");
    let requested = requested.trim_end_matches('_').to_owned();
    vec!["kind".to_owned(), "position".to_owned(), requested]
}

const TIMES: [&str; 9] = ["n", "mean", "mean_error", "p50", "p90", "p95", "p99", "p999", "max"];

fn time_headers(prefix: &str) -> impl Iterator<Item = String> {
    TIMES.into_iter().map(move |name| match name {
        "n" => format!("{prefix}_{name}"),
        _ => format!("{prefix}_{name}_ns"),
    })
}

fn times(summary: Option<TimeSummary>) -> [String; 9] {
    let t = summary.unwrap_or_default();
    [
        text(summary.map(|s| s.n)),
        text(t.mean),
        text(t.mean_error),
        text(t.p50),
        text(t.p90),
        text(t.p95),
        text(t.p99),
        text(t.p999),
        text(t.max),
    ]
}

/// Stated intervals, in this order.
const STATED: [&str; 5] = ["mean", "p50", "p90", "p95", "p99"];

fn interval_headers(prefix: &str) -> Vec<String> {
    let bounds = |name| ["low", "high"].map(|bound| format!("{prefix}_{name}_{bound}_ns"));
    STATED.into_iter().flat_map(bounds).collect()
}

fn intervals(of: Option<TimeIntervals>) -> impl Iterator<Item = String> {
    let t = of.unwrap_or_default();
    [t.mean, t.p50, t.p90, t.p95, t.p99].into_iter().flat_map(bounds)
}

/// Low and high.
fn bounds(interval: Option<[f64; 2]>) -> [String; 2] {
    [0, 1].map(|at| text(interval.map(|bounds| bounds[at])))
}

/// Columns of points that only some suites fill.
#[derive(Clone, Copy)]
struct Further {
    bytes: bool,
    thinks: bool,
    scores: bool,
    costs: bool,
    generation: bool,
    goodput: bool,
}

impl Further {
    fn of(run: &RunResult) -> Self {
        Self {
            bytes: metric(run) == Metric::Bytes,
            thinks: all(run).any(|(_, p)| p.think_s.is_some()),
            scores: all(run).any(|(_, p)| p.score.is_some()),
            costs: all(run).any(|(_, p)| !p.cost.is_empty()),
            generation: all(run).any(|(_, p)| p.generation.is_some()),
            goodput: all(run).any(|(_, p)| p.goodput.is_some()),
        }
    }

    fn headers(self) -> impl Iterator<Item = String> {
        let rates = ["achieved_bytes_per_s", "achieved_mib_per_s", "achieved_mbit_per_s"];
        let rates = self.bytes.then_some(rates).into_iter().flatten();
        let thinks = self.thinks.then_some("think_used_s");
        let scores = self.scores.then_some("score_per_s");
        let others = rates.chain(thinks).chain(scores).map(str::to_owned);
        let costs =
            self.costs.then(|| CostFigure::ALL.map(|figure| format!("server_{}", cost(figure))));
        let set = self.costs.then(|| "data_set_bytes".to_owned());
        let generation = self.generation.then(generation::generation_headers);
        let goodput = self.goodput.then(generation::goodput_headers);
        let own = generation.into_iter().flatten().chain(goodput.into_iter().flatten());
        others.chain(costs.into_iter().flatten()).chain(set).chain(own)
    }

    fn cells(self, point: &PointResult) -> impl Iterator<Item = String> {
        let rate = point.achieved_bytes_per_s.map(BytesPerSec);
        let rates = [
            text(point.achieved_bytes_per_s),
            text(rate.map(BytesPerSec::mib_per_s)),
            text(rate.map(BytesPerSec::mbit_per_s)),
        ];
        let rates = self.bytes.then_some(rates).into_iter().flatten();
        let thinks = self.thinks.then(|| text(point.think_s));
        let others = rates.chain(thinks).chain(self.scores.then(|| text(point.score)));
        let value = |figure| text(point.server_cost(figure).map(|(_, cost)| cost.value));
        let costs = self.costs.then(|| CostFigure::ALL.map(value));
        let set = self.costs.then(|| text(point.data_set_bytes));
        let generation = self.generation.then(|| generation::generation_cells(point));
        let goodput = self.goodput.then(|| generation::goodput_cells(point));
        let own = generation.into_iter().flatten().chain(goodput.into_iter().flatten());
        others.chain(costs.into_iter().flatten()).chain(set).chain(own)
    }
}

fn point_headers(run: &RunResult, further: Further) -> Vec<String> {
    let mut header = key_headers(run);
    header.extend(headers(&[
        "valid",
        "reasons",
        "not_counted",
        "offered_ops_per_s",
        "achieved_ops_per_s",
        "clients_requested",
        "clients_participating",
        "window_s",
    ]));
    header.extend(Counter::ALL.iter().map(|counter| counter.columns().0.to_owned()));
    header.extend(headers(&[
        "generator_cpu_busy_ratio_max",
        "generator_run_delay_ratio_max",
        "generator_cpu_per_op_ns",
        "monitor_cpu_ratio",
        "pacing",
    ]));
    header.extend(["response", "service", "send_lag"].into_iter().flat_map(time_headers));
    header.extend(headers(&[
        "achieved_low_ops_per_s",
        "achieved_high_ops_per_s",
        "receive_lag_p50_ns",
        "receive_lag_p99_ns",
        "headline_bound",
    ]));
    header.extend(["response", "service"].into_iter().flat_map(interval_headers));
    header.extend(headers(&["limit_kind", "limit_place", "limit_text"]));
    header.extend(headers(&["unfinished_ops", "response_exact_to_ns"]));
    header.extend(further.headers());
    header
}

fn points(run: &RunResult) -> Sheet {
    let further = Further::of(run);
    let mut sheet = Sheet::new(&point_headers(run, further));
    for (kind, p) in all(run) {
        let reasons: Vec<_> = p.reasons.iter().map(|r| r.rule.name()).collect();
        let mut row = key(kind, p);
        row.extend([
            p.valid.to_string(),
            reasons.join(" "),
            text(p.not_counted.map(NotCounted::as_str)),
            text(p.offered_ops_per_s),
            text(p.achieved_ops_per_s),
            text(p.clients_requested),
            text(p.clients_participating),
            text(p.seconds),
        ]);
        row.extend(Counter::ALL.iter().map(|counter| text(p.counter(*counter))));
        row.extend([
            text(p.generator.cpu_busy_ratio_max),
            text(p.generator.run_delay_ratio_max),
            text(p.generator.cpu_ns_per_op),
            text(p.generator.monitor_cpu_ratio),
            text(p.generator.pacing.clone()),
        ]);
        row.extend([p.response_ns, p.service_ns, p.send_lag_ns].into_iter().flat_map(times));
        let lag = p.receive_lag_ns.unwrap_or_default();
        row.extend(bounds(p.achieved_interval_ops_per_s));
        row.extend([text(lag.p50), text(lag.p99), headline_bound(run, kind)]);
        row.extend([p.response_interval_ns, p.service_interval_ns].into_iter().flat_map(intervals));
        let limit = &p.limit;
        row.extend([limit_kind(limit), text(limit.place.as_ref()), limit.to_string()]);
        row.push(text(p.censored.map(|censored| censored.unfinished)));
        row.push(text(p.censored.map(|censored| censored.response_exact_to_ns)));
        row.extend(further.cells(p));
        sheet.row(row);
    }
    sheet
}

/// Is the headline the server's limit, or no more than what was asked? Said of the ladder only.
fn headline_bound(run: &RunResult, kind: &str) -> String {
    match run.summary.bound {
        _ if kind != "ladder" || run.summary.value.is_none() => String::new(),
        Bound::Exact => "exact".to_owned(),
        Bound::AtLeast => "at_least".to_owned(),
    }
}

fn limit_kind(limit: &Limit) -> String {
    limit.kind.as_str().to_owned()
}

/// The shape of throughput over load: each figure that there is, with its interval.
fn curve(run: &RunResult) -> Sheet {
    let mut sheet = Sheet::new(&headers(&["figure", "unit", "value", "low", "high"]));
    let Some(shape) = &run.summary.curve else { return sheet };
    let (load, unit) = (run.axis.unit.as_str(), shape.unit.as_str());
    let per_client = format!("{unit} per client");
    let bounds = shape.asymptotes;
    let law = shape.scalability;
    let rows = [
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
    for (figure, unit, value, interval) in rows {
        if let Some(value) = value {
            let begin = [figure.to_owned(), unit.to_owned(), value.to_string()];
            sheet.row(begin.into_iter().chain(self::bounds(interval)));
        }
    }
    sheet
}

/// Each limit of a point with each figure that says so; what held it back as much has a later
/// `rank`.
fn limits(run: &RunResult) -> Sheet {
    let mut header = key_headers(run);
    header.extend(headers(&["rank", "limit_kind", "limit_place"]));
    header.extend(headers(&["figure", "unit", "value", "ceiling", "low_load_value"]));
    let mut sheet = Sheet::new(&header);
    for (kind, point) in all(run) {
        let limits = std::iter::once(&point.limit).chain(&point.limit.also);
        for (rank, limit) in limits.enumerate() {
            let mut begin = key(kind, point);
            begin.extend([(rank + 1).to_string(), limit_kind(limit), text(limit.place.as_ref())]);
            let mut rows: Vec<_> = limit.evidence.iter().map(evidence_cells).collect();
            if rows.is_empty() {
                rows.push(Default::default());
            }
            rows.into_iter().for_each(|cells| sheet.row(begin.iter().cloned().chain(cells)));
        }
    }
    sheet
}

fn evidence_cells(evidence: &Evidence) -> [String; 5] {
    [
        evidence.name.clone(),
        evidence.unit.clone(),
        evidence.value.to_string(),
        text(evidence.ceiling),
        text(evidence.low_load_value),
    ]
}

fn ops(run: &RunResult) -> Sheet {
    let mut header = key_headers(run);
    header.extend(headers(&[
        "op",
        "count",
        "errors",
        "expected_failures",
        "share_ratio",
        "wanted_ratio",
    ]));
    header.extend(["response", "service"].into_iter().flat_map(time_headers));
    let mut sheet = Sheet::new(&header);
    for (kind, point) in all(run) {
        for (name, op) in &point.ops {
            let mut row = key(kind, point);
            let counts = [op.count, op.errors, op.expected_failures].map(|n| n.to_string());
            row.push(name.clone());
            row.extend(counts);
            row.extend([text(op.share_ratio), text(op.wanted_ratio)]);
            row.extend([op.response_ns, op.service_ns].into_iter().flat_map(times));
            sheet.row(row);
        }
    }
    sheet
}

fn timeline(run: &RunResult) -> Sheet {
    let mut header = key_headers(run);
    header.extend(headers(&[
        "second_s",
        "phase",
        "achieved_ops_per_s",
        "errors",
        "response_p50_ns",
        "response_p99_ns",
        "response_max_ns",
        "generator_busy_ratio",
    ]));
    let mut sheet = Sheet::new(&header);
    for (kind, point) in all(run) {
        for s in &point.timeline {
            let mut row = key(kind, point);
            row.extend([
                s.second.to_string(),
                s.phase.clone(),
                s.ops_per_s.to_string(),
                s.errors.to_string(),
                text(s.response_p50_ns),
                text(s.response_p99_ns),
                text(s.response_max_ns),
                text(s.generator_busy_ratio),
            ]);
            sheet.row(row);
        }
    }
    sheet
}

/// Errors by class, then statuses other than expected; the latter have op and statuses.
fn errors(run: &RunResult) -> Sheet {
    let mut header = key_headers(run);
    header.extend(headers(&["class", "op", "expected_status", "actual_status", "ops"]));
    let named = all(run).any(|(_, p)| p.unexpected.iter().any(|seen| seen.actual_name.is_some()));
    if named {
        header.extend(headers(&["expected_name", "actual_name"]));
    }
    let mut sheet = Sheet::new(&header);
    for (kind, point) in all(run) {
        for (class, count) in &point.errors {
            let mut row = key(kind, point);
            let nothing = String::new;
            row.extend([class.clone(), nothing(), nothing(), nothing(), count.to_string()]);
            row.extend(named.then(|| [nothing(), nothing()]).into_iter().flatten());
            sheet.row(row);
        }
        for seen in &point.unexpected {
            let mut row = key(kind, point);
            row.extend([
                "unexpected".to_owned(),
                seen.op.clone(),
                seen.expected.to_string(),
                seen.actual.to_string(),
                seen.count.to_string(),
            ]);
            let names = [&seen.expected_name, &seen.actual_name].map(|name| text(name.as_ref()));
            row.extend(named.then_some(names).into_iter().flatten());
            sheet.row(row);
        }
    }
    sheet
}

/// A cost's column, with its unit.
fn cost(figure: CostFigure) -> String {
    let unit = match figure {
        CostFigure::CpuPerOp => "_ns",
        CostFigure::Memory | CostFigure::PageCache => "_bytes",
        figure if figure.is_share() => "_ratio",
        _ => "",
    };
    format!("{}{unit}", figure.as_str())
}

/// What an op cost each host, a figure a row; `source` is empty for this host.
fn costs(run: &RunResult) -> Sheet {
    let mut header = key_headers(run);
    header.extend(headers(&["of", "source", "figure", "value", "low", "high"]));
    let mut sheet = Sheet::new(&header);
    for (kind, point) in all(run) {
        for host in &point.cost {
            for (figure, found) in &host.figures {
                let mut row = key(kind, point);
                row.extend([
                    host.of.as_str().to_owned(),
                    text(host.source.as_ref()),
                    cost(*figure),
                ]);
                row.push(found.value.to_string());
                row.extend(bounds(found.interval));
                sheet.row(row);
            }
        }
    }
    sheet
}

/// The unit of mean and max is a column, since each resource has its own. `source` is empty for
/// this host.
fn resources(run: &RunResult) -> Sheet {
    let mut header = key_headers(run);
    header.extend(headers(&["resource", "unit", "mean", "max", "source"]));
    let mut sheet = Sheet::new(&header);
    for (kind, point) in all(run) {
        for r in &point.resources {
            let mut row = key(kind, point);
            row.extend([r.name.clone(), r.unit.clone(), r.mean.to_string(), r.max.to_string()]);
            row.push(text(r.source.as_ref()));
            sheet.row(row);
        }
    }
    sheet
}
