//! Tests of the bundle as a whole.

use std::fs;

use super::*;
use crate::assignment::{Load, Pacing, PointId, Purpose};
use crate::disclosure::Disclosure;
use crate::event::{
    JOURNAL_FORMAT, JournalRecord, OpTimes, Phase, PointRecord, RunStarted, TimeKind, WorkerTotals,
};
use crate::outcome::OpNames;
use crate::suite::{Arrivals, InterArrival, Suite};
use crate::units::{Nanos, OpsPerSec};

const SUITE: &str = "format = 1\nname = \"small\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
    [load]\nmode = \"open\"\n";

fn suite() -> Suite {
    Suite::parse("small.toml", SUITE, &[], &|_, _| Ok(toml::Table::new())).unwrap()
}

fn names() -> OpNames {
    OpNames(vec!["get".into(), "odd, name 100%".into()])
}

fn started() -> JournalRecord {
    JournalRecord::RunStarted(RunStarted {
        gates: crate::gate::Gates::default(),
        asked: None,
        format: JOURNAL_FORMAT,
        version: "0".into(),
        debug_build: true,
        profile: "quick".into(),
        seed: 1,
        targets: vec!["http://h/".into()],
        ladder: Some(vec![10.0, 20.0]),
        op_names: names(),
        op_shares: None,
        page_limits: Vec::new(),
        sessions: None,
        departures: vec![],
        method: vec![],
        command: vec!["plimsoll".into()],
        capacity: None,
        at_unix_ns: 1,
    })
}

fn id(ordinal: u32) -> PointId {
    PointId { ordinal, purpose: Purpose::Ladder }
}

fn record(ordinal: u32) -> PointRecord {
    PointRecord {
        point: id(ordinal),
        load: Load::Open {
            rate_ops_per_s: OpsPerSec::new(10.0).unwrap(),
            arrivals: Arrivals::Shared,
            gaps: InterArrival::Uniform,
            clients: 1,
            backlog_ops_max: 1,
        },
        pacing: Pacing::Precise,
        started_unix_ns: 5,
        warm_up_ns: Nanos::from_millis(200),
        measured_ns: Nanos::from_secs(1),
        clock_step_ns: 0,
        totals: WorkerTotals { due: 10, ..WorkerTotals::default() },
        seconds: vec![],
        workers: vec![],
        process_cpu_ns: 0,
        monitor_cpu_ns: 0,
        panic: None,
        ended_early: None,
        resources: vec![],
        core_users: None,
        server_core_users: None,
        server_lost: None,
        data_set_bytes: None,
        access_pattern: None,
        host_work: Vec::new(),
        agents: Vec::new(),
        phase: None,
        ops: None,
    }
}

fn slice(second: u32, phase: Phase, start_ms: u64, values: &[u64]) -> IntervalSlice {
    let mut ops = vec![OpTimes::new(), OpTimes::new()];
    for value in values {
        ops[0].response.record(*value).unwrap();
        ops[1].send_lag.record(*value / 2).unwrap();
    }
    let (start, length) = (Nanos::from_millis(start_ms), Nanos::from_millis(800));
    IntervalSlice { second, start, length, phase, ops }
}

fn write_points(dir: &Path, ordinals: std::ops::RangeInclusive<u32>) -> BundleWriter {
    let mut writer = BundleWriter::create(dir, &suite()).unwrap();
    writer.record_durably(&started()).unwrap();
    for ordinal in ordinals {
        let mut log = writer.begin_point(id(ordinal), &names()).unwrap();
        log.write(&slice(0, Phase::WarmUp, 0, &[1_000])).unwrap();
        log.write(&slice(0, Phase::Measure, 200, &[1_000_000, 3_000_000_000])).unwrap();
        log.write(&slice(1, Phase::Drain, 1_200, &[])).unwrap();
        writer.finish_point(log, record(ordinal)).unwrap();
    }
    writer
}

