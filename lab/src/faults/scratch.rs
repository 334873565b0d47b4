//! A copy of the sources to break, built apart from what is worked on.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::verb::Result;
use xtask::{command, workspace};

use super::list::Fault;
use crate::program;

/// Our own crates are optimised, what they stand on is built as for tests: that has to be done
/// once, and the load loop is ours.
const OPTIMISED: [&str; 11] = [
    "plimsoll",
    "plimsoll-calibration",
    "plimsoll-engine",
    "plimsoll-app",
    "plimsoll-http",
    "plimsoll-nfs",
    "plimsoll-protocol",
    "plimsoll-smb",
    "plimsoll-servers",
    "plimsoll-monitor",
    "plimsoll-report",
];
/// Optimised in that profile already.
const PURE: [&str; 2] = ["plimsoll-model", "plimsoll-analysis"];

/// The copy.
pub struct Scratch {
    sources: PathBuf,
    built: PathBuf,
}

impl Scratch {
    /// A copy of the sources as they are now.
    pub fn new() -> Result<Self> {
        let folder = workspace::target().join("faults");
        let scratch = Self { sources: folder.join("src"), built: folder.join("build") };
        program::copy_sources(&scratch.sources)?;
        Ok(scratch)
    }

    /// With a fault in it, until the answer is dropped.
    pub fn broken<'a>(&'a self, fault: &'a Fault) -> Result<Broken<'a>> {
        check(&self.sources, fault)?;
        command::run(&mut apply(&self.sources, fault, &[]))?;
        Ok(Broken { scratch: self, fault })
    }

    /// The program.
    pub fn build(&self) -> Result<PathBuf> {
        let mut cargo = command::cargo();
        cargo.current_dir(&self.sources).env("CARGO_TERM_QUIET", "true");
        cargo.args(["build", "--locked", "--package", "plimsoll", "--bin", "plimsoll"]);
        let mut set = |package: &str, what: &str| {
            cargo.args(["--config", &format!("profile.dev.package.{package}.{what}")]);
        };
        for package in OPTIMISED {
            set(package, "opt-level=2");
        }
        for package in OPTIMISED.into_iter().chain(PURE) {
            set(package, "debug-assertions=false");
            set(package, "debug=false");
        }
        cargo.arg("--target-dir").arg(&self.built);
        command::output(&mut cargo)?;
        Ok(self.built.join("debug/plimsoll"))
    }
}

/// A copy with a fault in it; mended when dropped.
pub struct Broken<'a> {
    scratch: &'a Scratch,
    fault: &'a Fault,
}

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        // The next command copies anew what cannot be undone.
        let _ = command::run(&mut apply(&self.scratch.sources, self.fault, &["--reverse"]));
    }
}

/// Does the patch apply to the sources in this folder?
pub fn check(sources: &Path, fault: &Fault) -> Result<()> {
    let checked = apply(sources, fault, &["--check"]).output();
    let checked = checked.map_err(|e| format!("cannot start git: {e}"))?;
    if checked.status.success() {
        return Ok(());
    }
    Err(format!(
        "{} no longer applies: the code it breaks has moved; make the patch anew\n{}",
        fault.patch(),
        String::from_utf8_lossy(&checked.stderr)
    ))
}

fn apply(sources: &Path, fault: &Fault, options: &[&str]) -> Command {
    let mut git = Command::new("git");
    // The copy lies within a repository, whose root is not the copy's.
    git.current_dir(sources).env("GIT_CEILING_DIRECTORIES", sources.parent().unwrap_or(sources));
    git.arg("apply").args(options).arg(workspace::root().join(fault.patch()));
    git
}
