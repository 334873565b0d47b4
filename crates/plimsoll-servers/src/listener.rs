//! Which process listens on an address of this host, and on which cores it may run: for servers
//! that somebody else started, in this network namespace or another one (a container).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::cores;
use crate::process::all_pids;

/// State of a listening socket in `/proc/net/tcp` (`TCP_LISTEN` of the kernel).
const LISTENS: &str = "0A";
/// State of a socket in `/proc/net/udp` that is connected to nobody (`TCP_CLOSE`).
const UNCONNECTED: &str = "07";
/// Flags of a Unix socket that takes connections (`__SO_ACCEPTCON` of the kernel).
const ACCEPTS: &str = "00010000";
/// Programs named in [`Listening::who`] before the rest is only counted.
const NAMED_MAX: usize = 3;

/// Who listens on an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Their programs and processes, for a person.
    pub who: String,
    /// Ids of the processes that hold the socket and whose parents do not.
    pub pids: Vec<u32>,
    /// Cores that they, their threads and their descendants may run on, ascending.
    pub cores: Vec<u32>,
}

/// Who listens on `address`. `None` if that is unknown: a process of another user, a server in the
/// kernel, no `/proc`, or no process of this host.
pub fn on(address: SocketAddr) -> Option<Listening> {
    let processes = processes().ok()?;
    if is_own(address.ip()) {
        return owners_of(&listening_inodes(Path::new("/proc/net"), address), &processes);
    }
    let elsewhere = other_namespaces(&processes).into_iter().map(|pid| format!("/proc/{pid}/net"));
    let inodes = elsewhere
        .map(PathBuf::from)
        .filter(|tables| has_address(tables, address.ip()))
        .map(|tables| listening_inodes(&tables, address))
        .find(|inodes| !inodes.is_empty())?;
    owners_of(&inodes, &processes)
}

/// Whether a server at `address` is on this host: the address is its own, or belongs to another of
/// its network namespaces (a container) in which a process listens on it.
pub fn is_here(address: SocketAddr) -> bool {
    is_own(address.ip()) || on(address).is_some()
}

/// Whether it is an address of this network namespace, which a listener on all addresses includes.
fn is_own(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || has_address(Path::new("/proc/net"), ip)
}

/// Who listens on a Unix socket of this host.
pub fn on_unix(path: &Path) -> Option<Listening> {
    let text = fs::read_to_string("/proc/net/unix").ok()?;
    owners_of(&unix_inodes(&text, path), &processes().ok()?)
}

/// Inodes of the sockets that listen there (unix(7), `/proc/net/unix`).
fn unix_inodes(table: &str, path: &Path) -> BTreeSet<u64> {
    let listens = |line: &str| {
        let mut fields = line.split_whitespace();
        let (flags, inode) = (fields.nth(3)?, fields.nth(2)?);
        let named = fields.next().is_some_and(|named| Path::new(named) == path);
        (flags == ACCEPTS && named).then(|| inode.parse().ok()).flatten()
    };
    table.lines().filter_map(listens).collect()
}

/// The processes that hold these sockets; `None` unless those of every socket are visible.
fn owners_of(inodes: &BTreeSet<u64>, processes: &[Process]) -> Option<Listening> {
    if inodes.is_empty() {
        return None;
    }
    let mut unseen = inodes.clone();
    let mut owners: Vec<&Process> = Vec::new();
    for process in processes {
        let owned: Vec<u64> =
            sockets_of(process.pid).into_iter().filter(|inode| inodes.contains(inode)).collect();
        if !owned.is_empty() {
            owners.push(process);
        }
        for inode in owned {
            unseen.remove(&inode);
        }
    }
    // A socket without a visible owner may belong to a process on any core.
    if !unseen.is_empty() {
        return None;
    }
    let mut cores = BTreeSet::new();
    for process in with_descendants(&owners, processes) {
        cores.extend(cores_of(process.pid)?);
    }
    let is_child = |process: &Process| owners.iter().any(|other| other.pid == process.parent);
    let pids = owners.iter().filter(|process| !is_child(process)).map(|process| process.pid);
    Some(Listening {
        who: names(&owners),
        pids: pids.collect(),
        cores: cores.into_iter().collect(),
    })
}

