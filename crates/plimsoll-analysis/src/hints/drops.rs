//! Datagrams and packets that the server's hosts, or devices on the way to them, dropped.

use plimsoll_model::hint::Hint;
use plimsoll_model::limit::LinkDirection;
use plimsoll_model::monitored::{MonitoredHost, SourceRole};

use super::HintInput;

/// Fewer datagrams, or requests sent again, in a window are chance.
const DATAGRAMS_MIN: f64 = 10.0;
/// Switches announce themselves every few seconds in frames of protocols that the kernel does not
/// know, and it counts these as dropped: fewer packets in a window may be that.
const PACKETS_MIN: f64 = 100.0;
/// A smaller share of what arrives, or is sent, does not show in the figures.
const SHARE_MIN_RATIO: f64 = 0.001;

/// A server's host whose sockets had no room, while clients sent requests again over UDP.
pub(super) fn datagrams_dropped(input: &HintInput<'_>, hosts: &[MonitoredHost]) -> Option<Hint> {
    let retransmissions = input.record.totals.retransmissions;
    if (retransmissions as f64) < DATAGRAMS_MIN {
        return None;
    }
    let of_host = |host: &MonitoredHost| {
        let rate = |name| rate(input, host, name);
        let dropped_per_s = rate("host.udp_receive_buffer_errors")?;
        let passed_per_s = rate("host.udp_received")?;
        let share_ratio = share(input, dropped_per_s, passed_per_s, DATAGRAMS_MIN)?;
        let host = host.clone();
        Some(Hint::DatagramsDropped { host, dropped_per_s, share_ratio, retransmissions })
    };
    let servers = hosts.iter().filter(|host| host.role == SourceRole::Server);
    most(servers.filter_map(of_host))
}

/// For each host on the way, where it dropped the largest share. A device of the network carries
/// other traffic too, so its drops count only if a watched host had to send segments again.
pub(super) fn packets_dropped(input: &HintInput<'_>, hosts: &[MonitoredHost]) -> Vec<Hint> {
    let sent_again = input.rose_anywhere("host.tcp_retransmits").unwrap_or_default()
        + input.record.totals.retransmissions;
    let counts = |host: &&MonitoredHost| match host.role {
        SourceRole::Server | SourceRole::Database => true,
        SourceRole::Network => sent_again as f64 >= DATAGRAMS_MIN,
        SourceRole::Client | SourceRole::Other => false,
    };
    // The kernel counts what the backlog dropped for the interface too.
    let of_host =
        |host| at_backlog(input, host).or_else(|| most(at_interfaces(input, host).into_iter()));
    hosts.iter().filter(counts).filter_map(of_host).collect()
}

fn at_backlog(input: &HintInput<'_>, host: &MonitoredHost) -> Option<Hint> {
    let dropped_per_s = rate(input, host, "host.softnet_dropped")?;
    let passed_per_s = rate(input, host, "host.softnet_processed")?;
    Some(Hint::PacketsDropped {
        host: host.clone(),
        interface: None,
        direction: LinkDirection::Received,
        dropped_per_s,
        share_ratio: share(input, dropped_per_s, passed_per_s, PACKETS_MIN)?,
    })
}

fn at_interfaces(input: &HintInput<'_>, host: &MonitoredHost) -> Vec<Hint> {
    let at = |interface: &str, direction: LinkDirection| {
        let column = |column: &str| rate(input, host, &format!("network.{interface}.{column}"));
        let dropped_per_s = direction.drops().iter().filter_map(|it| column(it)).sum();
        let passed_per_s = column(&format!("{}_packets", direction.as_str()))?;
        Some(Hint::PacketsDropped {
            host: host.clone(),
            interface: Some(interface.to_owned()),
            direction,
            dropped_per_s,
            share_ratio: share(input, dropped_per_s, passed_per_s, PACKETS_MIN)?,
        })
    };
    let own = input.record.resources.iter().filter(|used| used.source == host.source);
    let interfaces = own.filter_map(|used| used.key("network", "sent_packets"));
    let directions = [LinkDirection::Received, LinkDirection::Sent];
    interfaces.flat_map(|name| directions.map(|direction| at(name, direction))).flatten().collect()
}

fn rate(input: &HintInput<'_>, host: &MonitoredHost, name: &str) -> Option<f64> {
    let mut resources = input.record.resources.iter();
    Some(resources.find(|used| used.source == host.source && used.name == name)?.mean)
}

/// Share of what arrived, or was to be sent, if it and the number of drops are large enough.
fn share(input: &HintInput<'_>, dropped_per_s: f64, passed_per_s: f64, least: f64) -> Option<f64> {
    let share_ratio = dropped_per_s / (dropped_per_s + passed_per_s);
    let is_enough = dropped_per_s * input.seconds() >= least && share_ratio >= SHARE_MIN_RATIO;
    is_enough.then_some(share_ratio)
}

