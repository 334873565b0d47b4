//! Developer commands: `cargo xtask VERB`. They check a change, and package the program. `cargo
//! lab` measures the program itself.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the developer's terminal"
)]

mod ci;
mod circles;
mod dist;
mod doc_site;
mod fuzz;
mod invariants;
mod licences;
mod names;
mod peers;
mod size;
mod skips;
mod style;
mod testing;

use std::process::ExitCode;

use xtask::verb::{self, Result};

const USAGE: &str = "\
usage: cargo xtask VERB

  test            install what the tests need where that is possible, run every test, and say
                  which were skipped
  ci              everything a change must pass: style, format, lints, docs, licences, tests
  style           the house rules that no lint knows, and the invariants of the architecture
  size [DIR]      files and lines of product, tests and comments, crate by crate, and packages in
                  Cargo.lock; of another checkout too
  book            docs/ as a book into target/book, and does every link lead somewhere; installs
                  mdBook below target/tools where there is none
  dist            binary, tar, deb and rpm with their checksums into target/dist; --twice builds
                  again in another folder and compares
  licences        licences and sources of every dependency
  fuzz [SECONDS]  every fuzz target, 60 s each; needs cargo-fuzz

Benches and other measurements: cargo lab";

/// Verbs that have moved.
const MOVED: [&str; 8] =
    ["attribution", "bench", "capacity", "coverage", "faults", "monitors", "mutants", "pictures"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(verb) = args.first().filter(|verb| MOVED.contains(verb)) {
        eprintln!("`cargo xtask {verb}` is now `cargo lab {verb}`");
        return ExitCode::from(2);
    }
    verb::ended(xtask(&args))
}

fn xtask(args: &[&str]) -> Result<()> {
    match args {
        ["test", rest @ ..] => testing::test(rest),
        ["ci"] => ci::ci(),
        ["style"] => ci::style(),
        ["size", rest @ ..] => size::size(rest),
        ["book"] => doc_site::build_and_check(),
        ["dist", rest @ ..] => dist::dist(rest),
        ["licences"] => licences::licences(),
        ["fuzz", rest @ ..] => fuzz::fuzz(rest),
        _ => Err(USAGE.to_owned()),
    }
}
