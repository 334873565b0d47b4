//! Facts of the machine that a reader needs to assess a table.

use std::fs;
use std::process::Command;

use xtask::command;

/// One line per fact, as a Markdown list: of the machine and of what `part` compares.
pub fn facts(part: &str) -> String {
    let mut facts = vec![
        ("processor", processor()),
        ("processors online", std::thread::available_parallelism().ok().map(|n| n.to_string())),
        ("kernel", file("/proc/sys/kernel/osrelease")),
        ("congestion control", file("/proc/sys/net/ipv4/tcp_congestion_control")),
        // One and a half to two when nothing else runs.
        ("load average at the end, of 1, 5 and 15 minutes", load_average()),
    ];
    match part {
        "nfs" => facts.extend([
            ("NFS-Ganesha", version("ganesha.nfsd", "-v")),
            ("libnfs", package_version("libnfs-dev")),
        ]),
        "smb" => facts.extend([
            ("Samba", version("smbd", "-V")),
            ("smbtorture", package_version("samba-testsuite")),
            ("load file", package_version("dbench")),
        ]),
        // Both sides are of this repository, or their versions stand elsewhere.
        "app" | "clients" | "against" => {}
        _ => facts.extend([
            ("nginx", version("nginx", "-v")),
            ("wrk", version("wrk", "-v")),
            ("h2load", version("h2load", "--version")),
            ("ab", version("ab", "-V")),
            ("oha", version("oha", "--version")),
        ]),
    }
    facts.push(("plimsoll", Some(env!("CARGO_PKG_VERSION").to_owned())));
    facts.push(("commit", commit()));
    let line = |(name, value): (&str, Option<String>)| {
        format!("- {name}: {}\n", value.unwrap_or_else(|| "not known".to_owned()))
    };
    facts.into_iter().map(line).collect()
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

fn load_average() -> Option<String> {
    let text = file("/proc/loadavg")?;
    Some(text.split_whitespace().take(3).collect::<Vec<_>>().join(", "))
}

/// Of a library, which has no command to ask.
fn package_version(package: &str) -> Option<String> {
    let mut query = Command::new(command::find("dpkg-query")?);
    let output = query.args(["-W", "-f", "${Version}", package]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty"]).current_dir(xtask::workspace::root());
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
