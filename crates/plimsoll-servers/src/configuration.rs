//! The configuration of a server that somebody else started on this host: the file its command line
//! names, or the one its packages have, with the files that it includes. Read only where nobody but
//! root and this user chose the file: else who runs a server has us show what we alone may read.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::software::{arguments_of, name_of};

/// More text than this is no longer read.
const BYTES_MAX: usize = 64 << 10;
/// Files that one configuration may have.
const FILES_MAX: usize = 40;

/// How a program names its configuration.
struct Known {
    program: &'static str,
    /// Flags whose value is the file.
    flags: &'static [&'static str],
    /// The flag whose value is the directory that names are seen from.
    base: Option<&'static str>,
    /// Where it is without them.
    usual: &'static str,
}

impl Known {
    const fn new(
        program: &'static str,
        flags: &'static [&'static str],
        base: Option<&'static str>,
        usual: &'static str,
    ) -> Self {
        Self { program, flags, base, usual }
    }
}

const KNOWN: [Known; 8] = [
    Known::new("apache2", &["-f"], Some("-d"), "/etc/apache2/apache2.conf"),
    Known::new("caddy", &["--config", "-c"], None, "/etc/caddy/Caddyfile"),
    Known::new("ganesha.nfsd", &["-f"], None, "/etc/ganesha/ganesha.conf"),
    Known::new("haproxy", &["-f"], None, "/etc/haproxy/haproxy.cfg"),
    Known::new("httpd", &["-f"], Some("-d"), "/etc/httpd/conf/httpd.conf"),
    Known::new("lighttpd", &["-f"], None, "/etc/lighttpd/lighttpd.conf"),
    Known::new("nginx", &["-c"], Some("-p"), "/etc/nginx/nginx.conf"),
    Known::new("smbd", &["-s", "--configfile"], None, "/etc/samba/smb.conf"),
];

/// Words that include other files, in whichever case.
const INCLUDES: [&str; 4] = ["include", "includeoptional", "%include", "import"];

/// A configuration as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The first file.
    pub file: PathBuf,
    /// Its lines, and those of the files it includes behind their names. It may hold secrets.
    pub text: String,
}

/// The configuration of a process, where its program is known and its files are there to read.
pub fn configuration(pid: u32) -> Option<Configuration> {
    let name = name_of(pid)?;
    let known = KNOWN.iter().find(|known| known.program == name)?;
    let pid = first_of_program(pid, known.program);
    let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return None;
    }
    let words = words(&arguments_of(pid));
    let named = known.flags.iter().find_map(|flag| flag_value(&words, flag));
    let place = known.base.and_then(|flag| flag_value(&words, flag)).map(PathBuf::from);
    let place = place.or_else(|| fs::read_link(format!("/proc/{pid}/cwd")).ok());
    let file = place.unwrap_or_default().join(named.unwrap_or_else(|| known.usual.to_owned()));
    let mut reading = Reading { base: file.parent()?.to_owned(), ..Reading::default() };
    reading.take(&file)?;
    Some(Configuration { file, text: reading.text })
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

/// The value of a flag: `-c FILE`, `-cFILE`, `--config FILE`, `--config=FILE`; the last counts.
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
    words.iter().enumerate().filter_map(value).next_back()
}

#[derive(Default)]
struct Reading {
    /// Names of included files are seen from here.
    base: PathBuf,
    taken: Vec<PathBuf>,
    text: String,
}

impl Reading {
    /// Takes a file in, and those that it includes after it.
    fn take(&mut self, file: &Path) -> Option<()> {
        let metadata = fs::metadata(file).ok()?;
        if !metadata.is_file() || self.taken.iter().any(|taken| taken == file) {
            return None;
        }
        self.taken.push(file.to_owned());
        let room = BYTES_MAX.saturating_sub(self.text.len()) as u64;
        if self.taken.len() > FILES_MAX || metadata.len() > room {
            let _ = writeln!(self.text, "# {}: not shown, too long", file.display());
            return Some(());
        }
        let content = fs::read_to_string(file).ok()?;
        let _ = writeln!(self.text, "# {}", file.display());
        for line in content.lines().filter(|line| !says_nothing(line)) {
            let _ = writeln!(self.text, "{line}");
        }
        for pattern in content.lines().filter_map(included) {
            let pattern = self.base.join(pattern);
            for file in matching(&pattern) {
                // Of types of files nobody asks, and they are long.
                if file.file_name() != Some(OsStr::new("mime.types")) {
                    self.take(&file);
                }
            }
        }
        Some(())
    }
}

