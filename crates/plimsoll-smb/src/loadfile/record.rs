//! A line in 24 bytes, and how a load file is read into such records: line by line, keeping only
//! new names.
//!
//! All clients share these records. The public load file has 458,344 lines, and a copy for each
//! client would limit the number of clients.

use std::borrow::Cow;
use std::io::{BufRead, Read as _};

use super::LoadFile;
use super::grammar::{ARGUMENTS_MAX, Status, Verb};
use super::line::{self, Line, Value};
use super::names::{Pool, PoolBuilder};
use super::problem::{LINE_BYTES_MAX, LoadFileError, NAMES_BYTES_MAX, Problem, RECORDS_MAX};

/// A line: its names are numbers in a [`Pool`], its status is a number in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Second and third number of a verb with four arguments in one, else the second alone.
    b: u64,
    /// First argument after the subject.
    a: u64,
    /// Name or handle a line is about, if its verb has one.
    subject: u32,
    /// The operation.
    pub verb: Verb,
    /// Index of the status.
    pub status: u8,
}

/// The verbs whose first argument is not a name or handle, but the only number.
const fn has_subject(verb: Verb) -> bool {
    !matches!(verb, Verb::QueryFs | Verb::Sleep)
}

impl Record {
    /// Packs a line.
    pub fn pack(line: &Line<'_>, status: u8, pool: &mut PoolBuilder) -> Self {
        let mut numbers = [0; ARGUMENTS_MAX];
        for (number, value) in numbers.iter_mut().zip(&line.values) {
            *number = match value {
                Value::Text(text) => u64::from(pool.number(text)),
                Value::Number(number) => *number,
            };
        }
        let [subject, a, b, c] = match has_subject(line.verb) {
            true => numbers,
            false => [0, numbers[0], 0, 0],
        };
        let four = line.verb.arguments().len() == ARGUMENTS_MAX;
        Self {
            b: if four { b << 32 | c } else { b },
            a,
            // Names and handles are numbers of 32 bits.
            subject: subject as u32,
            verb: line.verb,
            status,
        }
    }

    /// The numbers of its arguments, in their order; a name is its number in the pool.
    pub fn numbers(&self) -> [u64; ARGUMENTS_MAX] {
        if !has_subject(self.verb) {
            return [self.a, 0, 0, 0];
        }
        let subject = u64::from(self.subject);
        match self.verb.arguments().len() == ARGUMENTS_MAX {
            true => [subject, self.a, self.b >> 32, self.b & u64::from(u32::MAX)],
            false => [subject, self.a, self.b, 0],
        }
    }

    /// The line again.
    pub fn line<'p>(&self, statuses: &[Status], pool: &'p Pool) -> Line<'p> {
        let mut values = self.numbers().map(Value::Number);
        for (value, argument) in values.iter_mut().zip(self.verb.arguments()) {
            if argument.is_text() {
                *value = Value::Text(Cow::Borrowed(pool.get(value.number() as u32)));
            }
        }
        let status = statuses[usize::from(self.status)];
        Line { verb: self.verb, values, status, timestamp: false }
    }
}

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
        let number = self.statuses.iter().position(|existing| *existing == status);
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
