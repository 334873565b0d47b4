//! Developer commands: `cargo xtask VERB`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the developer's terminal"
)]

mod attribution;
mod bench;
mod book;
mod capacity;
mod ci;
mod circles;
mod command;
mod coverage;
mod dist;
mod faults;
mod fuzz;
mod invariants;
mod licences;
mod monitors;
mod mutants;
mod peers;
mod pictures;
mod size;
mod skips;
mod style;
mod testing;
mod tools;
mod workspace;

use std::process::ExitCode;

/// A developer command either worked or has a message for its user.
type Result<T> = std::result::Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask VERB

  test            install what the tests need where that is possible, run every test, and say
                  which were skipped
  ci              everything a change must pass: style, format, lints, docs, licences, tests
  style           the house rules that no lint knows, and the invariants of the architecture
  size [DIR]      lines of product, tests and comments, crate by crate; of another checkout too
  book            docs/ as a book into target/book, and does every link lead somewhere; installs
                  mdBook below target/tools where there is none
  dist            binary, tar, deb and rpm with their checksums into target/dist; --twice builds
                  again in another folder and compares
  pictures        the pictures of the README, from real runs; needs nginx and a Chromium
  licences        licences and sources of every dependency
  fuzz [SECONDS]  every fuzz target, 60 s each; needs cargo-fuzz
  mutants         is a wrong line noticed? a sample of mutants, and on from where it was:
                  --seed 1 --sample 300; needs cargo-mutants
  bench web       against real generators on a real nginx: CPU per request, lateness
  bench nfs       against libnfs on NFS-Ganesha: CPU per operation; the reference server
  bench smb       against smbtorture on Samba: CPU per load-file line, per echo
  bench app       against a bare client on our own server: CPU per transaction; its scaling
  bench memory    growth at full speed; memory per idle client
                  options of bench: --rounds 5 --seconds 5 --only PART,PART --write
  coverage        do stated intervals hold the truth? 200 runs in about 25 minutes, and on from
                  where it was: --runs 200 --seed 1 --window 6 --file FILE --write
                  --program FILE [-- OPTIONS OF plimsoll run]
  attribution     is the right limit named? Staged runs, some six minutes; needs root:
                  --only WORD --program FILE --write
  capacity        does a claim of plimsoll capacity hold, and is it not too low? nginx under a CPU
                  quota, a queue of known law; needs root: --only nginx|queue --times 5
                  --program FILE
  monitors        our monitors beside sar, iostat and vmstat under a bounded load; needs
                  sysstat: --seconds 30 --write
  faults          does the certificate refuse an instrument that is broken? Each patch of
                  xtask/faults in a copy of the sources, some 25 minutes: --only NAME,NAME --write";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test", rest @ ..] => testing::test(rest),
        ["ci"] => ci::ci(),
        ["style"] => ci::style(),
        ["size", rest @ ..] => size::size(rest),
        ["book"] => book::book(),
        ["dist", rest @ ..] => dist::dist(rest),
        ["pictures"] => pictures::pictures(),
        ["licences"] => licences::licences(),
        ["attribution", rest @ ..] => attribution::attribution(rest),
        [attribution::STAGED, rest @ ..] => attribution::serve(rest),
        ["capacity", rest @ ..] => capacity::capacity(rest),
        ["monitors", rest @ ..] => monitors::monitors(rest),
        ["fuzz", rest @ ..] => fuzz::fuzz(rest),
        ["mutants", rest @ ..] => mutants::mutants(rest),
        ["bench", rest @ ..] => bench::bench(rest),
        ["coverage", rest @ ..] => coverage::coverage(rest),
        ["faults", rest @ ..] => faults::faults(rest),
        [coverage::DISTURBER] => {
            coverage::disturb();
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
