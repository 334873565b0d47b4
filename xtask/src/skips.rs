//! The tests that were skipped on this machine. Each writes a line to a file that an environment
//! variable names (`plimsoll-testkit/src/skips.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use xtask::verb::Result;

const SKIPS_FILE: &str = "PLIMSOLL_SKIPS_FILE";

/// The file of one test run; removed when dropped.
pub struct SkipsFile(PathBuf);

impl SkipsFile {
    /// An empty file for this process.
    pub fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("plimsoll-skips-{}", std::process::id()));
        fs::write(&path, "").map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    /// Makes the tests that `command` runs write to it.
    pub fn named_to(&self, command: &mut Command) {
        command.env(SKIPS_FILE, &self.0);
    }

    /// The summary for a person at the end.
    pub fn summary(&self) -> Result<String> {
        let lines = fs::read_to_string(&self.0)
            .map_err(|e| format!("{}: {e}; what was skipped is not known", self.0.display()))?;
        Ok(summarise(&lines))
    }
}

impl Drop for SkipsFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Each test once, with all its reasons.
fn summarise(lines: &str) -> String {
    let mut skipped: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines.lines() {
        let (test, why) = line.split_once('\t').unwrap_or((line, "no reason given"));
        let reasons = skipped.entry(test).or_default();
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let (count, tests) = match skipped.len() {
        0 => return "===== nothing was skipped =====".to_owned(),
        1 => (1, "test"),
        count => (count, "tests"),
    };
    let mut text =
        format!("===== SKIPPED: {count} {tests} showed nothing, or not all they could =====\n");
    for (test, reasons) in skipped {
        text.push_str(&format!("SKIPPED  {test}: {}\n", reasons.join("; ")));
    }
    text.push_str(&format!("===== SKIPPED: {count} {tests}; see above ====="));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::{command, workspace};

    #[test]
    fn a_test_is_counted_once_with_all_its_reasons() {
        let text =
            summarise("b::two\tneeds root\na::one\tno x\nb::two\tneeds root\nb::two\tno y\n");
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "===== SKIPPED: 2 tests showed nothing, or not all they could =====",
                "SKIPPED  a::one: no x",
                "SKIPPED  b::two: needs root; no y",
                "===== SKIPPED: 2 tests; see above =====",
            ]
        );
        assert!(summarise("a::one\tno x\n").starts_with("===== SKIPPED: 1 test showed"));
        assert_eq!(summarise(""), "===== nothing was skipped =====");
    }

    #[test]
    fn what_a_test_writes_to_the_file_is_told_and_the_file_is_gone_at_the_end() {
        let skips = SkipsFile::new().unwrap();
        let script = format!("printf 'a::one\\tno x\\n' >> \"${SKIPS_FILE}\"");
        let mut test = Command::new("sh");
        skips.named_to(test.args(["-c", &script]));
        command::run(&mut test).unwrap();
        assert!(skips.summary().unwrap().contains("SKIPPED  a::one: no x"));
        let path = skips.0.clone();
        drop(skips);
        assert!(!path.exists());
    }

    #[test]
    fn tests_know_the_file_by_the_same_name() {
        let path = workspace::root().join("crates/plimsoll-testkit/src/skips.rs");
        assert!(fs::read_to_string(path).unwrap().contains(&format!("\"{SKIPS_FILE}\"")));
    }
}
