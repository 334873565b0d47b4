//! The host's calibration in a report.

use plimsoll_model::certificate::CertificateNote;

use crate::fixture;

fn note() -> CertificateNote {
    CertificateNote {
        made: "2026-11-22T06:15:00Z".into(),
        version: "0.1.0".into(),
        build: "release".into(),
        worst_tight_ratio: 0.42,
        worst_tight_ns: 76_000,
        worst_tight_at: "M/M/4 at 0.9 p99".into(),
        punctual_ops_per_s: Some(40_000.0),
        driver: "epoll".into(),
        workers: 1,
        pacing: "precise".into(),
        all_held: true,
        not_covered: Vec::new(),
    }
}

#[test]
fn what_the_certificate_does_not_cover_stands_beside_it() {
    let mut run = fixture::valid(3);
    let not_covered =
        vec!["kernel 6.1, certified 6.18".into(), "pacing spin, certified auto".into()];
    let note = CertificateNote { not_covered, ..note() };
    run.disclosure.as_mut().unwrap().certificate = Some(note);
    let text = plimsoll_report::markdown(&run);
    let line = text.lines().find(|line| line.contains("not covered")).unwrap();
    assert!(line.contains("kernel 6.1, certified 6.18; pacing spin, certified auto"), "{line}");
}

#[test]
fn the_latest_certificate_of_the_host_stands_in_one_line() {
    let mut run = fixture::valid(3);
    run.disclosure.as_mut().unwrap().certificate = Some(note());
    let text = plimsoll_report::markdown(&run);
    let line = text.lines().find(|line| line.contains("latest certificate")).unwrap();
    for part in [
        "2026-11-22T06:15:00Z",
        "all judgements hold",
        "76.0 µs (42 % of what is allowed), M/M/4 at 0.9 p99",
        "sends on time up to 40,000 ops/s",
        "epoll, 1 worker, pacing precise",
    ] {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
    assert!(plimsoll_report::html(&run).unwrap().contains("latest certificate of the host"));
}

#[test]
fn a_run_without_a_certificate_says_nothing_of_it() {
    let text = plimsoll_report::markdown(&fixture::valid(3));
    assert!(!text.contains("certificate") && !text.contains("Calibration"), "{text}");
}