#[test]
fn a_bundle_reads_back_as_it_was_written() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("runs/one");
    let mut writer = write_points(&dir, 1..=2);
    writer.write_disclosure(&Disclosure { format: 1, ..Disclosure::default() }).unwrap();
    writer.record_durably(&JournalRecord::RunFinished { at_unix_ns: 9 }).unwrap();

    let reader = BundleReader::open(&dir).unwrap();
    assert_eq!(reader.suite_text(), suite().to_toml());
    assert_eq!(reader.journal().started().unwrap().op_names, names());
    assert_eq!(reader.journal().points().cloned().collect::<Vec<_>>(), [record(1), record(2)]);
    assert!(reader.journal().is_finished());
    assert_eq!(reader.disclosure().unwrap().unwrap().format, 1);

    let mut slices = Vec::new();
    reader
        .intervals(id(2), &names(), |e| {
            slices.push((e.second, e.phase, e.start, e.op, e.kind, e.times.len(), e.times.max()));
        })
        .unwrap();
    let max = new_max(3_000_000_000);
    let at = Nanos::from_millis(200);
    assert_eq!(
        slices,
        [
            (0, Phase::WarmUp, Nanos::ZERO, 0, TimeKind::Response, 1, new_max(1_000)),
            (0, Phase::WarmUp, Nanos::ZERO, 1, TimeKind::SendLag, 1, new_max(500)),
            (0, Phase::Measure, at, 0, TimeKind::Response, 2, max),
            (0, Phase::Measure, at, 1, TimeKind::SendLag, 2, new_max(1_500_000_000)),
        ]
    );
}

/// Highest value that falls into the same bin.
fn new_max(value: u64) -> u64 {
    let mut times = crate::event::new_times();
    times.record(value).unwrap();
    times.max()
}

#[test]
fn an_existing_directory_with_something_in_it_is_refused_with_the_next_move() {
    let temp_dir = tempfile::tempdir().unwrap();
    fs::write(temp_dir.path().join("mine.txt"), "x").unwrap();
    let error = BundleWriter::create(temp_dir.path(), &suite()).unwrap_err();
    assert!(matches!(error, BundleError::Occupied { .. }));
    assert!(error.to_string().contains("--out"), "{error}");
    assert_eq!(fs::read_dir(temp_dir.path()).unwrap().count(), 1);
}

#[test]
fn a_kill_at_any_byte_of_the_journal_keeps_every_point_finished_before() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("whole");
    drop(write_points(&dir, 1..=3));
    let path = dir.join(JOURNAL_FILE);
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let lines = whole[..length].iter().filter(|b| **b == b'\n').count();
        let journal = Journal::read(&path).unwrap();
        assert_eq!(journal.points().count(), lines.saturating_sub(1), "cut at {length}");
        assert_eq!(journal.whole_bytes + journal.torn_bytes, length as u64);
    }
}

#[test]
fn a_resumed_run_appends_after_the_last_whole_record() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("b");
    drop(write_points(&dir, 1..=2));
    let path = dir.join(JOURNAL_FILE);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    fs::write(dir.join("intervals/point-02.hlog.partial"), "half").unwrap();

    let reader = BundleReader::open(&dir).unwrap();
    assert_eq!(reader.journal().points().count(), 1);
    let mut writer = BundleWriter::resume(&reader).unwrap();
    let log = writer.begin_point(id(2), &names()).unwrap();
    writer.finish_point(log, record(2)).unwrap();
    let journal = Journal::read(&path).unwrap();
    assert_eq!((journal.points().count(), journal.torn_bytes), (2, 0));
    assert!(!dir.join("intervals/point-02.hlog.partial").exists());
}

#[test]
fn an_interrupted_load_point_leaves_nothing_that_the_manifest_does_not_list() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("b");
    let writer = write_points(&dir, 1..=1);
    drop(writer.begin_point(id(2), &names()).unwrap());
    let manifest = Manifest::from_bundle(&dir).unwrap();
    manifest.write(&dir).unwrap();
    assert_eq!(manifest.problems(&dir).unwrap(), []);
}

#[test]
fn a_bad_record_before_the_last_is_an_error_with_its_line() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join(JOURNAL_FILE);
    fs::write(&path, "{\"event\":\"interrupted\",\"at_unix_ns\":1}\nrubbish\n{}\n").unwrap();
    let error = Journal::read(&path).unwrap_err();
    assert!(matches!(error, BundleError::Malformed { line: 2, .. }), "{error}");
}

