//! Processes whose use is watched.

/// A process whose use is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// What the rows call it: `server`, `generator`.
    pub name: String,
    /// Process ids, one as a rule; several where a server was found by its socket.
    pub pids: Vec<u32>,
    /// Who counts to it.
    pub scope: Scope,
    /// Ports it serves, whose queues are watched.
    pub ports: Vec<u16>,
}

/// Who counts to a watched process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process itself.
    Alone,
    /// Its children and theirs too: a web server and its workers.
    WithDescendants,
}

impl WatchedProcess {
    /// A process by its id, with its descendants. A name that is taken already gets a number
    /// (`server`, `server-2`).
    pub fn new(name: impl Into<String>, pid: u32) -> Self {
        Self::of(name, vec![pid], Vec::new())
    }

    /// Processes by their ids, with their descendants, and the ports they serve.
    pub fn of(name: impl Into<String>, pids: Vec<u32>, ports: Vec<u16>) -> Self {
        Self { name: name.into(), pids, scope: Scope::WithDescendants, ports }
    }

    /// This process alone: servers it has started are its children, but not its work.
    pub fn own(name: impl Into<String>) -> Self {
        let pids = vec![std::process::id()];
        Self { name: name.into(), pids, scope: Scope::Alone, ports: Vec::new() }
    }
}
