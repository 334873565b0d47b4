//! Interfaces, TCP and UDP: `/proc/net/dev`, `snmp`, `snmp6`, `netstat` and `softnet_stat`;
//! `/proc/net/tcp` and `tcp6`, what waits in the queues of a server's sockets.

use super::DeviceCounters;

/// Of a network interface: bytes, packets, errors and drops received, then the same sent, then
/// overruns received.
pub type NetworkCounters = DeviceCounters<9>;

/// Reads `/proc/net/dev`; lines that are not of an interface are passed over.
pub fn parse_net_dev(text: &str) -> Vec<NetworkCounters> {
    text.lines().filter_map(parse_interface).collect()
}

fn parse_interface(line: &str) -> Option<NetworkCounters> {
    // A name may contain a colon (an alias); the counters never do. They may touch the last colon.
    let (name, counters) = line.rsplit_once(':')?;
    let tokens: Vec<&str> = counters.split_whitespace().collect();
    DeviceCounters::from_tokens(name, &tokens, [0, 1, 2, 3, 8, 9, 10, 11, 4])
}

/// A counter of `/proc/net/snmp` or `netstat`: two lines per group, names above values. `group` is
/// `Tcp`, `Udp` or `TcpExt`.
pub fn parse_paired(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let position = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(position)?.parse().ok()
}

/// A counter of UDP, of both versions of IP: the pairs of `/proc/net/snmp`, and `/proc/net/snmp6`,
/// which is empty without version 6.
pub fn parse_udp(snmp: &str, snmp6: &str, name: &str) -> Option<u64> {
    let count = |line: &str| line.strip_prefix("Udp6")?.strip_prefix(name)?.trim().parse().ok();
    let v6: u64 = snmp6.lines().find_map(count).unwrap_or_default();
    Some(parse_paired(snmp, "Udp", name)?.saturating_add(v6))
}

/// Packets processed, packets dropped as a backlog was full, and polls that ended before all was
/// processed, over the processors: the first columns of `/proc/net/softnet_stat` (Linux,
/// net/core/net-procfs.c).
pub fn parse_softnet(text: &str) -> Option<[u64; 3]> {
    let mut sums = [0u64; 3];
    for line in text.lines() {
        let mut numbers = line.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
        for sum in &mut sums {
            *sum = sum.saturating_add(numbers.next()??);
        }
    }
    (!text.is_empty()).then_some(sums)
}

/// States of a TCP socket in which something may wait (the kernel's numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// Open on both sides.
    Established = 1,
    /// The peer has closed, we have not.
    CloseWait = 8,
    /// Waits for connections.
    Listens = 10,
}

impl SocketState {
    /// All of them.
    pub const QUEUED: [Self; 3] = [Self::Established, Self::CloseWait, Self::Listens];

    /// As the kernel numbers it.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// `None` for other states.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::QUEUED.into_iter().find(|state| state.number() == number)
    }
}

/// Queues of the sockets of some ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketQueues {
    /// Open connections.
    pub connections: u64,
    /// Bytes that the server has written and the peers have not acknowledged.
    pub send_bytes: u64,
    /// Bytes that have arrived and the server has not read.
    pub receive_bytes: u64,
    /// Connections that wait to be accepted.
    pub accept: u64,
}

impl SocketQueues {
    /// One socket more.
    pub fn add(&mut self, state: SocketState, send_bytes: u64, receive: u64) {
        match state {
            SocketState::Listens => self.accept = self.accept.saturating_add(receive),
            SocketState::Established | SocketState::CloseWait => {
                self.connections += 1;
                self.send_bytes = self.send_bytes.saturating_add(send_bytes);
                self.receive_bytes = self.receive_bytes.saturating_add(receive);
            }
        }
    }
}

/// Adds up the sockets of these local ports (proc_net(5)).
pub fn parse_socket_queues(text: &str, ports: &[u16], queues: &mut SocketQueues) {
    for line in text.lines().skip(1) {
        // Most lines are of other sockets: no more of them is read than needed.
        if let Some((state, send, receive)) = parse_socket(line, ports) {
            queues.add(state, send, receive);
        }
    }
}

fn parse_socket(line: &str, ports: &[u16]) -> Option<(SocketState, u64, u64)> {
    let mut tokens = line.split_ascii_whitespace();
    let (_, port) = tokens.nth(1)?.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok().filter(|port| ports.contains(port));
    port?;
    let state = SocketState::of_number(u8::from_str_radix(tokens.nth(1)?, 16).ok()?)?;
    let (send, receive) = tokens.next()?.split_once(':')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((state, number(send)?, number(receive)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_dev_gives_each_interface() {
        let text = "Inter-|   Receive |  Transmit\n face |bytes    packets errs|bytes\n\
                    lo:    3193      29    0    0    0     0          0         0     3193      29 \
                    0 0 0 0 0 0\n eth0:421970625 18092 1 2 5 0 0 0 1198044 11448 3 4 0 0 0 0\n";
        let networks = parse_net_dev(text);
        assert_eq!(networks.len(), 2);
        let eth0 = &networks[1];
        let expected = [421_970_625, 18_092, 1, 2, 1_198_044, 11_448, 3, 4, 5].map(Some);
        assert_eq!((eth0.name.as_str(), eth0.counters), ("eth0", expected));
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

    #[test]
    fn datagrams_of_both_versions_of_ip_are_added() {
        let snmp = "UdpLite: InErrors\nUdpLite: 9\nUdp: InDatagrams InErrors\nUdp: 100 7\n";
        let snmp6 = "Ip6InReceives 5\nUdp6InDatagrams  \t20\nUdp6InErrorsOdd 8\nUdpLite6InErrors 3";
        assert_eq!(parse_udp(snmp, snmp6, "InDatagrams"), Some(120));
        assert_eq!(parse_udp(snmp, snmp6, "InErrors"), Some(7));
        assert_eq!(parse_udp("", snmp6, "InDatagrams"), None);
    }

    #[test]
    fn packets_of_all_processors_are_added() {
        let text = "0000000a 00000001 00000002 00000000\n000000f0 00000010 00000000 00000000\n";
        assert_eq!(parse_softnet(text), Some([250, 17, 2]));
        for odd in ["", "0000000a 00000001\n", "0000000a odd 00000002\n"] {
            assert_eq!(parse_softnet(odd), None, "{odd}");
        }
    }

    #[test]
    fn queues_are_of_the_ports_asked_for() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000 0 0 1 1 0\n\
            1: 0100007F:1F90 0100007F:C350 01 00000400:00000010 00:00000000 00000000 0 0 2 1 0\n\
            2: 0100007F:C350 0100007F:1F90 01 00000001:00000001 00:00000000 00000000 0 0 3 1 0\n\
            3: 0100007F:1F90 0100007F:C351 06 00000000:00000000 03:00000000 00000000 0 0 0 3 0\n\
            4: garbage\n";
        let mut queues = SocketQueues::default();
        parse_socket_queues(text, &[8_080], &mut queues);
        let expected =
            SocketQueues { connections: 1, send_bytes: 1_024, receive_bytes: 16, accept: 3 };
        assert_eq!(queues, expected);
    }
}
