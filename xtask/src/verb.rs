//! The outcome of a developer command: a message for its user if it failed.

use std::process::ExitCode;

/// Success of a developer command, or a message for its user.
pub type Result<T> = std::result::Result<T, String>;

/// The exit code for this outcome; prints its message if it failed.
pub fn ended(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
