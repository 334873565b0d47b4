use tempfile::TempDir;

use super::*;
use crate::root::Frame;
use crate::source::{MonitorUrl, Peer};

const MS: u64 = 1_000_000;

/// A source's reaction to its nth poll: a counter, the message of a gap, or a long silence.
#[derive(Debug)]
enum ScriptedReply {
    Reports(u64),
    /// The same, by a clock on which the host began then.
    ReportsWithBoot(u64, u64),
    IsLost,
    Hangs,
    Panics,
}

type Script = Box<dyn FnMut(u64) -> ScriptedReply + Send>;

struct Fake {
    begin_ns: u64,
    script: Script,
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

impl Peer for Fake {
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost> {
        let at = ClockReading::now();
        let mut begun = String::new();
        let count = match (self.script)(at.monotonic_ns - self.begin_ns) {
            ScriptedReply::Reports(count) => count,
            ScriptedReply::ReportsWithBoot(count, at_s) => {
                begun = format!("btime {at_s}\n");
                count
            }
            ScriptedReply::IsLost => return Err(Lost("cable pulled".to_owned())),
            ScriptedReply::Hangs => {
                std::thread::sleep(Duration::from_secs(5));
                return Err(Lost("no answer".to_owned()));
            }
            ScriptedReply::Panics => panic!("a bug of a source, on purpose"),
        };
        let text = format!("cpu  1 0 0 1\nctxt {count}\nprocs_running 2\n{begun}");
        frame.replace([("proc/stat".to_owned(), text)].into());
        let cost_ns = Some((at.monotonic_ns - self.begin_ns) / 100);
        Ok(Some(Fetched { at, cost_ns, ..Fetched::default() }))
    }
}

/// A monitor of a host that follows the script, by the time since the start.
fn monitor(
    temp_dir: &TempDir,
    script: impl FnMut(u64) -> ScriptedReply + Send + 'static,
) -> RemoteMonitor {
    let peer = Fake { begin_ns: clock::monotonic_ns(), script: Box::new(script) };
    let source = Source {
        url: MonitorUrl::parse("ssh://db").unwrap(),
        frame: Frame::default(),
        peer: Box::new(peer),
        addresses: Vec::new(),
        facts: Vec::new(),
        disks: crate::inventory::DiskTree::default(),
    };
    RemoteMonitor::start(source, temp_dir.path(), &[]).unwrap()
}

/// A point whose window begins soon.
fn point(monitor: &RemoteMonitor, length_ms: u64) {
    monitor.point_started("point-01");
    let begin = clock::unix_ns() + 200 * MS;
    monitor.point_window(begin, begin + length_ms * MS);
    std::thread::sleep(Duration::from_millis(200 + length_ms + 20));
}

fn mean(resources: &[ResourceUse], name: &str) -> Option<f64> {
    resources.iter().find(|resource| resource.name == name).map(|resource| resource.mean)
}

#[test]
fn what_a_source_tells_is_summed_over_exactly_the_window() {
    let temp_dir = TempDir::new().unwrap();
    // A thousand a second.
    let monitor = monitor(&temp_dir, |ns| ScriptedReply::Reports(ns / MS));
    point(&monitor, 1_500);
    let resources = monitor.point_finished().resources;
    assert!(resources.iter().all(|resource| resource.source.as_deref() == Some("ssh://db")));
    let covered = mean(&resources, "monitor.covered").unwrap();
    // Less than all of it where the monitor's thread was not scheduled.
    assert!((0.5..1.000_001).contains(&covered), "{covered}");
    match mean(&resources, "host.context_switches") {
        Some(rate) => assert!((rate - 1_000.0).abs() < 10.0, "{rate}"),
        None => assert!(covered < 0.9, "{covered}"),
    }
    let cost = mean(&resources, "monitor.cpu").unwrap();
    assert!((cost - 0.01).abs() < 0.001, "{cost}");
    assert_eq!(monitor.point_finished(), RemotePoint::default(), "the point is over");
    monitor.stop().unwrap();
    let rows = std::fs::read_to_string(temp_dir.path().join("ssh-db/host.csv")).unwrap();
    assert!(rows.contains(",point-01,"), "{rows}");
}

#[test]
fn no_rate_spans_a_gap_and_the_gap_is_told() {
    // A busy machine delays a question; a rate that spans the gap is wrong each time.
    let wrong = (0..3).map(|_| rates_across_an_outage());
    let wrong = wrong.take_while(|rates| rates.iter().any(|rate| (rate - 1_000.0).abs() >= 20.0));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.len() < 3, "{wrong:?}");
}

