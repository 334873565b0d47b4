//! Licences, sources and advisories of the dependencies.
//!
//! Uses `cargo deny` if it is installed. Building it takes longer than all other checks of a
//! change, so without it the licences and sources are checked here, with the same list in
//! `deny.toml`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use xtask::verb::Result;
use xtask::{command, workspace};

/// The registry every dependency comes from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every dependency in `Cargo.lock`, for all platforms.
pub fn licences() -> Result<()> {
    if command::find("cargo-deny").is_none() {
        println!("NOT CHECKED, cargo-deny is not installed: advisories and duplicate versions");
        return own_check();
    }
    let mut deny = command::cargo();
    deny.args(["deny", "--locked", "check", "--hide-inclusion-graph"]);
    deny.args(["licenses", "bans", "sources"]);
    match advisory_database() {
        Some(_) => deny.args(["advisories", "--disable-fetch"]),
        None => {
            println!("NOT CHECKED, no advisory database on this machine: advisories");
            &mut deny
        }
    };
    command::run(&mut deny)
}

fn advisory_database() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|h| h.join(".cargo")))?;
    let databases = home.join("advisory-dbs");
    fs::read_dir(&databases).ok()?.next()?.ok().map(|_| databases)
}

fn own_check() -> Result<()> {
    let root = workspace::root();
    let policy =
        fs::read_to_string(root.join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let allowed = allowed_licences(&policy);
    let mut cargo = command::cargo();
    let metadata = command::output(cargo.args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let faults: Vec<String> = packages.iter().filter_map(|p| fault(p, &allowed)).collect();
    println!("{} packages checked against {} licences", packages.len(), allowed.len());
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn fault(package: &Value, allowed: &[String]) -> Option<String> {
    let name = format!(
        "{} {}",
        package["name"].as_str().unwrap_or("?"),
        package["version"].as_str().unwrap_or("?")
    );
    match package["source"].as_str() {
        None => return None,
        Some(REGISTRY) => {}
        Some(other) => return Some(format!("{name}: comes from {other}, not from the registry")),
    }
    let Some(licence) = package["license"].as_str() else {
        return Some(format!("{name}: states no licence"));
    };
    if permits(licence, &|l| allowed.iter().any(|a| a == l)) {
        return None;
    }
    Some(format!("{name}: licence `{licence}` is not in the list of deny.toml"))
}

/// The strings of `allow = [ … ]` in the `[licenses]` table.
fn allowed_licences(policy: &str) -> Vec<String> {
    let table = policy.split("[licenses]").nth(1).unwrap_or_default();
    let list = table.split_once("allow = [").map(|(_, rest)| rest).unwrap_or_default();
    let list = list.split(']').next().unwrap_or_default();
    let lines = list.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Whether a licence expression (SPDX: `A OR (B AND C WITH D)`) offers an allowed choice.
fn permits(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut tokens = tokens.as_slice();
    let good = either(&mut tokens, allowed);
    good && tokens.is_empty()
}

fn either(tokens: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut good = both(tokens, allowed);
    while let ["OR", rest @ ..] = tokens {
        *tokens = rest;
        good |= both(tokens, allowed);
    }
    good
}

fn both(tokens: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut good = single(tokens, allowed);
    while let ["AND", rest @ ..] = tokens {
        *tokens = rest;
        good &= single(tokens, allowed);
    }
    good
}

fn single(tokens: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    match tokens {
        ["(", rest @ ..] => {
            *tokens = rest;
            let good = either(tokens, allowed);
            if let [")", rest @ ..] = tokens {
                *tokens = rest;
                return good;
            }
            false
        }
        [licence, "WITH", exception, rest @ ..] => {
            let name = format!("{licence} WITH {exception}");
            *tokens = rest;
            allowed(&name)
        }
        [licence, rest @ ..] => {
            *tokens = rest;
            allowed(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: bool) {
        let allowed = |l: &str| ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].contains(&l);
        assert_eq!(permits(expression, &allowed), expected, "{expression}");
    }

    #[test]
    fn an_expression_is_permitted_when_one_choice_is_allowed_in_full() {
        check("MIT", true);
        check("GPL-3.0", false);
        check("MIT OR GPL-3.0", true);
        check("GPL-3.0/MIT", true);
        check("MIT AND GPL-3.0", false);
        check("(MIT OR GPL-3.0) AND Zlib", true);
        check("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true);
        check("Apache-2.0", false);
        check("(MIT", false);
        check("MIT GPL-3.0", false);
        check("", false);
    }

    #[test]
    fn the_list_is_read_from_the_policy() {
        let policy = "[bans]\nallow = [\"x\"]\n[licenses]\nallow = [\n \"MIT\", # a \"remark\"\n \"Zlib\",\n]\n";
        assert_eq!(allowed_licences(policy), ["MIT", "Zlib"]);
    }
}
