//! `cargo xtask test`: the one command that runs every test.

use crate::{Result, command, peers};

/// Prepares the peers, then hands over to cargo's own runner. `rest` goes to `cargo test`.
pub fn test(rest: &[&str]) -> Result<()> {
    peers::prepare()?;
    let mut cargo = command::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    if peers::must_be_complete() {
        cargo.arg("--locked");
    }
    cargo.args(rest);
    command::run(&mut cargo)
}
