//! Links, and what waits to be sent.

use plimsoll_model::limit::{Limit, LimitFacts, Way};

use super::cpu::cpu_is_idle;
use super::{FULL_MIN_RATIO, limit};
use crate::limit::seen::Scene;

/// Bytes that wait in the server's sockets for the network.
const SEND_QUEUE_MIN_BYTES: f64 = 64.0 * 1024.0;

/// A link that carries all it can.
pub(super) fn link(scene: &Scene<'_>) -> Option<Limit> {
    for way in [Way::Sent, Way::Received] {
        let column = format!("{}_share", way.as_str());
        for interface in scene.now.keys("network", &column) {
            let name = format!("network.{interface}.{column}");
            let share_ratio = scene.now.get(&name)?;
            if share_ratio >= FULL_MIN_RATIO {
                let evidence = [
                    scene.evidence(&name, Some(1.0)),
                    scene.evidence("socket.server.send_queue", None),
                    scene.evidence("host.tcp_retransmits", None),
                ];
                let interface = interface.to_owned();
                return Some(limit(LimitFacts::Link { interface, way, share_ratio }, evidence));
            }
        }
    }
    None
}

/// What the server has written waits in its sockets, while it has processors left.
pub(super) fn unsent(scene: &Scene<'_>) -> Option<Limit> {
    let waiting_bytes = scene.now.sockets("send_queue")?;
    let rose = scene.rose(|seen| seen.sockets("send_queue"), SEND_QUEUE_MIN_BYTES);
    if !(rose && cpu_is_idle(&scene.now)) {
        return None;
    }
    let rate = |key: &&str| scene.now.get(&format!("network.{key}.sent")).unwrap_or_default();
    let keys = scene.now.keys("network", "sent");
    // The server's own namespace, where it has one, has its interfaces.
    let inside = keys.iter().copied().filter(|key| key.contains(':') && !key.ends_with(":lo"));
    let outside = keys.iter().copied().filter(|key| !key.contains(':'));
    let busiest = |all: Vec<&str>| {
        all.into_iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).map(str::to_owned)
    };
    let interface = busiest(inside.collect()).or_else(|| busiest(outside.collect()))?;
    let sent_bytes_per_s = rate(&interface.as_str());
    let evidence = [
        scene.evidence("socket.server.send_queue", None),
        scene.evidence(&format!("network.{interface}.sent"), None),
        scene.evidence("host.tcp_retransmits", None),
    ];
    Some(limit(LimitFacts::Unsent { waiting_bytes, interface, sent_bytes_per_s }, evidence))
}
