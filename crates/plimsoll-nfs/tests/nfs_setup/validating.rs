//! The validation phase: an honest server passes, and each lie is caught by the check that names
//! it.

use plimsoll_nfs::validate::validate;
use plimsoll_nfs::wire::rpc::encode_reply_success;
use plimsoll_nfs::wire::{v2, v3};

use super::*;

fn checked(host: &Host, version: NfsVersion, kind: LinkKind) -> Result<u32, SetupError> {
    let mounted = mounted(host, version, kind);
    let mut remote = remote(host, &mounted);
    let root = mounted.root;
    let passed = validate(&mut remote, &mounted, &root);
    assert!(remote.find(&root, b".plimsoll-check").unwrap().is_none(), "nothing is left");
    passed
}

#[test]
fn the_reference_server_passes_in_both_versions_over_both_transports() {
    for (version, kind) in EVERYWHERE {
        let mut host = Host::new(ROOMY);
        host.fragment_bytes = 11;
        let passed = checked(&host, version, kind).unwrap();
        assert!(passed > 60, "{version:?} {kind:?}: {passed}");
    }
}

/// Changes the honest reply to one procedure.
fn lying(procedure: v3::Procedure, change: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) -> Host {
    Host::new(ROOMY).with_deceit(move |request, reply| {
        request.is(v3::PROGRAM, procedure.number()).then(|| {
            request.honest(reply);
            change(reply);
        })
    })
}

fn flip_last(reply: &mut [u8]) {
    if let Some(last) = reply.last_mut() {
        *last ^= 1;
    }
}

#[test]
fn a_lie_is_caught_by_the_check_that_is_named() {
    let unmade = |procedure: v3::Procedure, results: usize| {
        Host::new(ROOMY).with_deceit(move |request, reply| {
            request.is(v3::PROGRAM, procedure.number()).then(|| {
                encode_reply_success(reply, request.call.xid);
                reply.resize(reply.len() + results, 0);
            })
        })
    };
    for (host, check) in [
        (lying(v3::Procedure::Read, |reply| flip_last(reply)), "end of file"),
        (lying(v3::Procedure::Commit, |reply| flip_last(reply)), "verifier of commit"),
        (lying(v3::Procedure::ReadLink, |reply| flip_last(reply)), "text of a symbolic link"),
        (lying(v3::Procedure::Access, |reply| reply.fill(0)), "access"),
        (unmade(v3::Procedure::SetAttr, 12), "set size"),
    ] {
        let lie = checked(&host, NfsVersion::V3, LinkKind::Stream).unwrap_err().to_string();
        assert!(lie.contains("validation check"), "{check}: {lie}");
    }
    let flipped = Host::new(ROOMY).with_deceit(|request, reply| {
        request.is(v2::PROGRAM, v2::Procedure::Read.number()).then(|| {
            request.honest(reply);
            let at = reply.len() - 100;
            reply[at] ^= 1;
        })
    });
    let lie = checked(&flipped, NfsVersion::V2, LinkKind::Stream).unwrap_err().to_string();
    let expected = "validation check \"read back after write\": expected what was written, got \
                    other bytes from offset";
    assert!(lie.contains(expected), "{lie}");
}
