//! From a URL to the root of an export, and what a user reads when that fails.

use plimsoll_nfs::wire::Encode;
use plimsoll_nfs::wire::mount::{self, MountStatus};
use plimsoll_nfs::wire::rpc::{ReplyOutcome, auth, encode_reply, encode_reply_success};

use super::*;

#[test]
fn ports_come_from_the_url_the_portmapper_or_a_trial() {
    let portmapper = Host::new(ROOMY);
    let none = Host::new(ROOMY).without_portmapper();
    for (host, url, nfs_from, mount_from) in [
        (&portmapper, "nfs://server/export", "from the portmapper", "from the portmapper"),
        (&portmapper, "nfs://server:2049/export", "as the URL says", "from the portmapper"),
        (&none, "nfs://server:2049/export?mountport=2049", "as the URL says", "as the URL says"),
        (&none, "nfs://server:2049/export", "as the URL says", "found at the port of NFS"),
    ] {
        for version in [NfsVersion::V2, NfsVersion::V3] {
            let mounted = mount_url(host, url, version).unwrap();
            let facts = mounted.facts();
            let fact = |name: &str| facts.iter().find(|f| f.name == name).unwrap().value.clone();
            assert_eq!(fact("NFS service"), format!("127.0.0.1:2049, {nfs_from}"));
            assert_eq!(fact("MOUNT service"), format!("127.0.0.1:2049, {mount_from}"));
            remote(host, &mounted).null().unwrap();
        }
    }
}

fn refusal(host: &Host, url: &str, version: NfsVersion) -> String {
    match mount_url(host, url, version) {
        Ok(_) => panic!("{url} was mounted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_refusal_says_what_where_and_what_to_do() {
    let honest = || Host::new(ROOMY);
    let answering = |program: u32, outcome: ReplyOutcome| {
        honest().with_fault(move |request, reply| {
            (request.call.program == program)
                .then(|| encode_reply(reply, request.call.xid, outcome))
        })
    };
    let only_v4 = ReplyOutcome::ProgramMismatch { low: 4, high: 4 };
    let only_v1 = ReplyOutcome::ProgramMismatch { low: 1, high: 1 };
    let too_weak = ReplyOutcome::AuthError(auth::TOO_WEAK);
    let plain = "nfs://server/export";
    let ported = "nfs://server:2049/export";
    for (host, url, parts) in [
        (
            honest().without_portmapper(),
            plain,
            ["no portmapper answers at 127.0.0.1:111", "?mountport=PORT"],
        ),
        (
            honest().without_portmapper().without_mount(),
            ported,
            ["port 2049 does not serve it", "add ?mountport=N"],
        ),
        (
            honest(),
            "nfs://server:2050/export?mountport=2049",
            ["127.0.0.1:2050", "see whether the server runs there"],
        ),
        (
            honest(),
            "nfs://server/exports",
            ["refuses to mount /exports (MNT3ERR_", "it exports /export"],
        ),
        (
            answering(100_003, only_v4),
            plain,
            ["speaks NFS version 4, not 3", "; let it serve version 3"],
        ),
        (answering(100_005, only_v1), plain, ["speaks MOUNT version 1, not 3", "use suite nfs-v2"]),
        (answering(100_003, too_weak), plain, ["AUTH_TOOWEAK", "sec=sys"]),
        (
            answering(100_003, ReplyOutcome::ProgramUnavailable),
            plain,
            ["has no NFS", "check the ports"],
        ),
    ] {
        let message = refusal(&host, url, NfsVersion::V3);
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }
}

#[test]
fn a_program_that_is_not_registered_is_named() {
    let host = Host::new(ROOMY).with_fault(|request, reply| {
        request.is(100_000, 3).then(|| {
            encode_reply_success(reply, request.call.xid);
            0_u32.encode(reply);
        })
    });
    let message = refusal(&host, "nfs://server/export", NfsVersion::V2);
    assert!(message.contains("knows no NFS version 2 over TCP"), "{message}");
}

#[test]
fn a_server_that_wants_reserved_ports_gets_them_and_a_hard_refusal_lists_the_exports() {
    let picky = |also_reserved: bool| {
        Host::new(ROOMY).with_fault(move |request, reply| {
            let is_refused = request.is(mount::PROGRAM, mount::Procedure::Mount.number())
                && (also_reserved || request.source == SourcePort::Any);
            is_refused.then(|| {
                encode_reply_success(reply, request.call.xid);
                MountStatus::ACCES.encode(reply);
            })
        })
    };
    let mounted = mount_url(&picky(false), "nfs://server/export", NfsVersion::V3).unwrap();
    assert_eq!(mounted.source, SourcePort::Reserved);
    let message = refusal(&picky(true), "nfs://server/export", NfsVersion::V3);
    for part in ["MNT3ERR_ACCES", "insecure", "it exports /export"] {
        assert!(message.contains(part), "{message}");
    }
}