/// A socket of this network namespace that takes TCP connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListeningSocket {
    /// Where it listens.
    pub address: SocketAddr,
    /// The process that holds it and whose parent does not, with its name; `None` if none is
    /// visible.
    pub holder: Option<(u32, String)>,
}

/// Every TCP socket that listens in this network namespace, by address.
pub fn all() -> Vec<ListeningSocket> {
    let tables = ["tcp", "tcp6"].map(|table| format!("/proc/net/{table}"));
    let texts = tables.iter().filter_map(|table| fs::read_to_string(table).ok());
    let sockets: Vec<(SocketAddr, u64)> = texts
        .flat_map(|text| text.lines().skip(1).filter_map(bound_socket).collect::<Vec<_>>())
        .collect();
    let processes = processes().unwrap_or_default();
    let by_process: Vec<(&Process, Vec<u64>)> =
        processes.iter().map(|process| (process, sockets_of(process.pid))).collect();
    let holder = |inode: u64| {
        let holders = || by_process.iter().filter(|(_, inodes)| inodes.contains(&inode));
        let is_child = |process: &Process| holders().any(|(other, _)| other.pid == process.parent);
        let first = holders().find(|(process, _)| !is_child(process))?;
        Some((first.0.pid, first.0.name.clone()))
    };
    let mut listening: Vec<ListeningSocket> = sockets
        .into_iter()
        .map(|(address, inode)| ListeningSocket { address, holder: holder(inode) })
        .collect();
    listening.sort_by_key(|socket| socket.address);
    listening.dedup();
    listening
}

/// Address and inode of a line of `/proc/net/tcp` and its kin whose socket listens.
fn bound_socket(line: &str) -> Option<(SocketAddr, u64)> {
    let mut fields = line.split_whitespace();
    let (local, state) = (fields.nth(1)?, fields.nth(1)?);
    let (host, port) = local.split_once(':')?;
    let address = SocketAddr::new(parse_host(host)?, u16::from_str_radix(port, 16).ok()?);
    (state == LISTENS).then_some(())?;
    Some((address, fields.nth(5)?.parse().ok()?))
}

/// One process of each network namespace but our own.
fn other_namespaces(processes: &[Process]) -> Vec<u32> {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let mut visited: BTreeSet<PathBuf> = namespace("self").into_iter().collect();
    let first = |process: &&Process| {
        namespace(&process.pid.to_string()).is_some_and(|link| visited.insert(link))
    };
    processes.iter().filter(first).map(|process| process.pid).collect()
}

/// Whether the address is one of the namespace's own; for IPv4, by the routing table.
fn has_address(tables: &Path, address: IpAddr) -> bool {
    if let IpAddr::V6(address) = address {
        let text = fs::read_to_string(tables.join("if_inet6")).unwrap_or_default();
        let digits = format!("{:032x}", u128::from(address));
        return text.lines().any(|line| line.starts_with(&digits));
    }
    let text = fs::read_to_string(tables.join("fib_trie")).unwrap_or_default();
    let expected = format!("|-- {address}");
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == expected && lines.next().is_some_and(|next| next.ends_with("host LOCAL")) {
            return true;
        }
    }
    false
}

/// The content of `/proc/PID/status`.
#[derive(Debug)]
struct Process {
    pid: u32,
    parent: u32,
    name: String,
}

fn processes() -> io::Result<Vec<Process>> {
    let process = |pid| {
        // One that ended since it was listed is no longer of interest.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent = field(&status, "PPid:").and_then(|text| text.parse().ok()).unwrap_or(0);
        let name = field(&status, "Name:").unwrap_or("?").to_owned();
        Some(Process { pid, parent, name })
    };
    Ok(all_pids()?.into_iter().filter_map(process).collect())
}

