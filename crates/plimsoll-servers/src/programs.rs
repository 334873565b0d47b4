//! Programs of servers that others wrote: where they are, and what their configurations can hold.

use std::path::{Path, PathBuf};

/// Directories in which a program is looked for.
pub fn search_path(asked: Option<&[PathBuf]>, usual: &[&str]) -> Vec<PathBuf> {
    match asked {
        Some(asked) => asked.to_vec(),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).chain(usual.iter().map(PathBuf::from)).collect()
        }
    }
}

/// The first executable file of that name.
pub fn find_program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(name)).find(|path| is_executable(path))
}

/// The path as text, if every configuration file, URL and shell can hold it as it is.
pub fn plain(path: &Path) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    path.to_str().filter(|text| text.chars().all(plain))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
