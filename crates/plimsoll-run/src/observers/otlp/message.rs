//! Load points and seconds as OpenTelemetry messages. `docs/export.md` explains them to users.

use plimsoll_model::assignment::{PointId, Purpose};
use plimsoll_model::event::TimeKind::{self, ChunkGap, FirstOutput, Response, Service, TokenTime};
use plimsoll_model::limit::{Limit, LimitFacts};
use plimsoll_model::monitored::SourceRole::{Other, Server};
use plimsoll_model::result::{AgentResult, OpResult, PointResult, RunResult};

use super::super::{BeginningPoint, FinishedPoint, SecondView};
use super::exponential::Exponential;
use super::wire::{
    AnyValue, ArrayValue, Buckets, CUMULATIVE, Data, ExponentialHistogram,
    ExponentialHistogramDataPoint, ExportMetricsServiceRequest, Gauge, InstrumentationScope,
    KeyValue, Metric, Number, NumberDataPoint, Resource, ResourceMetrics, ScopeMetrics, Sum, Value,
};

const NAME: &str = "plimsoll";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The host of the program that coordinates the run, as `--monitor` names it.
const THIS_HOST: &str = "local";

type CountOf = fn(&OpResult) -> u64;
type FigureOf = fn(&PointResult) -> Option<f64>;
type AgentFigureOf = fn(&AgentResult) -> Option<f64>;
type SecondFigureOf = fn(&SecondView) -> Option<f64>;

/// Distributions, by op.
const HISTOGRAMS: [(&str, &str, TimeKind); 2] = [
    ("plimsoll.response.duration", "Time from due to done, failed ops among them", Response),
    ("plimsoll.service.duration", "Time from sent to done, of ops that did not fail", Service),
];
/// The same of streamed replies, if there are any.
const STREAM_HISTOGRAMS: [(&str, &str, TimeKind); 3] = [
    (
        "plimsoll.first_output.duration",
        "Time from due to the first output of any kind",
        FirstOutput,
    ),
    ("plimsoll.output_token.duration", "Time per output token after the first", TokenTime),
    ("plimsoll.chunk_gap.duration", "Time from one chunk with output to the next", ChunkGap),
];
/// Counts, by op.
const SUMS: [(&str, &str, CountOf); 2] = [
    ("plimsoll.ops", "Ops due in the window that ended, however", |op| op.count),
    ("plimsoll.errors", "Of those, failed", |op| op.errors),
];
const GAUGES: [(&str, &str, &str, FigureOf); 7] = [
    ("plimsoll.throughput.requested", "{op}/s", "Ops due in the window", |point| {
        point.offered_ops_per_s
    }),
    ("plimsoll.throughput.achieved", "{op}/s", "Ops done without error in the window", |point| {
        point.achieved_ops_per_s
    }),
    ("plimsoll.point.valid", "1", "1 where every rule of validity held, else 0", |point| {
        Some(f64::from(u8::from(point.valid)))
    }),
    ("plimsoll.generator.busy", "1", "Busiest worker's share of its core", |point| {
        point.generator.cpu_busy_ratio_max
    }),
    ("plimsoll.generator.send_lag", "s", "Mean time from due to sent", |point| {
        Some(point.send_lag_ns?.mean? / 1e9)
    }),
    ("plimsoll.throughput.output_tokens", "{token}/s", "Output tokens in the window", |point| {
        point.generation.as_ref()?.output_tokens_per_s
    }),
    ("plimsoll.goodput", "1", "Part of the ops due that kept the limits of a good one", |point| {
        point.goodput.as_ref()?.share_ratio
    }),
];

