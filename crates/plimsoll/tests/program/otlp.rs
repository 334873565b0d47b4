//! Seconds and load points sent to a collector (`--export otlp=URL`): the exported data is read by
//! protoc, with the schema that OpenTelemetry publishes (`otlp/`), and compared with the bundle.
//! And collectors that fail.

mod collector;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Seek as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{
    Ended, command, plimsoll, points_finished, result, short, wait_for,
};
use plimsoll_testkit::tls::TestCertificate;
use serde_json::Value;

use collector::{Collector, KEY, TAKEN, TRUSTED, is_of_second};

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/otlp");
const SERVICE: &str = "opentelemetry/proto/collector/metrics/v1/metrics_service.proto";
const REQUEST: &str = "opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest";

/// A message as protoc prints it.
#[derive(Debug, Default)]
struct Message {
    fields: Vec<(String, String)>,
    messages: Vec<(String, Message)>,
}

impl Message {
    /// `None` without protoc.
    fn read(body: &[u8]) -> Option<Self> {
        let protoc = require_peer("protoc")?;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(body).unwrap();
        file.rewind().unwrap();
        let read = Command::new(protoc)
            .args(["-I", SCHEMA, &format!("--decode={REQUEST}"), SERVICE])
            .stdin(file)
            .output()
            .unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let text = String::from_utf8(read.stdout).unwrap();
        let mut open = vec![(String::new(), Self::default())];
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_suffix(" {") {
                open.push((name.to_owned(), Self::default()));
            } else if line == "}" {
                let message = open.pop().unwrap();
                open.last_mut().unwrap().1.messages.push(message);
            } else {
                let (name, value) = line.split_once(": ").unwrap();
                let value = value.trim_matches('"').to_owned();
                open.last_mut().unwrap().1.fields.push((name.to_owned(), value));
            }
        }
        Some(open.pop().unwrap().1)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.messages.iter().filter(move |(of, _)| of == name).map(|(_, message)| message)
    }

    #[track_caller]
    fn one<'a>(&'a self, name: &'a str) -> &'a Self {
        self.all(name).next().unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// A zero is not sent.
    fn number(&self, name: &str) -> f64 {
        self.text(name).map_or(0.0, |text| text.parse().unwrap())
    }

    /// The value of an attribute, whatever its type.
    fn attribute(&self, key: &str) -> Option<&str> {
        let matched = self.all("attributes").find(|pair| pair.text("key") == Some(key))?;
        let value = matched.one("value");
        let first = value.all("array_value").next().map(|array| array.one("values"));
        first.unwrap_or(value).fields.first().map(|(_, value)| value.as_str())
    }

    fn metrics(&self) -> impl Iterator<Item = &Self> {
        self.one("resource_metrics").one("scope_metrics").all("metrics")
    }

    #[track_caller]
    fn metric(&self, name: &str) -> &Self {
        self.metrics().find(|metric| metric.text("name") == Some(name)).unwrap()
    }
}

/// A quantile of merged data points, read from their buckets by the definition, in nanoseconds.
fn quantile_ns(data: &[&Message], quantile: f64) -> f64 {
    let scale = data.iter().map(|data| data.number("scale") as i32).min().unwrap();
    let mut all: BTreeMap<i32, f64> = BTreeMap::new();
    for data in data {
        let positive = data.one("positive");
        let counts = positive.fields.iter().filter(|(name, _)| name == "bucket_counts");
        for (index, (_, count)) in (positive.number("offset") as i32..).zip(counts) {
            let index = index >> (data.number("scale") as i32 - scale);
            *all.entry(index).or_default() += count.parse::<f64>().unwrap();
        }
    }
    let of_all = |name: &str| data.iter().map(|data| data.number(name)).sum::<f64>();
    let mut left = (quantile * of_all("count")).ceil() - of_all("zero_count");
    for (index, count) in all {
        left -= count;
        if left <= 0.0 {
            let base = 2_f64.powf(2_f64.powi(-scale));
            return base.powf(f64::from(index) + 0.5) * 1e9;
        }
    }
    panic!("the buckets hold less than the count")
}

