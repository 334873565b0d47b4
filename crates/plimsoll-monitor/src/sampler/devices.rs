//! Whole disks, and network interfaces: of this host, and of the network namespaces of watched
//! servers, with the rates that they are shaped to (tc-tbf(8)).

use std::process::{Command, Stdio};

use procfs_core::DiskStat;

use super::table::{Column, Rows, Table, Unit};
use super::{Elapsed, growth, share};
use crate::parse::{NetworkCounters, parse_net_dev};
use crate::process::WatchedProcess;
use crate::root::{ProcFile, Root};

/// `/proc/diskstats` counts these, whatever the disk's own sectors.
const SECTOR_BYTES: f64 = 512.0;
const MILLIS_PER_SECOND: f64 = 1_000.0;

pub(super) static DISKS: Table = Table {
    name: "disk",
    keyed: true,
    idle_left_out: true,
    ends_with_load: false,
    columns: &[
        Column::drawn("read", Unit::BytesPerSecond),
        Column::drawn("written", Unit::BytesPerSecond),
        Column::drawn("reads", Unit::PerSecond),
        Column::drawn("writes", Unit::PerSecond),
        Column::summed("per_read", Unit::Seconds),
        Column::summed("per_write", Unit::Seconds),
        Column::written("in_flight", Unit::Count),
        Column::summed("queue_mean", Unit::Count),
        Column::drawn("busy", Unit::Ratio),
    ],
};

#[derive(Debug)]
pub(super) struct DiskSource {
    file: ProcFile,
    /// Names of whole disks with a size; without `/sys`, absent, and every line counts.
    whole: Option<Vec<String>>,
    before: Vec<DiskStat>,
    buffer: Vec<u8>,
}

impl DiskSource {
    pub(super) fn open(root: &Root) -> Self {
        let names = root.names("sys/block");
        let has_size = |name: &String| root.number(format!("sys/block/{name}/size")) != Some(0);
        let whole = (!names.is_empty()).then(|| names.into_iter().filter(has_size).collect());
        let file = ProcFile::open(root, "proc/diskstats");
        Self { file, whole, before: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample(&mut self, elapsed: Elapsed, rows: &mut Rows) {
        rows.clear();
        let Some(text) = self.file.read(&mut self.buffer) else { return };
        let lines = text.lines().filter_map(|line| DiskStat::from_line(line).ok());
        let mut now: Vec<DiskStat> = lines.collect();
        if let Some(whole) = &self.whole {
            now.retain(|disk| whole.contains(&disk.name));
        }
        for disk in &now {
            let was = self.before.iter().find(|was| was.name == disk.name);
            rows.push(&disk.name, &disk_values(was, disk, elapsed));
        }
        self.before = now;
    }
}

fn disk_values(was: Option<&DiskStat>, is: &DiskStat, elapsed: Elapsed) -> [Option<f64>; 9] {
    let rate = |of: fn(&DiskStat) -> u64| elapsed.rate(was.map(of), Some(of(is)));
    let grown = |of: fn(&DiskStat) -> u64| growth(was.map(of), Some(of(is)));
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / MILLIS_PER_SECOND);
    [
        rate(|d| d.sectors_read).map(|sectors| sectors * SECTOR_BYTES),
        rate(|d| d.sectors_written).map(|sectors| sectors * SECTOR_BYTES),
        rate(|d| d.reads),
        rate(|d| d.writes),
        share(seconds(grown(|d| d.time_reading)), grown(|d| d.reads)),
        share(seconds(grown(|d| d.time_writing)), grown(|d| d.writes)),
        Some(is.in_progress as f64),
        seconds(rate(|d| d.weighted_time_in_progress)),
        // The kernel rounds up; a full disk reads as 1.001 now and then.
        seconds(rate(|d| d.time_in_progress)).map(|busy| busy.min(1.0)),
    ]
}

const BITS_PER_BYTE: f64 = 8.0;
const BITS_PER_MEGABIT: f64 = 1e6;

pub(super) static NETWORKS: Table = Table {
    name: "network",
    keyed: true,
    idle_left_out: true,
    ends_with_load: false,
    columns: &[
        Column::drawn("received", Unit::BytesPerSecond),
        Column::drawn("sent", Unit::BytesPerSecond),
        // Of what the link carries one way, or is shaped to; absent where that is not known.
        Column::summed("received_share", Unit::Ratio),
        Column::summed("sent_share", Unit::Ratio),
        Column::drawn("received_packets", Unit::PerSecond),
        Column::drawn("sent_packets", Unit::PerSecond),
        Column::summed("received_per_packet", Unit::Bytes),
        Column::summed("sent_per_packet", Unit::Bytes),
        Column::summed("receive_drops", Unit::PerSecond),
        Column::summed("send_drops", Unit::PerSecond),
        Column::written("receive_errors", Unit::PerSecond),
        Column::written("send_errors", Unit::PerSecond),
    ],
};

#[derive(Debug)]
pub(super) struct NetworkSource {
    root: Root,
    /// This host's first.
    namespaces: Vec<Namespace>,
    /// Watched processes that were looked at.
    looked_at: Vec<String>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Namespace {
    /// Before the name of an interface; empty for this host's.
    prefix: String,
    /// A process in it; absent for this host's.
    pid: Option<u32>,
    file: ProcFile,
    before: Vec<NetworkCounters>,
    /// What links carry, as far as they were asked for.
    links: Vec<(String, Link)>,
}

impl Namespace {
    fn new(prefix: String, pid: Option<u32>, file: ProcFile) -> Self {
        Self { prefix, pid, file, before: Vec::new(), links: Vec::new() }
    }