/// Rates of a source that really counts a thousand a second, around an outage.
fn rates_across_an_outage() -> Vec<f64> {
    let temp_dir = TempDir::new().unwrap();
    // Away at its third question, while a million things happen.
    let mut question = 0;
    let monitor = monitor(&temp_dir, move |ns| {
        question += 1;
        match question {
            1 | 2 => ScriptedReply::Reports(ns / MS),
            3 => ScriptedReply::IsLost,
            _ => ScriptedReply::Reports(ns / MS + 1_000_000),
        }
    });
    point(&monitor, 4_500);
    let resources = monitor.point_finished().resources;
    let covered = mean(&resources, "monitor.covered").unwrap();
    assert!((0.05..0.95).contains(&covered), "{covered}");
    let mean_rate = mean(&resources, "host.context_switches");
    assert_eq!(mean_rate.is_some(), covered >= 0.9, "{mean_rate:?} of {covered}");
    let message = monitor.stop().unwrap_err().to_string();
    assert!(message.starts_with("ssh://db did not answer once, "), "{message}");
    assert!(message.contains("cable pulled") && message.contains("gap"), "{message}");
    let rows = std::fs::read_to_string(temp_dir.path().join("ssh-db/host.csv")).unwrap();
    let mut rows = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = header.iter().position(|name| name.starts_with("context_switches")).unwrap();
    let rates: Vec<f64> = rows.filter_map(|row| row[column].parse().ok()).collect();
    assert!(!rates.is_empty(), "{header:?}");
    rates
}

#[test]
fn a_source_that_hangs_holds_up_neither_the_point_nor_the_end() {
    let temp_dir = TempDir::new().unwrap();
    let mut question = 0;
    let monitor = monitor(&temp_dir, move |ns| {
        question += 1;
        if question == 1 { ScriptedReply::Reports(ns) } else { ScriptedReply::Hangs }
    });
    let begin_ns = clock::monotonic_ns();
    point(&monitor, 300);
    let resources = monitor.point_finished().resources;
    assert_eq!(mean(&resources, "monitor.covered"), Some(0.0));
    assert_eq!(mean(&resources, "host.runnable"), None, "a gap is no zero");
    drop(monitor);
    let waited_ms = (clock::monotonic_ns() - begin_ns) / MS;
    assert!(waited_ms < 3_500, "{waited_ms} ms");
}

#[test]
fn a_source_with_a_bug_ends_alone_and_is_told() {
    let temp_dir = TempDir::new().unwrap();
    let monitor = monitor(&temp_dir, |_| ScriptedReply::Panics);
    point(&monitor, 100);
    assert_eq!(mean(&monitor.point_finished().resources, "monitor.covered"), Some(0.0));
    assert!(matches!(monitor.stop(), Err(MonitorError::Panicked)));
}

#[test]
fn a_clock_that_is_set_in_mid_run_is_told_and_changes_no_figure() {
    let temp_dir = TempDir::new().unwrap();
    // An hour forward at its third question.
    let mut question = 0;
    let monitor = monitor(&temp_dir, move |ns| {
        question += 1;
        ScriptedReply::ReportsWithBoot(
            ns / MS,
            if question < 3 { 1_700_000_000 } else { 1_700_003_600 },
        )
    });
    point(&monitor, 2_500);
    let resources = monitor.point_finished().resources;
    // Unknown where the monitor's thread was not scheduled.
    let rate = mean(&resources, "host.context_switches").unwrap_or(1_000.0);
    assert!((rate - 1_000.0).abs() < 20.0, "{rate}");
    let message = monitor.stop().unwrap_err().to_string();
    assert!(message.starts_with("ssh://db had its clock set 3600 s forward"), "{message}");
    let rows = std::fs::read_to_string(temp_dir.path().join("ssh-db/host.csv")).unwrap();
    let times = rows.lines().skip(1).map(|row| row.split(',').next().unwrap().parse::<u64>());
    let times: Vec<u64> = times.map(Result::unwrap).collect();
    assert!(times.windows(2).all(|two| two[1] - two[0] < 5_000 * MS), "{times:?}");
}
