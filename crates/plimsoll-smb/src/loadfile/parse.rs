//! Reads a load file line by line; only what is new in a line is kept.

use std::io::{BufRead, Read as _};

use super::LoadFile;
use super::bounds::{LINE_BYTES_MAX, NAMES_BYTES_MAX, RECORDS_MAX};
use super::line;
use super::names::PoolBuilder;
use super::problem::{LoadFileError, Problem};
use super::record::Record;
use super::status::Status;
use super::verb::Verb;

impl LoadFile {
    /// Reads a load file to its end; `file` names it in messages.
    pub fn parse(reader: impl BufRead, file: &str) -> Result<Self, LoadFileError> {
        let mut building = Building::default();
        building.read(reader).and_then(|()| building.check_whole()).map_err(|problem| {
            LoadFileError { file: file.to_owned(), line: building.line, problem }
        })?;
        let Building { records, statuses, pool, timestamps, .. } = building;
        Ok(Self {
            records: records.into(),
            statuses: statuses.into(),
            pool: pool.finish(),
            timestamps,
        })
    }
}

#[derive(Default)]
struct Building {
    line: u64,
    records: Vec<Record>,
    statuses: Vec<Status>,
    pool: PoolBuilder,
    timestamps: u64,
}

impl Building {
    fn read(&mut self, mut reader: impl BufRead) -> Result<(), Problem> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            // One byte more tells a line that is too long; so a file without lines costs nothing.
            let mut piece = (&mut reader).take(LINE_BYTES_MAX as u64 + 1);
            let read = piece.read_until(b'\n', &mut bytes);
            if matches!(read, Ok(0)) {
                return Ok(());
            }
            self.line += 1;
            read.map_err(Problem::Read)?;
            if bytes.len() > LINE_BYTES_MAX {
                return Err(Problem::LineTooLong);
            }
            self.take(std::str::from_utf8(&bytes).map_err(|_| Problem::NotText)?)?;
        }
    }

    fn take(&mut self, text: &str) -> Result<(), Problem> {
        let Some(line) = line::parse(text)? else { return Ok(()) };
        if self.records.len() == RECORDS_MAX {
            return Err(Problem::TooManyRecords);
        }
        self.timestamps += u64::from(line.timestamp);
        let status = self.status_number(line.status)?;
        if self.pool.text_bytes() > NAMES_BYTES_MAX {
            return Err(Problem::TooManyNames);
        }
        self.records.push(Record::pack(&line, status, &mut self.pool));
        Ok(())
    }

    fn status_number(&mut self, status: Status) -> Result<u8, Problem> {
        let number = self.statuses.iter().position(|known| *known == status);
        let number = number.unwrap_or_else(|| {
            self.statuses.push(status);
            self.statuses.len() - 1
        });
        u8::try_from(number).map_err(|_| Problem::TooManyStatuses)
    }

    fn check_whole(&self) -> Result<(), Problem> {
        match self.records.iter().all(|record| record.verb == Verb::Sleep) {
            true => Err(Problem::Empty),
            false => Ok(()),
        }
    }
}
