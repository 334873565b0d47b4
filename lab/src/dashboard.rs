//! `cargo lab dashboard`: a run exported to Prometheus over HTTPS, and every query of
//! `packaging/grafana/plimsoll.json` asked of it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Parser;
use plimsoll_monitor::{ClockReading, Post, PostTls};
use plimsoll_testkit::tls::TestCertificate;
use serde_json::Value;
use xtask::command::find;
use xtask::verb::Result;
use xtask::workspace;

use crate::process::Running;
use crate::{process, program};

const DASHBOARD: &str = "packaging/grafana/plimsoll.json";
const RUN_LIMIT: Duration = Duration::from_secs(120);
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
const START_LIMIT: Duration = Duration::from_secs(60);
/// What the queries look back to: Grafana's `$__range`.
const RANGE_S: u64 = 900;
const HOST: &str = "127.0.0.1";

/// Options of `cargo lab dashboard`.
#[derive(Parser)]
pub struct Options {
    /// Prometheus 3 [default: found by PATH].
    #[arg(long)]
    collector: Option<PathBuf>,
    /// Program to run instead of a release build made now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Prints how many series each query gives; an error if one gives none.
pub fn dashboard(options: &Options) -> Result<()> {
    let installed = options.collector.clone().or_else(|| find("prometheus"));
    let collector =
        installed.ok_or("no Prometheus is installed; name one with --collector PATH")?;
    let dashboard = fs::read_to_string(workspace::root().join(DASHBOARD));
    let dashboard = dashboard.map_err(|e| format!("{DASHBOARD}: {e}"))?;
    let dashboard: Value = serde_json::from_str(&dashboard).map_err(|e| e.to_string())?;
    let program = options.program.clone().map_or_else(program::plimsoll, Ok)?;
    let folder = program::temporary()?;
    let prometheus = Prometheus::start(&collector, folder.path())?;
    prometheus.receive(&program, folder.path())?;
    let runs = prometheus.runs(&dashboard)?;
    let [run] = &runs[..] else { return Err(format!("one run was exported, not {runs:?}")) };
    let mut empty = 0;
    for panel in dashboard["panels"].as_array().into_iter().flatten() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let series = prometheus.series(target, run)?;
            empty += u32::from(series == 0);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            println!("{series:>4} {} | {}", text(&panel["title"]), text(&target["expr"]));
        }
    }
    match empty {
        0 => Ok(()),
        _ => Err(format!("{empty} queries gave no series")),
    }
}

/// One that runs until this is dropped.
struct Prometheus {
    _running: Running,
    port: u16,
    certificate: PathBuf,
    tls: PostTls,
}

impl Prometheus {
    fn start(collector: &Path, folder: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        TestCertificate::new().write_into(folder);
        let web = "tls_server_config:\n  cert_file: certificate.pem\n  key_file: key.pem\n";
        fs::write(folder.join("web.yml"), web).map_err(failed)?;
        fs::write(folder.join("prometheus.yml"), "global: {}\n").map_err(failed)?;
        let free = TcpListener::bind((HOST, 0)).and_then(|listener| listener.local_addr());
        let port = free.map_err(failed)?.port();
        let mut command = Command::new(collector);
        command.current_dir(folder).args(["--config.file=prometheus.yml", "--log.level=warn"]);
        command.args(["--web.config.file=web.yml", "--web.enable-otlp-receiver"]);
        command.args(["--storage.tsdb.path=data", &format!("--web.listen-address={HOST}:{port}")]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let running = Running(child.map_err(|e| format!("{}: {e}", collector.display()))?);
        let certificate = folder.join("certificate.pem");
        let tls = PostTls::new(Some(&certificate), None).map_err(|e| e.to_string())?;
        let prometheus = Self { _running: running, port, certificate, tls };
        let until_ns = ClockReading::now().unix_ns + START_LIMIT.as_nanos() as u64;
        while let Err(why) = prometheus.ask("query", &[("query", "1")]) {
            if ClockReading::now().unix_ns > until_ns {
                return Err(format!("{} does not answer: {why}", collector.display()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(prometheus)
    }

    /// Makes a short run by an agent, which exports all that the dashboard shows.
    fn receive(&self, program: &Path, folder: &Path) -> Result<()> {
        let export = format!("otlp=https://{HOST}:{}/api/v1/otlp/v1/metrics", self.port);
        let mut run = Command::new(program);
        run.args(["run", "web-static", "builtin:", "--profile", "quick", "--points", "200,400"]);
        run.args(["--set", "load.mode=\"open\"", "--set", "profiles.quick.measure=3s"]);
        run.args(["--agents", "local", "--progress", "none", "--export", &export, "--out"]);
        run.arg(folder.join("run")).env("OTEL_EXPORTER_OTLP_CERTIFICATE", &self.certificate);
        let finished = process::run(&mut run, RUN_LIMIT, |_, _| {})?;
        let is_delivered = !finished.errors.contains("--export");
        // Its validity depends on this machine.
        match finished.code {
            Some(0 | 1) if is_delivered => Ok(()),
            _ => Err(finished.failure()),
        }
    }

    /// The values of the dashboard's variable: `label_values(METRIC, LABEL)`.
    fn runs(&self, dashboard: &Value) -> Result<Vec<String>> {
        let variables = dashboard["templating"]["list"].as_array().into_iter().flatten();
        let mut definitions = variables.filter_map(|variable| variable["definition"].as_str());
        let query = definitions.next().and_then(|it| it.strip_prefix("label_values("));
        let query = query.and_then(|it| it.strip_suffix(')')?.split_once(", "));
        let (metric, label) = query.ok_or("the variable is no label_values(METRIC, LABEL)")?;
        let all = self.ask("series", &[("match[]", metric)])?;
        let values = all.as_array().into_iter().flatten().filter_map(|it| it[label].as_str());
        let mut values: Vec<String> = values.map(str::to_owned).collect();
        values.sort();
        values.dedup();
        Ok(values)
    }

    /// How many series a query of a panel gives.
    fn series(&self, target: &Value, run: &str) -> Result<usize> {
        let query = target["expr"].as_str().unwrap_or_default().replace("$run", run);
        let query = query.replace("$__range", &format!("{RANGE_S}s")).replace("$__interval", "1s");
        let now_s = ClockReading::now().unix_ns / 1_000_000_000;
        let (start, end) = ((now_s - RANGE_S).to_string(), now_s.to_string());
        let answer = match target["instant"] == true {
            true => self.ask("query", &[("query", &query)]),
            false => {
                let range = [("start", &*start), ("end", &end), ("step", "1"), ("query", &query)];
                self.ask("query_range", &range)
            }
        };
        Ok(answer?["result"].as_array().map_or(0, Vec::len))
    }

    /// The `data` of its API's answer.
    fn ask(&self, endpoint: &str, fields: &[(&str, &str)]) -> Result<Value> {
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let body = fields.join("&");
        let post = Post {
            host: HOST,
            port: self.port,
            tls: Some(&self.tls),
            path: &format!("/api/v1/{endpoint}"),
            fields: &[],
            content_type: "application/x-www-form-urlencoded",
            body: body.as_bytes(),
        };
        let answer = post.send(ANSWER_LIMIT).map_err(|e| format!("/api/v1/{endpoint}: {e}"))?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|e| e.to_string())?;
        Ok(answer["data"].clone())
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
