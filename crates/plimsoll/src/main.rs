//! Finds the load line of a server: the program with its own protocols.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll::program(&[])
}
