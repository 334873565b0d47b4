//! How a developer command ends: with a message for its user where it failed.

use std::process::ExitCode;

/// A developer command either worked or has a message for its user.
pub type Result<T> = std::result::Result<T, String>;

/// The exit code of a command that ended so; prints its message when it failed.
pub fn ended(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
