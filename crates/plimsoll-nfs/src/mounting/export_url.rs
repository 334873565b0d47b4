//! What a URL says about an export: `nfs://host[:port]/export?version=3&transport=tcp&mountport=N`.

use plimsoll_model::target::TargetUrl;

use super::MountError;
use crate::parameters::NfsVersion;
use plimsoll_protocol::net::LinkKind;
use plimsoll_protocol::percent_decoded;

/// Keys of the query.
const KEYS: [&str; 3] = ["version", "transport", "mountport"];

/// An export, as the URL and the suite name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportUrl {
    /// Path of the export, decoded.
    pub path: Vec<u8>,
    /// How calls travel.
    pub kind: LinkKind,
    /// Port of NFS, when given.
    pub port: Option<u16>,
    /// Port of MOUNT, when given.
    pub mount_port: Option<u16>,
}

impl ExportUrl {
    /// Reads a URL. `version` is the suite's, which the URL may repeat but not change; `kind` is
    /// taken when the URL names no transport.
    pub fn read(url: &TargetUrl, version: NfsVersion, kind: LinkKind) -> Result<Self, MountError> {
        let wrong = |key: &str, value: &str, help: String| MountError::Parameter {
            target: url.to_string(),
            parameter: format!("{key}={value}"),
            help,
        };
        for pair in url.query.iter().flat_map(|query| query.split('&')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !KEYS.contains(&key) {
                return Err(wrong(key, value, format!("known are {}", KEYS.join(", "))));
            }
        }
        let number = match version {
            NfsVersion::V2 => "2",
            NfsVersion::V3 => "3",
        };
        if let Some(other) = url.query_value("version").filter(|given| *given != number) {
            let help = format!("this suite speaks version {number}; use suite nfs-v2 or nfs-v3");
            return Err(wrong("version", other, help));
        }
        let kind = match url.query_value("transport") {
            None => kind,
            Some("tcp") => LinkKind::Stream,
            Some("udp") => LinkKind::Datagram,
            Some(other) => return Err(wrong("transport", other, "write tcp or udp".to_owned())),
        };
        let mount_port = match url.query_value("mountport").map(|text| (text, text.parse())) {
            None => None,
            Some((_, Ok(port))) if port > 0 => Some(port),
            Some((text, _)) => {
                let help = "a port is a number from 1 to 65535".to_owned();
                return Err(wrong("mountport", text, help));
            }
        };
        let mut path = percent_decoded(&url.path);
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        Ok(Self { path, kind, port: url.port, mount_port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ExportUrl, MountError> {
        ExportUrl::read(&TargetUrl::parse(text).unwrap(), NfsVersion::V3, LinkKind::Stream)
    }

    #[test]
    fn a_url_names_export_transport_and_ports() {
        let plain = read("nfs://host/a%20b%2").unwrap();
        assert_eq!(plain.path, b"/a b%2");
        assert_eq!((plain.kind, plain.port, plain.mount_port), (LinkKind::Stream, None, None));
        assert_eq!(read("nfs://host/a//").unwrap().path, b"/a");
        assert_eq!(read("nfs://host").unwrap().path, b"/");
        let full = read("nfs://host:2049/x?version=3&transport=udp&mountport=635").unwrap();
        assert_eq!(full.kind, LinkKind::Datagram);
        assert_eq!((full.port, full.mount_port), (Some(2049), Some(635)));
    }

    #[test]
    fn what_a_url_cannot_say_is_named_with_the_remedy() {
        for (text, part) in [
            ("nfs://h/x?version=2", "use suite nfs-v2"),
            ("nfs://h/x?transport=rdma", "write tcp or udp"),
            ("nfs://h/x?mountport=0", "from 1 to 65535"),
            ("nfs://h/x?uid=0", "known are version, transport, mountport"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
