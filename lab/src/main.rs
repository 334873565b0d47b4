//! The laboratory: `cargo lab VERB` measures Plimsoll itself. What a change must pass is
//! `cargo xtask`.
//!
//! | verb, module | question | time | results |
//! | --- | --- | --- | --- |
//! | `bench web` | CPU per request and lateness, beside wrk, h2load, ab, oha and a bare client, on nginx | 20 min | `docs/performance.md` |
//! | `bench nfs` | CPU per operation, beside libnfs; the reference server beside NFS-Ganesha | 6 min | `docs/performance.md` |
//! | `bench smb` | CPU per load-file line and per echo, beside smbtorture, on Samba | 8 min | `docs/performance.md` |
//! | `bench app` | CPU per transaction, beside a bare client; what a second core brings the server | 5 min | `docs/performance.md` |
//! | `bench memory` | memory growth at full speed, memory per idle client | 11 min | `docs/performance.md` |
//! | `coverage` | Do the stated intervals contain the true percentiles? | 25 min | `docs/calibration.md` |
//! | `faults` | Does the certificate refuse a program that was broken on purpose (`lab/faults/*.patch`)? | 25 min | `docs/calibration.md` |
//! | `attribution` | Is the limit of a server named correctly when the limit was imposed? | 6 min | `docs/attribution.md` |
//! | `capacity` | Does a claim of `plimsoll capacity` hold, and is it not too low? | 10 min on nginx, 1 h on the queue | printed; `docs/capacity.md` tells of them |
//! | `monitors` | Do the monitors agree with sar, iostat and vmstat? | 1 min | `docs/monitors.md` |
//! | `mutants` | Do the tests notice a wrong line? A sample, kept in `lab/mutants/seed-N.tsv` | hours | `docs/testing.md` |
//! | `pictures` | the pictures of the README, from real runs | 2 min | `docs/pictures/` |
//!
//! Times are those of a machine with two cores, without the release build that most verbs begin
//! with. With `--write` a verb replaces its table in the page. Two more words make this program one
//! half of a measurement: the staged server of `attribution` and the disturber of `coverage`.
//! `src/bin/bare.rs` is the bare client.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the developer's terminal"
)]

mod attribution;
mod bench;
mod capacity;
mod coverage;
mod faults;
mod monitors;
mod mutants;
mod nginx;
mod page;
mod pictures;
mod place;
mod process;
mod program;

use std::process::ExitCode;

use xtask::verb::{self, Result};

const USAGE: &str = "\
usage: cargo lab VERB

  bench web     against real generators on a real nginx: CPU per request, lateness
  bench nfs     against libnfs on NFS-Ganesha: CPU per operation; the reference server
  bench smb     against smbtorture on Samba: CPU per load-file line, per echo
  bench app     against a bare client on our own server: CPU per transaction; its scaling
  bench memory  growth at full speed; memory per idle client
                options of bench: --rounds 5 --seconds 5 --only PART,PART --write
  coverage      do stated intervals hold the truth? 200 runs in about 25 minutes, and on from
                where it was: --runs 200 --seed 1 --window 6 --file FILE --write
                --program FILE [-- OPTIONS OF plimsoll run]
  faults        does the certificate refuse an instrument that is broken? Each patch of
                lab/faults in a copy of the sources, some 25 minutes: --only NAME,NAME --write
  attribution   is the right limit named? Staged runs, some six minutes; needs root:
                --only WORD --through ssh --program FILE --write
  capacity      does a claim of plimsoll capacity hold, and is it not too low? nginx under a CPU
                quota, a queue of known law; needs root: --only nginx|queue --times 5
                --program FILE
  monitors      our monitors beside sar, iostat and vmstat under a bounded load; needs
                sysstat: --seconds 30 --write
  mutants       is a wrong line noticed? a sample of mutants, and on from where it was:
                --seed 1 --sample 300; needs cargo-mutants
  pictures      the pictures of the README, from real runs; needs nginx and a Chromium";

fn main() -> ExitCode {
    verb::run(lab)
}

fn lab(words: &[&str]) -> Result<()> {
    match words {
        ["bench", rest @ ..] => bench::bench(rest),
        ["coverage", rest @ ..] => coverage::coverage(rest),
        ["faults", rest @ ..] => faults::faults(rest),
        ["attribution", rest @ ..] => attribution::attribution(rest),
        ["capacity", rest @ ..] => capacity::capacity(rest),
        ["monitors", rest @ ..] => monitors::monitors(rest),
        ["mutants", rest @ ..] => mutants::mutants(rest),
        ["pictures"] => pictures::pictures(),
        [attribution::STAGED, rest @ ..] => attribution::serve(rest),
        [coverage::DISTURBER] => {
            coverage::disturb();
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    }
}