fn most(hints: impl Iterator<Item = Hint>) -> Option<Hint> {
    hints.max_by(|a, b| a.strength().total_cmp(&b.strength()))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
    use plimsoll_model::event::ResourceUse;
    use plimsoll_model::monitored::MonitoredSource;

    use super::super::hints_of_point;
    use super::*;
    use crate::testing::PointBuilder;

    /// Source (empty: this host), name and rate.
    type Rates<'a> = &'a [(&'a str, &'a str, f64)];

    /// Hints of a point of 30 s with these rates, and this many requests sent again over UDP: where,
    /// and the percents of its drops. The server is on this host; `snmp://switch` is a device.
    fn hints(rates: Rates<'_>, retransmissions: u64) -> Vec<(String, u64)> {
        let point = PointBuilder::open(1_000.0).build();
        let mut record = point.record;
        record.totals.retransmissions = retransmissions;
        let resource = |(source, name, rate): &(&str, &str, f64)| ResourceUse {
            source: (!source.is_empty()).then(|| (*source).to_owned()),
            ..ResourceUse::of_window(name, "1/s", *rate, *rate)
        };
        record.resources = rates.iter().map(resource).collect();
        let target = TargetDisclosure { same_host: true, ..TargetDisclosure::default() };
        let switch =
            MonitoredSource { source: "snmp://switch".to_owned(), ..MonitoredSource::default() };
        let disclosure =
            Disclosure { targets: vec![target], monitored: vec![switch], ..Disclosure::default() };
        let (times, disclosure) = (&point.times.unwrap(), Some(&disclosure));
        let percent = |ratio: f64| (ratio * 100.0).round() as u64;
        let dropped = |hint| match hint {
            Hint::DatagramsDropped { share_ratio, .. } => ("udp".to_owned(), percent(share_ratio)),
            Hint::PacketsDropped { interface, direction, share_ratio, .. } => {
                let at = interface.map_or("backlog".to_owned(), |at| at + " " + direction.as_str());
                (at, percent(share_ratio))
            }
            other => panic!("{other:?}"),
        };
        let all = hints_of_point(&HintInput { record: &record, times, disclosure });
        all.into_iter().map(dropped).collect()
    }

    #[test]
    fn datagrams_that_found_no_room_need_a_share_and_requests_sent_again() {
        let udp = |dropped, retransmissions| {
            let received = ("", "host.udp_received", 90.0);
            hints(&[("", "host.udp_receive_buffer_errors", dropped), received], retransmissions)
        };
        assert_eq!(udp(10.0, 10), [("udp".to_owned(), 10)]);
        assert_eq!(udp(10.0, 9), [], "no client missed them");
        assert_eq!(udp(0.3, 10), [], "nine in the window");
        assert_eq!(hints(&[("", "host.udp_receive_buffer_errors", 10.0)], 10), [], "of unknown");
        let elsewhere = ["host.udp_received", "host.udp_receive_buffer_errors"];
        let [received, dropped] = elsewhere.map(|name| ("ssh://other", name, 50.0));
        assert_eq!(hints(&[("", "host.cpu_busy", 0.1), received, dropped], 10), [], "elsewhere");
    }

    #[test]
    fn packets_are_dropped_by_the_backlog_or_at_the_worst_interface() {
        let eth0 = |column, rate| ("", column, rate);
        let packets = [
            eth0("network.eth0.sent_packets", 1_000.0),
            eth0("network.eth0.received_packets", 900.0),
            eth0("network.eth0.receive_drops", 40.0),
            eth0("network.eth0.receive_overruns", 60.0),
            eth0("network.eth0.send_drops", 20.0),
        ];
        assert_eq!(hints(&packets, 0), [("eth0 received".to_owned(), 10)]);
        let backlog = [eth0("host.softnet_dropped", 100.0), eth0("host.softnet_processed", 300.0)];
        assert_eq!(hints(&[&packets[..], &backlog].concat(), 0), [("backlog".to_owned(), 25)]);
        let few = [packets[0], packets[1], eth0("network.eth0.receive_drops", 3.0)];
        assert_eq!(hints(&few, 0), [], "ninety in the window");
        let rare = [packets[0], eth0("network.eth0.received_packets", 1e5), packets[2]];
        assert_eq!(hints(&rare, 0), [], "of 100,000 a second");
    }

    #[test]
    fn drops_of_a_switch_count_where_segments_were_sent_again() {
        let port = [
            ("snmp://switch", "network.port7.sent_packets", 900.0),
            ("snmp://switch", "network.port7.send_drops", 100.0),
        ];
        assert_eq!(hints(&port, 0), []);
        let again = [port[0], port[1], ("", "host.tcp_retransmits", 1.0)];
        assert_eq!(hints(&again, 0), [("port7 sent".to_owned(), 10)]);
    }
}