/// Blank, or a remark.
fn says_nothing(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with(['#', ';'])
}

/// The files that a line includes.
fn included(line: &str) -> Option<&str> {
    let line = line.trim();
    let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
    let (word, rest) = line.split_at(end);
    let is_include = INCLUDES.iter().any(|known| word.eq_ignore_ascii_case(known));
    let name = rest.trim_matches(|c: char| c.is_whitespace() || "=;\"'".contains(c));
    (is_include && !name.is_empty()).then_some(name)
}

/// The files of a name whose last part may hold one star, in their order.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let Some(name) = pattern.file_name().and_then(OsStr::to_str) else { return Vec::new() };
    let Some((start, end)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let long = name.len() >= start.len() + end.len();
        long && name.starts_with(start) && name.ends_with(end) && !name.starts_with('.')
    };
    let entries = pattern.parent().and_then(|place| fs::read_dir(place).ok());
    let mut files: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(fits).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_flag_is_found_however_it_is_written() {
        for (line, flag, value) in [
            ("nginx -p /srv -c conf/nginx.conf", "-c", Some("conf/nginx.conf")),
            ("nginx -cx.conf", "-c", Some("x.conf")),
            ("nginx -c a -c b", "-c", Some("b")),
            ("smbd -F --configfile=/x/smb.conf", "--configfile", Some("/x/smb.conf")),
            ("caddy run --config Caddyfile", "--config", Some("Caddyfile")),
            ("smbd --configfiles /x", "--configfile", None),
            ("nginx -c", "-c", None),
        ] {
            assert_eq!(flag_value(&arguments(line), flag).as_deref(), value, "{line}");
        }
        let title = ["nginx: master process nginx -c /x/nginx.conf".to_owned()];
        assert_eq!(flag_value(&words(&title), "-c").as_deref(), Some("/x/nginx.conf"));
    }

    #[test]
    fn lines_that_include_are_told_from_others() {
        for (line, name) in [
            ("    include /etc/nginx/conf.d/*.conf;", Some("/etc/nginx/conf.d/*.conf")),
            ("IncludeOptional mods-enabled/*.load", Some("mods-enabled/*.load")),
            ("include = /etc/samba/more.conf", Some("/etc/samba/more.conf")),
            ("%include \"exports.conf\"", Some("exports.conf")),
            ("includes nothing", None),
            ("# include x", None),
            ("include", None),
        ] {
            assert_eq!(included(line), name, "{line}");
        }
    }

    #[test]
    fn included_files_stand_behind_the_first_and_remarks_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let first = file("nginx.conf", "# a remark\n\nworkers 2;\ninclude sites/*.conf;\n");
        file("sites/b.conf", "listen 81;\ninclude nginx.conf;\n");
        file("sites/a.conf", "listen 80;\n");
        file("sites/a.conf.old", "listen 79;\n");
        file("sites/c.conf", &"x".repeat(BYTES_MAX));
        let mut reading = Reading { base: place.path().to_owned(), ..Reading::default() };
        reading.take(&first).unwrap();
        let text = reading.text;
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} in {text}"));
        assert!(at("workers 2;") < at("listen 80;") && at("listen 80;") < at("listen 81;"));
        assert!(!text.contains("a remark") && !text.contains("listen 79"), "{text}");
        assert_eq!(text.matches("workers 2;").count(), 1, "a circle ends: {text}");
        assert!(text.ends_with("c.conf: not shown, too long\n"), "{text}");
    }
}
