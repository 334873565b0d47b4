//! A line in 24 bytes.
//!
//! All clients share these records. The public load file has 458,344 lines, and a copy for each
//! client would limit the number of clients.

use std::borrow::Cow;

use super::line::{Line, Value};
use super::names::{Pool, PoolBuilder};
use super::status::Status;
use super::verb::{ARGUMENTS_MAX, Verb};

/// A line: what names it has are numbers in a [`Pool`], its status is a number in a list.
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

/// The verbs whose first argument is not what the line is about, but its only number.
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
