use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::clock;

/// A file in memory that the test and the monitor share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const MS: u64 = 1_000_000;

fn every_20_ms(outputs: Outputs) -> MonitorConfig {
    let processes = vec![WatchedProcess::own("generator")];
    MonitorConfig { interval: Nanos(20 * MS), processes, outputs, ..MonitorConfig::default() }
}

#[test]
fn a_point_is_summed_over_exactly_its_window() {
    let host = Shared::default();
    let outputs = Outputs::discard().with(0, Output::new(host.clone()));
    let monitor = Monitor::start(every_20_ms(outputs)).unwrap();
    monitor.point_started("point-03");
    let start = clock::unix_ns() + 150 * MS;
    monitor.point_window(start, start + 100 * MS);
    std::thread::sleep(Duration::from_millis(260));
    let point = monitor.point_finished();
    assert_eq!(point.stem, "point-03");
    assert!(point.window_ns.abs_diff(100 * MS) < MS / 10, "{} ns", point.window_ns);
    assert!(point.clock_step_ns.unsigned_abs() < MS, "{} ns", point.clock_step_ns);
    // The two clocks are read one after the other, and somebody else may run in between.
    assert!(point.monitor_cpu_ns > 0 && point.process_cpu_ns + 20 * MS >= point.monitor_cpu_ns);
    assert!(monitor.cpu_ns() >= point.monitor_cpu_ns);
    let find = |name: &str| point.resources.iter().find(|resource| resource.name == name);
    // On a busy machine samples come late, and for so short a window counters are then unknown.
    for busy in [find("host.cpu_busy"), find("cpu.0.busy")].into_iter().flatten() {
        assert_eq!(busy.unit, "ratio");
        // A sample at the edge counts for the mean alone, so that the maximum may be lower.
        let share = 0.0..=1.0;
        assert!(share.contains(&busy.mean) && share.contains(&busy.max), "{busy:?}");
    }
    assert!(find("process.generator.rss").unwrap().mean > 100_000.0);
    monitor.stop().unwrap();
    let text = host.text();
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("time_unix_ns,point,cpu_busy_ratio,"), "{header}");
    let columns = header.split(',').count();
    assert!(text.contains(",point-03,"), "{text}");
    assert!(lines.all(|line| line.split(',').count() == columns), "{text}");
}

#[test]
fn a_point_without_window_has_no_sums() {
    let monitor = Monitor::start(every_20_ms(Outputs::discard())).unwrap();
    assert_eq!(monitor.point_finished(), PointMonitors::default());
    monitor.point_started("point-01");
    let point = monitor.point_finished();
    assert_eq!((point.stem.as_str(), point.window_ns), ("point-01", 0));
    assert!(point.resources.is_empty());
}

#[test]
fn a_window_that_is_still_open_is_summed_up_to_now() {
    let config = MonitorConfig { interval: Nanos::from_secs(60), ..MonitorConfig::default() };
    let monitor = Monitor::start(config).unwrap();
    monitor.point_started("point-01");
    let requested_ns = clock::monotonic_ns();
    let start = clock::unix_ns() + 2 * MS;
    monitor.point_window(start, start + 3_600_000 * MS);
    std::thread::sleep(Duration::from_millis(1_000));
    let point = monitor.point_finished();
    let elapsed_ns = clock::monotonic_ns() - requested_ns;
    // Less than all of it where the monitor's thread began late.
    assert!((400 * MS..=elapsed_ns).contains(&point.window_ns), "{}", point.window_ns);
}

#[test]
fn stopping_does_not_wait_for_the_interval() {
    let config = MonitorConfig { interval: Nanos::from_secs(60), ..MonitorConfig::default() };
    let monitor = Monitor::start(config).unwrap();
    let before = clock::monotonic_ns();
    monitor.stop().unwrap();
    assert!(clock::monotonic_ns() - before < 1_000 * MS);
}

#[test]
fn a_resumed_run_appends_whole_rows_below_one_header() {
    let directory = tempfile::TempDir::new().unwrap();
    let monitors = directory.path().join("monitors");
    for _ in 0..2 {
        let outputs = Outputs::in_directory(&monitors).unwrap();
        let monitor = Monitor::start(every_20_ms(outputs)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        monitor.stop().unwrap();
        let mut cut = std::fs::OpenOptions::new().append(true).open(monitors.join("host.csv"));
        cut.as_mut().unwrap().write_all(b"123,po").unwrap();
    }
    let text = std::fs::read_to_string(monitors.join("host.csv")).unwrap();
    assert_eq!(text.matches("time_unix_ns").count(), 1, "{text}");
    assert_eq!(text.lines().filter(|line| *line == "123,po").count(), 2, "{text}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Outputs::in_directory(&file.path().join("monitors")).unwrap_err();
    assert!(error.to_string().contains("monitors\" for samples"), "{error}");
}

#[test]
fn a_full_disk_ends_one_table_and_is_told_at_the_end() {
    let disks = Shared::default();
    let outputs =
        Outputs::discard().with(0, Output::new(FullDisk)).with(2, Output::new(disks.clone()));
    let monitor = Monitor::start(every_20_ms(outputs)).unwrap();
    let error = monitor.stop().unwrap_err();
    assert!(matches!(error, MonitorError::Write { table: "host", .. }), "{error}");
    assert!(disks.text().starts_with("time_unix_ns,point,disk,"));
}

#[test]
fn a_process_may_be_added_while_sampling() {
    let processes = Shared::default();
    let outputs = Outputs::discard().with(4, Output::new(processes.clone()));
    let config = MonitorConfig { processes: Vec::new(), ..every_20_ms(outputs) };
    let monitor = Monitor::start(config).unwrap();
    monitor.watch(WatchedProcess::new("server", std::process::id()));
    let started = clock::monotonic_ns();
    while !processes.text().contains(",server,") && clock::monotonic_ns() - started < 5_000 * MS {
        std::thread::sleep(Duration::from_millis(5));
    }
    monitor.stop().unwrap();
    assert!(processes.text().contains(",server,"), "{}", processes.text());
}

#[test]
fn a_server_that_tells_its_figures_has_a_file_and_sums_and_others_have_none() {
    let figures = || Some("plimsoll_app_threads_busy 3\nplimsoll_app_queue_length 7\n".to_owned());
    for (probe, answers) in
        [(ServerProbe::new("", figures), true), (ServerProbe::new("", || None), false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs::in_directory(dir.path()).unwrap();
        let config = MonitorConfig { probes: vec![probe], ..every_20_ms(outputs) };
        let monitor = Monitor::start(config).unwrap();
        monitor.point_started("point-01");
        // Of twenty samples one comes in time, on the busiest machine.
        let start = clock::unix_ns() + 100 * MS;
        monitor.point_window(start, start + 400 * MS);
        std::thread::sleep(Duration::from_millis(550));
        let point = monitor.point_finished();
        monitor.stop().unwrap();
        let mean = |name: &str| Some(point.resources.iter().find(|r| r.name == name)?.mean);
        assert_eq!(mean("server.threads_busy"), answers.then_some(3.0));
        assert_eq!(mean("server.queue"), answers.then_some(7.0));
        let file = dir.path().join("app-server.csv");
        assert_eq!(file.exists(), answers);
        if answers {
            let text = std::fs::read_to_string(file).unwrap();
            let header = "time_unix_ns,point,server,threads,threads_busy,threads_busy_mean,queue,";
            assert!(text.starts_with(header), "{text}");
            assert!(text.lines().nth(1).unwrap().contains(",,3,,7,"), "{text}");
        }
    }
}
