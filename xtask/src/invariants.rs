//! The invariants of ARCHITECTURE.md that the text of the sources shows: which crates may depend on
//! which, and which may use a clock, a socket, a file, the terminal.

use std::path::Path;

use xtask::verb::Result;
use xtask::workspace::{self, Source};

/// The crates that a crate may use, except in its tests.
struct Crate {
    name: &'static str,
    /// Crates of this workspace it may depend on.
    may_use: &'static [&'static str],
    /// Texts that its code must not contain, each with the invariant it would break.
    must_not_contain: &'static [Absence],
}

/// Texts that must be absent, and why.
struct Absence {
    why: &'static str,
    texts: &'static [&'static str],
}

const NO_SOCKET: Absence = Absence {
    why: "opens no socket",
    texts: &[
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "UnixStream",
        "rustix::net",
        "rustix::event",
        "rustix::{",
        "tokio",
        "socket2",
        "libc",
    ],
};
const NO_CLOCK: Absence = Absence {
    why: "reads no clock: every call brings `now`",
    texts: &["Instant", "SystemTime", "UNIX_EPOCH", "thread::sleep", "rustix::time"],
};
const NO_INPUT_OUTPUT: Absence = Absence {
    why: "is a pure function of its input",
    texts: &["std::fs", "std::net", "std::env::", "std::process", "std::thread", "File::"],
};

const NO_SERVER: Absence = Absence {
    why: "runs without a server: those are in `server/` and `host/`, behind a feature",
    texts: &["plimsoll_servers"],
};
/// What sends load; `server/` and `host/` of a protocol are exempt.
const LOAD_PATH: &[Absence] = &[NO_SOCKET, NO_CLOCK, NO_SERVER];
const EXEMPT: [&str; 2] = ["/src/server/", "/src/host/"];
const A_PROTOCOL: &[&str] =
    &["plimsoll-model", "plimsoll-engine", "plimsoll-protocol", "plimsoll-servers"];

const CRATES: &[Crate] = &[
    Crate { name: "plimsoll-model", may_use: &[], must_not_contain: &[NO_SOCKET, NO_CLOCK] },
    Crate { name: "plimsoll-engine", may_use: &["plimsoll-model"], must_not_contain: &[] },
    Crate { name: "plimsoll-process", may_use: &[], must_not_contain: &[NO_CLOCK] },
    Crate {
        name: "plimsoll-servers",
        may_use: &["plimsoll-model", "plimsoll-process"],
        must_not_contain: &[],
    },
    Crate {
        name: "plimsoll-protocol",
        may_use: &["plimsoll-model", "plimsoll-engine", "plimsoll-servers"],
        must_not_contain: LOAD_PATH,
    },
    Crate { name: "plimsoll-http", may_use: A_PROTOCOL, must_not_contain: LOAD_PATH },
    Crate { name: "plimsoll-nfs", may_use: A_PROTOCOL, must_not_contain: LOAD_PATH },
    Crate { name: "plimsoll-smb", may_use: A_PROTOCOL, must_not_contain: LOAD_PATH },
    Crate { name: "plimsoll-app", may_use: A_PROTOCOL, must_not_contain: LOAD_PATH },
    // It receives answers over HTTP.
    Crate {
        name: "plimsoll-llm",
        may_use: &[
            "plimsoll-model",
            "plimsoll-engine",
            "plimsoll-protocol",
            "plimsoll-servers",
            "plimsoll-http",
        ],
        must_not_contain: LOAD_PATH,
    },
    Crate {
        name: "plimsoll-calibration",
        may_use: &[
            "plimsoll-model",
            "plimsoll-engine",
            "plimsoll-analysis",
            "plimsoll-protocol",
            "plimsoll-servers",
        ],
        must_not_contain: &[NO_SOCKET, NO_CLOCK],
    },
    Crate {
        name: "plimsoll-fleet",
        may_use: &["plimsoll-model", "plimsoll-process"],
        must_not_contain: &[NO_CLOCK],
    },
    // Exporters and collectors speak HTTP: its `wire/` reads their replies.
    Crate {
        name: "plimsoll-monitor",
        may_use: &["plimsoll-model", "plimsoll-http", "plimsoll-process"],
        must_not_contain: &[],
    },
    Crate {
        name: "plimsoll-analysis",
        may_use: &["plimsoll-model"],
        must_not_contain: &[NO_SOCKET, NO_CLOCK, NO_INPUT_OUTPUT],
    },
    Crate {
        name: "plimsoll-report",
        may_use: &["plimsoll-model"],
        must_not_contain: &[NO_SOCKET, NO_CLOCK, NO_INPUT_OUTPUT],
    },
    Crate {
        name: "plimsoll-derive",
        may_use: &["plimsoll-model"],
        must_not_contain: &[NO_SOCKET, NO_CLOCK],
    },
    // The program accesses protocols through `plimsoll-run`.
    Crate {
        name: "plimsoll",
        may_use: &[
            "plimsoll-model",
            "plimsoll-engine",
            "plimsoll-fleet",
            "plimsoll-analysis",
            "plimsoll-report",
            "plimsoll-monitor",
            "plimsoll-protocol",
            "plimsoll-servers",
            "plimsoll-calibration",
            "plimsoll-derive",
            "plimsoll-run",
        ],
        must_not_contain: &[],
    },
    Crate {
        name: "plimsoll-run",
        may_use: &[
            "plimsoll-model",
            "plimsoll-engine",
            "plimsoll-fleet",
            "plimsoll-analysis",
            "plimsoll-report",
            "plimsoll-monitor",
            "plimsoll-protocol",
            "plimsoll-servers",
            "plimsoll-process",
            "plimsoll-http",
            "plimsoll-nfs",
            "plimsoll-smb",
            "plimsoll-app",
            "plimsoll-llm",
        ],
        must_not_contain: &[],
    },
    Crate {
        name: "plimsoll-testkit",
        may_use: &[
            "plimsoll-model",
            "plimsoll-engine",
            "plimsoll-protocol",
            "plimsoll-servers",
            "plimsoll-http",
            "plimsoll-nfs",
            "plimsoll-smb",
            "plimsoll-monitor",
            "plimsoll-analysis",
            "plimsoll-report",
        ],
        must_not_contain: &[],
    },
];

