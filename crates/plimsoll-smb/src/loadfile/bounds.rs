//! How long names, lines and files may be.

use crate::op::PathText;

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
