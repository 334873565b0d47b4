//! Programs of other people that commands here use.

use std::path::PathBuf;

use xtask::command::{cargo, find, run};
use xtask::verb::Result;
use xtask::workspace;

/// Where `name` is: installed by us, in the PATH, or else installed now with `options` of
/// `cargo install`.
pub fn installed(name: &str, options: &[&str]) -> Result<PathBuf> {
    if let Some(path) = path_of(name) {
        return Ok(path);
    }
    let place = workspace::target().join("tools");
    run(cargo().args(["install", "--locked", "--root"]).arg(place).arg(name).args(options))?;
    path_of(name).ok_or_else(|| format!("{name} was installed and is not there"))
}

fn path_of(name: &str) -> Option<PathBuf> {
    let ours = workspace::target().join("tools/bin").join(name);
    if ours.is_file() { Some(ours) } else { find(name) }
}
