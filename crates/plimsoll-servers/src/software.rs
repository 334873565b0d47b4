//! What a process of this host runs: program, command line, version. Only the binary that runs is
//! asked for its version, only where it is known how, and only where nobody but root and this user
//! can have written it: else who may put a program there has us start it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::clock::Deadline;
use crate::trust::is_written_by_us_alone;

/// How long a program may take to tell its version.
const VERSION_WAIT: Duration = Duration::from_secs(2);
/// A version is a line; a longer one is none.
const VERSION_BYTES_MAX: usize = 200;
/// Longer command lines are cut.
const ARGUMENTS_MAX: usize = 200;

/// Programs that are known to tell their version and to end, and how they are asked.
const ASKED: [(&str, &str); 26] = [
    ("apache2", "-v"),
    ("caddy", "version"),
    ("envoy", "--version"),
    ("ganesha.nfsd", "-v"),
    ("h2o", "--version"),
    ("haproxy", "-v"),
    ("httpd", "-v"),
    ("java", "-version"),
    ("lighttpd", "-v"),
    ("mariadbd", "--version"),
    ("memcached", "--version"),
    ("mysqld", "--version"),
    ("nginx", "-v"),
    ("node", "--version"),
    ("node_exporter", "--version"),
    ("plimsoll", "--version"),
    ("postgres", "--version"),
    ("prometheus-node-exporter", "--version"),
    ("redis-server", "--version"),
    ("smbd", "--version"),
    ("snmpd", "-v"),
    ("squid", "-v"),
    ("traefik", "version"),
    ("valkey-server", "--version"),
    ("varnishd", "-V"),
    ("vsftpd", "-v"),
];

/// What a process runs, as far as this user may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Path of the program. One that was replaced since ends with `(deleted)`.
    pub program: Option<PathBuf>,
    /// Its command line. It may hold secrets.
    pub arguments: Vec<String>,
    /// What it says of its version, one line.
    pub version: Option<String>,
}

/// Looks at a process, and asks its program for its version.
pub fn running(pid: u32) -> Running {
    let image = PathBuf::from(format!("/proc/{pid}/exe"));
    let program = fs::read_link(&image).ok();
    let version = program.as_deref().and_then(|program| version(&image, program));
    Running { program, arguments: arguments_of(pid), version }
}

/// The command line of a process.
pub(crate) fn arguments_of(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = bytes.split(|byte| *byte == 0).take(ARGUMENTS_MAX);
    let mut arguments: Vec<String> =
        arguments.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    while arguments.last().is_some_and(String::is_empty) {
        arguments.pop();
    }
    arguments
}

/// File name of the program that a process runs.
pub(crate) fn name_of(pid: u32) -> Option<String> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    bare_name(&program).map(str::to_owned)
}

fn bare_name(program: &Path) -> Option<&str> {
    Some(program.file_name()?.to_str()?.trim_end_matches(" (deleted)"))
}

/// What the binary behind `image` says of its version, where `program` is known to tell.
fn version(image: &Path, program: &Path) -> Option<String> {
    let name = bare_name(program)?;
    let (_, flag) = ASKED.iter().find(|(known, _)| *known == name)?;
    let is_trusted = is_written_by_us_alone(&fs::metadata(image).ok()?);
    first_line(&is_trusted.then(|| ask(image, flag)).flatten()?)
}

/// Both outputs of a program that ends in time.
fn ask(program: &Path, flag: &str) -> Option<String> {
    let mut child = Command::new(program)
        .arg(flag)
        .env_clear()
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let deadline = Deadline::after(VERSION_WAIT);
    while child.try_wait().ok()?.is_none() {
        if !deadline.wait_a_step() {
            // One that takes this long, or writes more than a pipe holds, was asked the wrong way.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
    }
    let output = child.wait_with_output().ok()?;
    let both = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&both).into_owned())
}

fn first_line(text: &str) -> Option<String> {
    let printable = |line: &&str| {
        !line.is_empty() && line.len() <= VERSION_BYTES_MAX && !line.contains(char::is_control)
    };
    let version = |line: &&str| line.contains(|c: char| c.is_ascii_digit());
    text.lines().map(str::trim).filter(printable).find(version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_program_and_command_line_and_is_not_asked_unless_it_is_known() {
        let own = running(std::process::id());
        assert_eq!(own.program, std::env::current_exe().ok());
        assert!(!own.arguments.is_empty());
        assert_eq!(own.version, None, "a test is none of the servers that are known");
        assert_eq!(running(u32::MAX), Running::default());
    }

    #[test]
    fn only_a_binary_that_nobody_else_can_write_is_started() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("nginx");
        let mode = |mode: u32| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::write(&program, "#!/bin/sh\necho\necho 'nginx version: nginx/1.2.3' >&2\n").unwrap();
        mode(0o755);
        let told = version(&program, &program);
        assert_eq!(told.as_deref(), Some("nginx version: nginx/1.2.3"));
        mode(0o777);
        assert_eq!(version(&program, &program), None);
        mode(0o755);
        let other = place.path().join("other");
        fs::copy(&program, &other).unwrap();
        assert_eq!(version(&other, &other), None, "not known");
    }

    #[test]
    fn a_program_that_does_not_end_is_given_up() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("nginx");
        fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(version(&program, &program), None);
    }
}
