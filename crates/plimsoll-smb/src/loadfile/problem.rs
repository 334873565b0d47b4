//! Errors of a load file, with what to do; limits of names, lines and files.

use crate::op::PathText;

/// A mistake in a load file.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct LoadFileError {
    /// The file, as the user named it.
    pub file: String,
    /// From 1; the last line for the file as a whole.
    pub line: u64,
    /// What is wrong, and the next move.
    pub problem: Problem,
}

/// What can be wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read on.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// Longer than any line can be.
    #[error("the line is longer than {LINE_BYTES_MAX} bytes; is this a load file?")]
    LineTooLong,
    /// Not text.
    #[error("the line is not UTF-8; convert the file, for example with iconv")]
    NotText,
    /// A quote without its other half.
    #[error("the quote before {0:?} is not closed")]
    OpenQuote(String),
    /// Text straight after a quoted name.
    #[error("{0:?} follows a closing quote; write a space between")]
    AfterQuote(String),
    /// Begins like a timestamp and is none.
    #[error("{0:?} begins with a digit and is not a number of seconds; an operation is expected")]
    Timestamp(String),
    /// No operation of that name.
    #[error("operation {operation:?} is not known; {help}")]
    Verb {
        /// The token.
        operation: String,
        /// The nearest verb, or all.
        help: String,
    },
    /// The older format.
    #[error("operation {0:?} is of dbench 1's format; record or fetch a file of dbench 3 or 4")]
    Dbench1(String),
    /// The line ends too early.
    #[error("the line ends before its {missing}; expected: {usage}")]
    Missing {
        /// What is not there.
        missing: &'static str,
        /// How such a line is written.
        usage: String,
    },
    /// The line goes on.
    #[error("{word:?} is too much; expected: {usage}")]
    TooMuch {
        /// The first token too many.
        word: String,
        /// How such a line is written.
        usage: String,
    },
    /// Not a number, or a too large one.
    #[error("{what} {word:?} is not a whole number from 0 to {max}; expected: {usage}")]
    Number {
        /// Which argument.
        what: &'static str,
        /// What stands there.
        word: String,
        /// Largest.
        max: u64,
        /// How such a line is written.
        usage: String,
    },
    /// The last token is no status.
    #[error("status {word:?} is not known; {help}")]
    Status {
        /// The token.
        word: String,
        /// The nearest, or the forms there are.
        help: String,
    },
    /// The information level has no counterpart.
    #[error("{verb} level {level} cannot be asked for on SMB2; known levels: {supported}")]
    Level {
        /// The verb.
        verb: &'static str,
        /// The number.
        level: u64,
        /// Those that can.
        supported: String,
    },
    /// A name that cannot be replayed below one directory.
    #[error("name {name:?} {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not, and the next move.
        why: &'static str,
    },
    /// Longer than the replay can carry.
    #[error("name {0:?} is longer than {NAME_BYTES_MAX} bytes with the client's directory in it")]
    NameTooLong(String),
    /// Too many lines.
    #[error("the file has more than {RECORDS_MAX} operations; cut it")]
    TooManyRecords,
    /// Too many different names.
    #[error("the file has more than {NAMES_BYTES_MAX} bytes of different names; cut it")]
    TooManyNames,
    /// Too many kinds of ends.
    #[error("the file expects more than {STATUSES_MAX} different statuses; is this a load file?")]
    TooManyStatuses,
    /// Nothing to do.
    #[error(
        "the file holds no operation; write one a line, for example: \
         Mkdir \"\\clients\\client1\" NT_STATUS_OK"
    )]
    Empty,
}

/// Where replays live, below the share's root or the URL's path.
pub(crate) const REPLAY_ROOT: &str = r"plimsoll-files\replay";
/// Longest name, with the longest client number in it and without [`REPLAY_ROOT`].
pub(crate) const NAME_BYTES_MAX: usize = PathText::BYTES_MAX - REPLAY_ROOT.len() - 1;
/// Longest line; two of the longest names and four numbers need far less.
pub(crate) const LINE_BYTES_MAX: usize = 4096;
/// Most operations of a file: 384 MiB in memory, 16 times the public file.
pub(crate) const RECORDS_MAX: usize = 16 * 1024 * 1024;
/// Most text of different names. Numbers of 32 bits point into it.
pub(crate) const NAMES_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Most different statuses; a record holds the number of one in a byte.
pub(crate) const STATUSES_MAX: usize = 256;
