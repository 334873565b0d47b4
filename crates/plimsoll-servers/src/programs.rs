//! Programs of servers that others wrote: where they are, what their configurations can hold, and
//! free ports for them. They bind the port of their configuration, which another process may take
//! after our check.
//!
//! And the address that servers of a run listen on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{ServerError, ServerProcess};

/// Where servers listen unless clients on other hosts must reach them.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// [`ServerError::NotHere`] unless `ip` is an address of this host that clients can connect to.
pub fn refuse_foreign(ip: IpAddr) -> Result<(), ServerError> {
    let bound = match ip.is_unspecified() || ip.is_multicast() {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no single host")),
        false => TcpListener::bind((ip, 0)).map(drop),
    };
    bound.map_err(|source| ServerError::NotHere { address: ip, source })
}

/// Directories in which a program is looked for.
pub fn search_path(requested: Option<&[PathBuf]>, usual: &[&str]) -> Vec<PathBuf> {
    match requested {
        Some(requested) => requested.to_vec(),
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

/// A program of the server `managed:NAME`, which `install` brings; looked for in `search`, else in
/// `PATH` and where packages put it.
pub fn installed(
    name: &'static str,
    program: &'static str,
    (search, usual): (Option<&[PathBuf]>, &[&str]),
    install: &'static str,
) -> Result<PathBuf, ServerError> {
    find_program(program, &search_path(search, usual)).ok_or_else(|| {
        let searched = searched(usual);
        ServerError::NotInstalled { name, program, searched, install }
    })
}

/// `PATH, /usr/bin or /usr/local/bin`.
pub fn searched(usual: &[&str]) -> String {
    match usual {
        [first @ .., last] => format!("{} or {last}", [&["PATH"][..], first].concat().join(", ")),
        [] => "PATH".to_owned(),
    }
}

/// Runs a program with one argument and no input to its end.
pub fn output_of(program: &Path, argument: &str) -> Result<Output, ServerError> {
    let ran = Command::new(program).arg(argument).stdin(Stdio::null()).output();
    ran.map_err(|source| ServerError::Spawn { program: program.to_owned(), source })
}

/// A directory of one server below `TMPDIR`, whose name begins so.
pub fn scratch(prefix: &str) -> Result<TempDir, ServerError> {
    let made = tempfile::Builder::new().prefix(prefix).tempdir();
    made.map_err(|source| ServerError::System { doing: "make a temporary directory", source })
}

/// The path as text, if every configuration file, URL and shell can hold it as it is.
pub fn plain(path: &Path) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    path.to_str().filter(|text| text.chars().all(plain))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Attempts to start a server whose ports another process took.
const TRIES: u32 = 3;

/// Starts a server on a free port of `ip`, and on another one if the port was taken meanwhile.
pub fn on_a_free_port(
    ip: IpAddr,
    start: impl Fn(SocketAddr) -> Result<ServerProcess, ServerError>,
) -> Result<ServerProcess, ServerError> {
    on_free_ports(|| free_address(ip), |address| TcpListener::bind(address).is_ok(), start)
}

/// The same for a server that needs more than one.
pub fn on_free_ports<P: Copy>(
    find: impl Fn() -> Result<P, ServerError>,
    are_free: impl Fn(P) -> bool,
    start: impl Fn(P) -> Result<ServerProcess, ServerError>,
) -> Result<ServerProcess, ServerError> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let ports = find()?;
        match start(ports) {
            Err(ServerError::Ended { .. }) if tries > 0 && !are_free(ports) => {}
            outcome => return outcome,
        }
    }
}

fn free_address(ip: IpAddr) -> Result<SocketAddr, ServerError> {
    TcpListener::bind((ip, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|source| ServerError::System { doing: "find a free port", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_host_is_refused_with_the_next_move() {
        for own in ["127.0.0.1", "127.0.0.2"] {
            refuse_foreign(own.parse().unwrap()).unwrap();
        }
        // RFC 5737: the last is nobody's.
        for (foreign, why) in [
            ("0.0.0.0", "no single host"),
            ("ff02::1", "no single host"),
            ("203.0.113.9", "assign"),
        ] {
            let message = refuse_foreign(foreign.parse().unwrap()).unwrap_err().to_string();
            assert!(message.starts_with(&format!("cannot listen on {foreign}: ")), "{message}");
            assert!(message.contains(why), "{message}");
            assert!(
                message.ends_with("`ip address` shows which addresses this host has"),
                "{message}"
            );
        }
    }
}