    /// `/sys` shows the interfaces of this host's namespace only.
    fn link(&mut self, root: &Root, name: &str) -> Link {
        if let Some((_, link)) = self.links.iter().find(|(known, _)| known == name) {
            return *link;
        }
        let own = self.pid.is_none();
        let megabits = own.then(|| root.number(format!("sys/class/net/{name}/speed"))).flatten();
        let speed = megabits.map(|megabits| megabits as f64 * BITS_PER_MEGABIT / BITS_PER_BYTE);
        let shaped = shaped_bytes_per_s(root, self.pid, name);
        let send = [speed, shaped].into_iter().flatten().reduce(f64::min);
        let link = Link { receive: speed, send };
        self.links.push((name.to_owned(), link));
        link
    }
}

/// Bytes per second that a link carries each way; absent where that is not known.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    receive: Option<f64>,
    /// What it is shaped to, where that is less.
    send: Option<f64>,
}

impl NetworkSource {
    pub(super) fn open(root: &Root) -> Self {
        let host = Namespace::new(String::new(), None, ProcFile::open(root, "proc/net/dev"));
        let root = root.clone();
        Self { root, namespaces: vec![host], looked_at: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample<'w>(
        &mut self,
        elapsed: Elapsed,
        watched: impl Iterator<Item = &'w WatchedProcess>,
        rows: &mut Rows,
    ) {
        rows.clear();
        for process in watched {
            self.look_at(process);
        }
        for namespace in &mut self.namespaces {
            let Some(text) = namespace.file.read(&mut self.buffer) else { continue };
            let now = parse_net_dev(&text);
            for network in &now {
                let link = namespace.link(&self.root, &network.name);
                let was = namespace.before.iter().find(|was| was.name == network.name);
                let key = format!("{}{}", namespace.prefix, network.name);
                rows.push(&key, &network_values(was, network, link, elapsed));
            }
            namespace.before = now;
        }
    }

    /// A server may have a network namespace of its own (a container).
    fn look_at(&mut self, process: &WatchedProcess) {
        let Some(&pid) = process.pids.first() else { return };
        if self.looked_at.contains(&process.name) {
            return;
        }
        self.looked_at.push(process.name.clone());
        let namespace = |of: &str| self.root.link_name(format!("proc/{of}/ns/net"));
        let (own, theirs) = (namespace("self"), namespace(&pid.to_string()));
        if own.is_some() && theirs.is_some() && own != theirs {
            let file = ProcFile::open(&self.root, format!("proc/{pid}/net/dev"));
            let prefix = format!("{}:", process.name);
            self.namespaces.push(Namespace::new(prefix, Some(pid), file));
        }
    }
}

fn network_values(
    was: Option<&NetworkCounters>,
    is: &NetworkCounters,
    link: Link,
    elapsed: Elapsed,
) -> [Option<f64>; 12] {
    let rate = |of: fn(&NetworkCounters) -> u64| elapsed.rate(was.map(of), Some(of(is)));
    let (received, sent) = (rate(|n| n.received_bytes), rate(|n| n.sent_bytes));
    let (packets_in, packets_out) = (rate(|n| n.received_packets), rate(|n| n.sent_packets));
    [
        received,
        sent,
        share(received, link.receive),
        share(sent, link.send),
        packets_in,
        packets_out,
        share(received, packets_in),
        share(sent, packets_out),
        rate(|n| n.receive_drops),
        rate(|n| n.send_drops),
        rate(|n| n.receive_errors),
        rate(|n| n.send_errors),
    ]
}

/// What `tc` said on another host, of the token buckets of all its interfaces.
const SHAPING_FILE: &str = "plimsoll/shaping";

/// Bytes per second that an interface may send. The kernel tells them over netlink alone, so the
/// system's `tc` is asked, once for an interface; `pid` is a process in its network namespace where
/// that is not ours. Nothing where it is not shaped, or that cannot be known.
fn shaped_bytes_per_s(root: &Root, pid: Option<u32>, interface: &str) -> Option<f64> {
    if let Some(frame) = root.frame() {
        let text = frame.text(SHAPING_FILE).filter(|_| pid.is_none())?;
        let dev = format!(" dev {interface} ");
        return text.lines().find(|line| line.contains(&dev)).and_then(parse_tbf);
    }
    if !root.is_this_host() {
        return None;
    }
    let mut command = match pid {
        Some(pid) => {
            let mut command = Command::new("nsenter");
            command.args(["--net", "--target", &pid.to_string(), "tc"]);
            command
        }
        None => Command::new("tc"),
    };
    command.args(["qdisc", "show", "dev", interface]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    parse_tbf(&String::from_utf8_lossy(&output.stdout))
}

/// The rate of a token bucket at the root, as `tc` writes it: `rate 20Mbit`.
fn parse_tbf(text: &str) -> Option<f64> {
    let line =
        text.lines().find(|line| line.starts_with("qdisc tbf") && line.contains(" root "))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "rate");
    let rate = words.nth(1)?.strip_suffix("bit")?;
    let (number, factor) = match rate.strip_suffix(['K', 'M', 'G']) {
        Some(number) if rate.ends_with('K') => (number, 1e3),
        Some(number) if rate.ends_with('M') => (number, 1e6),
        Some(number) => (number, 1e9),
        None => (rate, 1.0),
    };
    let bits: f64 = number.parse().ok()?;
    Some(bits * factor / BITS_PER_BYTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Frame;

    #[test]
    fn the_rate_of_a_token_bucket_is_in_bytes() {
        let line =
            |rate| format!("qdisc tbf 8001: root refcnt 2 rate {rate} burst 4Kb lat 400ms\n");
        assert_eq!(parse_tbf(&line("20Mbit")), Some(2_500_000.0));
        assert_eq!(parse_tbf(&line("800bit")), Some(100.0));
        assert_eq!(parse_tbf(&line("1Gbit")), Some(125_000_000.0));
        assert_eq!(parse_tbf("qdisc noqueue 0: root refcnt 2\n"), None);
        assert_eq!(parse_tbf(&line("fast")), None);
    }

    #[test]
    fn another_hosts_interfaces_are_told_apart() {
        let text = "qdisc tbf 8001: dev eth0 root refcnt 2 rate 20Mbit burst 4Kb lat 400ms\n\
                    qdisc tbf 8002: dev eth01 root refcnt 2 rate 8Mbit burst 4Kb lat 400ms\n";
        let frame = Frame::default();
        frame.replace([(SHAPING_FILE.to_owned(), text.to_owned())].into());
        let root = Root::of_frame(frame);
        let rate = |interface| shaped_bytes_per_s(&root, None, interface);
        assert_eq!(rate("eth0"), Some(2_500_000.0));
        assert_eq!(rate("eth01"), Some(1_000_000.0));
        assert_eq!(rate("eth1"), None);
    }
}
