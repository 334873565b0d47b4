//! `/proc/net/dev`, `/proc/net/snmp` and `/proc/net/netstat`.

use super::nth_number;

/// Counts since boot of one network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Kernel name.
    pub name: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Received with an error.
    pub receive_errors: u64,
    /// Received and dropped.
    pub receive_drops: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Not sent for an error.
    pub send_errors: u64,
    /// Not sent, dropped.
    pub send_drops: u64,
}

/// Reads `/proc/net/dev`; lines that are not of an interface are passed over.
pub fn parse_net_dev(text: &str) -> Vec<NetworkCounters> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<NetworkCounters> {
    // A name may hold a colon (an alias); the counters never do. They may touch the last colon.
    let (name, counters) = line.rsplit_once(':')?;
    let words: Vec<&str> = counters.split_whitespace().collect();
    let number = |index| nth_number(&words, index);
    Some(NetworkCounters {
        name: name.trim().to_owned(),
        received_bytes: number(0)?,
        received_packets: number(1)?,
        receive_errors: number(2)?,
        receive_drops: number(3)?,
        sent_bytes: number(8)?,
        sent_packets: number(9)?,
        send_errors: number(10)?,
        send_drops: number(11)?,
    })
}

/// A counter of `/proc/net/snmp` or `netstat`: two lines per group, names above values. `group` is
/// `Tcp` or `TcpExt`.
pub fn parse_paired(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let position = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(position)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_dev_gives_each_interface() {
        let text = "Inter-|   Receive |  Transmit\n face |bytes    packets errs|bytes\n\
                    lo:    3193      29    0    0    0     0          0         0     3193      29 \
                    0 0 0 0 0 0\n eth0:421970625 18092 1 2 0 0 0 0 1198044 11448 3 4 0 0 0 0\n";
        let networks = parse_net_dev(text);
        assert_eq!(networks.len(), 2);
        let eth0 = &networks[1];
        assert_eq!((eth0.name.as_str(), eth0.received_bytes), ("eth0", 421_970_625));
        assert_eq!((eth0.receive_errors, eth0.receive_drops), (1, 2));
        assert_eq!((eth0.sent_packets, eth0.send_errors, eth0.send_drops), (11_448, 3, 4));
    }

    #[test]
    fn paired_counters_are_found_by_name_and_group() {
        let text = "Tcp: RtoMin RetransSegs InErrs\nTcp: 200 17 0\n\
                    TcpExt: ListenOverflows ListenDrops\nTcpExt: 3 4\n";
        assert_eq!(parse_paired(text, "Tcp", "RetransSegs"), Some(17));
        assert_eq!(parse_paired(text, "TcpExt", "ListenDrops"), Some(4));
        assert_eq!(parse_paired(text, "Tcp", "ListenDrops"), None);
        assert_eq!(parse_paired("Tcp: RetransSegs", "Tcp", "RetransSegs"), None);
    }
}
