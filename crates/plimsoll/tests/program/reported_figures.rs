//! Figures that servers report themselves, and the generator's own counts.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use plimsoll_testkit::peers::require_peer;
use serde_json::Value;
use tempfile::TempDir;

use plimsoll_testkit::program::{
    CheckOutcome, Running, one_is_right, plimsoll, result, short, wait_until,
};

fn mean(result: &Value, name: &str, source: Option<&str>) -> Option<f64> {
    let resources = result["points"][0]["resources"].as_array()?;
    let matched = resources
        .iter()
        .find(|resource| resource["name"] == name && resource["source"].as_str() == source);
    matched?["mean"].as_f64()
}

#[test]
fn an_nginx_of_ours_counts_the_requests_that_the_generator_counts() {
    if require_peer("nginx").is_none() {
        return;
    }
    let long = ["--points", "200", "--set", "profiles.quick.measure=4s"];
    let temp_dir = TempDir::new().unwrap();
    let mut attempts = 1..=u32::MAX;
    // An overloaded machine samples late.
    one_is_right(3, || {
        let bundle = temp_dir.path().join(attempts.next().unwrap().to_string());
        let ended = plimsoll(&short("web-static", "managed:nginx", &bundle, &long));
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let result = result(&bundle);
        let reported = mean(&result, "server.requests", None).unwrap();
        let counted = result["points"][0]["achieved_ops_per_s"].as_f64().unwrap();
        let connections = mean(&result, "server.connections", None).unwrap();
        let csv = fs::read_to_string(bundle.join("monitors/app-server.csv")).unwrap();
        assert!(csv.lines().next().unwrap().contains(",connections_waiting"), "{csv}");
        let differs = [
            ((reported - counted).abs() > 0.02 * counted)
                .then(|| format!("nginx told {reported} requests/s of {counted}")),
            (connections < 1.0).then(|| format!("nginx told {connections} connections")),
        ];
        CheckOutcome::from_point(&result["points"][0], differs.into_iter().flatten())
    });
}

#[test]
fn a_model_server_counts_the_tokens_that_its_answers_have() {
    let lengths = ["--input-tokens", "32", "--output-tokens", "8"];
    let more = ["--points", "4", "--set", "profiles.quick.measure=3s"];
    let temp_dir = TempDir::new().unwrap();
    let mut attempts = 1..=u32::MAX;
    // An overloaded machine samples late.
    one_is_right(3, || {
        let bundle = temp_dir.path().join(attempts.next().unwrap().to_string());
        let flags = [&lengths[..], &more].concat();
        let ended = plimsoll(&short("llm-chat", "builtin:", &bundle, &flags));
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let result = result(&bundle);
        let generation = &result["points"][0]["generation"];
        let counted = generation["output_tokens_per_s"].as_f64().unwrap();
        let reported = generation["server_output_tokens_per_s"].as_f64().unwrap();
        let running = mean(&result, "model.running", None).unwrap();
        assert!(bundle.join("monitors/models.csv").exists());
        let differs = [
            ((reported - counted).abs() > 0.05 * counted)
                .then(|| format!("the server told {reported} tokens/s of {counted}")),
            (!(1.0..=4.0).contains(&running)).then(|| format!("{running} requests of 4 clients")),
        ];
        CheckOutcome::from_point(&result["points"][0], differs.into_iter().flatten())
    });
}

/// An nginx that was not started by the program.
struct Foreign {
    _process: Running,
    port: u16,
    _temp_dir: TempDir,
}

impl Foreign {
    fn start() -> Option<Self> {
        let nginx = require_peer("nginx")?;
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let temp_dir = TempDir::new().unwrap();
        let config = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{ access_log off; server {{ listen 127.0.0.1:{port};\n\
             location = /basic_status {{ stub_status; }} }} }}\n"
        );
        fs::write(temp_dir.path().join("nginx.conf"), config).unwrap();
        let mut command = Command::new(nginx);
        command.arg("-p").arg(temp_dir.path()).args(["-c", "nginx.conf", "-e", "stderr"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A port that was free a moment ago may still be in use by a child that is being started.
        wait_until("it answers", || status_page(port).is_ok_and(|page| page.contains("Active")));
        Some(Self { _process: Running(process), port, _temp_dir: temp_dir })
    }
}

fn status_page(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /basic_status HTTP/1.0\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

#[test]
fn a_foreign_nginx_that_nobody_asks_but_us_has_no_connection_and_no_request() {
    let Some(nginx) = Foreign::start() else { return };
    let temp_dir = TempDir::new().unwrap();
    let bundle = temp_dir.path().join("run");
    let url = format!("nginx://127.0.0.1:{}/basic_status", nginx.port);
    let more = ["--points", "4", "--set", "profiles.quick.measure=3s", "--monitor", &url];
    let ended = plimsoll(&short("web-static", "builtin:", &bundle, &more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let result = result(&bundle);
    for name in ["server.connections", "server.requests", "server.connections_writing"] {
        assert_eq!(mean(&result, name, Some(&url)), Some(0.0), "{name}");
    }
    assert!(mean(&result, "monitor.covered", Some(&url)).unwrap() > 0.5);
}

#[test]
fn an_nginx_without_a_status_page_is_told_before_any_load() {
    let Some(nginx) = Foreign::start() else { return };
    let temp_dir = TempDir::new().unwrap();
    let bundle = temp_dir.path().join("run");
    let url = format!("nginx://127.0.0.1:{}", nginx.port);
    let ended = plimsoll(&short("web-static", "builtin:", &bundle, &["--monitor", &url]));
    ended.check(3, &["/stub_status: answers with status 404", "is `stub_status` on"]);
}
