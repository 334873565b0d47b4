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
            Ok(writer) => Ok(Self { output, start, file, writer, texts: Vec::new() }),
            Err(source) => Err(DeriveError::Unwritable { file, source }),
        }
    }

    /// Appends a request.
    pub fn push(&mut self, request: &Request) -> io::Result<()> {
        let at_us = request.begin.saturating_sub(self.start).0 / 1_000;
        let index = request.path.0 as usize;
        if self.texts.len() <= index {
            self.texts.resize(index + 1, None);
        }
        let output = self.output;
        let path = self.texts[index].get_or_insert_with(|| output.path(request.path).into());
        let method = &output.reading.methods[usize::from(request.method)];
        write!(self.writer, "{at_us},{method},{path},{},", request.status)?;
        match request.bytes {
            Some(bytes) => writeln!(self.writer, "{bytes}"),
            None => writeln!(self.writer),
        }
    }

    /// After the last one: the suite too.
    pub fn finish(mut self, facts: &LogFacts) -> Result<(), DeriveError> {
        let file = self.file.clone();
        self.writer.flush().map_err(|source| DeriveError::Unwritable { file, source })?;
        self.output.write("replay.toml", &suite::replay(self.output, facts))
    }
}
