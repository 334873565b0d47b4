//! `--loadfile FILE`: the file read once, with a checksum by which a resumed run and an agent
//! recognise it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use plimsoll_model::event::RequestedLoadFile;
use plimsoll_model::suite::Suite;
use plimsoll_protocol::{InputFile, LoadFiles};
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;
use crate::protocols;

const READ_BUFFER_BYTES: usize = 256 * 1024;

/// Reads the load file that the user named for `suite`.
pub fn read(path: &Path, suite: &Suite) -> Result<InputFile, Failure> {
    let Some(its) = protocols::of_suite(suite)?.protocol.load_files.filter(|its| (its.fit)(suite))
    else {
        let all = protocols::all().filter_map(|one| one.protocol.load_files);
        let belong_to: Vec<_> = all.map(|files| files.belong_to).collect();
        return Err(Failure::wrong(format!(
            "{}: a load file belongs to {}; suite {} does something else",
            path.display(),
            belong_to.join(", "),
            suite.name
        )));
    };
    open(path, its)
}

fn open(path: &Path, its: LoadFiles) -> Result<InputFile, Failure> {
    read_from(File::open(path).map_err(|e| unreadable(path, &e))?, path, its)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::wrong(format!("{}: cannot read the load file: {error}", path.display()))
}

fn read_from(file: impl Read, path: &Path, its: LoadFiles) -> Result<InputFile, Failure> {
    let mut bytes = Summed { file, hasher: Sha256::new() };
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, &mut bytes);
    let content = (its.read)(&mut reader, &path.display().to_string())?;
    let sum = bytes.hasher.finalize();
    Ok(InputFile {
        path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        sha256: hexadecimal(&sum),
        content,
    })
}

/// Reads the load file of an interrupted run, and refuses another content: it would be another run.
pub(crate) fn read_again(
    requested: &RequestedLoadFile,
    suite: &Suite,
) -> Result<InputFile, Failure> {
    let RequestedLoadFile { path, sha256 } = requested;
    let expectation = format!("the run replays the load file with SHA-256 {sha256}");
    let source = read(path, suite).map_err(|failure| {
        Failure::wrong(format!(
            "{failure}\n{expectation}; put it back at {} to go on",
            path.display()
        ))
    })?;
    if source.sha256 == *sha256 {
        return Ok(source);
    }
    Err(Failure::wrong(format!(
        "{}: {expectation}, and this file has {}; put that file back to go on, or run anew",
        path.display(),
        source.sha256
    )))
}

/// The bytes of a file that was read before. Refuses another content: it would be another load.
pub(crate) fn bytes_of(file: &InputFile) -> Result<Vec<u8>, Failure> {
    let InputFile { path, sha256, .. } = file;
    let bytes = std::fs::read(path).map_err(|e| unreadable(path, &e))?;
    match hexadecimal(&Sha256::digest(&bytes)) == *sha256 {
        true => Ok(bytes),
        false => Err(Failure::wrong(format!(
            "{}: the load file has changed since it was read; run again with a file that stays",
            path.display()
        ))),
    }
}

/// The load file that came with an order.
pub(crate) fn from_bytes(bytes: &[u8], name: &str, its: LoadFiles) -> Result<InputFile, Failure> {
    read_from(bytes, Path::new(name), its)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file that computes its checksum while it is read.
struct Summed<R> {
    file: R,
    hasher: Sha256,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_wants_the_same_bytes_again() {
        let temp_dir = tempfile::tempdir().unwrap();
        let path = temp_dir.path().join("a.txt");
        std::fs::write(&path, "Mkdir \"\\client1\" *\n").unwrap();
        let text = protocols::shipped("disk-mix").unwrap();
        let suite = protocols::parse_suite("disk-mix.toml", text, &[]).unwrap();
        let source = read(&path, &suite).unwrap();
        let sum = Sha256::digest(std::fs::read(&path).unwrap());
        assert_eq!(source.sha256, hexadecimal(&sum));
        let requested =
            RequestedLoadFile { path: source.path.clone(), sha256: source.sha256.clone() };
        let again = read_again(&requested, &suite).unwrap();
        assert_eq!(again.sha256, source.sha256);
        std::fs::write(&path, "Mkdir \"\\client1x\" *\n").unwrap();
        let changed = read_again(&requested, &suite).unwrap_err();
        assert!(changed.to_string().contains("put that file back"), "{changed}");
        std::fs::remove_file(&path).unwrap();
        let gone = read_again(&requested, &suite).unwrap_err();
        assert!(gone.to_string().contains(&source.sha256), "{gone}");
        assert!(gone.to_string().contains("put it back at"), "{gone}");
    }
}
