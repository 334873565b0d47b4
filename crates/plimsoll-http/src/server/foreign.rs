//! What the foreign web servers that `managed:` starts have in common.

use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use plimsoll_servers::process::Process;
use plimsoll_servers::{ServerError, Software};

/// How long it may take until it answers; it normally takes some 20 ms.
const START_WAIT: Duration = Duration::from_secs(10);
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

/// Waits for the process id in its file, and then for an answer. nginx writes the file once all
/// sockets are bound: whoever answers from then on is ours.
pub(super) fn wait_until_it_answers(
    process: &mut Process,
    address: SocketAddr,
    pid_file: &Path,
    (software, scheme): (&Software, &str),
) -> Result<(), ServerError> {
    let pid = process.id();
    process.wait_until(software, START_WAIT, |left| {
        let written = std::fs::read_to_string(pid_file).unwrap_or_default();
        written.trim().parse() == Ok(pid) && answers(address, scheme, left).unwrap_or(false)
    })
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
