//! The program that libnfs's raw interface makes of the same job: compiled here, with what is
//! installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use plimsoll_servers::ServerProcess;
use tempfile::TempDir;
use xtask::verb::Result;
use xtask::{command, workspace};

use crate::bench::ours::{Reading, read_bare};
use crate::network::{GENERATOR_CORE, Network};
use crate::process::{self, Finished};
use crate::program;

const SOURCE: &str = "lab/src/bench/nfs/libnfs_async.c";
/// The C program takes no more.
const FILES_MAX: usize = 65_536;

/// The compiled program and the files it requests.
pub struct Rival {
    folder: TempDir,
    program: PathBuf,
    list: PathBuf,
}

impl Rival {
    /// Compiles it, and lists the accessed files of the file set that lies on `server`.
    pub fn build(server: &ServerProcess) -> Result<Self> {
        let folder = program::temporary()?;
        let program = folder.path().join("libnfs_async");
        let compiler = command::find("cc").ok_or("cc is not installed")?;
        let mut cc = Command::new(compiler);
        cc.args(["-O2", "-o"]).arg(&program).arg(workspace::root().join(SOURCE)).arg("-lnfs");
        command::run(&mut cc).map_err(|e| format!("{e}; sudo apt-get install libnfs-dev"))?;
        let list = folder.path().join("files");
        let export = server.path.split('?').next().unwrap_or_default();
        let files = accessed_files(Path::new(export))?;
        std::fs::write(&list, files.join("\n")).map_err(|e| format!("{}: {e}", list.display()))?;
        Ok(Self { folder, program, list })
    }

    pub fn run(
        &self,
        op: &str,
        outstanding: u32,
        seconds: u64,
        server: &ServerProcess,
    ) -> Result<(Finished, Reading)> {
        let mut command = Network::Host.pinned(GENERATOR_CORE, &self.program.to_string_lossy());
        let (outstanding, length) = (outstanding.to_string(), seconds.to_string());
        command.args([&libnfs_url(server), op, &outstanding, &length]).arg(&self.list);
        command.current_dir(self.folder.path());
        let limit = Duration::from_secs(3 * seconds + 60);
        let finished = process::run(&mut command, limit, |_, _| ())?;
        let reading = read_bare(&finished.output).filter(|_| finished.code == Some(0));
        let reading = reading.ok_or_else(|| finished.failure())?;
        Ok((finished, reading))
    }
}

/// libnfs has the port of NFS among the parameters.
fn libnfs_url(server: &ServerProcess) -> String {
    let (host, port) = (server.address.ip(), server.address.port());
    format!("nfs://{host}{}&nfsport={port}&version=3", server.path)
}

/// Paths below the export of the tenth of the files that is accessed: nnn0nn of each thousand.
fn accessed_files(export: &Path) -> Result<Vec<String>> {
    let mut accessed = Vec::new();
    let set = export.join("plimsoll-files");
    for directory in entries(&set)?.iter().filter(|path| path.is_dir()) {
        for file in entries(directory)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let number = name.strip_prefix("file").and_then(|digits| digits.parse::<u64>().ok());
            let relative = file.strip_prefix(export).unwrap_or(&file);
            if number.is_some_and(|number| (number / 100) % 10 == 0) {
                accessed.push(format!("/{}", relative.display()));
            }
        }
    }
    accessed.sort();
    accessed.truncate(FILES_MAX);
    match accessed.is_empty() {
        true => Err(format!("{}: no file set", set.display())),
        false => Ok(accessed),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
}
