//! This host's facts and the servers that listen on it, without possible secrets.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use plimsoll_model::bundle::sha256_of;
use plimsoll_model::disclosure::Tool;
use plimsoll_model::inventory::{INVENTORY_FORMAT, INVENTORY_KIND, Inventory, ServerSoftware};
use plimsoll_servers::listener;
use plimsoll_servers::software::{Running, configuration_file, running};

use crate::certificates::made_text;
use crate::clock::unix_ns;
use crate::secrets::hidden;

/// Number of threads of the kernel's NFS server, if it runs.
const NFSD_THREADS: &str = "/proc/fs/nfsd/threads";
const NFSD_PORT: u16 = 2_049;

pub(crate) fn tool() -> Tool {
    Tool {
        name: "plimsoll".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        build: if cfg!(debug_assertions) { "debug".into() } else { "release".into() },
    }
}

/// Identifies the boot of this host's kernel; empty if the kernel does not report it.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Identifies this process's network namespace; `None` if the kernel does not report it.
pub(crate) fn network() -> Option<u64> {
    fs::metadata("/proc/self/ns/net").ok().map(|namespace| namespace.ino())
}

/// SHA-256 of this program's file; `None` where it cannot be read.
pub fn own_sha256() -> Option<String> {
    sha256_of(&mut fs::File::open("/proc/self/exe").ok()?).ok()
}

/// The inventory of this host, for `plimsoll inventory`.
pub fn of_this_host(paths: &[(&str, &Path)]) -> Inventory {
    let mut host = plimsoll_monitor::inventory(paths);
    hidden::file_systems(&mut host.file_systems);
    let (servers, not_readable) = servers();
    Inventory {
        kind: INVENTORY_KIND.into(),
        format: INVENTORY_FORMAT,
        tool: tool(),
        made: made_text(unix_ns()),
        host,
        servers,
        not_readable,
    }
}

/// Servers by process, and ports of listeners that are not visible.
fn servers() -> (Vec<ServerSoftware>, Vec<String>) {
    let mut by_process: BTreeMap<u32, (String, Vec<SocketAddr>)> = BTreeMap::new();
    let mut unseen = Vec::new();
    for socket in listener::all() {
        match socket.holder {
            Some((pid, name)) => {
                by_process.entry(pid).or_insert((name, Vec::new())).1.push(socket.address);
            }
            None => unseen.push(socket.address),
        }
    }
    let mut servers: Vec<ServerSoftware> = by_process
        .into_iter()
        .map(|(pid, (name, listens))| ServerSoftware {
            configuration_file: configuration_file(pid),
            ..server(name, running(pid), &listens)
        })
        .collect();
    let (of_kernel, unseen): (Vec<_>, Vec<_>) =
        unseen.into_iter().partition(|address| address.port() == NFSD_PORT && has_nfsd());
    if !of_kernel.is_empty() {
        let name = "NFS server of the kernel".to_owned();
        servers.push(server(name, Running::default(), &of_kernel));
    }
    let unseen: Vec<String> = unseen.iter().map(SocketAddr::to_string).collect();
    let not_readable = match unseen.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "who listens on {}: a process of another user (run as root to see it), of another \
             container, or the kernel",
            unseen.join(", ")
        )],
    };
    (servers, not_readable)
}

fn has_nfsd() -> bool {
    let threads = fs::read_to_string(NFSD_THREADS).unwrap_or_default();
    threads.trim().parse().is_ok_and(|threads: u32| threads > 0)
}

fn server(name: String, running: Running, listens: &[SocketAddr]) -> ServerSoftware {
    let Running { program, arguments, version } = running;
    ServerSoftware {
        name: hidden::command_line(&[name]),
        program: program.map(|path| path.display().to_string()),
        version,
        command_line: (!arguments.is_empty()).then(|| hidden::command_line(&arguments)),
        configuration_file: None,
        configuration: None,
        listens: listens.iter().map(SocketAddr::to_string).collect(),
    }
}
