//! Prints what was measured and, on request, writes it to its section of `docs/performance.md`.

use std::process::Command;

use xtask::verb::Result;
use xtask::{command, workspace};

use super::{Options, facts};
use crate::network::{GENERATOR_CORE, SERVER_CORE};
use crate::page::Table;

/// The page that holds the figures.
const PAGE: &str = "docs/performance.md";

/// An error where the figures would stand under a commit that did not make them.
pub fn writable() -> Result<()> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain", "--untracked-files=no"]).current_dir(workspace::root());
    let status = command::output(&mut git)?;
    let changed = changed_outside_docs(&status);
    if !changed.is_empty() {
        return Err(format!(
            "--write puts figures under the name of a commit, and these files differ from it: {}; \
             commit them first, or measure without --write",
            changed.join(", ")
        ));
    }
    if !status.trim().is_empty() {
        eprintln!("WARNING: files below docs/ are not committed; the commit will read `-dirty`");
    }
    Ok(())
}

/// Of `git status --porcelain`: two letters, a blank, the path (of a move: both). Documents change
/// no figure, and a page that the bench before has just written is one.
fn changed_outside_docs(status: &str) -> Vec<&str> {
    let paths = status.lines().filter_map(|line| line.get(3..));
    paths.filter(|path| !path.starts_with("docs/") || path.contains(" -> ")).collect()
}

/// Prints the tables with the facts of the machine; with `--write` puts them between the
/// markers of `part`.
pub fn record(part: &str, tables: &str, options: &Options) -> Result<()> {
    let only = match options.only.join(",") {
        only if only.is_empty() => only,
        only => format!(" --only {only}"),
    };
    let rounds = match part {
        "memory" => String::new(),
        _ => format!(" --rounds {}", options.rounds),
    };
    let text = format!(
        "Command: `cargo lab bench {part}{rounds} --seconds {}{only}`\n\n\
         Server on core {SERVER_CORE}, generator on core {GENERATOR_CORE}, loopback.\n\n\
         {}\n{}",
        options.seconds(),
        facts::facts(part),
        tables.trim_end()
    );
    println!("{text}");
    if !options.write {
        return Ok(());
    }
    Table { page: PAGE, name: &format!("bench {part}") }.write(&text)
}

/// A part of the tables under its title. What could not be measured is named instead.
pub fn section(title: &str, measure: impl FnOnce() -> Result<String>) -> String {
    eprintln!("\n== {title} ==");
    let table = measure().unwrap_or_else(|message| {
        eprintln!("NOT MEASURED: {message}");
        format!("Not measured: {message}\n")
    });
    format!("### {title}\n\n{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_beside_the_documents_are_in_the_way() {
        let status = " M docs/performance.md\nM  xtask/src/main.rs\n M Cargo.lock\n";
        assert_eq!(changed_outside_docs(status), ["xtask/src/main.rs", "Cargo.lock"]);
        assert!(changed_outside_docs(" M docs/performance.md\n").is_empty());
        assert!(changed_outside_docs("").is_empty());
    }

    #[test]
    fn the_page_has_a_place_for_every_part() {
        for part in ["web", "memory", "nfs", "smb", "app"] {
            assert_eq!(Table { page: PAGE, name: &format!("bench {part}") }.check(), Ok(()));
        }
    }
}
