use tempfile::TempDir;

use super::*;
use crate::root::Frame;
use crate::source::{MonitorUrl, Peer};

const MS: u64 = 1_000_000;

/// What a source does at its nth question: a counter to tell, words of a gap, or a long silence.
#[derive(Debug)]
enum Turn {
    Tells(u64),
    /// The same, by a clock on which the host began then.
    TellsBegun(u64, u64),
    IsLost,
    Hangs,
    Panics,
}

type Script = Box<dyn FnMut(u64) -> Turn + Send>;

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
            Turn::Tells(count) => count,
            Turn::TellsBegun(count, at_s) => {
                begun = format!("btime {at_s}\n");
                count
            }
            Turn::IsLost => return Err(Lost("cable pulled".to_owned())),
            Turn::Hangs => {
                std::thread::sleep(Duration::from_secs(5));
                return Err(Lost("no answer".to_owned()));
            }
            Turn::Panics => panic!("a bug of a source, on purpose"),
        };
        let text = format!("cpu  1 0 0 1\nctxt {count}\nprocs_running 2\n{begun}");
        frame.replace([("proc/stat".to_owned(), text)].into());
        let cost_ns = Some((at.monotonic_ns - self.begin_ns) / 100);
        Ok(Some(Fetched { at, servers: Vec::new(), cost_ns }))
    }
}

/// A monitor of a host that does as the script says, by the time since the start.
fn monitor(place: &TempDir, script: impl FnMut(u64) -> Turn + Send + 'static) -> RemoteMonitor {
    let peer = Fake { begin_ns: clock::monotonic_ns(), script: Box::new(script) };
    let source = Source {
        url: MonitorUrl::parse("ssh://db").unwrap(),
        frame: Frame::default(),
        peer: Box::new(peer),
        facts: Vec::new(),
    };
    RemoteMonitor::start(source, place.path(), &[]).unwrap()
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
    let place = TempDir::new().unwrap();
    // A thousand a second.
    let monitor = monitor(&place, |ns| Turn::Tells(ns / MS));
    point(&monitor, 1_500);
    let resources = monitor.point_finished().resources;
    assert!(resources.iter().all(|resource| resource.source.as_deref() == Some("ssh://db")));
    let covered = mean(&resources, "monitor.covered").unwrap();
    // Less than all of it where the monitor's thread did not get its turn.
    assert!((0.5..1.000_001).contains(&covered), "{covered}");
    let rate = mean(&resources, "host.context_switches").unwrap();
    assert!((rate - 1_000.0).abs() < 10.0, "{rate}");
    let cost = mean(&resources, "monitor.cpu").unwrap();
    assert!((cost - 0.01).abs() < 0.001, "{cost}");
    assert_eq!(monitor.point_finished(), RemotePoint::default(), "the point is over");
    monitor.stop().unwrap();
    let rows = std::fs::read_to_string(place.path().join("ssh-db/host.csv")).unwrap();
    assert!(rows.contains(",point-01,"), "{rows}");
}

#[test]
fn no_rate_spans_a_gap_and_the_gap_is_told() {
    let place = TempDir::new().unwrap();
    // Away at its third question, while a million things happen.
    let mut turn = 0;
    let monitor = monitor(&place, move |ns| {
        turn += 1;
        match turn {
            1 | 2 => Turn::Tells(ns / MS),
            3 => Turn::IsLost,
            _ => Turn::Tells(ns / MS + 1_000_000),
        }
    });
    point(&monitor, 4_500);
    let resources = monitor.point_finished().resources;
    let covered = mean(&resources, "monitor.covered").unwrap();
    assert!((0.05..0.95).contains(&covered), "{covered}");
    let rate = mean(&resources, "host.context_switches").unwrap();
    assert!((rate - 1_000.0).abs() < 20.0, "{rate}");
    let told = monitor.stop().unwrap_err().to_string();
    assert!(told.starts_with("ssh://db did not answer once, "), "{told}");
    assert!(told.contains("cable pulled") && told.contains("gap"), "{told}");
}

#[test]
fn a_source_that_hangs_holds_up_neither_the_point_nor_the_end() {
    let place = TempDir::new().unwrap();
    let mut turn = 0;
    let monitor = monitor(&place, move |ns| {
        turn += 1;
        if turn == 1 { Turn::Tells(ns) } else { Turn::Hangs }
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
    let place = TempDir::new().unwrap();
    let monitor = monitor(&place, |_| Turn::Panics);
    point(&monitor, 100);
    assert_eq!(mean(&monitor.point_finished().resources, "monitor.covered"), Some(0.0));
    assert!(matches!(monitor.stop(), Err(MonitorError::Panicked)));
}

#[test]
fn a_clock_that_is_set_in_mid_run_is_told_and_changes_no_figure() {
    let place = TempDir::new().unwrap();
    // An hour forward at its third question.
    let mut turn = 0;
    let monitor = monitor(&place, move |ns| {
        turn += 1;
        Turn::TellsBegun(ns / MS, if turn < 3 { 1_700_000_000 } else { 1_700_003_600 })
    });
    point(&monitor, 2_500);
    let resources = monitor.point_finished().resources;
    let rate = mean(&resources, "host.context_switches").unwrap();
    assert!((rate - 1_000.0).abs() < 20.0, "{rate}");
    let told = monitor.stop().unwrap_err().to_string();
    assert!(told.starts_with("ssh://db had its clock set 3600 s forward"), "{told}");
    let rows = std::fs::read_to_string(place.path().join("ssh-db/host.csv")).unwrap();
    let times = rows.lines().skip(1).map(|row| row.split(',').next().unwrap().parse::<u64>());
    let times: Vec<u64> = times.map(Result::unwrap).collect();
    assert!(times.windows(2).all(|two| two[1] - two[0] < 5_000 * MS), "{times:?}");
}
