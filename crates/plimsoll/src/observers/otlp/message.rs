//! A load point in OpenTelemetry's words. `docs/export.md` explains them to users.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::{OpTimes, Times};
use plimsoll_model::result::{OpResult, PointResult, RunResult};

use super::super::FinishedPoint;
use super::exponential::Exponential;
use super::wire::{
    AnyValue, ArrayValue, Buckets, DELTA, Data, ExponentialHistogram,
    ExponentialHistogramDataPoint, ExportMetricsServiceRequest, Gauge, InstrumentationScope,
    KeyValue, Metric, Number, NumberDataPoint, Resource, ResourceMetrics, ScopeMetrics, Sum, Value,
};

const NAME: &str = "plimsoll";
const VERSION: &str = env!("CARGO_PKG_VERSION");

type TimesOf = fn(&OpTimes) -> &Times;
type CountOf = fn(&OpResult) -> u64;
type FigureOf = fn(&PointResult) -> Option<f64>;

/// Distributions, by op.
const HISTOGRAMS: [(&str, &str, TimesOf); 2] = [
    ("plimsoll.response.duration", "Time from due to done, failed ops among them", |op| {
        &op.response
    }),
    ("plimsoll.service.duration", "Time from sent to done, of ops that did not fail", |op| {
        &op.service
    }),
];
/// Counts, by op.
const SUMS: [(&str, &str, CountOf); 2] = [
    ("plimsoll.ops", "Ops due in the window that ended, however", |op| op.count),
    ("plimsoll.errors", "Of those, failed", |op| op.errors),
];
/// Figures of the load point.
const GAUGES: [(&str, &str, &str, FigureOf); 5] = [
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
];

/// One request holds one load point.
pub(super) fn request(finished: &FinishedPoint<'_>) -> ExportMetricsServiceRequest {
    let frame = Frame::of(finished);
    let mut metrics: Vec<Metric> =
        HISTOGRAMS.iter().map(|of| frame.histogram(finished, *of)).collect();
    metrics.extend(SUMS.iter().map(|of| frame.sum(finished.point, *of)));
    metrics.extend(GAUGES.iter().filter_map(|of| frame.gauge(finished.point, *of)));
    let scope = InstrumentationScope { name: NAME.to_owned(), version: VERSION.to_owned() };
    let scope_metrics = ScopeMetrics { scope: Some(scope), metrics };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource(finished.run)),
            scope_metrics: vec![scope_metrics],
        }],
    }
}

fn resource(run: &RunResult) -> Resource {
    let texts = |texts: &[String]| {
        let values = texts.iter().map(|value| any(text(value))).collect();
        Value::Array(ArrayValue { values })
    };
    let known = [
        ("service.name", Some(NAME)),
        ("service.version", Some(VERSION)),
        ("plimsoll.run.id", run.started.as_deref()),
        ("plimsoll.suite", run.suite.as_ref().map(|suite| suite.name.as_str())),
        ("plimsoll.profile", run.profile.as_deref()),
        ("plimsoll.axis.unit", Some(run.axis.unit.as_str())),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some(key(name, text(value?))));
    let attributes = known.chain([key("plimsoll.target", texts(&run.targets))]).collect();
    Resource { attributes }
}

/// What every data point of a load point has in common.
struct Frame {
    attributes: Vec<KeyValue>,
    start_unix_ns: u64,
    end_unix_ns: u64,
}

impl Frame {
    fn of(finished: &FinishedPoint<'_>) -> Self {
        let (record, point) = (finished.record, finished.point);
        let start_unix_ns = record.started_unix_ns + record.warm_up_ns.0;
        let purpose = match record.point.purpose {
            Purpose::Probe => "probe",
            Purpose::Verify => "verify",
            Purpose::Ladder => "ladder",
        };
        let attributes = vec![
            key("plimsoll.point.ordinal", Value::Int(i64::from(record.point.ordinal))),
            key("plimsoll.point.purpose", text(purpose)),
            key("plimsoll.point.position", Value::Int(i64::from(point.position))),
            key("plimsoll.point.requested", Value::Double(point.requested)),
        ];
        Self { attributes, start_unix_ns, end_unix_ns: start_unix_ns + record.measured_ns.0 }
    }

    fn attributes_of(&self, op: &str) -> Vec<KeyValue> {
        [self.attributes.as_slice(), &[key("plimsoll.op", text(op))]].concat()
    }

    /// An op that never came has no distribution.
    fn histogram(
        &self,
        finished: &FinishedPoint<'_>,
        (name, description, of): (&str, &str, TimesOf),
    ) -> Metric {
        let ops = finished.op_names.0.iter().zip(finished.times.window());
        let filled = ops.filter(|(_, times)| !of(times).is_empty());
        let data_points = filled.map(|(op, times)| {
            let Exponential { scale, zeros, offset, counts, count, sum_s, min_s, max_s } =
                Exponential::of(of(times));
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
            aggregation_temporality: DELTA,
        });
        metric(name, "s", description, data)
    }

    fn sum(&self, point: &PointResult, (name, description, of): (&str, &str, CountOf)) -> Metric {
        let data_point = |(op, result): (&String, &OpResult)| {
            self.number(self.attributes_of(op), Number::Int(of(result) as i64))
        };
        let data = Data::Sum(Sum {
            data_points: point.ops.iter().map(data_point).collect(),
            aggregation_temporality: DELTA,
            is_monotonic: true,
        });
        metric(name, "{op}", description, data)
    }

    /// `None` where the figure is unknown.
    fn gauge(
        &self,
        point: &PointResult,
        (name, unit, description, of): (&str, &str, &str, FigureOf),
    ) -> Option<Metric> {
        let data_points = vec![self.number(self.attributes.clone(), Number::Double(of(point)?))];
        Some(metric(name, unit, description, Data::Gauge(Gauge { data_points })))
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
