//! The frame of a developer command: words in, an exit code out.

use std::process::ExitCode;

/// A developer command either worked or has a message for its user.
pub type Result<T> = std::result::Result<T, String>;

/// Calls `verb` with the words of this process's command line. Prints its message and returns exit
/// code 1 when it fails.
pub fn run(verb: fn(&[&str]) -> Result<()>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match verb(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