const AGENT_GAUGES: [(&str, &str, &str, AgentFigureOf); 3] = [
    ("plimsoll.agent.throughput", "{op}/s", "Ops it finished", |agent| agent.achieved_ops_per_s),
    ("plimsoll.agent.errors", "{op}", "Ops that failed", |agent| Some(agent.errors as f64)),
    ("plimsoll.agent.busy", "1", "Its busiest worker's share", |agent| agent.cpu_busy_ratio_max),
];
/// Means over the window by host and device, the star in the name of a resource of the bundle.
const RESOURCE_GAUGES: [(&str, &str, &str, &str); 8] = [
    ("host.cpu_busy", "plimsoll.host.cpu.busy", "1", "Share of its processors"),
    ("host.memory_used", "plimsoll.host.memory.used", "By", "Memory in use"),
    ("process.*.cpu", "plimsoll.process.cpu", "{core}", "Cores used by server and generator"),
    ("disk.*.busy", "plimsoll.disk.busy", "1", "Part of the time with a request"),
    ("disk.*.read", "plimsoll.disk.read", "By/s", "Read from disks"),
    ("disk.*.written", "plimsoll.disk.written", "By/s", "Written to disks"),
    ("network.*.received", "plimsoll.network.received", "By/s", "Received"),
    ("network.*.sent", "plimsoll.network.sent", "By/s", "Sent"),
];
/// Its value is 1; its attributes name the limit.
const LIMIT: (&str, &str, &str) = ("plimsoll.point.limit", "", "What limited the load point");

const SECOND_GAUGES: [(&str, &str, &str, SecondFigureOf); 5] = [
    ("plimsoll.second.throughput", "{op}/s", "Ops done without error", |second| {
        Some(second.ops_per_s)
    }),
    ("plimsoll.second.errors", "{op}", "Ops that failed", |second| Some(second.errors as f64)),
    ("plimsoll.second.response.p50", "s", "Median time from due to done", |second| {
        Some(second.response_p50_ns? as f64 / 1e9)
    }),
    ("plimsoll.second.response.p99", "s", "99th percentile from due to done", |second| {
        Some(second.response_p99_ns? as f64 / 1e9)
    }),
    ("plimsoll.second.chunks", "{chunk}/s", "Chunks of streamed replies that came", |second| {
        Some(second.chunks_per_s).filter(|chunks| *chunks > 0.0)
    }),
];
/// One request holds one load point.
pub(super) fn of_point(
    resource: Resource,
    finished: &FinishedPoint<'_>,
    temporality: i32,
) -> ExportMetricsServiceRequest {
    let frame = Frame::from_finished(finished, temporality);
    let mut metrics: Vec<Metric> =
        HISTOGRAMS.iter().map(|of| frame.histogram(finished, *of)).collect();
    let is_there =
        |of: TimeKind| finished.times.window().iter().any(|op| of.times_in(op).is_some());
    let streams = STREAM_HISTOGRAMS.iter().filter(|(_, _, of)| is_there(*of));
    metrics.extend(streams.map(|of| frame.histogram(finished, *of)));
    metrics.extend(SUMS.iter().map(|of| frame.sum(finished.point, *of)));
    metrics.extend(GAUGES.iter().filter_map(|(name, unit, description, of)| {
        Some(frame.gauge(name, unit, description, of(finished.point)?))
    }));
    metrics.extend(AGENT_GAUGES.iter().filter_map(|of| frame.agents(finished.point, *of)));
    metrics.extend(RESOURCE_GAUGES.iter().filter_map(|of| frame.resources(finished, *of)));
    metrics.extend(frame.limit(&finished.point.limit));
    request(resource, metrics)
}

/// One request holds one second of the load point with these attributes.
pub(super) fn of_second(
    resource: Resource,
    point: &[KeyValue],
    second: &SecondView,
) -> ExportMetricsServiceRequest {
    let phase = key("plimsoll.phase", text(second.phase.as_str()));
    let frame = Frame {
        attributes: [point, &[phase]].concat(),
        temporality: CUMULATIVE,
        start_unix_ns: second.start_unix_ns,
        end_unix_ns: second.end_unix_ns,
    };
    let gauges = SECOND_GAUGES.iter().filter_map(|(name, unit, description, of)| {
        Some(frame.gauge(name, unit, description, of(second)?))
    });
    request(resource, gauges.collect())
}

fn request(resource: Resource, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    let scope = InstrumentationScope { name: NAME.to_owned(), version: VERSION.to_owned() };
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics }];
    let resource = Some(resource);
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics { resource, scope_metrics }],
    }
}

