//! The replay: each request at its time, `at_us,method,path,status,bytes`.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;

use plimsoll_model::units::Nanos;

use super::suite::{self, REPLAY_FILE};
use super::{LogFacts, Output};
use crate::error::DeriveError;
use crate::request::Request;

/// Writes the requests of a replay as they come.
pub(crate) struct ReplayWriter<'a> {
    output: &'a Output<'a>,
    start: Nanos,
    pub file: PathBuf,
    writer: BufWriter<File>,
    /// Paths that were written before. They have no space; the reader takes commas as theirs.
    texts: Vec<Option<Box<str>>>,
    line: Vec<u8>,
}

impl<'a> ReplayWriter<'a> {
    /// Creates the file; the first request begins at `start`.
    pub fn create(output: &'a Output<'a>, start: Nanos) -> Result<Self, DeriveError> {
        let file = output.file(REPLAY_FILE);
        let create = || {
            let mut writer = BufWriter::with_capacity(1 << 18, File::create(&file)?);
            writer.write_all(b"at_us,method,path,status,bytes\n")?;
            io::Result::Ok(writer)
        };
        match create() {
            Ok(writer) => {
                Ok(Self { output, start, file, writer, texts: Vec::new(), line: Vec::new() })
            }
            Err(source) => Err(DeriveError::Unwritable { file, source }),
        }
    }

    /// Appends a request.
    pub fn push(&mut self, request: &Request) -> io::Result<()> {
        let index = request.path.0 as usize;
        if self.texts.len() <= index {
            self.texts.resize(index + 1, None);
        }
        let output = self.output;
        let path = self.texts[index].get_or_insert_with(|| output.path(request.path).into());
        let method = &output.reading.methods[usize::from(request.method)];
        self.line.clear();
        push_number(&mut self.line, request.begin.saturating_sub(self.start).0 / 1_000);
        for field in [method.as_bytes(), path.as_bytes()] {
            self.line.push(b',');
            self.line.extend_from_slice(field);
        }
        for number in [Some(u64::from(request.expected_status())), request.bytes] {
            self.line.push(b',');
            number.into_iter().for_each(|number| push_number(&mut self.line, number));
        }
        self.line.push(b'\n');
        self.writer.write_all(&self.line)
    }

    /// After the last one: the suite too.
    pub fn finish(mut self, facts: &LogFacts) -> Result<(), DeriveError> {
        let file = self.file.clone();
        self.writer.flush().map_err(|source| DeriveError::Unwritable { file, source })?;
        self.output.write("replay.toml", &suite::replay(self.output, facts))
    }
}

/// In decimal digits.
fn push_number(line: &mut Vec<u8>, number: u64) {
    let start = line.len();
    let mut rest = number;
    loop {
        line.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    line[start..].reverse();
}