/// Both are the same except for rounding.
#[track_caller]
fn check_near(theirs: f64, ours: &Value, ratio: f64, what: &str) {
    let ours = ours.as_f64().unwrap();
    assert!((theirs - ours).abs() <= ratio * ours.abs(), "{what}: {theirs}, in the bundle {ours}");
}

/// The load point of the bundle that a data point is of.
#[track_caller]
fn point_of<'r>(data: &Message, run: &'r Value) -> &'r Value {
    assert_eq!(data.attribute("plimsoll.point.purpose"), Some("ladder"));
    let position = data.attribute("plimsoll.point.position").unwrap();
    let point = &run["points"][position.parse::<usize>().unwrap() - 1];
    let requested = data.attribute("plimsoll.point.requested").unwrap();
    check_near(requested.parse().unwrap(), &point["requested"], 0.0, "requested");
    point
}

/// Compares a request with its load point; the compared percentiles.
#[track_caller]
fn check_point(request: &Message, run: &Value, temporality: &str) -> Vec<&'static str> {
    check_resource(request.one("resource_metrics").one("resource"), run);
    let mut compared = Vec::new();
    for times in ["response", "service"] {
        let metric = request.metric(&format!("plimsoll.{times}.duration"));
        assert_eq!(metric.text("unit"), Some("s"));
        let histogram = metric.one("exponential_histogram");
        assert_eq!(histogram.text("aggregation_temporality"), Some(temporality));
        let times = format!("{times}_ns");
        let all: Vec<&Message> = histogram.all("data_points").collect();
        compared.extend(check_times(&all, &point_of(all[0], run)[&times]));
        for data in all {
            let op = data.attribute("plimsoll.op").unwrap();
            compared.extend(check_times(&[data], &point_of(data, run)["ops"][op][&times]));
            let length_ns = data.number("time_unix_nano") - data.number("start_time_unix_nano");
            check_near(length_ns / 1e9, &point_of(data, run)["seconds"], 1e-6, "seconds");
        }
    }
    for (name, count) in [("plimsoll.ops", "count"), ("plimsoll.errors", "errors")] {
        let sum = request.metric(name).one("sum");
        assert_eq!(sum.text("is_monotonic"), Some("true"));
        assert_eq!(sum.text("aggregation_temporality"), Some(temporality));
        for data in sum.all("data_points") {
            let op = data.attribute("plimsoll.op").unwrap();
            check_near(data.number("as_int"), &point_of(data, run)["ops"][op][count], 0.0, name);
        }
    }
    for (name, figure) in [
        ("plimsoll.throughput.requested", "offered_ops_per_s"),
        ("plimsoll.throughput.achieved", "achieved_ops_per_s"),
    ] {
        let data = request.metric(name).one("gauge").one("data_points");
        check_near(data.number("as_double"), &point_of(data, run)[figure], 1e-9, name);
    }
    let limit = request.metric("plimsoll.point.limit").one("gauge").one("data_points");
    assert!(limit.attribute("plimsoll.limit.kind").is_some(), "{limit:?}");
    let resources = point_of(limit, run)["resources"].as_array().unwrap();
    let ours = resources.iter().find(|resource| resource["name"] == "host.cpu_busy");
    let mut metrics = request.metrics();
    let theirs = metrics.find(|metric| metric.text("name") == Some("plimsoll.host.cpu.busy"));
    assert_eq!(theirs.is_some(), ours.is_some(), "it may be unknown, on a busy machine");
    if let (Some(theirs), Some(ours)) = (theirs, ours) {
        let data = theirs.one("gauge").one("data_points");
        check_near(data.number("as_double"), &ours["mean"], 1e-9, "host.cpu_busy");
        assert_eq!(data.attribute("plimsoll.host.role"), Some("server"), "{data:?}");
    }
    compared
}

