//! Signs in the figures that point at a known cause. `docs/hints.md` explains each to users.

use plimsoll_model::hint::{Hint, RunHint};
use plimsoll_model::limit::LinkDirection;
use plimsoll_model::units::{Nanos, grouped, three_digits};

use super::limit::host_text;

/// What was seen and what it points at, with the load points and the page that explains it.
pub fn text(of_run: &RunHint) -> String {
    let RunHint { points, hint } = of_run;
    let points: Vec<String> = points.iter().map(u32::to_string).collect();
    let word = if points.len() == 1 { "point" } else { "points" };
    format!("{} ({word} {}; {})", sign(hint), points.join(", "), hint.page())
}

fn sign(hint: &Hint) -> String {
    match *hint {
        Hint::DatagramsDropped { ref host, dropped_per_s, share_ratio, retransmissions } => {
            format!(
                "{} were dropped on {}, as the receive buffer of a socket \
                 was full, and clients sent {} requests again: raise net.core.rmem_default and \
                 net.core.rmem_max there",
                a_second("datagrams", dropped_per_s, share_ratio),
                host_text(host),
                count(retransmissions),
            )
        }
        Hint::PacketsDropped { ref host, ref interface, direction, dropped_per_s, share_ratio } => {
            let packets = a_second("packets", dropped_per_s, share_ratio);
            packets_dropped(&packets, &host_text(host), interface.as_deref(), direction)
        }
        Hint::DelayedAck { ops, share_ratio, between_ns: [low, high], delayed_acks } => format!(
            "{} waited {} to {} for the rest of a reply, and this host delayed {} \
             acknowledgements: the server seems to write a reply in parts without TCP_NODELAY",
            share(ops, share_ratio),
            Nanos(low),
            Nanos(high),
            count(delayed_acks),
        ),
        Hint::Retransmitted {
            ops,
            share_ratio,
            between_ns: [low, high],
            timeouts,
            listen_overflows,
        } => format!(
            "{} took {} to {}, as long as TCP's shortest retransmission timeout, and TCP had {} \
             timeouts or probes for lost tails: packets were lost{}",
            share(ops, share_ratio),
            Nanos(low),
            Nanos(high),
            count(timeouts),
            accept_queue(listen_overflows),
        ),
        Hint::SynRetransmitted { ops, share_ratio, syn_retransmits, listen_overflows } => format!(
            "{} on new connections took 1 s or a few seconds longer, and TCP tried {} connects \
             again: the server did not take them at first{}",
            share(ops, share_ratio),
            count(syn_retransmits),
            accept_queue(listen_overflows),
        ),
        Hint::SlowNewConnections { connections, new_p50_ns, kept_p50_ns } => format!(
            "the first op on a new connection takes {} (median of {}), later ones {}",
            Nanos(new_p50_ns),
            count(connections),
            Nanos(kept_p50_ns),
        ),
        Hint::SlowTarget { ref target, p50_ns, others, others_p50_ns } => {
            let others = match others {
                1 => "the other target".to_owned(),
                n => format!("each of the {n} others"),
            };
            let (time, most) = (Nanos(p50_ns), Nanos(others_p50_ns));
            format!("{target} takes {time} (median), {others} at most {most}")
        }
        Hint::EvenPauses { pauses, period_ns, length_ns } => format!(
            "no replies for {} every {} ({} times), with ops in flight: garbage collection, a \
             timer or a CPU quota in the server",
            Nanos(length_ns),
            Nanos(period_ns),
            count(pauses),
        ),
    }
}

/// `30.5 packets a second (3.10 %)`.
fn a_second(things: &str, per_s: f64, share_ratio: f64) -> String {
    format!("{} {things} a second ({})", three_digits(per_s), ratio(share_ratio))
}

fn packets_dropped(
    packets: &str,
    host: &str,
    interface: Option<&str>,
    direction: LinkDirection,
) -> String {
    match (interface, direction) {
        (None, _) => {
            format!("{packets} were dropped on {host}, as the backlog of a processor was full")
        }
        (Some(interface), LinkDirection::Received) => {
            format!("{packets} were dropped on arrival at {interface} of {host}")
        }
        (Some(interface), LinkDirection::Sent) => {
            format!("{packets} that {interface} of {host} had to send were dropped")
        }
    }
}

fn count(n: u64) -> String {
    grouped(n as f64)
}

/// `310 ops (3.10 %)`.
fn share(ops: u64, share_ratio: f64) -> String {
    format!("{} ops ({})", count(ops), ratio(share_ratio))
}

fn ratio(ratio: f64) -> String {
    let digits = if ratio < 0.1 { 2 } else { 0 };
    format!("{:.digits$} %", ratio * 100.0)
}

