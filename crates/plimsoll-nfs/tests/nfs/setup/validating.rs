//! The validation phase: an honest server passes, and each lie is caught by the check that names
//! it.

use plimsoll_model::nonconformity::{Nonconformity, NonconformityKind};
use plimsoll_nfs::validate::{refuse_lacking, validate};
use plimsoll_nfs::wire::rpc::{ReplyOutcome, encode_reply, encode_reply_success};
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
        host.fragment_bytes = 61;
        let passed = checked(&host, version, kind).unwrap();
        assert!(passed > 60, "{version:?} {kind:?}: {passed}");
    }
}

/// Changes the honest reply to one procedure.
fn lying(procedure: v3::Procedure, change: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) -> Host {
    Host::new(ROOMY).with_fault(move |request, reply| {
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
        Host::new(ROOMY).with_fault(move |request, reply| {
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
    let flipped = Host::new(ROOMY).with_fault(|request, reply| {
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

#[test]
fn a_server_that_lacks_operations_is_refused_before_a_byte_is_written() {
    for (version, kind) in EVERYWHERE {
        let host = Host::new(ROOMY);
        let mounted = mounted(&host, version, kind);
        refuse_lacking(&mut remote(&host, &mounted), &mounted).unwrap();
    }
    let host = Host::new(ROOMY).with_fault(|request, reply| {
        let is = |procedure: v3::Procedure| request.is(v3::PROGRAM, procedure.number());
        let xid = request.call.xid;
        if is(v3::Procedure::Commit) || is(v3::Procedure::ReadDirPlus) {
            encode_reply(reply, xid, ReplyOutcome::ProcedureUnavailable);
        } else if is(v3::Procedure::Symlink) {
            encode_reply_success(reply, xid);
            reply.extend_from_slice(&10_004_u32.to_be_bytes());
        } else {
            return None;
        }
        Some(())
    });
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    let mut remote = remote(&host, &mounted);
    let Err(SetupError::Unusable(lacks)) = refuse_lacking(&mut remote, &mounted) else { panic!() };
    let expected = "lacks operations that this suite needs: SYMLINK, READDIRPLUS, COMMIT;";
    assert!(lacks.contains(expected), "{lacks}");
    assert!(remote.list(&mounted.root, Listing::Names).unwrap().is_empty(), "nothing was made");
}

#[test]
fn what_a_server_lacks_only_for_handles_that_it_knows_is_named_in_the_scratch_directory() {
    let host = Host::new(ROOMY).with_fault(|request, reply| {
        request.honest(reply);
        let lacked = [v3::Procedure::Symlink, v3::Procedure::ReadLink];
        let is = lacked.iter().any(|one| request.is(v3::PROGRAM, one.number()));
        // Another status than those of a handle that names nothing, behind the head of 24 bytes.
        let status = reply.get(24..28).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
        if is && !matches!(status, Some(70 | 10_001)) {
            reply.truncate(24);
            reply.extend_from_slice(&10_004_u32.to_be_bytes());
        }
        Some(())
    });
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    refuse_lacking(&mut remote(&host, &mounted), &mounted).unwrap();
    let lacks = checked(&host, NfsVersion::V3, LinkKind::Stream).unwrap_err().to_string();
    assert!(lacks.contains("this suite needs: SYMLINK, READLINK; measure a"), "{lacks}");
}

/// A host without one procedure.
fn without(procedure: v3::Procedure) -> Host {
    Host::new(ROOMY).with_fault(move |request, reply| {
        request.is(v3::PROGRAM, procedure.number()).then(|| {
            encode_reply_success(reply, request.call.xid);
            reply.extend_from_slice(&10_004_u32.to_be_bytes());
        })
    })
}

#[test]
fn what_a_server_lacks_is_named_even_where_tidying_up_needs_it() {
    let host = without(v3::Procedure::Remove);
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    let root = mounted.root;
    let lacks = validate(&mut remote(&host, &mounted), &mounted, &root).unwrap_err().to_string();
    assert!(lacks.contains("this suite needs: REMOVE; measure a"), "{lacks}");
    // MKDIR makes a directory where CREATE should have made a file; twice, as nothing is left.
    let host = without(v3::Procedure::Create);
    for _ in 0..2 {
        let lacks = checked(&host, NfsVersion::V3, LinkKind::Stream).unwrap_err().to_string();
        assert!(lacks.contains("this suite needs: CREATE; measure a"), "{lacks}");
    }
}

#[test]
fn padding_in_the_head_of_a_reply_counts() {
    let host = Host::new(ROOMY).with_fault(|request, reply| {
        request.honest(reply);
        // A verifier of one byte instead of none, and three bytes of padding.
        reply.splice(16..20, [0, 0, 0, 1, 9, 9, 9, 9]);
        Some(())
    });
    checked(&host, NfsVersion::V3, LinkKind::Stream).unwrap();
    let notes = host.log.take();
    let is_padding = |one: &Nonconformity| {
        one.reply_to == "GETATTR"
            && one.section == "4.10"
            && one.kind == NonconformityKind::NonzeroPadding
            && one.field.is_none()
    };
    assert!(notes.iter().any(is_padding), "{notes:?}");
}

#[test]
fn what_set_up_tolerates_it_names() {
    for (version, kind) in EVERYWHERE {
        let host = Host::new(ROOMY).with_fault(|request, reply| {
            request.honest(reply);
            reply.extend_from_slice(&[0; 4]);
            Some(())
        });
        checked(&host, version, kind).unwrap();
        let notes = host.log.take();
        let with_mount =
            |mount| vec!["PMAPPROC_GETPORT", mount, "NULL", "LOOKUP", "READDIR", "WRITE"];
        let names = match version {
            NfsVersion::V2 => with_mount("MOUNTPROC_MNT"),
            NfsVersion::V3 => with_mount("MOUNTPROC3_MNT"),
            NfsVersion::V4_1 => vec!["COMPOUND"],
        };
        for name in names {
            let named = notes.iter().any(|one| one.reply_to == name);
            assert!(named, "{version:?} {kind:?}: no {name} in {notes:?}");
        }
        let honest = Host::new(ROOMY);
        checked(&honest, version, kind).unwrap();
        assert!(honest.log.take().is_empty());
    }
}
