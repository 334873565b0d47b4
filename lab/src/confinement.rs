//! What limits a server on purpose: control groups, a network namespace behind a shaped link.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::command;
use xtask::verb::Result;

/// Control groups of version 1 are below this directory, by controller.
const GROUPS: &str = "/sys/fs/cgroup";
/// The address behind the first link, and ours.
pub const INSIDE: &str = "10.213.7.2";
const OUTSIDE: &str = "10.213.7.1";
/// The address behind the second link, and ours.
pub const INSIDE_TOO: &str = "10.213.8.2";
pub const OUTSIDE_TOO: [&str; 3] = ["10.213.8.1", "10.213.8.11", "10.213.8.12"];

/// A control group of one controller; removed when dropped.
pub struct Group(PathBuf);

impl Group {
    /// Makes one with a setting; processes are put in with [`Self::add`].
    pub fn new(controller: &str, settings: &[(&str, String)]) -> Result<Self> {
        let name = format!("plimsoll-attribution-{}", std::process::id());
        let path = Path::new(GROUPS).join(controller).join(name);
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let group = Self(path);
        for (file, value) in settings {
            group.write(file, value)?;
        }
        Ok(group)
    }

    /// Puts a process into it.
    pub fn add(&self, pid: u32) -> Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.0.join(file);
        fs::write(&path, value).map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended, or the kernel keeps it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// A network namespace behind a link; removed when dropped.
pub struct Namespace {
    name: String,
    near: String,
    /// The interface on the server's side.
    far: String,
}

impl Namespace {
    /// One of this number.
    pub fn new(number: usize) -> Result<Self> {
        let process = std::process::id() * 100;
        let namespace = Self {
            name: format!("plimsoll{}-{number}", std::process::id()),
            // At most fifteen bytes.
            near: format!("pls{}n", process + number as u32),
            far: format!("pls{}f", process + number as u32),
        };
        let Self { name, near, far } = &namespace;
        let inside = format!("{INSIDE}/24");
        let outside = format!("{OUTSIDE}/24");
        let lines: [&[&str]; 7] = [
            &["ip", "netns", "add", name],
            &["ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name],
            &["ip", "addr", "add", &outside, "dev", near],
            &["ip", "link", "set", near, "up"],
            &["ip", "-n", name, "addr", "add", &inside, "dev", far],
            &["ip", "-n", name, "link", "set", far, "up"],
            &["ip", "-n", name, "link", "set", "lo", "up"],
        ];
        lines.into_iter().try_for_each(run)?;
        Ok(namespace)
    }

    /// Limits what the server sends to a rate in tc's notation, `20mbit`.
    pub fn shape(&self, rate: &str) -> Result<()> {
        let Self { name, far, .. } = self;
        run(&[
            "tc", "-n", name, "qdisc", "replace", "dev", far, "root", "tbf", "rate", rate, "burst",
            "32kbit", "latency", "400ms",
        ])
    }

    /// Takes that back.
    pub fn unshape(&self) -> Result<()> {
        run(&["tc", "-n", &self.name, "qdisc", "del", "dev", &self.far, "root"])
    }

    /// A second link, which stays when the first is cut.
    pub fn link_again(&self) -> Result<()> {
        let Self { name, near, far } = self;
        let (near, far) = (format!("{near}2"), format!("{far}2"));
        run(&["ip", "link", "add", &near, "type", "veth", "peer", "name", &far, "netns", name])?;
        for address in OUTSIDE_TOO {
            run(&["ip", "addr", "add", &format!("{address}/24"), "dev", &near])?;
        }
        run(&["ip", "link", "set", &near, "up"])?;
        let inside = format!("{INSIDE_TOO}/24");
        run(&["ip", "-n", name, "addr", "add", &inside, "dev", &far])?;
        run(&["ip", "-n", name, "link", "set", &far, "up"])
    }

    /// Cuts the first link: what either side sends is lost.
    pub fn cut(&self) -> Result<()> {
        run(&["ip", "-n", &self.name, "link", "set", &self.far, "down"])
    }

    /// Takes that back.
    pub fn mend(&self) -> Result<()> {
        run(&["ip", "-n", &self.name, "link", "set", &self.far, "up"])
    }

    /// Ends every process in it.
    pub fn end_processes(&self) {
        let mut list = Command::new("ip");
        let listed = command::output(list.args(["netns", "pids", &self.name]));
        for id in listed.unwrap_or_default().split_whitespace() {
            let _ = Command::new("kill").args(["-KILL", id]).status();
        }
    }

    /// A command that runs in it.
    pub fn inside(&self, program: &Path) -> Command {
        // `ip netns exec` hides the control groups.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name)).arg(program);
        command
    }
}

fn run(command_line: &[&str]) -> Result<()> {
    let [program, arguments @ ..] = command_line else { return Ok(()) };
    command::run(Command::new(program).args(arguments))
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The kernel takes the link away some time after the namespace.
        let _ = run(&["ip", "link", "del", &self.near]);
        let _ = run(&["ip", "netns", "del", &self.name]);
    }
}