/// Compares a request with the seconds of the bundle; its load point, when it was measured.
#[track_caller]
fn check_second(request: &Message, run: &Value) -> Option<usize> {
    check_resource(request.one("resource_metrics").one("resource"), run);
    let data = |name: &str| {
        let metric = request.metrics().find(|metric| metric.text("name") == Some(name))?;
        Some(metric.one("gauge").one("data_points"))
    };
    let throughput = data("plimsoll.second.throughput").unwrap();
    let length_ns = throughput.number("time_unix_nano") - throughput.number("start_time_unix_nano");
    assert!((1.0..=1e9).contains(&length_ns), "{length_ns} ns");
    assert_eq!(throughput.attribute("plimsoll.point.purpose"), Some("ladder"));
    let point: usize = throughput.attribute("plimsoll.point.ordinal").unwrap().parse().unwrap();
    let phase = throughput.attribute("plimsoll.phase").unwrap();
    let requested = throughput.attribute("plimsoll.point.requested").unwrap();
    let of_bundle = &run["points"][point - 1];
    check_near(requested.parse().unwrap(), &of_bundle["requested"], 0.0, "requested");
    let is_this = |second: &&Value| {
        let near = |metric: &str, figure: &str, unit: f64| {
            let ours = second[figure].as_f64();
            let theirs = data(metric).map(|data| data.number("as_double") * unit);
            let pair = theirs.zip(ours);
            pair.is_none_or(|(theirs, ours)| (theirs - ours).abs() <= 1e-9 * ours.abs())
        };
        second["phase"] == phase
            && near("plimsoll.second.throughput", "ops_per_s", 1.0)
            && near("plimsoll.second.errors", "errors", 1.0)
            && near("plimsoll.second.response.p50", "response_p50_ns", 1e9)
            && near("plimsoll.second.response.p99", "response_p99_ns", 1e9)
    };
    let timeline = of_bundle["timeline"].as_array().unwrap();
    // The bundle leaves out the rest of a drain.
    let is_listed = timeline.iter().any(|second| is_this(&second));
    assert!(is_listed || phase == "drain", "{request:?} is not among {timeline:#?}");
    (phase == "measure").then_some(point)
}

#[track_caller]
fn check_resource(resource: &Message, run: &Value) {
    for (key, value) in [
        ("service.name", "plimsoll"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("plimsoll.run.id", run["started"].as_str().unwrap()),
        ("service.instance.id", run["started"].as_str().unwrap()),
        ("plimsoll.suite", run["suite"]["name"].as_str().unwrap()),
        ("plimsoll.profile", "quick"),
        ("plimsoll.target", run["targets"][0].as_str().unwrap()),
        ("plimsoll.axis.unit", "ops/s"),
    ] {
        assert_eq!(resource.attribute(key), Some(value), "{key}");
    }
}

/// Compares merged data points with a distribution of the bundle.
#[track_caller]
fn check_times(data: &[&Message], ours: &Value) -> Vec<&'static str> {
    let of_all = |name: &str| data.iter().map(|data| data.number(name)).sum::<f64>();
    check_near(of_all("count"), &ours["n"], 0.0, "n");
    check_near(of_all("sum") / of_all("count") * 1e9, &ours["mean"], 1e-9, "mean");
    let max = data.iter().map(|data| data.number("max")).fold(0.0, f64::max);
    check_near(max * 1e9, &ours["max"], 1e-9, "max");
    assert!(data.iter().all(|data| data.number("min") <= data.number("max")));
    let percentiles = [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")];
    let percentiles = percentiles.into_iter().filter(|(_, figure)| !ours[figure].is_null());
    percentiles
        .map(|(quantile, figure)| {
            check_near(quantile_ns(data, quantile), &ours[figure], 0.005, figure);
            figure
        })
        .collect()
}

/// The exit code is the verdict's, whatever happened to the export.
#[track_caller]
fn check_verdict(ended: &Ended, bundle: &Path, points: usize) {
    let valid = result(bundle)["verdict"]["valid"] == true;
    assert_eq!(ended.code, Some(i32::from(!valid)), "{ended:?}");
    assert_eq!(points_finished(bundle), points);
}

/// Runs `suite` with two load points and checks the exported data; the compared percentiles.
#[track_caller]
fn check_export(
    (suite, points, measure): (&str, &str, &str),
    (kind, temporality): (&str, &str),
    certificate: Option<&TestCertificate>,
) -> Option<Vec<&'static str>> {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let collector = Collector::new(certificate, |_, stream| stream.write_all(TAKEN).is_ok());
    let flag = collector.flag.replace("otlp=", kind);
    let measure = format!("profiles.quick.measure={measure}");
    // Every op ends, on a busy machine too: the bundle counts those without an end.
    let drain = "profiles.quick.drain=10s";
    let more = ["--points", points, "--set", &measure, "--set", drain, "--export", &flag];
    let mut run = command(&short(suite, "builtin:", &bundle, &more));
    if let Some(certificate) = certificate {
        run.envs(collector.environment(certificate, temp_dir.path()));
    }
    let started = run
        .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20s3cret,x-scope=lab")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ended = wait_for(started.unwrap());
    check_verdict(&ended, &bundle, 2);
    assert!(!ended.err.contains("warning: --export"), "{}", ended.err);
    let came = collector.came();
    let (seconds, points) = came;
    assert_eq!(points.len(), 2, "one request a load point");
    let run = result(&bundle);
    let mut measured = BTreeSet::new();
    for (_, body) in &seconds {
        measured.extend(check_second(&Message::read(body)?, &run));
    }
    assert_eq!(measured.len(), 2, "a second of the window of each load point");
    let mut compared = Vec::new();
    for (head, body) in points {
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        for field in ["Content-Type: application/x-protobuf", "api-key: a s3cret", "x-scope: lab"] {
            assert!(head.lines().any(|line| line == field), "{field} is not in {head}");
        }
        compared.extend(check_point(&Message::read(&body)?, &run, temporality));
    }
    let kept = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    assert!(kept.contains(&flag) && !kept.contains("s3cret"));
    Some(compared)
}

