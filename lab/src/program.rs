//! The programs under measurement: their release builds, copies of their sources, folders for what
//! they write, and the result of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::{Builder, TempDir};
use xtask::verb::Result;
use xtask::{command, workspace};

use crate::process::Finished;

/// Builds `plimsoll` as it is shipped and returns its path.
pub fn plimsoll() -> Result<PathBuf> {
    Ok(release("plimsoll", "plimsoll")?.join("plimsoll"))
}

/// Builds the bare client as well and returns the folder of both programs.
pub fn plimsoll_and_bare() -> Result<PathBuf> {
    release("plimsoll", "plimsoll")?;
    release("plimsoll-lab", "bare")
}

/// Builds this program as well, and returns its path.
pub fn lab() -> Result<PathBuf> {
    Ok(release("plimsoll-lab", "plimsoll-lab")?.join("plimsoll-lab"))
}

/// The folder of the release build of this binary, made now.
fn release(package: &str, binary: &str) -> Result<PathBuf> {
    let mut cargo = command::cargo();
    cargo.args(["build", "--release", "--package", package, "--bin", binary]);
    command::run(&mut cargo)?;
    Ok(workspace::target().join("release"))
}

/// Copies the sources as they are now, untracked files too, into a folder where they can be broken.
/// A file that did not change keeps its time, so that it is not built again.
pub fn copy_sources(folder: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(workspace::root());
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    for path in command::output(&mut git)?.split('\0').filter(|path| !path.is_empty()) {
        let (from, to) = (workspace::root().join(path), folder.join(path));
        // One that was removed is still in the index.
        let Ok(bytes) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|existing| existing == bytes) {
            continue;
        }
        let made = fs::create_dir_all(to.parent().unwrap_or(folder));
        made.and_then(|()| fs::write(&to, bytes)).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    Ok(())
}

/// An empty folder among the temporary files; removed when dropped.
pub fn temporary() -> Result<TempDir> {
    temporary_in(&std::env::temp_dir())
}

/// An empty folder in this one.
pub fn temporary_in(folder: &Path) -> Result<TempDir> {
    let made = Builder::new().prefix("plimsoll-lab-").tempdir_in(folder);
    made.map_err(|e| format!("{}: {e}", folder.display()))
}

/// `result.json` of a run that wrote this bundle; else the last line of its messages.
pub fn result(bundle: &Path, finished: &Finished) -> Result<Value> {
    let text = fs::read_to_string(bundle.join("result.json"))
        .map_err(|_| finished.errors.lines().last().unwrap_or("no result").to_owned())?;
    serde_json::from_str(&text).map_err(|e| format!("result.json: {e}"))
}
