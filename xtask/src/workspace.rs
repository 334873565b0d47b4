//! The workspace's folder and the text files in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::verb::Result;

/// Folders with generated files.
const MADE: [&str; 5] = ["target", ".git", "corpus", "artifacts", "node_modules"];
/// Folder of the root where `plimsoll run` leaves its bundles.
const BUNDLES: &str = "runs";

/// Root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in a folder of the root")
}

/// Cargo's output folder.
pub fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(named.unwrap_or_else(|| "target".into()))
}

/// A text file of the sources.
pub struct Source {
    /// Path from the root, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// Every UTF-8 file below `folder` (a path from the root; empty for all), in the order of paths.
pub fn sources(root: &Path, folder: &str) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in files(&root.join(folder))? {
        let bytes = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        sources.push(Source { path, text });
    }
    Ok(sources)
}

/// Every file below `folder`, in the order of paths.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("{}: {e}", folder.display()))?;
        let kind = entry.file_type().map_err(|e| format!("{}: {e}", entry.path().display()))?;
        let name = entry.file_name();
        // In a worktree `.git` is a file.
        let of_root = folder == root() && name == BUNDLES;
        if of_root || MADE.iter().any(|made| name == *made) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