const CUMULATIVE: (&str, &str) = ("otlp=", "AGGREGATION_TEMPORALITY_CUMULATIVE");
const DELTA: (&str, &str) = ("otlp-delta=", "AGGREGATION_TEMPORALITY_DELTA");

#[test]
fn a_decoder_from_another_house_reads_the_percentiles_of_the_bundle() {
    let run = ("web-static", "800,1600", "2s");
    let Some(compared) = check_export(run, CUMULATIVE, Some(&TestCertificate::new())) else {
        return;
    };
    let of = |figure| compared.iter().filter(|compared| **compared == figure).count();
    // Of both times of both load points, ops taken together, and of ops by themselves.
    assert!(of("p99") >= 4 && of("p50") >= 8, "{compared:?}");
}

#[test]
fn every_op_of_a_mix_has_its_own_distribution() {
    let Some(compared) = check_export(("nfs-v3", "200,400", "1s"), DELTA, None) else { return };
    assert!(compared.len() >= 20, "{compared:?}");
}

/// A run whose collector fails: it ends as without it, with one warning.
#[track_caller]
fn check_bad_day(flag: &str, messages: &[&str]) {
    let temp_dir = tempfile::tempdir().unwrap();
    check_warning(flag, temp_dir.path(), &[], &[&["2 of 2 load points"], messages].concat());
}

#[track_caller]
fn check_warning(flag: &str, folder: &Path, environment: &[(&str, PathBuf)], messages: &[&str]) {
    let bundle = folder.join("b");
    let more = ["--points", "100,120", "--export", flag];
    let mut run = command(&short("web-static", "builtin:", &bundle, &more));
    run.envs(environment.iter().cloned()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = wait_for(run.spawn().unwrap());
    check_verdict(&ended, &bundle, 2);
    let warnings: Vec<&str> = ended.err.lines().filter(|line| line.contains("--export")).collect();
    let [warning] = warnings[..] else { panic!("not one warning: {}", ended.err) };
    for part in [&["warning: --export", flag, "the bundle has them"], messages].concat() {
        assert!(warning.contains(part), "{part:?} is not in: {warning}");
    }
}

#[test]
fn a_collector_whose_certificate_is_not_trusted_changes_nothing_but_a_warning() {
    let certificate = TestCertificate::new();
    let collector = Collector::new(Some(&certificate), |_, _| true);
    let messages = ["its certificate is refused: ", "OTEL_EXPORTER_OTLP_CERTIFICATE=FILE"];
    check_bad_day(&collector.flag, &messages);
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let flag = format!("otlp=https://{}/v1/metrics", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in plain.incoming().map_while(Result::ok) {
            // What is left unread would reset the connection.
            let _ = stream.read(&mut [0; 4096]);
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_or_default();
        }
    });
    check_bad_day(&flag, &["does not speak TLS; write http://"]);
}

