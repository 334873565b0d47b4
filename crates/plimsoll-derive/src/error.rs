//! Why no load can be derived.

use std::path::PathBuf;

use crate::line::{PatternError, UnreadableLine};

/// A mistake in the input, or files that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    /// The format given is none.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A file of the input.
    #[error("{}: cannot read it: {source}", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file whose first lines have no format that is recognised.
    #[error(
        "{}: its first lines are no access log of nginx, Apache, Caddy, Traefik or Envoy in a format \
         that can be recognised ({reason}); give the format that the server's configuration has, \
         such as --log-format '$remote_addr [$time_local] \"$request\" $status'", file.display()
    )]
    NoFormat {
        /// Which.
        file: PathBuf,
        /// Of the first line.
        reason: String,
    },
    /// Compressed in another way than can be read.
    #[error("{}: it is compressed with {by}; decompress it first", file.display())]
    Compressed {
        /// Which.
        file: PathBuf,
        /// The program that does it.
        by: &'static str,
    },
    /// Compressed with gzip, and what that gives is compressed again.
    #[error("{}: it is compressed twice; decompress it once: gzip -dc {} > once.gz", file.display(), file.display())]
    CompressedTwice {
        /// Which.
        file: PathBuf,
    },
    /// No line in any file.
    #[error("the logs have no request: every file is empty")]
    Empty,
    /// Too many lines in a row that cannot be read.
    #[error(
        "{}:{line}: {count} lines in a row cannot be read, of which the last: {reason}. Give the \
         format with --log-format; a file with several formats must be split first", file.display()
    )]
    UnreadableLines {
        /// Where they are.
        file: PathBuf,
        /// The last of them.
        line: u64,
        /// How many.
        count: u64,
        /// Of the last.
        reason: UnreadableLine,
    },
    /// Less than a load can be made of.
    #[error(
        "the logs have {requests} requests in {seconds:.3} s that a load can be made of; that is no \
         load: take a longer part of the log, or name its methods with --methods"
    )]
    TooShort {
        /// GET and HEAD, or the methods named.
        requests: u64,
        /// From the first to the last.
        seconds: f64,
    },
    /// Counters that make no load.
    #[error("{files}: {reason}")]
    Counters {
        /// Which.
        files: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A file of the output.
    #[error("{}: cannot write it: {source}", file.display())]
    Unwritable {
        /// Which.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