#[test]
fn the_manifest_names_each_changed_missing_or_added_file() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("b");
    drop(write_points(&dir, 1..=2));
    fs::write(dir.join(RESULT_FILE), "{}").unwrap();
    Manifest::from_bundle(&dir).unwrap().write(&dir).unwrap();
    let manifest = Manifest::read(&dir).unwrap().unwrap();
    assert_eq!(manifest.derived.keys().collect::<Vec<_>>(), [RESULT_FILE]);
    assert_eq!(manifest.problems(&dir).unwrap(), []);

    fs::remove_file(dir.join(RESULT_FILE)).unwrap();
    let gone = ManifestProblem::Derivable(RESULT_FILE.into());
    assert_eq!(manifest.problems(&dir).unwrap(), std::slice::from_ref(&gone));
    assert!(!gone.is_damage(), "derived files may go");

    let journal = dir.join(JOURNAL_FILE);
    let mut bytes = fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&journal, bytes).unwrap();
    fs::remove_file(dir.join("intervals/point-01.hlog")).unwrap();
    fs::write(dir.join("monitors/extra.csv"), "").unwrap();
    fs::write(dir.join("notes.txt"), "").unwrap();
    fs::write(dir.join("x.partial"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", dir.join("link")).unwrap();
    let suite = dir.join(SUITE_FILE);
    fs::rename(&suite, temp_dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(temp_dir.path().join("elsewhere"), &suite).unwrap();
    let compact = serde_json::to_string(&manifest).unwrap();
    fs::write(dir.join(MANIFEST_FILE), compact).unwrap();
    assert_eq!(
        manifest.problems(&dir).unwrap(),
        [
            ManifestProblem::Changed(JOURNAL_FILE.into()),
            ManifestProblem::Changed(SUITE_FILE.into()),
            ManifestProblem::Missing("intervals/point-01.hlog".into()),
            ManifestProblem::Added("link".into()),
            ManifestProblem::Added("monitors/extra.csv".into()),
            ManifestProblem::Added("notes.txt".into()),
            ManifestProblem::Added("x.partial".into()),
            gone,
            ManifestProblem::Rewritten,
        ]
    );
}

#[test]
fn a_full_device_is_told_apart_and_names_what_is_left() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let mut writer = JournalWriter::open_device_for_test(full).unwrap();
    let error = writer.append_durably(&started()).unwrap_err();
    assert!(matches!(error, BundleError::StorageFull { .. }), "{error}");
}

#[test]
fn two_processes_never_write_one_bundle() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("b");
    let mut first = write_points(&dir, 1..=1);
    let reader = BundleReader::open(&dir).unwrap();
    let error = BundleWriter::resume(&reader).unwrap_err();
    assert!(matches!(error, BundleError::InUse { .. }), "{error}");

    first.record_durably(&JournalRecord::Interrupted { at_unix_ns: 2 }).unwrap();
    drop(first);
    let error = BundleWriter::resume(&reader).unwrap_err();
    assert!(matches!(error, BundleError::InUse { .. }), "read before it was written: {error}");
    assert_eq!(Journal::read(&dir.join(JOURNAL_FILE)).unwrap().records.len(), 3);
    BundleWriter::resume(&BundleReader::open(&dir).unwrap()).unwrap();
}

#[test]
fn deriving_again_does_not_vouch_for_raw_files() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("b");
    drop(write_points(&dir, 1..=1));
    fs::write(dir.join(RESULT_FILE), "{}").unwrap();
    Manifest::refresh_derived(&dir, &[RESULT_FILE]).unwrap();
    assert_eq!(Manifest::read(&dir).unwrap(), None, "only a run makes a manifest");

    Manifest::from_bundle(&dir).unwrap().write(&dir).unwrap();
    fs::write(dir.join(SUITE_FILE), "changed").unwrap();
    fs::write(dir.join(RESULT_FILE), "{ }").unwrap();
    Manifest::refresh_derived(&dir, &[RESULT_FILE, SUITE_FILE]).unwrap();
    let problems = Manifest::read(&dir).unwrap().unwrap().problems(&dir).unwrap();
    assert_eq!(problems, [ManifestProblem::Changed(SUITE_FILE.into())]);

    let before = fs::read(dir.join(MANIFEST_FILE)).unwrap();
    fs::write(dir.join(SIGNATURE_FILE), "signed").unwrap();
    fs::write(dir.join(RESULT_FILE), "{  }").unwrap();
    Manifest::refresh_derived(&dir, &[RESULT_FILE]).unwrap();
    assert_eq!(fs::read(dir.join(MANIFEST_FILE)).unwrap(), before, "as it was signed");
}

#[test]
fn a_resumed_run_forgets_what_was_derived() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("b");
    drop(write_points(&dir, 1..=1));
    for name in [RESULT_FILE, MANIFEST_FILE] {
        fs::write(dir.join(name), "{}").unwrap();
    }
    let writer = BundleWriter::resume(&BundleReader::open(&dir).unwrap()).unwrap();
    writer.forget_derived().unwrap();
    assert!(!dir.join(RESULT_FILE).exists() && !dir.join(MANIFEST_FILE).exists());
    assert!(dir.join(JOURNAL_FILE).exists());
}
