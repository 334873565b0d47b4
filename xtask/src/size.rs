//! `cargo xtask size [DIR]`: files and lines by crate, and the packages in Cargo.lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use xtask::verb::Result;
use xtask::workspace::{self, Source};

use crate::invariants::is_test;

/// Folders of the root that contain crates, or are one.
const FOLDERS: [&str; 3] = ["crates", "lab", "xtask"];
/// Crates that are not part of the product.
const WORKSHOP: [&str; 3] = ["lab", "plimsoll-testkit", "xtask"];

/// Numbers of files, and of their lines that are not blank.
#[derive(Clone, Copy, Default)]
struct Size {
    /// Files of `src/`, without test files.
    files: usize,
    /// Code of `src/`, without tests.
    product: usize,
    /// Code of tests, examples and benches.
    tests: usize,
    /// Comments, including docs.
    comments: usize,
}

/// Prints the table, of another checkout if one is named.
pub fn size(arguments: &[&str]) -> Result<()> {
    let root = match arguments {
        [] => workspace::root().to_owned(),
        [dir] => PathBuf::from(dir),
        _ => return Err("usage: cargo xtask size [DIR]".to_owned()),
    };
    let crates = counted(&root)?;
    println!("| crate | files | product | tests | comments |\n| --- | ---: | ---: | ---: | ---: |");
    let (mut product, mut all) = (Size::default(), Size::default());
    for (name, size) in &crates {
        println!("{}", row(name, *size));
        all = all.with(*size);
        if !WORKSHOP.contains(&name.as_str()) {
            product = product.with(*size);
        }
    }
    println!("{}\n{}", row("product", product), row("all", all));
    println!("\npackages in Cargo.lock: {}", packages(&root)?);
    Ok(())
}

fn row(name: &str, Size { files, product, tests, comments }: Size) -> String {
    format!("| {name} | {files} | {product} | {tests} | {comments} |")
}

fn counted(root: &Path) -> Result<BTreeMap<String, Size>> {
    let mut crates = BTreeMap::<String, Size>::new();
    // An older checkout has no lab.
    for folder in FOLDERS.iter().filter(|folder| root.join(folder).is_dir()) {
        for source in workspace::sources(root, folder)? {
            let Some(name) = crate_of(&source.path).filter(|_| source.path.ends_with(".rs")) else {
                continue;
            };
            let counted = crates.entry(name.to_owned()).or_default();
            *counted = counted.with(size_of(&source));
        }
    }
    Ok(crates)
}

fn crate_of(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    match parts.next()? {
        "crates" => parts.next(),
        folder => Some(folder),
    }
}

fn packages(root: &Path) -> Result<usize> {
    let lock = root.join("Cargo.lock");
    let text = std::fs::read_to_string(&lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    Ok(text.lines().filter(|line| *line == "[[package]]").count())
}

/// Tests come last in a file.
fn size_of(source: &Source) -> Size {
    let mut is_test = !source.path.contains("/src/") || is_test(&source.path);
    let mut size = Size { files: usize::from(!is_test), ..Size::default() };
    let mut all = source.text.lines().map(str::trim).peekable();
    while let Some(line) = all.next() {
        let next = all.peek().copied().unwrap_or_default();
        is_test |= line == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{');
        match line {
            "" => {}
            line if line.starts_with("//") => size.comments += 1,
            _ if is_test => size.tests += 1,
            _ => size.product += 1,
        }
    }
    size
}

impl Size {
    fn with(self, more: Self) -> Self {
        Self {
            files: self.files + more.files,
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
    fn files_code_tests_and_comments_are_told_apart() {
        let text = "//! A.\n\nfn a() {}\n// b\n#[cfg(test)]\nmod far;\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let of = |path: &str| {
            let size = size_of(&Source { path: path.to_owned(), text: text.to_owned() });
            (size.files, size.product, size.tests, size.comments)
        };
        assert_eq!(of("crates/x/src/a.rs"), (1, 3, 4, 2));
        assert_eq!(of("crates/x/tests/a.rs"), (0, 0, 7, 2));
        assert_eq!(of("crates/x/src/a/tests.rs"), (0, 0, 7, 2));
        assert_eq!(crate_of("crates/x/src/a.rs"), Some("x"));
        assert_eq!(crate_of("lab/src/main.rs"), Some("lab"));
    }
}