/// A watched host's report on its accept queues, as a clause.
fn accept_queue(overflows: Option<u64>) -> String {
    match overflows {
        Some(times) if times > 0 => {
            format!("; the accept queue of a listening socket was full {} times", count(times))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::from_facts;
    use super::*;

    const SENTENCES: [(&str, &str); 10] = [
        (
            r#"{"kind": "delayed_ack", "ops": 310, "share_ratio": 0.031, "between_ns": [39000000,
               46000000], "delayed_acks": 312}"#,
            "310 ops (3.10 %) waited 39.0 ms to 46.0 ms for the rest of a reply, and this host \
             delayed 312 acknowledgements: the server seems to write a reply in parts without \
             TCP_NODELAY (points 1, 3; docs/hints.md#delayed-acknowledgements)",
        ),
        (
            r#"{"kind": "retransmitted", "ops": 30, "share_ratio": 0.031, "between_ns": [39000000,
               46000000], "timeouts": 31, "listen_overflows": 31}"#,
            "30 ops (3.10 %) took 39.0 ms to 46.0 ms, as long as TCP's shortest retransmission \
             timeout, and TCP had 31 timeouts or probes for lost tails: packets were lost; the \
             accept queue of a listening socket was full 31 times (points 1, 3; \
             docs/hints.md#retransmissions)",
        ),
        (
            r#"{"kind": "syn_retransmitted", "ops": 30, "share_ratio": 0.31,
               "syn_retransmits": 33, "listen_overflows": null}"#,
            "30 ops (31 %) on new connections took 1 s or a few seconds longer, and TCP tried 33 \
             connects again: the server did not take them at first (points 1, 3; \
             docs/hints.md#connects-tried-again)",
        ),
        (
            r#"{"kind": "slow_new_connections", "connections": 200, "new_p50_ns": 52000000,
               "kept_p50_ns": 180000}"#,
            "the first op on a new connection takes 52.0 ms (median of 200), later ones 180 µs \
             (points 1, 3; docs/hints.md#slow-new-connections)",
        ),
        (
            r#"{"kind": "slow_target", "target": "http://a/", "p50_ns": 9000000, "others": 2,
               "others_p50_ns": 1000000}"#,
            "http://a/ takes 9.00 ms (median), each of the 2 others at most 1.00 ms (points 1, 3; \
             docs/hints.md#one-slow-target)",
        ),
        (
            r#"{"kind": "even_pauses", "pauses": 9, "period_ns": 500000000,
               "length_ns": 60000000}"#,
            "no replies for 60.0 ms every 500 ms (9 times), with ops in flight: garbage \
             collection, a timer or a CPU quota in the server (points 1, 3; \
             docs/hints.md#pauses-at-even-distances)",
        ),
        (
            r#"{"kind": "datagrams_dropped", "host": {"source": "ssh://nas", "role": "server",
               "basis": "address"}, "dropped_per_s": 30.5, "share_ratio": 0.031,
               "retransmissions": 1900}"#,
            "30.5 datagrams a second (3.10 %) were dropped on the server's host ssh://nas, as the \
             receive buffer of a socket was full, and clients sent 1,900 requests again: raise \
             net.core.rmem_default and net.core.rmem_max there (points 1, 3; \
             docs/hints.md#dropped-datagrams)",
        ),
        (
            r#"{"kind": "packets_dropped", "host": {"source": null, "role": "server",
               "basis": "address"}, "direction": "received", "dropped_per_s": 2000.0,
               "share_ratio": 0.2}"#,
            "2,000 packets a second (20 %) were dropped on the server's host that runs this \
             program, as the backlog of a processor was full (points 1, 3; \
             docs/hints.md#dropped-packets)",
        ),
        (
            r#"{"kind": "packets_dropped", "host": {"source": "ssh://nas", "role": "server",
               "basis": "address"}, "interface": "eth0", "direction": "received",
               "dropped_per_s": 30.5, "share_ratio": 0.2}"#,
            "30.5 packets a second (20 %) were dropped on arrival at eth0 of the server's host \
             ssh://nas (points 1, 3; docs/hints.md#dropped-packets)",
        ),
        (
            r#"{"kind": "packets_dropped", "host": {"source": "snmp://switch", "role": "network",
               "basis": "no_processors"}, "interface": "port7", "direction": "sent",
               "dropped_per_s": 30.5, "share_ratio": 0.2}"#,
            "30.5 packets a second (20 %) that port7 of the network device snmp://switch had to \
             send were dropped (points 1, 3; docs/hints.md#dropped-packets)",
        ),
    ];

    #[test]
    fn each_hint_has_its_sentence() {
        for (facts, sentence) in SENTENCES {
            let hint = from_facts(facts);
            assert_eq!(text(&RunHint { points: vec![1, 3], hint }), sentence);
        }
    }
}
