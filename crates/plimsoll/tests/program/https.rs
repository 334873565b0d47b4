//! https from end to end: the reference server with a certificate, and runs against it.

use std::path::Path;

use plimsoll_http::server::TlsSource;
use plimsoll_http::server::nginx::{self, NginxRequest};
use plimsoll_model::result::RunResult;
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_testkit::program::{Served, plimsoll, short};
use plimsoll_testkit::tls::TestCertificate;

/// `plimsoll serve web` with a certificate.
fn serve(certificates: &Path) -> Served {
    let (certificate, key) = (certificates.join("certificate.pem"), certificates.join("key.pem"));
    let of = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    Served::with("web", &[&["--directories", "1"], &of[..]].concat())
}

/// Exit code, output, and the result where there is one.
fn run(suite: &str, url: &str, more: &[&str]) -> (Option<i32>, String, Option<RunResult>) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("run");
    let roomy = ["--json", "--set", "profiles.quick.warm_up=100ms"];
    let window = ["--set", "profiles.quick.measure=1s", "--set", "profiles.quick.drain=10s"];
    let ended = plimsoll(&short(suite, url, &bundle, &[&roomy[..], &window, more].concat()));
    (ended.code, ended.err, serde_json::from_str(&ended.out).ok())
}

/// A run that measures something without one failed op; its validity depends on the machine.
#[track_caller]
fn measured(suite: &str, url: &str, more: &[&str]) -> RunResult {
    let (code, stderr, result) = run(suite, url, more);
    assert!(matches!(code, Some(0 | 1)), "{code:?}: {stderr}");
    let result = result.expect("--json prints a result");
    for point in &result.points {
        assert!(point.errors.is_empty(), "{:?}", point.errors);
        assert!(point.achieved_ops_per_s.unwrap() > 0.0);
    }
    result
}

#[test]
fn https_is_measured_with_kept_and_with_new_connections() {
    let certificates = tempfile::tempdir().unwrap();
    TestCertificate::new().write_into(certificates.path());
    let server = serve(certificates.path());
    let url = format!("{}bytes/5000", server.url);
    let ca_file = certificates.path().join("certificate.pem");
    check_variants(&url, &ca_file);
}

#[test]
fn nginx_is_measured_over_https_just_the_same() {
    if plimsoll_testkit::peers::require_peer("nginx").is_none() {
        return;
    }
    let certificates = tempfile::tempdir().unwrap();
    TestCertificate::new().write_into(certificates.path());
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("page"), vec![b'x'; 50_000]).unwrap();
    let tls = TlsSource::Files {
        certificate: certificates.path().join("certificate.pem"),
        key: certificates.path().join("key.pem"),
    };
    let root = root.path().to_owned();
    let request = NginxRequest {
        listen_on: LOOPBACK,
        root,
        cores: Vec::new(),
        tls: Some(tls),
        search: None,
        remove_when_killed: None,
        suffix: None,
    };
    let nginx = nginx::start(&request).unwrap();
    check_variants(&format!("{}page", nginx.url()), &certificates.path().join("certificate.pem"));
}

/// Every option for certificates, connections and sessions.
fn check_variants(url: &str, ca_file: &Path) {
    let trust = format!("workload.tls_ca_file={}", ca_file.display());
    for trust in ["workload.tls_verify=false", &trust] {
        for connections in ["keep-alive", "per-request"] {
            for resumption in ["off", "on"] {
                let connections = format!("workload.connections={connections}");
                let set = format!("workload.tls_resumption={resumption}");
                let set = ["--clients", "4", "--set", trust, "--set", &connections, "--set", &set];
                let result = measured("web-url", url, &set);
                let setup = result.disclosure.unwrap().setup;
                let setting = setup.iter().find(|fact| fact.name == "TLS resumption").unwrap();
                assert!(setting.value.starts_with(resumption), "{setting:?}");
            }
        }
    }
}

#[test]
fn a_file_set_is_verified_over_https() {
    let certificates = tempfile::tempdir().unwrap();
    TestCertificate::new().write_into(certificates.path());
    let server = serve(certificates.path());
    let set = ["--set", "workload.tls_verify=false", "--set", "workload.verify_one_in=1"];
    let result = measured("web-static", &server.url, &[&["--points", "100"], &set[..]].concat());
    assert!(result.departures.iter().any(|d| d.contains("TLS")), "{:?}", result.departures);
    assert_eq!(result.points.len(), 1);
}

#[test]
fn an_unknown_certificate_is_refused_before_any_load() {
    let certificates = tempfile::tempdir().unwrap();
    TestCertificate::new().write_into(certificates.path());
    let server = serve(certificates.path());
    let (code, stderr, result) = run("web-url", &server.url, &["--clients", "1"]);
    assert_eq!((code, result.is_none()), (Some(3), true), "{stderr}");
    assert!(stderr.contains("workload.tls_verify=false"), "{stderr}");
}
