//! Features fail in pairs: an array of runs in which every two levels of different factors meet.
//! Each row is a command line, and one list of checks applies to all of them.
//!
//! | module | content |
//! | --- | --- |
//! | this one | factors, exclusions and refusals as data |
//! | [`mod@array`] | the rows |
//! | [`mod@bench`] | namespaces with the servers, monitors and agents of a row |
//! | [`command`] | the command line of a row |
//! | [`accounting`] | the CPU time of servers, from outside |
//! | [`checks`] | what applies to every row, and its outcome |

pub mod accounting;
pub mod array;
pub mod bench;
pub mod checks;
pub mod command;

/// Something that a run has in one of several variants.
#[derive(Debug)]
pub struct Factor {
    /// Its name.
    pub name: &'static str,
    /// Its variants, the plainest first.
    pub levels: &'static [&'static str],
}

/// Index of a factor.
pub const VERB: usize = 0;
/// See [`VERB`].
pub const PROTOCOL: usize = 1;
/// See [`VERB`].
pub const HTTP: usize = 2;
/// See [`VERB`].
pub const GENERATOR: usize = 3;
/// See [`VERB`].
pub const SERVER: usize = 4;
/// See [`VERB`].
pub const MONITOR: usize = 5;
/// See [`VERB`].
pub const ENCRYPTED: usize = 6;
/// See [`VERB`].
pub const RESUME: usize = 7;
/// See [`VERB`].
pub const TARGETS: usize = 8;

/// All of them.
pub const FACTORS: [Factor; 9] = [
    Factor { name: "verb", levels: &["run", "capacity", "versus", "scale", "experiment"] },
    Factor { name: "protocol", levels: &["web", "nfs", "smb", "app", "llm"] },
    Factor { name: "HTTP", levels: &["1.1", "2"] },
    Factor { name: "generator", levels: &["local", "agents"] },
    Factor { name: "server", levels: &["builtin", "managed", "foreign"] },
    Factor { name: "monitor", levels: &["none", "ssh", "exporter", "snmp"] },
    Factor { name: "encrypted", levels: &["no", "yes"] },
    Factor { name: "resume", levels: &["no", "yes"] },
    Factor { name: "targets", levels: &["one", "several"] },
];

/// Levels that do not go together, by factor.
type Combination = &'static [(usize, &'static str)];

/// Combinations that do not exist, with the reason.
pub const EXCLUDED: &[(Combination, &str)] = &[
    (&[(PROTOCOL, "nfs"), (ENCRYPTED, "yes")], "Plimsoll encrypts only HTTP and SMB"),
    (&[(PROTOCOL, "app"), (ENCRYPTED, "yes")], "Plimsoll encrypts only HTTP and SMB"),
    (&[(PROTOCOL, "llm"), (ENCRYPTED, "yes")], "plimsoll serve llm has no TLS"),
    (
        &[(PROTOCOL, "web"), (ENCRYPTED, "yes"), (SERVER, "builtin")],
        "a web server that a run starts has no TLS",
    ),
    (
        &[(PROTOCOL, "web"), (ENCRYPTED, "yes"), (SERVER, "managed")],
        "a web server that a run starts has no TLS",
    ),
    (&[(PROTOCOL, "llm"), (SERVER, "managed")], "managed:llama needs a model"),
];

/// A combination that the program refuses.
#[derive(Debug)]
pub struct Refusal {
    /// What it refuses.
    pub levels: Combination,
    /// Its exit code.
    pub code: i32,
    /// A part of its message.
    pub message: &'static str,
}

/// All of them.
pub const REFUSED: &[Refusal] = &[
    Refusal { levels: &[(PROTOCOL, "nfs"), (HTTP, "2")], code: 2, message: NO_HTTP },
    Refusal { levels: &[(PROTOCOL, "smb"), (HTTP, "2")], code: 2, message: NO_HTTP },
    Refusal { levels: &[(PROTOCOL, "app"), (HTTP, "2")], code: 2, message: NO_HTTP },
    Refusal { levels: &[(PROTOCOL, "llm"), (HTTP, "2")], code: 3, message: NO_HTTP_2 },
    Refusal {
        levels: &[(PROTOCOL, "web"), (HTTP, "2"), (SERVER, "managed")],
        code: 3,
        message: NO_HTTP_2,
    },
    Refusal {
        levels: &[(VERB, "scale"), (SERVER, "foreign")],
        code: 2,
        message: "so it must start it: write builtin: or managed:NAME",
    },
    Refusal {
        levels: &[(PROTOCOL, "app"), (SERVER, "managed")],
        code: 2,
        message: "no server of transactions can be managed; write builtin:",
    },
];
const NO_HTTP: &str =
    "--http belongs to suites web-url and web-static and to language model suites";
const NO_HTTP_2: &str = "leave out --http 2";

/// A level of each factor, and whether the program refuses that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// By factor.
    pub levels: [&'static str; FACTORS.len()],
    /// The index of its refusal in [`REFUSED`].
    pub refusal: Option<usize>,
}

impl Row {
    /// Is it this level?
    pub fn is(&self, factor: usize, level: &str) -> bool {
        self.levels[factor] == level
    }

    fn contains(&self, combination: Combination) -> bool {
        combination.iter().all(|(factor, level)| self.is(*factor, level))
    }

    /// `run web 1.1 local builtin none no no one`, which identifies it.
    pub fn name(&self) -> String {
        self.levels.join(" ")
    }
}
