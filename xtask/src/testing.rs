//! `cargo xtask test`: the one command that runs every test.

use std::num::NonZero;
use std::{env, thread};

use xtask::command;
use xtask::verb::Result;

use crate::peers;
use crate::skips::SkipsFile;

/// Limits the number of concurrent tests in the standard library's harness.
const THREADS: &str = "RUST_TEST_THREADS";
/// Tests mostly wait for windows and servers.
const THREADS_PER_CORE: usize = 2;

/// Prepares the peers, then runs `cargo test` with the arguments `rest`. Ends with the skipped
/// tests, since cargo hides the output of passing tests.
pub fn test(rest: &[&str]) -> Result<()> {
    peers::prepare()?;
    let skips = SkipsFile::new()?;
    let mut cargo = command::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    if peers::must_be_complete() {
        cargo.arg("--locked");
    }
    if env::var_os(THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        cargo.env(THREADS, (cores * THREADS_PER_CORE).to_string());
    }
    skips.named_to(cargo.args(rest));
    let outcome = command::run(&mut cargo);
    println!("\n{}", skips.summary()?);
    outcome
}
