//! What the foreign web servers that `managed:` starts have in common.

use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use plimsoll_servers::clock::Deadline;
use plimsoll_servers::process::Process;
use plimsoll_servers::{ServerError, ServerProcess, Software};

/// How long it may take until it answers; it normally takes some 20 ms.
const START_WAIT: Duration = Duration::from_secs(10);
/// Another process can take the free port between our looking and the server's binding.
const PORT_TRIES: u32 = 3;

/// Starts a server on a port that nobody has, and on another one where somebody was faster.
pub(super) fn on_a_free_port(
    start: impl Fn(SocketAddr) -> Result<ServerProcess, ServerError>,
) -> Result<ServerProcess, ServerError> {
    let mut tries = PORT_TRIES;
    loop {
        tries -= 1;
        let address = free_address()?;
        match start(address) {
            Err(ServerError::Ended { .. }) if tries > 0 && is_taken(address) => {}
            outcome => return outcome,
        }
    }
}

/// The absolute path, which must be one that a configuration file can name.
pub(super) fn document_root(program: &str, root: &Path) -> Result<String, ServerError> {
    let refused = |source| ServerError::Root { path: root.to_owned(), source };
    let absolute = root.canonicalize().map_err(refused)?;
    if !absolute.is_dir() {
        return Err(refused(io::ErrorKind::NotADirectory.into()));
    }
    let text = absolute.to_str().filter(|text| !text.contains(['$', '"', '\\', '\n']));
    text.map(str::to_owned).ok_or_else(|| {
        let why = format!(
            "{program} cannot take a path with $, quotes, backslashes or bytes outside UTF-8"
        );
        refused(io::Error::new(io::ErrorKind::InvalidInput, why))
    })
}

/// Writes a file of its configuration.
pub(super) fn write(path: &Path, text: &str) -> Result<(), ServerError> {
    std::fs::write(path, text)
        .map_err(|source| ServerError::System { doing: "write a configuration file", source })
}

fn free_address() -> Result<SocketAddr, ServerError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|source| ServerError::System { doing: "find a free port", source })
}

fn is_taken(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_err()
}

/// Waits for the process id in its file, and then for an answer.
pub(super) fn wait_until_it_answers(
    process: &mut Process,
    address: SocketAddr,
    pid_file: &Path,
    (software, scheme): (&Software, &str),
) -> Result<(), ServerError> {
    let deadline = Deadline::after(START_WAIT);
    let software = || software.to_string();
    loop {
        if let Some(status) = process.ended()? {
            let tail = process.stderr_tail();
            return Err(ServerError::Ended { software: software(), status, tail });
        }
        // The file appears once all sockets are bound: whoever answers from then on is ours.
        let written = std::fs::read_to_string(pid_file).unwrap_or_default();
        let is_bound = written.trim().parse() == Ok(process.id());
        if is_bound && answers(address, scheme, deadline.left()).unwrap_or(false) {
            return Ok(());
        }
        if !deadline.wait_a_step() {
            let tail = process.stderr_tail();
            let waited = START_WAIT;
            return Err(ServerError::Silent { software: software(), waited, tail });
        }
    }
}

/// Whether an HTTP reply begins. With TLS an accepted connection has to do.
fn answers(address: SocketAddr, scheme: &str, wait: Duration) -> io::Result<bool> {
    if wait.is_zero() {
        return Ok(false);
    }
    let mut stream = TcpStream::connect_timeout(&address, wait)?;
    if scheme == "https" {
        return Ok(true);
    }
    stream.set_read_timeout(Some(wait))?;
    stream.write_all(
        b"HEAD /plimsoll-fileset.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )?;
    let mut start = [0; 7];
    stream.read_exact(&mut start)?;
    Ok(&start == b"HTTP/1.")
}
