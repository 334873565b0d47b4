//! Disks, memory and links.

use plimsoll_model::limit::{DiskRate, LimitFacts};
use plimsoll_model::units::{three_digits, whole_percent};

pub(super) fn text(facts: &LimitFacts) -> Option<String> {
    Some(match facts {
        LimitFacts::GroupRate { disk, rate, per_s, limit_per_s } => format!(
            "the disk {disk}: {per_s:.0} {} a second, of {limit_per_s:.0} that the server's \
             control group is held to",
            match rate {
                DiskRate::Reads => "reads",
                DiskRate::Writes => "writes",
                DiskRate::Read => "bytes read",
                DiskRate::Written => "bytes written",
            },
        ),
        LimitFacts::BusyDisk { disk, busy_ratio, queued } => format!(
            "the disk {disk}: it was {} busy with {queued:.1} requests in its queue",
            whole_percent(*busy_ratio),
        ),
        LimitFacts::WaitedDisk { disk, stalled_ratio, busy_ratio } => format!(
            "the disk {disk}: threads waited for storage {} of the time, while the processors had \
             room; its own queue was {} of the time busy",
            whole_percent(*stalled_ratio),
            whole_percent(*busy_ratio),
        ),
        LimitFacts::StorageByTurns { disk, stalled_ratio } => format!(
            "{}, for which somebody waited in {}",
            disk.as_ref().map_or("storage".to_owned(), |disk| format!("the disk {disk}")),
            whole_percent(*stalled_ratio),
        ),
        LimitFacts::Memory { used_ratio, limit_bytes, pages_per_op, fills } => {
            let fills: String =
                fills.iter().map(|it| format!(", which fills {}", super::text(it))).collect();
            format!(
                "memory: the server's control group used {} of its {:.0} MiB, and \
                 {pages_per_op:.1} pages an op were read again that had no room{fills}",
                whole_percent(*used_ratio),
                limit_bytes / (1024.0 * 1024.0),
            )
        }
        LimitFacts::Link { interface, way: direction, share_ratio, dropped_per_s } => format!(
            "the network: {interface} {} {} of what its link carries{}",
            direction.as_str(),
            whole_percent(*share_ratio),
            dropped_per_s.map_or_else(String::new, |per_s| format!(
                " and dropped {} packets a second",
                three_digits(per_s)
            )),
        ),
        LimitFacts::Unsent { waiting_bytes, interface, sent_bytes_per_s } => format!(
            "the network: {:.0} KiB that the server had written waited in its sockets, while it \
             had processors left; {interface} sent {:.1} MB/s",
            waiting_bytes / 1024.0,
            sent_bytes_per_s / 1e6,
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "group_rate", "disk": "vda", "rate": "reads", "per_s": 1000.0,
               "limit_per_s": 1000.0}"#,
            "the disk vda: 1000 reads a second, of 1000 that the server's control group is held \
             to",
        ),
        (
            r#"{"kind": "group_rate", "disk": "vda", "rate": "writes", "per_s": 1000.0,
               "limit_per_s": 1000.0}"#,
            "the disk vda: 1000 writes a second, of 1000 that the server's control group is held \
             to",
        ),
        (
            r#"{"kind": "group_rate", "disk": "vda", "rate": "read", "per_s": 1000.0,
               "limit_per_s": 1000.0}"#,
            "the disk vda: 1000 bytes read a second, of 1000 that the server's control group is \
             held to",
        ),
        (
            r#"{"kind": "group_rate", "disk": "vda", "rate": "written", "per_s": 1000.0,
               "limit_per_s": 1000.0}"#,
            "the disk vda: 1000 bytes written a second, of 1000 that the server's control group \
             is held to",
        ),
        (
            r#"{"kind": "busy_disk", "disk": "vda", "busy_ratio": 0.97, "queued": 3.2}"#,
            "the disk vda: it was 97 % busy with 3.2 requests in its queue",
        ),
        (
            r#"{"kind": "waited_disk", "disk": "vda", "stalled_ratio": 0.6, "busy_ratio": 0.5}"#,
            "the disk vda: threads waited for storage 60 % of the time, while the processors had \
             room; its own queue was 50 % of the time busy",
        ),
        (
            r#"{"kind": "memory", "used_ratio": 0.99, "limit_bytes": 1073741824.0,
               "pages_per_op": 2.5, "fills": [{"kind": "disk", "place": "vda", "text": "",
               "facts": {"kind": "busy_disk", "disk": "vda", "busy_ratio": 0.97, "queued": 3.2},
               "evidence": [], "also": []}]}"#,
            "memory: the server's control group used 99 % of its 1024 MiB, and 2.5 pages an op \
             were read again that had no room, which fills the disk vda: it was 97 % busy with 3.2 \
             requests in its queue",
        ),
        (
            r#"{"kind": "storage_by_turns", "disk": "vda", "stalled_ratio": 0.5}"#,
            "the disk vda, for which somebody waited in 50 %",
        ),
        (
            r#"{"kind": "storage_by_turns", "disk": null, "stalled_ratio": 0.5}"#,
            "storage, for which somebody waited in 50 %",
        ),
        (
            r#"{"kind": "link", "interface": "server:veth1", "way": "sent", "share_ratio": 0.97}"#,
            "the network: server:veth1 sent 97 % of what its link carries",
        ),
        (
            r#"{"kind": "link", "interface": "port7", "way": "sent", "share_ratio": 0.97,
               "dropped_per_s": 1250.4}"#,
            "the network: port7 sent 97 % of what its link carries and dropped 1,250 packets a \
             second",
        ),
        (
            r#"{"kind": "unsent", "waiting_bytes": 204800.0, "interface": "eth0",
               "sent_bytes_per_s": 12500000.0}"#,
            "the network: 200 KiB that the server had written waited in its sockets, while it had \
             processors left; eth0 sent 12.5 MB/s",
        ),
    ];

    #[test]
    fn each_limit_has_its_sentence() {
        check(SENTENCES);
    }
}
