//! The public load file of Debian's package dbench, where it is installed.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::sync::{Arc, OnceLock};

use plimsoll_engine::seam::{Script, Step, Turn};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::smb_peers::dbench_load_file;

use crate::loadfile::{LoadFile, Replay};
use crate::op::SmbKind;

/// The file and its text, read once for all tests: it has half a million lines.
fn public() -> Option<&'static (Arc<LoadFile>, String)> {
    static PUBLIC: OnceLock<(Arc<LoadFile>, String)> = OnceLock::new();
    // Asked by each test, so that each says that it shows nothing without it.
    let place = dbench_load_file()?;
    Some(PUBLIC.get_or_init(|| {
        let text = std::fs::read_to_string(&place).unwrap();
        let reader = BufReader::new(File::open(&place).unwrap());
        (Arc::new(LoadFile::parse(reader, &place.display().to_string()).unwrap()), text)
    }))
}

#[test]
fn its_lines_are_counted_as_a_plain_count_of_words_does() {
    let Some((file, text)) = public() else { return };
    let mut words: HashMap<&str, u64> = HashMap::new();
    for line in text.lines() {
        *words.entry(line.split(' ').next().unwrap()).or_default() += 1;
    }
    let counts: HashMap<&str, u64> =
        file.counts().into_iter().map(|(verb, count)| (verb.name(), count)).collect();
    assert_eq!(counts, words);
    assert_eq!(file.timestamps, 0);
}

#[test]
fn it_takes_at_most_25_bytes_a_line_in_memory() {
    let Some((file, text)) = public() else { return };
    let (bytes, lines) = (file.memory_bytes(), text.lines().count());
    assert!(bytes <= 25 * lines, "{bytes} bytes for {lines} lines");
}

#[test]
fn it_is_printed_as_it_was() {
    let Some((file, text)) = public() else { return };
    // Every seventh: seven and the lines of a session have no common divisor.
    for (record, line) in file.records().iter().zip(text.lines()).step_by(7) {
        assert_eq!(file.line(record).to_string(), line);
    }
}

#[test]
fn every_line_of_it_becomes_an_op_of_every_client() {
    let Some((file, _)) = public() else { return };
    let shared: Vec<_> = file.shared_directories().into_iter().collect();
    assert_eq!(shared, ["clients"]);
    let own: Vec<_> = file.own_directories(127).into_iter().collect();
    assert_eq!(own, [r"clients\client128"]);
    let mut replay = Replay::new(file.clone(), 127);
    let turn = Turn { index: 0, now: Nanos::default() };
    assert_eq!(replay.next(turn), Step::Think);
    let mut kinds: BTreeMap<SmbKind, u64> = BTreeMap::new();
    for _ in file.records() {
        let Step::Issue(call) = replay.next(turn) else { panic!("no op") };
        *kinds.entry(call.op.kind()).or_default() += 1;
    }
    assert_eq!(replay.next(turn), Step::Think);
    let counts = file.counts().into_iter();
    let wanted: BTreeMap<_, _> = counts.map(|(verb, n)| (verb.kind().unwrap(), n)).collect();
    assert_eq!(kinds, wanted);
}
