//! A bundle of a real run, altered in every way, with its manifest unchanged, and with one that a
//! forger renewed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser as _;
use minisign::KeyPair;
use plimsoll_model::bundle::{MANIFEST_FILE, SIGNATURE_FILE};
use plimsoll_run::coordinator::run;
use plimsoll_testkit::delay_server::{DelayConfig, DelayServer, Waiting, after};
use plimsoll_testkit::program::copy;
use tempfile::TempDir;

use super::*;
use crate::flags::Progress;
use crate::interrupts;
use crate::terminal::Live;
use crate::verbs::run::request_of;
use crate::verbs::{Cli, Verb};

/// A signed bundle, and the key it is signed with.
struct Signed {
    temp_dir: TempDir,
    bundle: PathBuf,
    trust: Trust,
}

impl Signed {
    fn new() -> Self {
        let temp_dir = tempfile::tempdir().unwrap();
        let bundle = temp_dir.path().join("b");
        let completion = after(|_| Duration::from_millis(1));
        let server = DelayServer::start(DelayConfig {
            completion,
            body_bytes: 64,
            waiting: Waiting::Sleeping,
        });
        let out = bundle.to_str().unwrap();
        let line = ["plimsoll", "run", "web-url", &server.url(), "--rate", "100", "--out", out];
        let more = ["--profile", "quick", "--workers", "1", "--for", "300ms", "--warm-up", "50ms"];
        let Verb::Run(args) = Cli::parse_from([&line[..], &more].concat()).verb else {
            panic!("run is a verb");
        };
        let request = request_of(&args).unwrap();
        run(&request, &interrupts::listen().unwrap(), &mut Live::new(Progress::None)).unwrap();
        let keys = KeyPair::generate_unencrypted_keypair().unwrap();
        let key_file = temp_dir.path().join("minisign.key");
        fs::write(&key_file, keys.sk.to_box(None).unwrap().into_string()).unwrap();
        signature::sign(&bundle, &key_file).unwrap();
        let trust = Trust::read(&keys.pk.to_base64()).unwrap();
        Self { temp_dir, bundle, trust }
    }

    /// A copy of it, to be altered.
    fn copy(&self) -> PathBuf {
        let to = self.temp_dir.path().join("altered");
        let _ = fs::remove_dir_all(&to);
        copy(&self.bundle, &to);
        to
    }

    fn damage_lines(&self, dir: &Path) -> Vec<String> {
        damage_lines(dir, Some(&self.trust))
    }
}

/// All lines of damage that `verify` prints, and why it could not continue.
fn damage_lines(dir: &Path, trust: Option<&Trust>) -> Vec<String> {
    match look(dir, trust) {
        Ok((_, inspection)) => inspection.damage,
        Err(failure) => vec![failure.to_string()],
    }
}

/// Renews the checksums, like a forger without the key.
fn forge(dir: &Path) {
    Manifest::from_bundle(dir).unwrap().write(dir).unwrap();
}

fn files(dir: &Path, prefix: &str, all: &mut Vec<String>) {
    for entry in fs::read_dir(dir.join(prefix)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        match dir.join(&name).is_dir() {
            true => files(dir, &name, all),
            false => all.push(name),
        }
    }
}

/// Alterations of a file; `None` removes it.
fn alterations(bytes: &[u8]) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let flipped = |at: usize| {
        let mut other = bytes.to_vec();
        other[at] ^= 1;
        Some(other)
    };
    let last = bytes.len() - 1;
    vec![
        ("its first byte flipped", flipped(0)),
        ("a byte in the middle flipped", flipped(last / 2)),
        ("its last byte flipped", flipped(last)),
        ("its last byte cut off", Some(bytes[..last].to_vec())),
        ("half of it cut off", Some(bytes[..last / 2].to_vec())),
        ("emptied", Some(Vec::new())),
        ("a line added", Some([bytes, b"\n"].concat())),
        ("removed", None),
    ]
}

