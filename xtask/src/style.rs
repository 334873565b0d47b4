//! House rules that no lint checks. They only get stricter: a file that is allowed to be too long
//! may shrink but not grow, and its allowance shrinks with it.

use std::path::Path;

use xtask::verb::Result;
use xtask::workspace::{self, Source};

use crate::names;

/// A Rust file of this length has more than one subject.
const LINES_MAX: usize = 500;
/// Longer files that are allowed, each with its maximum length.
const LONGER: [(&str, usize); 0] = [];

/// Parts of the registered names of official benchmarks, which our suites must not use.
const OFFICIAL_MARKS: [&str; 6] = ["spec", "sfs", "netbench", "webbench", "tpc", "iometer"];

/// Every fault, as `path:line: what; what to do`.
pub fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for source in workspace::sources(root, "")? {
        faults.extend(foreign_paths(&source, root));
        if source.path.ends_with(".rs") {
            faults.extend(length(&source));
            faults.extend(names::dialect(&source));
            faults.extend(names::prose(&source));
        }
        if source.path.ends_with(".md") {
            faults.extend(names::prose(&source));
            faults.extend(broken_links(&source, root));
        }
        if source.path.starts_with("suites/") && source.path.ends_with(".toml") {
            faults.extend(official_marks(&source));
        }
    }
    Ok(faults)
}

fn length(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    let path = &source.path;
    match LONGER.iter().find(|(longer, _)| longer == path) {
        None if lines > LINES_MAX => {
            Some(format!("{path}: {lines} lines (limit {LINES_MAX}); split it by subject"))
        }
        Some((_, allowed)) if lines > *allowed => {
            Some(format!("{path}: grew to {lines} lines from {allowed}; split it by subject"))
        }
        Some((_, allowed)) if lines < *allowed => {
            Some(format!("{path}: shrank to {lines} lines; lower its allowance of {allowed}"))
        }
        _ => None,
    }
}

/// Paths of the author's machine, which mean nothing to a reader: neither the checkout's folder nor
/// a folder next to it may occur.
fn foreign_paths(source: &Source, root: &Path) -> Vec<String> {
    // Any machine has a directory of temporary files: a clone there is no workplace.
    let parent = root.parent().filter(|parent| **parent != std::env::temp_dir());
    let parent = parent.map(|p| format!("{}/", p.display())).filter(|p| p.len() > 2);
    let outside_path = concat!("../", "shared");
    let mut faults = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let inside = parent.as_deref().is_some_and(|parent| starts_a_path(line, parent));
        if inside || line.contains(outside_path) {
            let location = format!("{}:{}", source.path, number + 1);
            faults.push(format!("{location}: names a place outside the repository; leave it out"));
        }
    }
    faults
}

fn starts_a_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}".contains(c))
    })
}

fn broken_links(source: &Source, root: &Path) -> Vec<String> {
    let folder = root.join(&source.path).parent().unwrap_or(root).to_owned();
    let mut faults = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        for link in line.split("](").skip(1) {
            let target = match link.strip_prefix('<') {
                Some(bracketed) => bracketed.split(['>', '#']).next(),
                None => link.split([')', '#', ' ']).next(),
            }
            .unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !elsewhere && !folder.join(target).exists() {
                let location = format!("{}:{}", source.path, number + 1);
                faults.push(format!("{location}: the link to `{target}` leads nowhere"));
            }
        }
    }
    faults
}

fn official_marks(source: &Source) -> Option<String> {
    let line = source.text.lines().find(|line| line.trim_start().starts_with("name"))?;
    let name = line.split('"').nth(1)?.to_lowercase();
    let mark = OFFICIAL_MARKS.iter().find(|mark| name.contains(**mark))?;
    Some(format!(
        "{}: the name `{name}` uses the mark of an official benchmark ({mark})",
        source.path
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn the_repository_keeps_the_house_rules() {
        let faults = faults(workspace::root()).unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn a_file_over_the_limit_is_a_fault() {
        assert!(length(&source("a.rs", &"x\n".repeat(500))).is_none());
        assert!(length(&source("a.rs", &"x\n".repeat(501))).is_some());
    }

    #[test]
    fn a_path_of_this_machine_is_a_fault_and_a_path_of_the_project_is_none() {
        let root = Path::new("/src/plimsoll");
        let fault = |text| !foreign_paths(&source("a.md", text), root).is_empty();
        assert!(fault("see `/src/notes.md`"));
        assert!(!fault("see crates/plimsoll/src/main.rs"));
    }

    #[test]
    fn a_link_must_lead_somewhere() {
        let root = workspace::root();
        let text = "[a](Cargo.toml) [b](https://example.org) [c](#c) [d](nowhere.md#x)";
        assert_eq!(broken_links(&source("README.md", text), root).len(), 1);
        let text = "[a](<Cargo.toml>) [b](<Cargo.toml#b>) [c](<a name with spaces.md>)";
        assert_eq!(broken_links(&source("README.md", text), root).len(), 1);
    }

    #[test]
    fn a_suite_does_not_borrow_an_official_name() {
        assert!(official_marks(&source("suites/a.toml", "name = \"SPECweb\"")).is_some());
        assert!(official_marks(&source("suites/a.toml", "name = \"web-static\"")).is_none());
    }
}