#[test]
fn a_collector_that_goes_away_over_https_costs_what_was_not_yet_delivered() {
    let certificate = TestCertificate::new();
    let temp_dir = tempfile::tempdir().unwrap();
    let collector = Collector::new(Some(&certificate), |request, stream| {
        stream.write_all(TAKEN).is_ok() && is_of_second(request)
    });
    let environment = collector.environment(&certificate, temp_dir.path());
    let messages = ["1 of 2 load points", "cannot connect", "refused"];
    check_warning(&collector.flag, temp_dir.path(), &environment, &messages);
    assert_eq!(collector.came().1.len(), 1);
}

#[test]
fn certificates_of_an_export_that_cannot_be_read_end_with_2() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    for (variable, message) in
        [(TRUSTED, "cannot read certificates from"), (KEY, "set both, or neither")]
    {
        let more = ["--export", "otlp=https://127.0.0.1:1"];
        let mut run = command(&short("web-static", "builtin:", &bundle, &more));
        run.env(variable, temp_dir.path().join("absent.pem"));
        let ended = wait_for(run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        ended.check(2, &[variable, message]);
        assert!(!bundle.exists());
    }
}

#[test]
fn a_collector_that_is_absent_changes_nothing_but_a_warning() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    check_bad_day(&format!("otlp=http://{free}/v1/metrics"), &["cannot connect", "refused"]);
    check_bad_day("otlp=http://no-such-host.invalid:4318/v1/metrics", &["cannot resolve"]);
}

#[test]
fn a_collector_that_hangs_changes_nothing_but_a_warning() {
    let collector = Collector::start(None);
    // The end of the run, or the longest exchange, whichever comes first.
    check_bad_day(&collector.flag, &["answer within"]);
}

#[test]
fn a_collector_that_refuses_changes_nothing_but_a_warning() {
    let failing = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
    check_bad_day(&Collector::start(Some(failing)).flag, &["answers with status 500"]);
    // Field 1: { field 1: 7 refused, field 2: "too old" }
    let partial = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n\x0a\x0b\x08\x07\x12\x07too old";
    check_bad_day(&Collector::start(Some(partial)).flag, &["refused 7 of its figures: too old"]);
    let garbled = b"SSH-2.0-OpenSSH\r\n\r\n";
    check_bad_day(&Collector::start(Some(garbled)).flag, &["does not answer in HTTP"]);
}

#[test]
fn a_collector_that_cannot_be_read_ends_with_2_before_anything_is_sent_and_tells_no_secret() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    for (flag, message) in [
        ("prometheus=http://h", "write otlp=https://HOST:4318"),
        ("otlp=https://ann:s3cret@h", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("otlp=http://ann:s3cret@h", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("otlp=http://h?key=s3cret", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("otlp=http://h:s3cret", "no URL with a host"),
    ] {
        let ended = plimsoll(&short("web-static", "builtin:", &bundle, &["--export", flag]));
        ended.check(2, &["--export", message]);
        assert!(!format!("{}{}", ended.out, ended.err).contains("s3cret"), "{ended:?}");
    }
    let run = short("web-static", "builtin:", &bundle, &["--export", "otlp=http://127.0.0.1:1"]);
    let started = command(&run)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "s3cret")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ended = wait_for(started.unwrap());
    ended.check(2, &["OTEL_EXPORTER_OTLP_HEADERS, item 1", "NAME=VALUE"]);
    assert!(!ended.err.contains("s3cret") && !bundle.exists(), "{ended:?}");
}