#[test]
fn every_file_of_a_bundle_that_is_altered_is_named_and_forged_ones_fail_the_signature() {
    let signed = Signed::new();
    assert_eq!(signed.damage_lines(&signed.bundle), Vec::<String>::new());
    let mut all = Vec::new();
    files(&signed.bundle, "", &mut all);
    assert!(all.len() >= 10, "{all:?}");
    let mut altered = 0;
    for file in &all {
        let bytes = fs::read(signed.bundle.join(file)).unwrap();
        if bytes.is_empty() {
            continue;
        }
        for (what, other) in alterations(&bytes) {
            // The comment in a signature's first line is not signed.
            let remark = file == SIGNATURE_FILE && what.starts_with("its first byte");
            let dir = signed.copy();
            match other {
                Some(bytes) => fs::write(dir.join(file), bytes).unwrap(),
                None => fs::remove_file(dir.join(file)).unwrap(),
            }
            altered += 1;
            let damage = signed.damage_lines(&dir);
            let derived = file == RESULT_FILE || file == REPORT_FILE;
            if derived && what == "removed" {
                // It is optional: its absence is reported, and the bundle is complete.
                let (_, inspection) = look(&dir, None).ok().unwrap();
                assert!(inspection.notes.iter().any(|note| note.contains(file)), "{file}");
            } else {
                assert!(
                    damage.iter().any(|line| line.contains(file)) || (remark && !damage.is_empty()),
                    "{file} with {what}: {damage:?}"
                );
            }
            if file == MANIFEST_FILE || file == SIGNATURE_FILE {
                continue;
            }
            forge(&dir);
            let damage = signed.damage_lines(&dir);
            assert!(!damage.is_empty(), "{file} with {what}, forged");
            let without_key = damage_lines(&dir, None);
            if derived && what != "removed" {
                assert!(without_key.iter().any(|line| line.contains(file)), "{file} with {what}");
            }
        }
    }
    assert!(altered > 80, "{altered}");
}

#[test]
fn a_file_that_is_added_is_named_and_a_forged_one_fails_the_signature() {
    let signed = Signed::new();
    for name in ["notes.txt", "intervals/point-09.hlog", "monitors/x.csv", "a.partial", "deep/er/x"]
    {
        let dir = signed.copy();
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x").unwrap();
        let damage = signed.damage_lines(&dir);
        assert!(damage.iter().any(|line| line.contains(name)), "{name}: {damage:?}");
        forge(&dir);
        assert!(!signed.damage_lines(&dir).is_empty(), "{name}, forged");
    }
}

/// Visits every leaf of a document, with its path as `verify` writes it.
fn leaves(path: String, value: &mut Value, each: &mut dyn FnMut(&str, &mut Value)) {
    match value {
        Value::Object(all) if !all.is_empty() => {
            for (name, inner) in all {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(format!("{path}{dot}{name}"), inner, each);
            }
        }
        Value::Array(all) if !all.is_empty() => {
            for (index, inner) in all.iter_mut().enumerate() {
                leaves(format!("{path}[{index}]"), inner, each);
            }
        }
        leaf => each(&path, leaf),
    }
}

fn changed(leaf: &Value) -> Value {
    match leaf {
        Value::Null => Value::from(1),
        Value::Bool(is) => Value::from(!is),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole ^ 1),
            (None, float) => Value::from(float.unwrap() * 1.000_001 + 1e-9),
        },
        Value::String(text) => Value::from(format!("{text}x")),
        Value::Array(_) | Value::Object(_) => Value::Null,
    }
}

#[test]
fn every_field_of_the_result_that_is_changed_is_named_by_its_path_forged_or_not() {
    let signed = Signed::new();
    let dir = signed.copy();
    let fresh = Fresh::from_dir(&dir).ok().unwrap();
    let path = dir.join(RESULT_FILE);
    let original: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut paths = Vec::new();
    leaves(String::new(), &mut original.clone(), &mut |path, _| paths.push(path.to_owned()));
    assert!(paths.len() > 300, "{}", paths.len());
    let unique: BTreeSet<&String> = paths.iter().collect();
    assert_eq!(unique.len(), paths.len());
    let honest = Manifest::read(&dir).unwrap().unwrap();
    for target_path in &paths {
        let mut altered = original.clone();
        leaves(String::new(), &mut altered, &mut |path, leaf| {
            if path == target_path {
                *leaf = changed(leaf);
            }
        });
        fs::write(&path, serde_json::to_string_pretty(&altered).unwrap() + "\n").unwrap();
        let problems: Vec<String> =
            honest.problems(&dir).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(problems, ["result.json was changed after the run"], "{target_path}");
        // The comparison with the raw files finds it regardless of the manifest.
        let lines = stale_result(&dir, &fresh);
        let start = format!("  result.json: {target_path}: stored ");
        let named: Vec<_> = lines.iter().filter(|line| line.starts_with(&start)).collect();
        assert_eq!((named.len(), lines.len()), (1, 2), "{target_path}: {lines:?}");
    }
    forge(&dir);
    assert!(!damage_lines(&dir, None).is_empty() && !signed.damage_lines(&dir).is_empty());
}
