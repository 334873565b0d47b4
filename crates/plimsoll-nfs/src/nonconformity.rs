//! The report of a flaw in a server's replies: the procedure, and the section of its specification.

use plimsoll_model::nonconformity::{Nonconformity, NonconformityKind};

use super::wire::flaws::Flaw;
use super::wire::rpc::Service;
use super::wire::{mount, portmap, v2, v3, v4};

/// A reply to `procedure` of `service` has this flaw.
pub(crate) fn nonconformity(service: Service, procedure: u32, flaw: Flaw) -> Nonconformity {
    use NonconformityKind as K;
    let of = spec_reference(service, procedure);
    let xdr = |section| SpecReference { document: "RFC 4506", section, ..of };
    let (reference, field, kind) = match flaw {
        Flaw::TrailingBytes => (of, None, K::TrailingBytes),
        Flaw::FailureBody => (of, Some("resfail"), K::MissingPart),
        Flaw::MissingPadding => (xdr("4.10"), Some("padding"), K::MissingPart),
        Flaw::NonzeroPadding => (xdr("4.10"), None, K::NonzeroPadding),
        Flaw::Boolean => (xdr("4.4"), Some("bool"), K::UndefinedValue),
        Flaw::FileType => (of, Some("type"), K::UndefinedValue),
        Flaw::OtherObject => (of, Some("attributes"), K::OtherObject),
        Flaw::Mode => (of, Some("mode"), K::UndefinedValue),
        Flaw::Access => (of, Some("access"), K::WrongFlag),
        Flaw::ModeNotKept => (of, Some("mode"), K::NotKept),
        Flaw::Flavors => (of, Some("auth_flavors"), K::WrongSize),
    };
    Nonconformity::once(reference.document, reference.section, reference.name, field, kind)
}

/// Where a procedure is specified.
#[derive(Clone, Copy)]
struct SpecReference {
    document: &'static str,
    section: &'static str,
    name: &'static str,
}

const NFS3: [&str; 22] = [
    "3.3.0", "3.3.1", "3.3.2", "3.3.3", "3.3.4", "3.3.5", "3.3.6", "3.3.7", "3.3.8", "3.3.9",
    "3.3.10", "3.3.11", "3.3.12", "3.3.13", "3.3.14", "3.3.15", "3.3.16", "3.3.17", "3.3.18",
    "3.3.19", "3.3.20", "3.3.21",
];
const NFS2: [&str; 18] = [
    "2.2.1", "2.2.2", "2.2.3", "2.2.4", "2.2.5", "2.2.6", "2.2.7", "2.2.8", "2.2.9", "2.2.10",
    "2.2.11", "2.2.12", "2.2.13", "2.2.14", "2.2.15", "2.2.16", "2.2.17", "2.2.18",
];
/// Version 3 has the same procedures under other names.
const MOUNT1: [&str; 6] = [
    "MOUNTPROC_NULL",
    "MOUNTPROC_MNT",
    "MOUNTPROC_DUMP",
    "MOUNTPROC_UMNT",
    "MOUNTPROC_UMNTALL",
    "MOUNTPROC_EXPORT",
];
const MOUNT3: [&str; 6] = ["5.2.0", "5.2.1", "5.2.2", "5.2.3", "5.2.4", "5.2.5"];

fn spec_reference(service: Service, procedure: u32) -> SpecReference {
    let Service { program, version } = service;
    let section = |sections: &[&'static str], whole| {
        sections.get(procedure as usize).copied().unwrap_or(whole)
    };
    let (document, section, name) = match (program, version) {
        (v3::PROGRAM, v2::VERSION) => {
            let name = v2::Procedure::from_number(procedure).map(v2::Procedure::name);
            ("RFC 1094", section(&NFS2, "2.2"), name)
        }
        (v3::PROGRAM, v4::VERSION) => ("RFC 8881", "16.2", Some("COMPOUND")),
        (v3::PROGRAM, _) => {
            let name = v3::Procedure::from_number(procedure).map(v3::Procedure::name);
            ("RFC 1813", section(&NFS3, "3.3"), name)
        }
        (portmap::PROGRAM, _) => {
            let name = portmap::Procedure::from_number(procedure).map(portmap::Procedure::name);
            ("RFC 1833", "3.2", name)
        }
        (_, mount::VERSION_1) => ("RFC 1094", "A.5", MOUNT1.get(procedure as usize).copied()),
        (_, _) => {
            let name = mount::Procedure::from_number(procedure).map(mount::Procedure::name);
            ("RFC 1813", section(&MOUNT3, "5.2"), name)
        }
    };
    SpecReference { document, section, name: name.unwrap_or("an unknown procedure") }
}

/// Its facts in a line, for tests.
#[cfg(test)]
pub(crate) fn facts(one: &Nonconformity) -> String {
    let Nonconformity { document, section, reply_to, field, kind, count } = one;
    let field = field.as_ref().map_or_else(String::new, |field| format!("{field}, "));
    format!("{document} {reply_to} (section {section}: {field}{kind:?}, {count})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::NfsVersion;
    use crate::procedure;

    #[test]
    fn every_procedure_has_its_section() {
        let text = |service, procedure, flaw| facts(&nonconformity(service, procedure, flaw));
        let [v2, v3] = [NfsVersion::V2, NfsVersion::V3].map(procedure::service);
        assert_eq!(
            text(v3, 18, Flaw::TrailingBytes),
            "RFC 1813 FSSTAT (section 3.3.18: TrailingBytes, 1)"
        );
        assert_eq!(
            text(v2, 17, Flaw::NonzeroPadding),
            "RFC 4506 STATFS (section 4.10: NonzeroPadding, 1)"
        );
        assert!(text(v2, 17, Flaw::TrailingBytes).starts_with("RFC 1094 STATFS (section 2.2.18:"));
        let mount = |version| Service { program: mount::PROGRAM, version };
        assert_eq!(
            text(mount(3), 1, Flaw::Flavors),
            "RFC 1813 MOUNTPROC3_MNT (section 5.2.1: auth_flavors, WrongSize, 1)"
        );
        let of_version_1 = "RFC 1094 MOUNTPROC_MNT (section A.5:";
        assert!(text(mount(1), 1, Flaw::TrailingBytes).starts_with(of_version_1));
        let portmapper = Service { program: portmap::PROGRAM, version: portmap::VERSION };
        let text = text(portmapper, 3, Flaw::TrailingBytes);
        assert!(text.starts_with("RFC 1833 PMAPPROC_GETPORT (section 3.2:"), "{text}");
    }
}
