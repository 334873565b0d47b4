//! `--loadfile FILE`: the file read once, with the checksum by which a resumed run knows it again.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use plimsoll_model::suite::Suite;
use plimsoll_protocols::smb::loadfile::{LoadFile, LoadFileError, LoadFileSource};
use sha2::{Digest as _, Sha256};

use crate::exit::Failure;

/// The pattern a load file can stand in for, and the key that names it.
const PATTERN: &str = "disk-mix";
const PATTERN_KEY: &str = "pattern";
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// Reads the load file a user named for `suite`.
pub fn read(path: &Path, suite: &Suite) -> Result<LoadFileSource, Failure> {
    let pattern = suite.workload.get(PATTERN_KEY).and_then(toml::Value::as_str);
    if suite.protocol != "smb" || pattern != Some(PATTERN) {
        return Err(Failure::wrong(format!(
            "--loadfile belongs to suite disk-mix and to SMB suites with pattern = \"{PATTERN}\"; \
             suite {} does something else",
            suite.name
        )));
    }
    open(path)
}

fn open(path: &Path) -> Result<LoadFileSource, Failure> {
    let file = File::open(path).map_err(|e| {
        Failure::wrong(format!("{}: cannot read the load file: {e}", path.display()))
    })?;
    let mut bytes = Summed { file, hasher: Sha256::new() };
    let reader = BufReader::with_capacity(READ_BUFFER_BYTES, &mut bytes);
    let file = LoadFile::parse(reader, &path.display().to_string())?;
    let sum = bytes.hasher.finalize();
    Ok(LoadFileSource {
        path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        sha256: sum.iter().map(|byte| format!("{byte:02x}")).collect(),
        file: Arc::new(file),
    })
}

/// Reads the load file of an interrupted run; another content would make it another run.
pub fn read_again(path: &Path, sha256: &str) -> Result<LoadFileSource, Failure> {
    let asked = format!("the run replays the load file with SHA-256 {sha256}");
    let source = open(path).map_err(|failure| {
        Failure::wrong(format!("{failure}\n{asked}; put it back at {} to go on", path.display()))
    })?;
    if source.sha256 == sha256 {
        return Ok(source);
    }
    Err(Failure::wrong(format!(
        "{}: {asked}, and this file has {}; put that file back to go on, or run anew",
        path.display(),
        source.sha256
    )))
}

/// A file whose bytes are summed as they are read.
struct Summed {
    file: File,
    hasher: Sha256,
}

impl Read for Summed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        Ok(n)
    }
}

impl From<LoadFileError> for Failure {
    fn from(error: LoadFileError) -> Self {
        Self::wrong(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_wants_the_same_bytes_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.txt");
        std::fs::write(&path, "Mkdir \"\\client1\" *\n").unwrap();
        let source = open(&path).unwrap();
        let sum = Sha256::digest(std::fs::read(&path).unwrap());
        assert_eq!(source.sha256, sum.iter().map(|b| format!("{b:02x}")).collect::<String>());
        assert_eq!(source.file.records().len(), 1);
        let again = read_again(&source.path, &source.sha256).unwrap();
        assert_eq!(again.sha256, source.sha256);
        std::fs::write(&path, "Mkdir \"\\client1x\" *\n").unwrap();
        let changed = read_again(&source.path, &source.sha256).unwrap_err();
        assert!(changed.to_string().contains("put that file back"), "{changed}");
        std::fs::remove_file(&path).unwrap();
        let gone = read_again(&source.path, &source.sha256).unwrap_err();
        assert!(gone.to_string().contains(&source.sha256), "{gone}");
        assert!(gone.to_string().contains("put it back at"), "{gone}");
    }
}
