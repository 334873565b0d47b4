//! Runs other programs, and installs those that the commands here use.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::verb::Result;
use crate::workspace;

/// Cargo, at the root of the workspace, without the variables that `cargo run` set for this
/// process: build scripts that watch them would run again on every change between the two.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace::root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Runs to the end, output passed through; an exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|e| format!("cannot start {}: {e}", shown(command)))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{} failed: {status}", shown(command)))
}

/// Standard output of a command that must succeed.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cannot start {}: {e}", shown(command)))?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", shown(command), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// The path of a program. System folders are searched even if a user's PATH leaves them out:
/// servers are installed there.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|p| p.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// The path of `name`: installed by us, in the PATH, or installed now with `options` of `cargo
/// install`.
pub fn installed(name: &str, options: &[&str]) -> Result<PathBuf> {
    if let Some(path) = path_of(name) {
        return Ok(path);
    }
    let tools = workspace::target().join("tools");
    run(cargo().args(["install", "--locked", "--root"]).arg(tools).arg(name).args(options))?;
    path_of(name).ok_or_else(|| format!("{name} was installed and is not there"))
}

fn path_of(name: &str) -> Option<PathBuf> {
    let ours = workspace::target().join("tools/bin").join(name);
    if ours.is_file() { Some(ours) } else { find(name) }
}
