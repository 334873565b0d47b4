//! This project as the generator: one worker on the generator's core, its result printed.

use std::path::Path;
use std::time::Duration;

use plimsoll_servers::ServerProcess;
use xtask::verb::Result;

use super::reading::{Reading, read_plimsoll};
use crate::place::{GENERATOR_CORE, Place};
use crate::process::{self, Finished};
use crate::program;

/// What is run against a server.
pub struct Ours<'a> {
    pub program: &'a Path,
    pub suite: &'a str,
    pub server: &'a ServerProcess,
    /// More words of the command line.
    pub words: Vec<String>,
    /// Keys of the suite, `KEY=VALUE`.
    pub settings: Vec<String>,
}

impl Ours<'_> {
    /// Runs it for a second of warm-up and these seconds. Exit code 1 says that the run is invalid:
    /// a generator at its limit is the point of a closed loop.
    pub fn run(&self, seconds: u64) -> Result<(Finished, Reading)> {
        let folder = program::temporary()?;
        let mut command = Place::Host.pinned(GENERATOR_CORE, &self.program.to_string_lossy());
        command.args(["run", self.suite, &self.server.url(), "--workers", "1"]).args(&self.words);
        let times = ["warm_up=1s".to_owned(), format!("measure={seconds}s")]
            .map(|t| format!("profiles.standard.{t}"));
        for setting in times.iter().chain(&self.settings) {
            command.args(["--set", setting]);
        }
        command.args(["--progress", "none", "--json", "--out"]).arg(folder.path().join("run"));
        let limit = Duration::from_secs(3 * seconds + 120);
        let finished = process::run(&mut command, limit, |_, _| ())?;
        let good = matches!(finished.code, Some(0 | 1));
        let reading = read_plimsoll(&finished.output).filter(|_| good);
        let reading = reading.ok_or_else(|| finished.failure())?;
        Ok((finished, reading))
    }
}