/// Attributes of the run in every message.
pub(super) fn resource(run: &RunResult) -> Resource {
    let texts = |texts: &[String]| {
        let values = texts.iter().map(|value| any(text(value))).collect();
        Value::Array(ArrayValue { values })
    };
    let optional = [
        ("service.name", Some(NAME)),
        ("service.version", Some(VERSION)),
        ("plimsoll.run.id", run.started.as_deref()),
        // Prometheus makes it the label `instance`, which separates the series of runs.
        ("service.instance.id", run.started.as_deref()),
        ("plimsoll.suite", run.suite.as_ref().map(|suite| suite.name.as_str())),
        ("plimsoll.profile", run.profile.as_deref()),
        ("plimsoll.axis.unit", Some(run.axis.unit.as_str())),
    ];
    let present = optional.into_iter().filter_map(|(name, value)| Some(key(name, text(value?))));
    let attributes = present.chain([key("plimsoll.target", texts(&run.targets))]).collect();
    Resource { attributes }
}

/// Attributes of the seconds of a load point that will begin next.
pub(super) fn point_attributes(beginning: &BeginningPoint<'_>) -> Vec<KeyValue> {
    let [ordinal, purpose] = id_attributes(beginning.point);
    vec![ordinal, purpose, requested_attribute(beginning.requested)]
}

fn id_attributes(point: PointId) -> [KeyValue; 2] {
    let purpose = match point.purpose {
        Purpose::Probe => "probe",
        Purpose::Verify => "verify",
        Purpose::Ladder => "ladder",
        Purpose::Profile => "profile",
        Purpose::Pilot => "pilot",
    };
    [
        key("plimsoll.point.ordinal", Value::Int(i64::from(point.ordinal))),
        key("plimsoll.point.purpose", text(purpose)),
    ]
}

fn requested_attribute(requested: f64) -> KeyValue {
    key("plimsoll.point.requested", Value::Double(requested))
}

/// Common attributes of every data point of a message.
struct Frame {
    attributes: Vec<KeyValue>,
    temporality: i32,
    start_unix_ns: u64,
    end_unix_ns: u64,
}

impl Frame {
    fn from_finished(finished: &FinishedPoint<'_>, temporality: i32) -> Self {
        let (record, point) = (finished.record, finished.point);
        let start_unix_ns = record.started_unix_ns + record.warm_up_ns.0;
        let [ordinal, purpose] = id_attributes(record.point);
        let position = key("plimsoll.point.position", Value::Int(i64::from(point.position)));
        let attributes = vec![ordinal, purpose, position, requested_attribute(point.requested)];
        let end_unix_ns = start_unix_ns + record.measured_ns.0;
        Self { attributes, temporality, start_unix_ns, end_unix_ns }
    }

    fn attributes_of(&self, op: &str) -> Vec<KeyValue> {
        [self.attributes.as_slice(), &[key("plimsoll.op", text(op))]].concat()
    }

    fn agents(
        &self,
        point: &PointResult,
        (name, unit, description, of): (&str, &str, &str, AgentFigureOf),
    ) -> Option<Metric> {
        let figures = point.agents.iter().filter_map(|agent| {
            Some(([("plimsoll.agent", &*agent.name), ("plimsoll.host", &agent.host)], of(agent)?))
        });
        self.gauges((name, unit, description), figures)
    }

    fn resources(
        &self,
        finished: &FinishedPoint<'_>,
        (pattern, name, unit, description): (&str, &str, &str, &str),
    ) -> Option<Metric> {
        let (table, column) = pattern.split_once('*').unwrap_or((pattern, ""));
        let (resources, hosts) = (&finished.point.resources, &finished.run.monitored_hosts);
        let figures = resources.iter().filter_map(|resource| {
            let device = resource.name.strip_prefix(table)?.strip_suffix(column)?;
            let role = match hosts.iter().find(|host| host.source == resource.source) {
                Some(host) => host.role,
                None if resource.source.is_none() && serves_here(finished.run) => Server,
                None => Other,
            };
            let host = resource.source.as_deref().unwrap_or(THIS_HOST);
            let host = [("plimsoll.host", host), ("plimsoll.host.role", role.as_str())];
            Some(([host[0], host[1], ("plimsoll.device", device)], resource.mean))
        });
        self.gauges((name, unit, description), figures)
    }

