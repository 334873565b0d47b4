//! The configuration of a server that somebody else started on this host: the file its command line
//! names, or the one its packages have, with the files that it includes. Read only where nobody but
//! root and this user chose the file: else who runs a server has us show what we alone may read.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::software::{arguments_of, name_of};
use crate::trust::{is_root_or_us, is_written_by_us_alone};

/// More text than this is no longer read.
const BYTES_MAX: usize = 64 << 10;
/// Files, directories and failures that one configuration may have: Debian's Apache has some 40.
const FILES_MAX: usize = 200;
/// Symbolic links on the way to a file; the kernel follows no more (path_resolution(7)).
const LINKS_MAX: u32 = 40;
/// Bit of a directory's mode that keeps others from replacing what is not theirs.
const STICKY: u32 = 0o1000;

/// Why a file is not shown.
const NOT_READ: &str = "not read";
const NOT_OURS: &str = "not shown, others can write it";
const TOO_LONG: &str = "not shown, too long";

/// How a program names its configuration.
struct Known {
    program: &'static str,
    /// Flags whose value is the file.
    flags: &'static [&'static str],
    /// The flag whose value is the directory that the file's name is seen from.
    base: Option<&'static str>,
    /// What it is seen from without that flag, as packages build it; the working directory else.
    root: Option<&'static str>,
    /// Where the file is without flags.
    usual: &'static str,
    includes: Includes,
}

/// What names of included files are seen from.
#[derive(Clone, Copy)]
enum Includes {
    /// The directory of the first file.
    First,
    /// Apache's `ServerRoot`, its `-d`, or the directory of the first file.
    ServerRoot,
    /// The directory of the file that includes.
    Each,
}

/// What most programs have in common.
const PLAIN: Known = Known {
    program: "",
    flags: &["-f"],
    base: None,
    root: None,
    usual: "",
    includes: Includes::First,
};

const KNOWN: [Known; 8] = [
    Known {
        program: "apache2",
        base: Some("-d"),
        root: Some("/etc/apache2"),
        usual: "/etc/apache2/apache2.conf",
        includes: Includes::ServerRoot,
        ..PLAIN
    },
    Known {
        program: "caddy",
        flags: &["--config", "-c"],
        usual: "Caddyfile",
        includes: Includes::Each,
        ..PLAIN
    },
    Known { program: "ganesha.nfsd", usual: "/etc/ganesha/ganesha.conf", ..PLAIN },
    Known { program: "haproxy", usual: "/etc/haproxy/haproxy.cfg", ..PLAIN },
    Known {
        program: "httpd",
        base: Some("-d"),
        root: Some("/etc/httpd"),
        usual: "/etc/httpd/conf/httpd.conf",
        includes: Includes::ServerRoot,
        ..PLAIN
    },
    Known { program: "lighttpd", usual: "/etc/lighttpd/lighttpd.conf", ..PLAIN },
    Known {
        program: "nginx",
        flags: &["-c"],
        base: Some("-p"),
        root: Some("/usr/share/nginx"),
        usual: "/etc/nginx/nginx.conf",
        ..PLAIN
    },
    Known {
        program: "smbd",
        flags: &["-s", "--configfile"],
        usual: "/etc/samba/smb.conf",
        ..PLAIN
    },
];

impl Known {
    /// The files of a command line, in their order.
    fn files(&self, words: &[String], place: &Path) -> Vec<PathBuf> {
        let mut named: Vec<String> = self
            .flags
            .iter()
            .map(|flag| flag_values(words, flag))
            .find(|v| !v.is_empty())
            .unwrap_or_default();
        match self.program {
            // It reads all files that it is given.
            "haproxy" => {
                named.extend(words.iter().skip_while(|word| *word != "--").skip(1).cloned());
            }
            // Other verbs read no file, and this flag takes what was saved last.
            "caddy"
                if words.get(1).is_none_or(|verb| verb != "run")
                    || words.iter().any(|word| word == "--resume") =>
            {
                return Vec::new();
            }
            // Of others the last name counts.
            _ => named = named.pop().into_iter().collect(),
        }
        if named.is_empty() {
            named.push(self.usual.to_owned());
        }
        let base = self.base_flag(words, place);
        let base = base.or_else(|| self.root.map(PathBuf::from)).unwrap_or(place.to_owned());
        named.iter().flat_map(|name| with_its_files(base.join(name))).collect()
    }

