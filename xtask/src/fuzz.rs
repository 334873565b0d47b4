//! `cargo xtask fuzz [SECONDS]`: every fuzz target for some seconds each.

use std::process::Command;

use xtask::verb::Result;
use xtask::{command, workspace};

/// Seconds per target where the command names none.
const SECONDS: u32 = 60;

/// A target of `fuzz/`, with inputs that get it past the first few bytes.
struct Target {
    name: &'static str,
    /// Initial inputs, below the root.
    seeds: Option<&'static str>,
    /// Dictionary of tokens, below the root.
    dictionary: Option<&'static str>,
}

const TARGETS: [Target; 14] = [
    Target { name: "app_reply", seeds: None, dictionary: Some("fuzz/app.dict") },
    Target { name: "app_request", seeds: None, dictionary: Some("fuzz/app.dict") },
    Target { name: "fleet", seeds: None, dictionary: Some("fuzz/fleet.dict") },
    Target { name: "h2_block", seeds: None, dictionary: Some("fuzz/h2.dict") },
    Target { name: "h2_reply", seeds: None, dictionary: Some("fuzz/h2.dict") },
    Target { name: "log_line", seeds: None, dictionary: Some("fuzz/log.dict") },
    Target { name: "nfs_reply", seeds: None, dictionary: Some("fuzz/nfs.dict") },
    Target { name: "nfs_request", seeds: None, dictionary: Some("fuzz/nfs.dict") },
    Target { name: "picks", seeds: None, dictionary: Some("fuzz/llm.dict") },
    Target { name: "reply", seeds: None, dictionary: Some("fuzz/reply.dict") },
    Target { name: "smb_reply", seeds: None, dictionary: Some("fuzz/smb.dict") },
    Target { name: "smb_request", seeds: None, dictionary: Some("fuzz/smb.dict") },
    Target { name: "sse", seeds: None, dictionary: Some("fuzz/llm.dict") },
    Target { name: "suite", seeds: Some("suites"), dictionary: None },
];

/// Runs every target. The first fault ends it, with the input in `fuzz/artifacts`.
pub fn fuzz(rest: &[&str]) -> Result<()> {
    let seconds = match rest {
        [] => SECONDS,
        [text] => text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?,
        _ => return Err("usage: cargo xtask fuzz [SECONDS]".to_owned()),
    };
    if command::find("cargo-fuzz").is_none() {
        return Err("cargo-fuzz is missing; cargo install cargo-fuzz --locked".to_owned());
    }
    TARGETS.iter().try_for_each(|target| command::run(&mut run(target, seconds)?))
}

fn run(target: &Target, seconds: u32) -> Result<Command> {
    let corpus = format!("fuzz/corpus/{}", target.name);
    let folder = workspace::root().join(&corpus);
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot create {corpus}: {e}"))?;
    let mut cargo = command::cargo();
    // Coverage instrumentation is an unstable flag that a stable compiler has too. No sanitizer:
    // the code under test has no `unsafe`.
    cargo.env("RUSTC_BOOTSTRAP", "1").args(["fuzz", "run", "--sanitizer", "none", target.name]);
    cargo.arg(corpus).args(target.seeds);
    cargo.args(["--", "-print_final_stats=1", &format!("-max_total_time={seconds}")]);
    cargo.args(target.dictionary.map(|path| format!("-dict={path}")));
    Ok(cargo)
}
