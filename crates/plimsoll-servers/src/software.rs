//! What a process of this host runs: program, command line, version, configuration file.
//!
//! Only the running binary is queried for its version, only by a known flag, and only if nobody but
//! root and this user can have written it: otherwise whoever can put a program there could have us
//! run it.
//!
//! The configuration file of a server that somebody else started is the one that its command line
//! names, or the default of its packages. Path and checksum are reported, never its content, and
//! only for processes of root and this user: anyone else could name a file that only we may read.

use std::fs::{self, File, Metadata};
use std::io::pipe;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_model::bundle::sha256_of;
use plimsoll_model::inventory::ConfigurationFile;
use plimsoll_process::{ChildProcess, Tail};

/// How long a program may take to print its version.
const VERSION_WAIT: Duration = Duration::from_secs(2);
/// A version is a line; a longer one is none.
const VERSION_BYTES_MAX: usize = 200;
/// Longer command lines are cut.
const ARGUMENTS_MAX: usize = 200;

/// Version flags of programs that print their version and end.
const VERSION_FLAGS: [(&str, &str); 5] = [
    ("-V", "varnishd"),
    ("-v", "apache2 ganesha.nfsd haproxy httpd lighttpd nginx snmpd squid vsftpd"),
    ("-version", "java"),
    (
        "--version",
        "envoy h2o mariadbd memcached mysqld node node_exporter plimsoll postgres \
         prometheus-node-exporter redis-server smbd valkey-server",
    ),
    ("version", "caddy traefik"),
];

/// What a process runs, as far as this user may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Path of the program. One that was replaced since ends with `(deleted)`.
    pub program: Option<PathBuf>,
    /// Its command line. It may hold secrets.
    pub arguments: Vec<String>,
    /// Its own version text, one line.
    pub version: Option<String>,
}

/// Inspects a process, and queries its program for the version.
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

/// The version text of the binary behind `image`, if `program` is known to print one.
fn version(image: &Path, program: &Path) -> Option<String> {
    let name = bare_name(program)?;
    let is_listed = |programs: &str| programs.split_whitespace().any(|program| program == name);
    let (flag, _) = VERSION_FLAGS.iter().find(|(_, programs)| is_listed(programs))?;
    let is_trusted = is_written_by_us_alone(&fs::metadata(image).ok()?);
    Some(with_name(name, first_line(&is_trusted.then(|| ask(image, flag)).flatten()?)?))
}

/// Some programs print their version and not their name.
fn with_name(program: &str, line: String) -> String {
    let begin = line.trim_start_matches("Version").trim_start_matches([':', ' ', 'v']);
    if !begin.starts_with(|c: char| c.is_ascii_digit()) {
        return line;
    }
    let name = match program {
        "caddy" => "Caddy",
        "node" => "Node.js",
        "smbd" => "Samba",
        "traefik" => "Traefik",
        other => other,
    };
    format!("{name} {line}")
}

/// Both outputs of a program that ends in time.
fn ask(program: &Path, flag: &str) -> Option<String> {
    let (output, writer) = pipe().ok()?;
    let mut command = Command::new(program);
    command.arg(flag).env_clear().env("LC_ALL", "C").current_dir("/");
    command.stdin(Stdio::null()).stdout(writer.try_clone().ok()?).stderr(writer);
    let child = ChildProcess::start(command).ok()?;
    let tail = Tail::from_output(Some(output)).ok()?;
    // One that takes this long was queried wrongly.
    child.wait_for(VERSION_WAIT).ok()??;
    Some(tail.text())
}

fn first_line(text: &str) -> Option<String> {
    let printable = |line: &&str| {
        !line.is_empty() && line.len() <= VERSION_BYTES_MAX && !line.contains(char::is_control)
    };
    let version = |line: &&str| line.contains(|c: char| c.is_ascii_digit());
    text.lines().map(str::trim).filter(printable).find(version).map(str::to_owned)
}

/// A larger file gets no checksum: no person wrote it.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// How a program names its configuration.
struct ConfigurationRule {
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
const PLAIN: ConfigurationRule =
    ConfigurationRule { program: "", flags: &["-f"], base: None, root: None, usual: "" };

const CONFIGURATION_RULES: [ConfigurationRule; 8] = [
    ConfigurationRule {
        program: "apache2",
        base: Some("-d"),
        root: Some("/etc/apache2"),
        usual: "/etc/apache2/apache2.conf",
        ..PLAIN
    },
    ConfigurationRule { program: "caddy", flags: &["--config", "-c"], usual: "Caddyfile", ..PLAIN },
    ConfigurationRule { program: "ganesha.nfsd", usual: "/etc/ganesha/ganesha.conf", ..PLAIN },
    ConfigurationRule { program: "haproxy", usual: "/etc/haproxy/haproxy.cfg", ..PLAIN },
    ConfigurationRule {
        program: "httpd",
        base: Some("-d"),
        root: Some("/etc/httpd"),
        usual: "/etc/httpd/conf/httpd.conf",
        ..PLAIN
    },
    ConfigurationRule { program: "lighttpd", usual: "/etc/lighttpd/lighttpd.conf", ..PLAIN },
    ConfigurationRule {
        program: "nginx",
        flags: &["-c"],
        base: Some("-p"),
        root: Some("/usr/share/nginx"),
        usual: "/etc/nginx/nginx.conf",
    },
    ConfigurationRule {
        program: "smbd",
        flags: &["-s", "--configfile"],
        usual: "/etc/samba/smb.conf",
        ..PLAIN
    },
];

impl ConfigurationRule {
    /// The file of a command line that was typed in `directory`; `None` if none is read.
    fn file(&self, tokens: &[String], directory: &Path) -> Option<PathBuf> {
        // Other verbs of Caddy read no file, and this flag takes what was saved last.
        if self.program == "caddy"
            && (tokens.get(1).is_none_or(|verb| verb != "run")
                || tokens.iter().any(|word| word == "--resume"))
        {
            return None;
        }
        let named = self.flags.iter().find_map(|flag| flag_value(tokens, flag));
        let base =
            self.base.and_then(|flag| flag_value(tokens, flag)).map(|base| directory.join(base));
        let base = base.or_else(|| self.root.map(PathBuf::from)).unwrap_or(directory.to_owned());
        Some(base.join(named.as_deref().unwrap_or(self.usual)))
    }
}

/// The configuration file of a process, if its program is known and the file can be read. In a
/// container or a changed root the names of a process mean other files than here.
pub fn configuration_file(pid: u32) -> Option<ConfigurationFile> {
    let name = name_of(pid)?;
    let rule = CONFIGURATION_RULES.iter().find(|rule| rule.program == name)?;
    let pid = first_of_program(pid, rule.program);
    if !is_root_or_us(fs::metadata(format!("/proc/{pid}")).ok()?.uid()) {
        return None;
    }
    let directory = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let file = rule.file(&split_title(&arguments_of(pid)), &directory)?;
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
    let of = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
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
fn split_title(arguments: &[String]) -> Vec<String> {
    match arguments {
        [title] => title.split_whitespace().map(str::to_owned).collect(),
        several => several.to_vec(),
    }
}

/// The last value of a flag: `-c FILE`, `-cFILE`, `--config FILE`, `--config=FILE`.
fn flag_value(tokens: &[String], flag: &str) -> Option<String> {
    let value = |(index, word): (usize, &String)| {
        let rest = word.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => tokens.get(index + 1).cloned(),
            None if flag.starts_with("--") => None,
            None => Some(rest.to_owned()),
        }
    };
    tokens.iter().enumerate().rev().find_map(value)
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
