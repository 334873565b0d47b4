//! Links, and what waits to be sent.

use plimsoll_model::limit::{Limit, LimitKind};

use super::cpu::cpu_is_idle;
use super::{FULL_MIN_RATIO, limit, percent};
use crate::limit::seen::Scene;

/// Bytes that wait in the server's sockets for the network.
const SEND_QUEUE_MIN_BYTES: f64 = 64.0 * 1024.0;

/// A link that carries all it can.
pub(super) fn link(scene: &Scene<'_>) -> Option<Limit> {
    for way in ["sent", "received"] {
        for key in scene.now.keys("network", &format!("{way}_share")) {
            let name = format!("network.{key}.{way}_share");
            let share = scene.now.get(&name)?;
            if share >= FULL_MIN_RATIO {
                let text =
                    format!("the network: {key} {way} {} of what its link carries", percent(share));
                let evidence = [
                    scene.evidence(&name, Some(1.0)),
                    scene.evidence("socket.server.send_queue", None),
                    scene.evidence("host.tcp_retransmits", None),
                ];
                let place = key.rsplit(':').next().unwrap_or(key).to_owned();
                return Some(limit(LimitKind::Network, Some(place), text, evidence));
            }
        }
    }
    None
}

/// What the server has written waits in its sockets, while it has processors left.
pub(super) fn unsent(scene: &Scene<'_>) -> Option<Limit> {
    let waiting = scene.now.sockets("send_queue")?;
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
    let place = busiest(inside.collect()).or_else(|| busiest(outside.collect()))?;
    let text = format!(
        "the network: {:.0} KiB that the server had written waited in its sockets, while it had \
         processors left; {place} sent {:.1} MB/s",
        waiting / 1024.0,
        rate(&place.as_str()) / 1e6,
    );
    let evidence = [
        scene.evidence("socket.server.send_queue", None),
        scene.evidence(&format!("network.{place}.sent"), None),
        scene.evidence("host.tcp_retransmits", None),
    ];
    let place = place.rsplit(':').next().unwrap_or(&place).to_owned();
    Some(limit(LimitKind::Network, Some(place), text, evidence))
}