    /// As far as it is known from the load points so far.
    fn limit(&self, limit: &Limit) -> Option<Metric> {
        let host = limit.host.as_ref().and_then(|host| host.source.as_deref()).unwrap_or_default();
        let location = limit.place.as_deref().unwrap_or_default();
        let kind = ("plimsoll.limit.kind", limit.kind.as_str());
        let more = [kind, ("plimsoll.limit.location", location), ("plimsoll.host", host)];
        self.gauges(LIMIT, (limit.facts != LimitFacts::Unsaid).then_some((more, 1.0)).into_iter())
    }

    /// A gauge with a figure for each of these attributes, the empty ones left out; `None` without
    /// any.
    fn gauges<'a, const N: usize>(
        &self,
        (name, unit, description): (&str, &str, &str),
        figures: impl Iterator<Item = ([(&'a str, &'a str); N], f64)>,
    ) -> Option<Metric> {
        let data_points = figures.map(|(more, figure)| {
            let more = more.into_iter().filter(|(_, value)| !value.is_empty());
            let more = more.map(|(name, value)| key(name, text(value)));
            let attributes = self.attributes.iter().cloned().chain(more).collect();
            self.number(attributes, Number::Double(figure))
        });
        let data_points: Vec<NumberDataPoint> = data_points.collect();
        let data = (!data_points.is_empty()).then_some(Data::Gauge(Gauge { data_points }))?;
        Some(metric(name, unit, description, data))
    }

    /// An op that never occurred has no distribution.
    fn histogram(
        &self,
        finished: &FinishedPoint<'_>,
        (name, description, of): (&str, &str, TimeKind),
    ) -> Metric {
        let ops = finished.op_names.0.iter().zip(finished.times.window());
        let filled = ops.filter_map(|(op, times)| Some((op, of.times_in(times)?)));
        let data_points = filled.map(|(op, times)| {
            let Exponential { scale, zeros, offset, counts, count, sum_s, min_s, max_s } =
                Exponential::from_times(times);
            ExponentialHistogramDataPoint {
                attributes: self.attributes_of(op),
                start_time_unix_nano: self.start_unix_ns,
                time_unix_nano: self.end_unix_ns,
                count,
                sum: Some(sum_s),
                scale,
                zero_count: zeros,
                positive: Some(Buckets { offset, bucket_counts: counts }),
                min: min_s,
                max: max_s,
            }
        });
        let data = Data::ExponentialHistogram(ExponentialHistogram {
            data_points: data_points.collect(),
            aggregation_temporality: self.temporality,
        });
        metric(name, "s", description, data)
    }

    fn sum(&self, point: &PointResult, (name, description, of): (&str, &str, CountOf)) -> Metric {
        let data_point = |(op, result): (&String, &OpResult)| {
            self.number(self.attributes_of(op), Number::Int(of(result) as i64))
        };
        let data = Data::Sum(Sum {
            data_points: point.ops.iter().map(data_point).collect(),
            aggregation_temporality: self.temporality,
            is_monotonic: true,
        });
        metric(name, "{op}", description, data)
    }

    fn gauge(&self, name: &str, unit: &str, description: &str, figure: f64) -> Metric {
        let data_points = vec![self.number(self.attributes.clone(), Number::Double(figure))];
        metric(name, unit, description, Data::Gauge(Gauge { data_points }))
    }

    fn number(&self, attributes: Vec<KeyValue>, value: Number) -> NumberDataPoint {
        NumberDataPoint {
            attributes,
            start_time_unix_nano: self.start_unix_ns,
            time_unix_nano: self.end_unix_ns,
            value: Some(value),
        }
    }
}

/// If no other host is monitored, the result names no role.
fn serves_here(run: &RunResult) -> bool {
    run.disclosure.as_ref().is_some_and(|it| it.targets.iter().any(|target| target.same_host))
}

fn metric(name: &str, unit: &str, description: &str, data: Data) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        description: description.to_owned(),
        data: Some(data),
    }
}

fn key(name: &str, value: Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(any(value)) }
}

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[cfg(test)]
mod tests;
