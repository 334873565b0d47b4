//! `/proc/self/mountinfo`.

use std::path::{Path, PathBuf};

/// One mounted file system (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Directory of the file system that is mounted; `/` unless it is a bind mount.
    pub subtree: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Type, `ext4`.
    pub kind: String,
    /// Options of the mount and of the file system, comma separated, each once.
    pub options: String,
}

impl Mount {
    /// The mount that holds a path: the longest mount point above it, the last of equals, because
    /// later mounts hide earlier ones.
    pub fn holding<'a>(mounts: &'a [Self], path: &Path) -> Option<&'a Self> {
        mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.mount_point))
            .max_by_key(|mount| mount.mount_point.components().count())
    }

    /// Does the file system have this option.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.split(',').any(|o| o == option)
    }
}

/// Reads `/proc/self/mountinfo`; lines that do not fit are passed over.
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    let mut options: Vec<&str> = Vec::new();
    let given = [left.get(5).copied(), right.get(2).copied()];
    for option in given.into_iter().flatten().flat_map(|list| list.split(',')) {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        subtree: unescape(left.get(3)?).into(),
        mount_point: unescape(left.get(4)?).into(),
        kind: (*right.first()?).to_owned(),
        options: options.join(","),
    })
}

/// The kernel writes blank, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if code.is_ascii() => {
                out.push(char::from(code));
                rest = &after[3..];
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
25 24 0:23 / /srv/my\\040data rw,nosuid shared:3 master:1 - xfs /dev/vdb rw,noquota
37 31 0:35 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
odd line
";

    #[test]
    fn options_of_mount_and_file_system_are_joined_and_names_unescaped() {
        let mounts = parse_mountinfo(TEXT);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[0].options, "rw,relatime,discard");
        assert_eq!(mounts[1].mount_point, Path::new("/srv/my data"));
        assert_eq!((mounts[1].kind.as_str(), &*mounts[1].options), ("xfs", "rw,nosuid,noquota"));
        assert!(mounts[2].has_option("cpuacct") && !mounts[2].has_option("cpus"));
    }

    #[test]
    fn a_path_belongs_to_the_deepest_mount_above_it() {
        let mounts = parse_mountinfo(TEXT);
        let kind = |path: &str| Mount::holding(&mounts, Path::new(path)).map(|m| m.kind.as_str());
        assert_eq!(kind("/srv/my data/a"), Some("xfs"));
        assert_eq!(kind("/srv/my database"), Some("ext4"));
        assert_eq!(kind("relative"), None);
    }
}
