//! `cargo xtask test`: the one command that runs every test.

use xtask::command;
use xtask::verb::Result;

use crate::peers;
use crate::skips::SkipsFile;

/// Prepares the peers, then hands over to cargo's own runner. `rest` goes to `cargo test`. Ends
/// with what was skipped: cargo hides what a passing test prints.
pub fn test(rest: &[&str]) -> Result<()> {
    peers::prepare()?;
    let skips = SkipsFile::new()?;
    let mut cargo = command::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    if peers::must_be_complete() {
        cargo.arg("--locked");
    }
    skips.named_to(cargo.args(rest));
    let outcome = command::run(&mut cargo);
    println!("\n{}", skips.told()?);
    outcome
}
