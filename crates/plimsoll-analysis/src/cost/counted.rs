//! Which disks and interfaces of a host are counted: one that lies on another would count twice.

use super::Seen;

/// Disks whose transfers lie on other disks, or in memory.
const STACKED_DISKS: [&str; 6] = ["dm-", "md", "loop", "zram", "ram", "bcache"];
/// Interfaces whose packets pass another one too, or never leave the host.
const STACKED_INTERFACES: [&str; 16] = [
    "lo", "veth", "br", "docker", "virbr", "bond", "team", "tun", "tap", "vnet", "dummy", "cali",
    "flannel", "cni", "wg", "kube",
];
const BOTH_WAYS: [&str; 2] = ["received", "sent"];

/// The disks themselves. Only where those on top of others moved more than they did, these cannot
/// lie on them: a loop device on files in memory.
pub(super) fn disks<'a>(seen: &Seen<'a>) -> Vec<&'a str> {
    let is_stacked = |disk: &&str| STACKED_DISKS.iter().any(|start| disk.starts_with(start));
    let all = seen.keys("disk", "busy");
    let (stacked, below): (Vec<&str>, Vec<&str>) = all.into_iter().partition(is_stacked);
    let bytes = |disk: &str| -> f64 {
        let columns = seen.columns("disk", &[disk], &["read", "written"]);
        columns.iter().map(|(used, _)| used.mean).sum()
    };
    let of_stacked = stacked.iter().map(|disk| bytes(disk)).fold(0.0, f64::max);
    let of_below: f64 = below.iter().map(|disk| bytes(disk)).sum();
    match of_stacked > of_below {
        true => {
            stacked.into_iter().max_by(|a, b| bytes(a).total_cmp(&bytes(b))).into_iter().collect()
        }
        false => below,
    }
}

/// The interfaces, and the ways that are counted. In a network namespace of its own the server has
/// its own; towards a generator on the same host all goes through the loopback interface, which
/// counts each packet as sent and as received.
pub(super) fn interfaces<'a>(seen: &Seen<'a>, shared: bool) -> (Vec<&'a str>, Ways) {
    let all = seen.keys("network", "sent");
    let is_inside = |key: &&&str| key.contains(':') && !key.ends_with(":lo");
    let inside: Vec<&str> = all.iter().filter(is_inside).copied().collect();
    if !inside.is_empty() {
        return (inside, Ways::Both);
    }
    if shared {
        return (all.into_iter().filter(|key| *key == "lo").collect(), Ways::Sent);
    }
    let is_stacked = |key: &str| {
        key.contains('.') || STACKED_INTERFACES.iter().any(|start| key.starts_with(start))
    };
    let outside = |key: &&str| !key.contains(':') && *key != "lo";
    let outside: Vec<&str> = all.into_iter().filter(outside).collect();
    let below: Vec<&str> = outside.iter().copied().filter(|key| !is_stacked(key)).collect();
    (if below.is_empty() { outside } else { below }, Ways::Both)
}

/// Which ways of an interface are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    /// What is sent is also received.
    Sent,
    /// In and out.
    Both,
}

impl Ways {
    /// Columns of bytes.
    pub(super) fn bytes(self) -> &'static [&'static str] {
        match self {
            Self::Sent => &BOTH_WAYS[1..],
            Self::Both => &BOTH_WAYS,
        }
    }

    /// Columns of packets.
    pub(super) fn packets(self) -> &'static [&'static str] {
        match self {
            Self::Sent => &["sent_packets"],
            Self::Both => &["received_packets", "sent_packets"],
        }
    }
}