/// Only these crates write to the terminal; the testkit does so for skipped tests.
const PRINTERS: [&str; 2] = ["crates/plimsoll/", "crates/plimsoll-testkit/"];
const PRINTING: Absence = Absence {
    why: "prints nothing: only the binary and the developer commands do",
    texts: &["println!(", "print!(", "eprintln!(", "eprint!(", "dbg!(", "stdout()", "stderr()"],
};
/// A run accesses protocols through the list of them.
const NAMES_NO_PROTOCOL: Absence = Absence {
    why: "names no protocol: those are in `protocols.rs`",
    texts: &[
        "plimsoll_http::",
        "plimsoll_nfs::",
        "plimsoll_smb::",
        "plimsoll_app::",
        "plimsoll_llm::",
    ],
};
/// The list itself, and the code that masks header fields in command lines.
const NAMING: [&str; 2] =
    ["crates/plimsoll-run/src/protocols.rs", "crates/plimsoll-run/src/secrets.rs"];
/// `wire/` turns bytes into messages and back.
const WIRE: Absence = Absence {
    why: "does no input or output: it is pure",
    texts: &["std::fs", "std::net", "std::io", "std::time", "std::env"],
};

/// Every violation, as `path:line: what it breaks`.
pub fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for one in CRATES {
        faults.extend(dependencies(one, root)?);
        for source in code(root, one.name)? {
            let exempt = EXEMPT.iter().any(|folder| source.path.contains(folder));
            for absence in one.must_not_contain.iter().filter(|_| !exempt) {
                faults.extend(breaches(&source, absence));
            }
            if !PRINTERS.iter().any(|printer| source.path.starts_with(printer)) {
                faults.extend(breaches(&source, &PRINTING));
            }
            if source.path.contains("/wire/") {
                faults.extend(breaches(&source, &WIRE));
            }
        }
    }
    for source in code(root, "plimsoll-run")? {
        if !NAMING.contains(&source.path.as_str()) {
            faults.extend(breaches(&source, &NAMES_NO_PROTOCOL));
        }
    }
    Ok(faults)
}

fn code(root: &Path, name: &str) -> Result<Vec<Source>> {
    let sources = workspace::sources(root, &format!("crates/{name}/src"))?;
    Ok(sources.into_iter().filter(|s| s.path.ends_with(".rs") && !is_test(&s.path)).collect())
}

/// A module of tests in a file of its own.
pub fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

fn dependencies(one: &Crate, root: &Path) -> Result<Vec<String>> {
    let path = format!("crates/{}/Cargo.toml", one.name);
    let manifest = std::fs::read_to_string(root.join(&path)).map_err(|e| format!("{path}: {e}"))?;
    let used = ours_in_dependencies(&manifest);
    let wrong = used.into_iter().filter(|used| !one.may_use.contains(&used.as_str()));
    Ok(wrong.map(|used| format!("{path}: {} must not depend on {used}", one.name)).collect())
}

/// Crates of this workspace under `[dependencies]`; tests may use any.
fn ours_in_dependencies(manifest: &str) -> Vec<String> {
    let mut within = false;
    let mut ours = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            within = line.trim() == "[dependencies]";
        } else if within && line.starts_with("plimsoll-") {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            ours.push(name.to_owned());
        }
    }
    ours
}

fn breaches(source: &Source, absence: &Absence) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        // Tests come last in a file, and are exempt.
        if line.trim() == "#[cfg(test)]" {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        if let Some(text) = absence.texts.iter().find(|text| contains_text(code, text)) {
            let location = format!("{}:{}", source.path, number + 1);
            faults.push(format!("{location}: `{text}`, but this code {}", absence.why));
        }
    }
    faults
}

/// Whether the code contains the text, but not as the end of a longer name: `eprint!(` is no
/// `print!(`.
fn contains_text(code: &str, text: &str) -> bool {
    code.match_indices(text).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invariants_of_the_architecture_hold() {
        let faults = faults(workspace::root()).unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn every_crate_is_listed() {
        let listed = |name: &str| CRATES.iter().any(|c| c.name == name);
        for entry in std::fs::read_dir(workspace::root().join("crates")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(listed(&name), "{name} has no line in xtask/src/invariants.rs");
        }
    }

    #[test]
    fn a_breach_is_found_in_code_and_not_in_comments_or_tests() {
        let text = "//! Instant\nuse std::time::Instant;\n#[cfg(test)]\nuse std::time::Instant;\n";
        let source = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        let result = breaches(&source, &NO_CLOCK);
        assert_eq!(result.len(), 1);
        assert!(result[0].starts_with("a.rs:2:"), "{}", result[0]);
    }

    #[test]
    fn dependencies_of_tests_are_free() {
        let manifest = "[dependencies]\nplimsoll-model.workspace = true\nplimsoll-engine = { path = \"x\" }\n\
                        [dev-dependencies]\nplimsoll-testkit.workspace = true\n";
        assert_eq!(ours_in_dependencies(manifest), ["plimsoll-model", "plimsoll-engine"]);
    }
}