    fn base_flag(&self, words: &[String], place: &Path) -> Option<PathBuf> {
        let base = flag_values(words, self.base?).pop()?;
        Some(place.join(base))
    }

    /// What names of included files are seen from, unless it is another place for each file.
    fn includes_from(&self, first: &Path, base: Option<PathBuf>) -> Option<PathBuf> {
        let beside = first.parent().map(Path::to_owned);
        match self.includes {
            Includes::First => beside,
            Includes::ServerRoot => base.or(beside),
            Includes::Each => None,
        }
    }
}

/// A directory stands for the files in it that HAProxy reads of one.
fn with_its_files(file: PathBuf) -> Vec<PathBuf> {
    if file.is_dir() { matching(&file.join("*.cfg")) } else { vec![file] }
}

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

/// The configuration of a process, where its program is known and its files are there to read. One
/// that sees other files than we do, in a container or a changed root, has names for them that mean
/// something else here.
pub fn configuration(pid: u32) -> Option<Configuration> {
    let name = name_of(pid)?;
    let known = KNOWN.iter().find(|known| known.program == name)?;
    let pid = first_of_program(pid, known.program);
    let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    if !is_root_or_us(owner) {
        return None;
    }
    let place = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    read(known, &words(&arguments_of(pid)), &place).filter(|found| sees_ours(pid, &found.file))
}

/// The configuration that a command line names, started at `place`.
fn read(known: &Known, words: &[String], place: &Path) -> Option<Configuration> {
    let files = known.files(words, place);
    let first = files.iter().find(|file| file.exists())?.clone();
    let base = known.includes_from(&first, known.base_flag(words, place));
    let mut reading = Reading { base, ..Reading::default() };
    for file in &files {
        reading.take(file);
    }
    Some(Configuration { file: first, text: reading.text })
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

/// The values of a flag: `-c FILE`, `-cFILE`, `--config FILE`, `--config=FILE`.
fn flag_values(words: &[String], flag: &str) -> Vec<String> {
    let value = |(index, word): (usize, &String)| {
        let rest = word.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => words.get(index + 1).cloned(),
            None if flag.starts_with("--") => None,
            None => Some(rest.to_owned()),
        }
    };
    words.iter().enumerate().filter_map(value).collect()
}

#[derive(Default)]
struct Reading {
    /// Names of included files are seen from here; from beside each file where there is none.
    base: Option<PathBuf>,
    /// What was looked at, whether it could be read or not.
    taken: Vec<PathBuf>,
    text: String,
}

impl Reading {
    /// Takes a file in, and those that it includes after it.
    fn take(&mut self, file: &Path) {
        if !self.is_new(file) {
            return;
        }
        let content = match self.content_of(file) {
            Ok(content) => content,
            Err(why) => return self.remark(file, why),
        };
        let _ = writeln!(self.text, "# {}", file.display());
        for line in content.lines().filter(|line| !says_nothing(line)) {
            let _ = writeln!(self.text, "{line}");
        }
        let beside = file.parent().unwrap_or(file);
        for line in content.lines() {
            if let Some(root) = server_root(line) {
                self.base = self.base.take().map(|base| base.join(root));
            }
            for name in statements(line).into_iter().filter_map(included) {
                self.take_included(name, beside);
            }
        }
    }

    /// Takes in what an include names, or says that it gave nothing.
    fn take_included(&mut self, name: &str, beside: &Path) {
        let pattern = self.base.as_deref().unwrap_or(beside).join(name);
        if pattern.exists() || !self.has_snippet(name) {
            self.take_matching(&pattern);
        }
    }

    fn take_matching(&mut self, pattern: &Path) {
        let files = matching(pattern);
        if files.is_empty() && self.is_new(pattern) {
            self.remark(pattern, NOT_READ);
        }
        for file in files {
            // Of types of files nobody asks, and they are long.
            if file.file_name() == Some(OsStr::new("mime.types")) {
                continue;
            }
            match file.is_dir() {
                // Apache reads all of a directory, and of those in it.
                true if self.is_new(&file) => self.take_matching(&file.join("*")),
                true => {}
                false => self.take(&file),
            }
        }
    }

