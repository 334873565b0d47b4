//! What a reader must know of the machine to judge a table.

use std::fs;
use std::process::Command;

use crate::command;

/// One line per fact, as a Markdown list.
pub fn facts() -> String {
    let facts = [
        ("processor", processor()),
        ("processors online", std::thread::available_parallelism().ok().map(|n| n.to_string())),
        ("kernel", file("/proc/sys/kernel/osrelease")),
        ("congestion control", file("/proc/sys/net/ipv4/tcp_congestion_control")),
        ("nginx", version("nginx", "-v")),
        ("wrk", version("wrk", "-v")),
        ("h2load", version("h2load", "--version")),
        ("ab", version("ab", "-V")),
        ("oha", version("oha", "--version")),
        ("plimsoll", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("commit", commit()),
    ];
    let lines = facts.map(|(name, value)| {
        format!("- {name}: {}\n", value.unwrap_or_else(|| "not known".to_owned()))
    });
    lines.concat()
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

fn file(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// First line that names a version; programs differ in stream and exit code.
fn version(program: &str, option: &str) -> Option<String> {
    let path = command::find(program)?;
    let output = Command::new(path).arg(option).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.chars().any(|c| c.is_ascii_digit()))?;
    Some(line.trim().to_owned())
}

fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty"]).current_dir(crate::workspace::root());
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
