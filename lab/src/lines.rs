//! Files of results, a line each: an interrupted measurement goes on where it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use xtask::verb::Result;

/// The text of a file; empty where it does not exist.
pub fn read(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|e| format!("{}: {e}", file.display())),
    }
}

/// A file that takes further lines. A line that was cut off is ended, so that it is alone.
pub fn append_to(file: &Path) -> Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let ended = opened.and_then(|mut opened| writeln!(opened).map(|()| opened));
    ended.map_err(|e| format!("{}: {e}", file.display()))
}