    /// Whether there is room for one more, and it is none that was taken before.
    fn is_new(&mut self, file: &Path) -> bool {
        if self.taken.len() > FILES_MAX || self.taken.iter().any(|taken| taken == file) {
            return false;
        }
        self.taken.push(file.to_owned());
        if self.taken.len() > FILES_MAX {
            let _ = writeln!(self.text, "# too many files: not shown from {} on", file.display());
        }
        self.taken.len() <= FILES_MAX
    }

    /// What a file holds, or why it is not shown.
    fn content_of(&self, file: &Path) -> Result<String, &'static str> {
        // Opening what is no file may wait for ever.
        if !fs::metadata(file).is_ok_and(|metadata| metadata.is_file()) {
            return Err(NOT_READ);
        }
        if !is_our_choice(file, &mut { LINKS_MAX }) {
            return Err(NOT_OURS);
        }
        let opened = File::open(file).map_err(|_| NOT_READ)?;
        if !opened.metadata().is_ok_and(|metadata| is_ours(&metadata)) {
            return Err(NOT_OURS);
        }
        let room = BYTES_MAX.saturating_sub(self.text.len());
        let mut bytes = Vec::new();
        opened.take(room as u64 + 1).read_to_end(&mut bytes).map_err(|_| NOT_READ)?;
        match bytes.len() > room {
            true => Err(TOO_LONG),
            false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    fn remark(&mut self, file: &Path, why: &str) {
        let _ = writeln!(self.text, "# {}: {why}", file.display());
    }

    /// Caddy's `import` takes parts of the file as well, which stand behind their name in brackets.
    fn has_snippet(&self, name: &str) -> bool {
        let head = format!("({name})");
        self.text.lines().any(|line| line.trim_start().starts_with(&head))
    }
}

/// Whether nobody but root and this user can have said which file a path leads to: a link that
/// others can put there leads to what only we may read.
fn is_our_choice(path: &Path, links_left: &mut u32) -> bool {
    // Names in there mean something else to each process.
    if path.starts_with("/proc") {
        return false;
    }
    path.ancestors().all(|place| {
        let Ok(metadata) = fs::symlink_metadata(place) else { return false };
        if !metadata.is_symlink() {
            return is_ours(&metadata);
        }
        let (Some(beside), Ok(target)) = (place.parent(), fs::read_link(place)) else {
            return false;
        };
        let followed = *links_left > 0;
        *links_left = links_left.saturating_sub(1);
        followed && is_root_or_us(metadata.uid()) && is_our_choice(&beside.join(target), links_left)
    })
}

/// Whether only root and this user can write it, or at least replace what is theirs in it.
fn is_ours(metadata: &Metadata) -> bool {
    let kept = metadata.is_dir() && metadata.mode() & STICKY != 0;
    is_written_by_us_alone(metadata) || kept && is_root_or_us(metadata.uid())
}

/// Blank, or a remark.
fn says_nothing(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with(['#', ';'])
}

/// The directory that Apache's names are seen from; one made of variables is not known.
fn server_root(line: &str) -> Option<&str> {
    let (word, rest) = line.trim().split_once(char::is_whitespace)?;
    let root = rest.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c));
    (word.eq_ignore_ascii_case("ServerRoot") && !root.contains('$')).then_some(root)
}

/// What a line says, without the remark at its end: nginx lets one hold several directives.
fn statements(line: &str) -> Vec<&str> {
    let mut quote = None;
    let ends = |c: char| {
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
        quote.is_none() && c == ';'
    };
    line.split(ends)
        .take_while(|part| !part.trim_start().starts_with('#'))
        .map(|part| part.rsplit("{ ").next().unwrap_or(part).trim())
        .collect()
}

/// The name that a statement includes.
fn included(statement: &str) -> Option<&str> {
    let end = statement.find(|c: char| c.is_whitespace() || c == '=')?;
    let (word, rest) = statement.split_at(end);
    let rest = rest.trim();
    let value = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let name = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        // Samba's names may hold blanks.
        _ if rest.starts_with('=') => value,
        _ => value.split_whitespace().next()?,
    };
    let is_include = INCLUDES.iter().any(|known| word.eq_ignore_ascii_case(known));
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
mod tests;
