//! Tests that show nothing on this machine report it. cargo hides what a passing test prints, so
//! `cargo xtask test` has the skips written to a file as well, and counts them at the end.
#![allow(clippy::print_stderr, reason = "a test that shows nothing must say so loudly")]

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Names the file that takes one line for every skip: the test, a tab, the reason.
const SKIPS_FILE: &str = "PLIMSOLL_SKIPS_FILE";

/// Reports that the calling test shows nothing without something that could be installed. In
/// continuous integration that is a failure, so that no skip goes unnoticed.
pub fn skip(why: &str) {
    let complete = is_complete(std::env::var_os("CI").as_deref());
    assert!(!complete, "{why}, and with CI set nothing may be skipped");
    skip_always(why);
}

/// As [`skip`], for what no installation changes: it is reported and counted, and never a failure.
pub fn skip_always(why: &str) {
    eprintln!("SKIP ===== {why}; this test shows nothing here =====");
    if let Some(file) = std::env::var_os(SKIPS_FILE) {
        append(Path::new(&file), &test_name(), why);
    }
}

/// Whether `CI` is set, and neither empty nor `false` nor `0`. xtask's `peers.rs` reads it alike.
fn is_complete(ci: Option<&OsStr>) -> bool {
    ci.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// `PROGRAM::TEST`: a test's thread carries its name.
fn test_name() -> String {
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_string_lossy().into_owned();
    // cargo puts a hash behind the name.
    let program = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name).to_owned();
    let thread = std::thread::current();
    format!("{program}::{}", thread.name().unwrap_or("a thread without a name"))
}

/// In one write, so that tests that run at the same time do not mix their lines.
fn append(file: &Path, test: &str, why: &str) {
    let line = format!("{test}\t{}\n", why.replace(['\n', '\t'], " "));
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skip_is_a_line_with_test_and_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        append(&file, &test_name(), "peer x is\nnot installed");
        append(&file, "other::test", "needs root");
        let test = "plimsoll_testkit::skips::tests::every_skip_is_a_line_with_test_and_reason";
        let expected = format!("{test}\tpeer x is not installed\nother::test\tneeds root\n");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    }

    #[test]
    fn any_value_of_ci_but_empty_false_and_0_means_complete() {
        for (value, complete) in [
            ("true", true),
            ("1", true),
            ("yes", true),
            ("false", false),
            ("0", false),
            ("", false),
        ] {
            assert_eq!(is_complete(Some(OsStr::new(value))), complete, "{value:?}");
        }
        assert!(!is_complete(None));
    }
}
