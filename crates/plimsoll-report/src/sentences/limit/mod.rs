//! What limited a load point. A file for each kind of thing; its examples show the sentences.

mod devices;
mod load;
mod models;
mod processors;
mod unknown;

use plimsoll_model::limit::Limit;
use plimsoll_model::monitored::{MonitoredHost, SourceRole};

pub use unknown::unknown;

/// Holds for a limit that is named although its ceiling is unknown.
const HAD_ROOM: &str = "while its processors and disks had room";

/// The limit, without others that were reached at the same load.
pub fn text(limit: &Limit) -> String {
    let behind = limit.behind.as_ref();
    format!(
        "{}{}{}",
        facts_text(limit),
        behind.map_or_else(String::new, |behind| format!("; behind it {}", text(behind))),
        if limit.only_load { ", at this one load" } else { "" },
    )
}

/// A sentence about it and the limits reached at the same load.
pub fn text_with_others(limit: &Limit) -> String {
    let all = std::iter::once(limit).chain(&limit.also).map(text);
    let texts: Vec<String> = all.filter(|text| !text.is_empty()).collect();
    texts.join("; and ")
}

fn facts_text(limit: &Limit) -> String {
    let facts = &limit.facts;
    let text = processors::text(facts, limit)
        .or_else(|| devices::text(facts))
        .or_else(|| models::text(facts))
        .or_else(|| load::text(facts))
        .or_else(|| unknown::text(facts, limit.others.as_ref()))
        .unwrap_or_default();
    match &limit.host {
        Some(host) => format!("on {}, {text}", host_text(host)),
        None => text,
    }
}

/// `the database host ssh://db`.
pub fn host_text(host: &MonitoredHost) -> String {
    let role = match host.role {
        SourceRole::Server => "the server's host",
        SourceRole::Database => "the database's host",
        SourceRole::Network => "the network device",
        SourceRole::Client => "the client",
        SourceRole::Other => "the host",
    };
    format!("{role} {}", host.source.as_deref().unwrap_or("that runs this program"))
}

#[cfg(test)]
mod testing {
    use super::super::testing::from_facts;
    use super::*;

    pub(super) fn from(facts: &str) -> Limit {
        Limit::new(from_facts(facts), Vec::new())
    }

    /// Each limit has its sentence.
    pub(super) fn check(sentences: &[(&str, &str)]) {
        for (facts, sentence) in sentences {
            let limit = from(facts);
            assert_eq!(text(&limit), *sentence, "{facts}");
            assert_eq!(unknown(&limit), sentence.trim_start_matches("saturated; "));
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::limit::LimitFacts;
    use plimsoll_model::monitored::RoleBasis;

    use super::super::testing::untested;
    use super::testing::from;
    use super::*;

    #[test]
    fn every_limit_is_tested() {
        let files = [
            include_str!("devices.rs"),
            include_str!("load.rs"),
            include_str!("models.rs"),
            include_str!("processors.rs"),
            include_str!("unknown.rs"),
        ];
        assert_eq!(untested::<LimitFacts>(&files), ["unsaid"]);
        assert_eq!(text(&Limit::default()), "");
    }

    #[test]
    fn a_limit_of_another_host_names_it() {
        let host = |source: &str, role| {
            let (source, basis) = (Some(source.to_owned()), RoleBasis::Given);
            Some(MonitoredHost { source, role, basis })
        };
        let port =
            from(r#"{"kind": "link", "interface": "port7", "way": "sent", "share_ratio": 0.97}"#);
        let port = Limit { host: host("snmp://switch", SourceRole::Network), ..port };
        let sentence = "on the network device snmp://switch, the network: port7 sent 97 % of what \
                        its link carries";
        assert_eq!(text(&port), sentence);
        let cores = from(
            r#"{"kind": "cores", "cores": {"count": 4.0, "number": null, "of_host": true},
               "busy_ratio": 0.99, "own_ratio": null, "load": "steady"}"#,
        );
        let cores = Limit { host: host("ssh://db", SourceRole::Database), ..cores };
        let sentence =
            "on the database's host ssh://db, the processors: its 4 cores were 99 % busy";
        assert_eq!(text(&cores), sentence);
    }

    #[test]
    fn a_sentence_has_what_is_behind_a_limit_and_what_else_was_reached() {
        let disk = from(r#"{"kind": "busy_disk", "disk": "vda", "busy_ratio": 1, "queued": 3}"#);
        let behind = Some(Box::new(disk.clone()));
        let cap = Limit { behind, only_load: true, ..from(r#"{"kind": "cap", "cap_ms": 40}"#) };
        let sentence = "the suite's cap on response time: the mean service time is above 40 ms; \
                        behind it the disk vda: it was 100 % busy with 3.0 requests in its queue, \
                        at this one load";
        assert_eq!(text(&cap), sentence);
        let both = Limit { also: vec![Limit::default(), from(r#"{"kind": "followed"}"#)], ..disk };
        let sentence = "the disk vda: it was 100 % busy with 3.0 requests in its queue; and not \
                        saturated: throughput follows the load";
        assert_eq!(text_with_others(&both), sentence);
    }
}
