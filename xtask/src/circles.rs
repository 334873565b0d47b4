//! Circles: modules in the same folder that all use each other, directly or indirectly. A reader
//! has nowhere to begin. A module that uses an item of its program's `main.rs` closes such a circle
//! too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use xtask::verb::Result;
use xtask::workspace::{self, Source};

use crate::invariants::is_test;

/// For each folder, which file or folder in it uses which others.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Every circle, and every use of an item of `main.rs`.
pub fn faults(root: &Path) -> Result<Vec<String>> {
    let mut sources = workspace::sources(root, "crates")?;
    for folder in ["lab", "xtask"] {
        sources.extend(workspace::sources(root, folder)?);
    }
    sources.retain(|s| s.path.contains("/src/") && s.path.ends_with(".rs") && !is_test(&s.path));
    let cycles = circles(&uses(&sources));
    let describe = |(folder, names): &(String, Vec<String>)| {
        format!("{folder}: a circle of {}; let one side own what both need", names.join(", "))
    };
    Ok(cycles.iter().map(describe).chain(uses_of_main(&sources)).collect())
}

fn uses(sources: &[Source]) -> Uses {
    let tests: Vec<Vec<&str>> = sources.iter().flat_map(test_modules).collect();
    let is_test = |module: &Vec<&str>| tests.iter().any(|test| module.starts_with(test));
    let modules: BTreeSet<Vec<&str>> = sources.iter().map(|s| module(&s.path)).collect();
    let is_module = |path: &[&str]| modules.iter().any(|module| module.starts_with(path));
    let mut uses = Uses::new();
    for source in sources {
        let from = module(&source.path);
        if is_test(&from) {
            continue;
        }
        for path in named(&code(&source.text)) {
            let to = target(&from, &path);
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if shared < from.len().min(to.len()) && is_module(&to[..=shared]) {
                let of = uses.entry(from[..shared].join("/")).or_default();
                of.entry(from[shared].to_owned()).or_default().insert(to[shared].to_owned());
            }
        }
    }
    uses
}

/// Uses of `main.rs` by the modules that it declares.
fn uses_of_main(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for main in sources.iter().filter(|source| source.path.ends_with("src/main.rs")) {
        let (folder, root) = (main.path.trim_end_matches("main.rs"), module(&main.path));
        let below = sources.iter().filter(|s| s.path.starts_with(folder) && s.path != main.path);
        let below: Vec<&Source> = below.collect();
        let is_module = |name: &str| {
            below.iter().any(|source| module(&source.path).get(root.len()) == Some(&name))
        };
        for source in &below {
            let from = module(&source.path);
            for path in named(&code(&source.text)) {
                match target(&from, &path).strip_prefix(root.as_slice()) {
                    Some([item, ..]) if !item.is_empty() && !is_module(item) => {
                        let path = &source.path;
                        faults.push(format!("{path}: uses `{item}` of main.rs; give it a module"));
                    }
                    _ => {}
                }
            }
        }
    }
    faults
}

/// The module path that a path beginning with `crate` or `super` resolves to in a module.
fn target<'a>(from: &[&'a str], path: &'a str) -> Vec<&'a str> {
    let root = 1 + from.iter().position(|part| *part == "src").unwrap_or_default();
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut to = match parts.next() {
        Some("crate") => from[..root].to_vec(),
        _ => from[..from.len() - 1].to_vec(),
    };
    while parts.next_if_eq(&"super").is_some() {
        to.pop();
    }
    to.extend(parts);
    to
}

/// Folders and name of the module in this file.
fn module(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if ["mod", "lib", "main"].contains(parts.last().unwrap_or(&"")) {
        parts.pop();
    }
    parts
}

/// Modules in separate files that only tests use.
fn test_modules(source: &Source) -> Vec<Vec<&str>> {
    let lines = source.text.lines().zip(source.text.lines().skip(1));
    let declared = lines.filter(|(before, _)| *before == "#[cfg(test)]").filter_map(|(_, line)| {
        let name = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?;
        Some([module(&source.path), vec![name.strip_suffix(';')?]].concat())
    });
    declared.collect()
}

/// The code without comments and without the tests, which come last.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Every path that begins with `crate::` or `super::`; groups are expanded.
fn named(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                continue;
            }
            let rest = &code[at..];
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
            let (path, rest) = rest.split_at(end.unwrap_or(rest.len()));
            match rest.strip_prefix('{').filter(|_| path.ends_with("::")) {
                Some(group) => {
                    let group = group.split('}').next().unwrap_or_default();
                    paths.extend(group.split(',').map(|one| format!("{path}{}", one.trim())));
                }
                None => paths.push(path.to_owned()),
            }
        }
    }
    paths
}

/// For each folder, the sets of modules that all reach each other.
fn circles(uses: &Uses) -> Vec<(String, Vec<String>)> {
    let mut circles = Vec::new();
    for (folder, of) in uses {
        let mut listed = BTreeSet::new();
        for name in of.keys() {
            let there = reached(of, name);
            let back = |other: &&String| reached(of, other).contains(name);
            let circle: Vec<String> = there.iter().filter(back).cloned().collect();
            if circle.len() > 1 && listed.insert(circle.clone()) {
                circles.push((folder.clone(), circle));
            }
        }
    }
    circles
}

fn reached(of: &BTreeMap<String, BTreeSet<String>>, name: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![name];
    while let Some(name) = next.pop() {
        for used in of.get(name).into_iter().flatten() {
            if reached.insert(used.clone()) {
                next.push(used);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_circle_stands_but_those_listed() {
        let faults = faults(workspace::root()).unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn a_circle_is_found_through_groups_and_over_several_modules() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources = [
            source("crates/x/src/lib.rs", "use crate::a::b::B;"),
            source("crates/x/src/a/mod.rs", "use super::{c::C, d};"),
            source("crates/x/src/a/b.rs", "use super::A;"),
            source("crates/x/src/c.rs", "// crate::a\nfn f() { crate::d::f() }"),
            source(
                "crates/x/src/d.rs",
                "use crate::a::b;\n#[cfg(test)]\nmod tests {\nuse crate::c;",
            ),
        ];
        let names = ["a", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(circles(&uses(&sources)), [("crates/x/src".to_owned(), names)]);
    }

    #[test]
    fn a_module_that_uses_an_item_of_main_is_a_fault() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources = [
            source("x/src/main.rs", "mod a; mod b;"),
            source("x/src/a.rs", "use crate::{Result, b::B}; fn f() { super::b::f() }"),
            source("x/src/b.rs", "pub struct B;"),
        ];
        assert_eq!(
            uses_of_main(&sources),
            ["x/src/a.rs: uses `Result` of main.rs; give it a module"]
        );
    }
}
