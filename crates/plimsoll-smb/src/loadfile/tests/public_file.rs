//! The public load file of Debian's package dbench, where it is installed.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::sync::{Arc, OnceLock};

use plimsoll_engine::interface::{Script, ScriptContext, Step};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::smb_peers::dbench_load_file;

use crate::loadfile::{LoadFile, Replay};
use crate::op::SmbKind;

/// The file and its text, read once for all tests: it has half a million lines.
fn public() -> Option<&'static (Arc<LoadFile>, String)> {
    static PUBLIC: OnceLock<(Arc<LoadFile>, String)> = OnceLock::new();
    // Checked by each test, so that each reports that it shows nothing without the file.
    let path = dbench_load_file()?;
    Some(PUBLIC.get_or_init(|| {
        let text = std::fs::read_to_string(&path).unwrap();
        let reader = BufReader::new(File::open(&path).unwrap());
        (Arc::new(LoadFile::parse(reader, &path.display().to_string()).unwrap()), text)
    }))
}

#[test]
fn its_lines_are_counted_as_a_plain_count_of_words_does() {
    let Some((file, text)) = public() else { return };
    let mut verbs: HashMap<&str, u64> = HashMap::new();
    for line in text.lines() {
        *verbs.entry(line.split(' ').next().unwrap()).or_default() += 1;
    }
    let counts: HashMap<&str, u64> =
        file.counts().into_iter().map(|(verb, count)| (verb.name(), count)).collect();
    assert_eq!(counts, verbs);
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
    let mut replay = Replay::new(file.clone(), 127);
    let context = ScriptContext { index: 0, due: Nanos::default(), now: Nanos::default() };
    assert_eq!(replay.next(context), Step::Think);
    let mut kinds: BTreeMap<SmbKind, u64> = BTreeMap::new();
    for _ in file.records() {
        let Step::Issue(call) = replay.next(context) else { panic!("no op") };
        *kinds.entry(call.op.kind()).or_default() += 1;
    }
    assert_eq!(replay.next(context), Step::Think);
    let counts = file.counts().into_iter();
    let expected: BTreeMap<_, _> = counts.map(|(verb, n)| (verb.kind().unwrap(), n)).collect();
    assert_eq!(kinds, expected);
}
