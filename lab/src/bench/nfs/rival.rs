//! The program that libnfs's raw interface makes of the same job: compiled here, with what is
//! installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use plimsoll_servers::ServerProcess;
use xtask::verb::Result;
use xtask::{command, workspace};

use super::{Folder, Sample};
use crate::bench::place::Place;
use crate::bench::{GENERATOR_CORE, generators, process};

const SOURCE: &str = "lab/src/bench/nfs/libnfs_async.c";
/// The C program takes no more.
const FILES_MAX: usize = 65_536;

/// The compiled program and the files it asks for.
pub struct Rival {
    folder: Folder,
    program: PathBuf,
    list: PathBuf,
}

impl Rival {
    /// Compiles it, and lists the accessed files of the file set that lies on `server`.
    pub fn build(server: &ServerProcess) -> Result<Self> {
        let folder = Folder::new("libnfs")?;
        let program = folder.0.join("libnfs_async");
        let compiler = command::find("cc").ok_or("cc is not installed")?;
        let mut cc = Command::new(compiler);
        cc.args(["-O2", "-o"]).arg(&program).arg(workspace::root().join(SOURCE)).arg("-lnfs");
        command::run(&mut cc).map_err(|e| format!("{e}; sudo apt-get install libnfs-dev"))?;
        let list = folder.0.join("files");
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
    ) -> Result<Sample> {
        let mut command = Place::Host.pinned(GENERATOR_CORE, &self.program.to_string_lossy());
        let (outstanding, length) = (outstanding.to_string(), seconds.to_string());
        command.args([&libnfs_url(server), op, &outstanding, &length]).arg(&self.list);
        command.current_dir(&self.folder.0);
        let before = process::cpu_of(server.pid())?;
        let limit = Duration::from_secs(3 * seconds + 60);
        let finished = process::run(&mut command, limit, |_, _| ())?;
        let server_cpu = process::cpu_of(server.pid())?.saturating_sub(before);
        let reading = generators::read_bare(&finished.output).filter(|_| finished.code == Some(0));
        let Some(reading) = reading else {
            return Err(format!("exit code {:?}\n{}", finished.code, finished.errors));
        };
        Ok(Sample {
            ops_per_s: reading.requests_per_s,
            generator_us_per_op: finished.cpu.as_secs_f64() * 1e6 / reading.requests,
            work_us_per_op: None,
            server_us_per_op: server_cpu.as_secs_f64() * 1e6 / reading.requests,
            peak_rss_mb: finished.peak_rss_bytes as f64 / 1e6,
        })
    }
}

/// libnfs has the port of NFS among the parameters.
fn libnfs_url(server: &ServerProcess) -> String {
    let (host, port) = (server.address.ip(), server.address.port());
    format!("nfs://{host}{}&nfsport={port}&version=3", server.path)
}

/// Paths below the export of the tenth of the files that is accessed: nnn0nn of each thousand.
fn accessed_files(export: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let set = export.join("plimsoll-files");
    for directory in entries(&set)?.iter().filter(|path| path.is_dir()) {
        for file in entries(directory)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let number = name.strip_prefix("file").and_then(|digits| digits.parse::<u64>().ok());
            let relative = file.strip_prefix(export).unwrap_or(&file);
            if number.is_some_and(|number| (number / 100) % 10 == 0) {
                found.push(format!("/{}", relative.display()));
            }
        }
    }
    found.sort();
    found.truncate(FILES_MAX);
    match found.is_empty() {
        true => Err(format!("{}: no file set", set.display())),
        false => Ok(found),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
}