/// Listening sockets that take what is sent to `address`; `net` holds a namespace's tables.
fn listening_inodes(net: &Path, address: SocketAddr) -> BTreeSet<u64> {
    let tables = [("tcp", LISTENS), ("tcp6", LISTENS), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)];
    let mut inodes = BTreeSet::new();
    for (table, state) in tables {
        let text = fs::read_to_string(net.join(table)).unwrap_or_default();
        inodes.extend(text.lines().skip(1).filter_map(|line| inode(line, state, address)));
    }
    inodes
}

/// The inode of a line of `/proc/net/tcp` and its kin (proc_net(5)), if its socket takes what is
/// sent to `address`.
fn inode(line: &str, required_state: &str, address: SocketAddr) -> Option<u64> {
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let (host, port) = local.split_once(':')?;
    let bound = parse_host(host)?;
    let takes = bound.is_unspecified() || bound.to_canonical() == address.ip().to_canonical();
    if state != required_state || u16::from_str_radix(port, 16) != Ok(address.port()) || !takes {
        return None;
    }
    fields.nth(5)?.parse().ok()
}

/// Words of four bytes in the byte order of the host.
fn parse_host(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match text.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Inodes of a process's sockets; none if its descriptors are not readable.
fn sockets_of(pid: u32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let inodes = links.filter_map(|link| {
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    });
    inodes.collect()
}

fn with_descendants<'a>(roots: &[&'a Process], all: &'a [Process]) -> Vec<&'a Process> {
    let mut collected = roots.to_vec();
    let mut next = 0;
    while let Some(&parent) = collected.get(next) {
        next += 1;
        for process in all.iter().filter(|process| process.parent == parent.pid) {
            if !collected.iter().any(|other| other.pid == process.pid) {
                collected.push(process);
            }
        }
    }
    collected
}

/// Over all its threads; `None` where one cannot be read.
fn cores_of(pid: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Some(all) };
    for thread in threads.flatten() {
        // Gone meanwhile.
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
        all.extend(cores::parse_list(field(&status, "Cpus_allowed_list:")?)?);
    }
    Some(all)
}

fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn names(owners: &[&Process]) -> String {
    let named = owners.iter().take(NAMED_MAX).map(|p| format!("{} (process {})", p.name, p.pid));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if owners.len() > NAMED_MAX {
        text.push_str(&format!(" and {} more", owners.len() - NAMED_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 \
                        00000000     0        0 4711 1 0000000000000000 100 0 0 10 0";

    #[test]
    fn a_socket_that_listens_is_found_with_its_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listening = all().into_iter().find(|socket| socket.address == address).unwrap();
        assert_eq!(listening.holder.unwrap().0, std::process::id());
    }

    #[test]
    fn a_line_of_proc_net_tcp_is_matched_by_address_port_and_state() {
        let of = |line: &str, address: &str| inode(line, LISTENS, address.parse().unwrap());
        assert_eq!(of(LINE, "127.0.0.1:8080"), Some(4_711));
        assert_eq!(of(LINE, "127.0.0.2:8080"), None);
        assert_eq!(of(LINE, "127.0.0.1:8081"), None);
        assert_eq!(of(&LINE.replace(" 0A ", " 01 "), "127.0.0.1:8080"), None, "connected");
        assert_eq!(of(&LINE.replace("0100007F", "00000000"), "127.0.0.2:8080"), Some(4_711));
        let any6 = LINE.replace("0100007F", &"0".repeat(32));
        assert_eq!(of(&any6, "127.0.0.1:8080"), Some(4_711), "the unspecified address takes both");
        let one6 = LINE.replace("0100007F", &format!("{}01000000", "0".repeat(24)));
        assert_eq!((of(&one6, "[::1]:8080"), of(&one6, "127.0.0.1:8080")), (Some(4_711), None));
        assert_eq!(of("garbage", "127.0.0.1:8080"), None);
        assert_eq!(bound_socket(LINE), Some(("127.0.0.1:8080".parse().unwrap(), 4_711)));
        assert_eq!(bound_socket(&LINE.replace(" 0A ", " 01 ")), None, "connected");
    }
}
