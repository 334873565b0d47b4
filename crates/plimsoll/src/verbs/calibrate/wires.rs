//! Which protocols a certificate covers.

use plimsoll_calibration::Wire;
use plimsoll_protocol::host::Registration;
use plimsoll_run::protocols;

const ALL: &str = "all";
/// Versions of HTTP.
pub(super) const VERSIONS: [&str; 2] = ["1.1", "2"];

/// That of the main calibrated server.
pub(super) fn proper() -> Wire {
    let mut all = protocols::all().flat_map(|one| one.calibration);
    Wire(all.find(|wire| wire.proper.is_some()).expect("the program has a calibrated server"))
}

/// Protocols that a calibration was asked for: one of them or all, and a version of HTTP.
#[derive(Clone, Copy)]
pub(super) struct Requested<'a> {
    pub(super) protocol: &'a str,
    pub(super) http: Option<&'a str>,
}

impl Requested<'_> {
    /// Their cases.
    pub(super) fn wires(self) -> Vec<Wire> {
        let wires = protocols::all().flat_map(|one| self.wires_of(one));
        wires.filter(|wire| wire.its_own().is_none()).collect()
    }

    /// What is spoken, by the names that a run has for it; first that of the main calibrated
    /// server.
    pub(super) fn spoken(self) -> Vec<String> {
        let is_proper =
            |one: &&Registration| one.calibration.iter().any(|wire| wire.proper.is_some());
        let (proper, others): (Vec<_>, Vec<_>) = protocols::all().partition(is_proper);
        let names = others.into_iter().flat_map(|one| {
            let spoken = self.wires_of(one).map(Wire::spoken);
            spoken.map(|spoken| spoken.unwrap_or(one.protocol.name))
        });
        let proper = proper.into_iter().map(|one| one.protocol.name);
        let mut all: Vec<String> = proper.chain(names).map(str::to_owned).collect();
        all.dedup();
        all
    }

    fn wires_of(self, one: &'static Registration) -> impl Iterator<Item = Wire> {
        let is_requested = [one.protocol.name, ALL].contains(&self.protocol);
        let has_versions = has_versions(&one);
        // Without a version: all of them where all protocols are requested, else the first.
        let http = self.http.or((self.protocol != ALL).then_some(VERSIONS[0]));
        one.calibration.iter().map(Wire).filter(move |wire| {
            let version = VERSIONS[usize::from(wire.spoken().is_some())];
            is_requested && (!has_versions || http.is_none_or(|http| http == version))
        })
    }

    /// Why the version of HTTP has no meaning here.
    pub(super) fn refusal(self) -> Option<String> {
        self.http?;
        let able: Vec<_> = protocols::all().filter(has_versions).map(|o| o.protocol.name).collect();
        if self.protocol == ALL || able.contains(&self.protocol) {
            return None;
        }
        let (able, protocol) = (able.join(", "), self.protocol);
        Some(format!(
            "--http is a version of {able}, which --protocol {protocol} does not speak; write \
             --protocol {able}, or leave --http out"
        ))
    }
}

/// Some of its cases speak another version than the usual one.
fn has_versions(one: &&Registration) -> bool {
    one.calibration.iter().any(|wire| wire.spoken.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(protocol: &str, http: Option<&str>) -> (String, String) {
        let requested = Requested { protocol, http };
        let wires: Vec<_> = requested.wires().into_iter().map(Wire::name).collect();
        (wires.join(" "), requested.spoken().join(", "))
    }

    #[test]
    fn http2_is_part_of_all_and_else_spoken_where_it_is_named() {
        let http2 = "http2 https2 http2-one-connection";
        let (wires, spoken) = names("all", None);
        assert!(wires.starts_with(&format!("http https {http2} nfs nfs-v4.1 smb")), "{wires}");
        assert!(spoken.starts_with("app, http, http over HTTP/2, nfs, smb"), "{spoken}");
        assert!(names("all", Some("2")).0.starts_with(&format!("{http2} nfs nfs-v4.1 smb")));
        assert_eq!(names("http", None), ("http https".into(), "app, http".into()));
        assert_eq!(names("http", Some("1.1")), names("http", None));
        assert_eq!(names("http", Some("2")), (http2.into(), "app, http over HTTP/2".into()));
        assert_eq!(names("nfs", None), ("nfs nfs-v4.1".into(), "app, nfs".into()));
        assert_eq!(names("app", None), (String::new(), "app".into()));
    }

    #[test]
    fn a_version_without_http_is_refused() {
        let refusal = |protocol| Requested { protocol, http: Some("2") }.refusal();
        assert_eq!((refusal("http"), refusal("all")), (None, None));
        assert!(refusal("nfs").unwrap().contains("--protocol nfs does not speak"));
    }
}
