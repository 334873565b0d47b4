//! `cargo xtask size [DIR]`: lines of product, tests and docs, crate by crate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use xtask::verb::Result;
use xtask::workspace::{self, Source};

use crate::invariants::is_test;

/// Lines that say something.
#[derive(Clone, Copy, Default)]
struct Lines {
    /// Code of `src/`, tests apart.
    product: usize,
    /// Code of tests, examples and benches.
    tests: usize,
    /// Comments, docs among them.
    comments: usize,
}

/// Prints a table; of another checkout where one is named.
pub fn size(arguments: &[&str]) -> Result<()> {
    let root = match arguments {
        [] => workspace::root().to_owned(),
        [dir] => PathBuf::from(dir),
        _ => return Err("usage: cargo xtask size [DIR]".to_owned()),
    };
    let crates = counted(&root)?;
    println!("| crate | product | tests | comments |\n| --- | ---: | ---: | ---: |");
    let mut all = Lines::default();
    for (name, lines) in crates {
        println!("| {name} | {} | {} | {} |", lines.product, lines.tests, lines.comments);
        all = all.with(lines);
    }
    println!("| all | {} | {} | {} |", all.product, all.tests, all.comments);
    Ok(())
}

fn counted(root: &Path) -> Result<BTreeMap<String, Lines>> {
    let mut crates = BTreeMap::<String, Lines>::new();
    for folder in ["crates", "xtask"] {
        for source in workspace::sources(root, folder)? {
            let Some(name) = crate_of(&source.path).filter(|_| source.path.ends_with(".rs")) else {
                continue;
            };
            let counted = crates.entry(name.to_owned()).or_default();
            *counted = counted.with(lines(&source));
        }
    }
    Ok(crates)
}

fn crate_of(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    match parts.next()? {
        "crates" => parts.next(),
        "xtask" => Some("xtask"),
        _ => None,
    }
}

/// Tests come last in a file.
fn lines(source: &Source) -> Lines {
    let mut lines = Lines::default();
    let mut is_test = !source.path.contains("/src/") || is_test(&source.path);
    let mut all = source.text.lines().map(str::trim).peekable();
    while let Some(line) = all.next() {
        let next = all.peek().copied().unwrap_or_default();
        is_test |= line == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{');
        match line {
            "" => {}
            line if line.starts_with("//") => lines.comments += 1,
            _ if is_test => lines.tests += 1,
            _ => lines.product += 1,
        }
    }
    lines
}

impl Lines {
    fn with(self, more: Self) -> Self {
        Self {
            product: self.product + more.product,
            tests: self.tests + more.tests,
            comments: self.comments + more.comments,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_tests_and_comments_are_told_apart() {
        let text = "//! A.\n\nfn a() {}\n// b\n#[cfg(test)]\nmod far;\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let of = |path: &str| {
            let lines = lines(&Source { path: path.to_owned(), text: text.to_owned() });
            (lines.product, lines.tests, lines.comments)
        };
        assert_eq!(of("crates/x/src/a.rs"), (3, 4, 2));
        assert_eq!(of("crates/x/tests/a.rs"), (0, 7, 2));
        assert_eq!(crate_of("crates/x/src/a.rs"), Some("x"));
    }
}
