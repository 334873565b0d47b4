//! What a process of this host runs: program, command line, version, configuration file.
//!
//! Only the binary that runs is asked for its version, only where it is known how, and only where
//! nobody but root and this user can have written it: else who may put a program there has us start
//! it.
//!
//! The configuration file of a server that somebody else started is the one that its command line
//! names, or the one that its packages have. Path and checksum are told, never what is in it, and
//! only of processes of root and this user: anybody else could name a file that we alone may read.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_model::bundle::sha256_of;
use plimsoll_model::inventory::ConfigurationFile;

use crate::clock::Deadline;

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
fn arguments_of(pid: u32) -> Vec<String> {
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
fn name_of(pid: u32) -> Option<String> {
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

/// A larger file has no checksum here: it is none that a person wrote.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// How a program names its configuration.
struct Known {
    program: &'static str,
    /// Flags whose value is the file; of several values the last counts.
    flags: &'static [&'static str],
    /// The flag whose value is the directory that the file's name is relative to.
    base: Option<&'static str>,
    /// That directory without the flag, as packages build it; the working directory otherwise.
    root: Option<&'static str>,
    /// Where the file is without flags.
    usual: &'static str,
}

/// What most programs have in common.
const PLAIN: Known = Known { program: "", flags: &["-f"], base: None, root: None, usual: "" };

const KNOWN: [Known; 8] = [
    Known {
        program: "apache2",
        base: Some("-d"),
        root: Some("/etc/apache2"),
        usual: "/etc/apache2/apache2.conf",
        ..PLAIN
    },
    Known { program: "caddy", flags: &["--config", "-c"], usual: "Caddyfile", ..PLAIN },
    Known { program: "ganesha.nfsd", usual: "/etc/ganesha/ganesha.conf", ..PLAIN },
    Known { program: "haproxy", usual: "/etc/haproxy/haproxy.cfg", ..PLAIN },
    Known {
        program: "httpd",
        base: Some("-d"),
        root: Some("/etc/httpd"),
        usual: "/etc/httpd/conf/httpd.conf",
        ..PLAIN
    },
    Known { program: "lighttpd", usual: "/etc/lighttpd/lighttpd.conf", ..PLAIN },
    Known {
        program: "nginx",
        flags: &["-c"],
        base: Some("-p"),
        root: Some("/usr/share/nginx"),
        usual: "/etc/nginx/nginx.conf",
    },
    Known {
        program: "smbd",
        flags: &["-s", "--configfile"],
        usual: "/etc/samba/smb.conf",
        ..PLAIN
    },
];

impl Known {
    /// The file of a command line that was typed at `place`; `None` where none is read.
    fn file(&self, words: &[String], place: &Path) -> Option<PathBuf> {
        // Other verbs of Caddy read no file, and this flag takes what was saved last.
        if self.program == "caddy"
            && (words.get(1).is_none_or(|verb| verb != "run")
                || words.iter().any(|word| word == "--resume"))
        {
            return None;
        }
        let named = self.flags.iter().find_map(|flag| flag_value(words, flag));
        let base = self.base.and_then(|flag| flag_value(words, flag)).map(|base| place.join(base));
        let base = base.or_else(|| self.root.map(PathBuf::from)).unwrap_or(place.to_owned());
        Some(base.join(named.as_deref().unwrap_or(self.usual)))
    }
}

/// The configuration file of a process, where its program is known and the file can be read. A
/// process that sees other files than we do, in a container or a changed root, has names for them
/// that mean something else here.
pub fn configuration_file(pid: u32) -> Option<ConfigurationFile> {
    let name = name_of(pid)?;
    let known = KNOWN.iter().find(|known| known.program == name)?;
    let pid = first_of_program(pid, known.program);
    if !is_root_or_us(fs::metadata(format!("/proc/{pid}")).ok()?.uid()) {
        return None;
    }
    let place = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let file = known.file(&words(&arguments_of(pid)), &place)?;
    if !sees_ours(pid, &file) {
        return None;
    }
    Some(ConfigurationFile { path: file.display().to_string(), sha256: checksum(&file)? })
}

fn checksum(file: &Path) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    // Opening what is no file may wait for ever.
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return None;
    }
    sha256_of(&mut File::open(file).ok()?).ok()
}

/// Whether a path means the same file to a process as to us: it may have a root of its own (a
/// container), and it may have mounts of its own that leave this file alone (`PrivateTmp=`).
fn sees_ours(pid: u32, file: &Path) -> bool {
    let of = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    // Without links: an absolute one would lead from their root to ours.
    let Ok(file) = file.canonicalize() else { return false };
    let theirs = Path::new("/proc").join(pid.to_string()).join("root");
    let theirs = file.strip_prefix("/").ok().and_then(|file| of(&theirs.join(file)));
    theirs.is_some() && theirs == of(&file)
}

/// The process that was started with the flags: workers have their own titles.
fn first_of_program(mut pid: u32, program: &str) -> u32 {
    let parent = |pid: u32| -> Option<u32> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    while let Some(above) = parent(pid).filter(|above| name_of(*above).as_deref() == Some(program))
    {
        pid = above;
    }
    pid
}

/// A program that writes its own title has its whole line in one argument.
fn words(arguments: &[String]) -> Vec<String> {
    match arguments {
        [title] => title.split_whitespace().map(str::to_owned).collect(),
        several => several.to_vec(),
    }
}

/// The last value of a flag: `-c FILE`, `-cFILE`, `--config FILE`, `--config=FILE`.
fn flag_value(words: &[String], flag: &str) -> Option<String> {
    let value = |(index, word): (usize, &String)| {
        let rest = word.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => words.get(index + 1).cloned(),
            None if flag.starts_with("--") => None,
            None => Some(rest.to_owned()),
        }
    };
    words.iter().enumerate().rev().find_map(value)
}

/// Bits of a mode that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Root, or the user this program runs as.
fn is_root_or_us(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Whether only root and this user can have written it.
fn is_written_by_us_alone(metadata: &Metadata) -> bool {
    is_root_or_us(metadata.uid()) && metadata.mode() & WRITABLE_BY_OTHERS == 0
}

#[cfg(test)]
mod tests;
