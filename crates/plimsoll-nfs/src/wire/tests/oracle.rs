//! The same messages through another implementation, the `nfs3_types` crate.

use std::io::Cursor;

use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};
use nfs3_types::{mount as mount3, nfs3, portmap as pmap, rpc as onc};
use proptest::prelude::*;

use super::{Draw, Sample, encoded};
use crate::wire::rpc::{self, AuthSys, Credential, ReplyHead, ReplyOutcome};
use crate::wire::xdr::{Decode, XdrError, XdrIn};
use crate::wire::{Path, mount, portmap, v3};

/// What is written here is read there to the last byte, and written there as here.
macro_rules! check {
    ($drawn:expr, $($ours:ty => $theirs:ty;)*) => {$(
        let message: $ours = Sample::sample(&mut Draw::new($drawn));
        let bytes = encoded(&message);
        let (read, length) = <$theirs>::unpack(&mut Cursor::new(&bytes[..]))
            .map_err(|e| TestCaseError::fail(format!("{}: {e}", stringify!($ours))))?;
        prop_assert_eq!(length, bytes.len());
        let mut again = Vec::new();
        read.pack(&mut again).unwrap();
        prop_assert_eq!(&again, &bytes, "{}", stringify!($ours));
        let ours = <$ours>::decode(&mut XdrIn::new(&again));
        prop_assert_eq!(ours, Ok(message));
    )*};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arguments_agree(drawn in prop::collection::vec(any::<u8>(), 1..600)) {
        check! { &drawn,
            v3::Handle<'_> => nfs3::GETATTR3args;
            v3::SetAttrArgs<'_> => nfs3::SETATTR3args;
            v3::DirOpArgs<'_> => nfs3::LOOKUP3args<'_>;
            v3::AccessArgs<'_> => nfs3::ACCESS3args;
            v3::Handle<'_> => nfs3::READLINK3args;
            v3::ReadArgs<'_> => nfs3::READ3args;
            v3::WriteArgs<'_> => nfs3::WRITE3args<'_>;
            v3::CreateArgs<'_> => nfs3::CREATE3args<'_>;
            v3::MkDirArgs<'_> => nfs3::MKDIR3args<'_>;
            v3::SymlinkArgs<'_> => nfs3::SYMLINK3args<'_>;
            v3::DirOpArgs<'_> => nfs3::REMOVE3args<'_>;
            v3::DirOpArgs<'_> => nfs3::RMDIR3args<'_>;
            v3::RenameArgs<'_> => nfs3::RENAME3args<'_, '_>;
            v3::LinkArgs<'_> => nfs3::LINK3args<'_>;
            v3::ReadDirArgs<'_> => nfs3::READDIR3args;
            v3::ReadDirPlusArgs<'_> => nfs3::READDIRPLUS3args;
            v3::Handle<'_> => nfs3::FSSTAT3args;
            v3::Handle<'_> => nfs3::FSINFO3args;
            v3::Handle<'_> => nfs3::PATHCONF3args;
            v3::CommitArgs<'_> => nfs3::COMMIT3args;
        }
    }

    #[test]
    fn results_agree(drawn in prop::collection::vec(any::<u8>(), 1..600)) {
        check! { &drawn,
            v3::FileAttributes => nfs3::GETATTR3resok;
            v3::WccData => nfs3::SETATTR3resok;
            v3::LookupOk<'_> => nfs3::LOOKUP3resok;
            v3::AccessOk => nfs3::ACCESS3resok;
            v3::ReadLinkOk<'_> => nfs3::READLINK3resok<'_>;
            v3::ReadOk<'_> => nfs3::READ3resok<'_>;
            v3::WriteOk => nfs3::WRITE3resok;
            v3::CreateOk<'_> => nfs3::CREATE3resok;
            v3::WccData => nfs3::REMOVE3resok;
            v3::RenameWcc => nfs3::RENAME3resok;
            v3::LinkWcc => nfs3::LINK3resok;
            v3::ReadDirOk<'_> => nfs3::READDIR3resok<'_>;
            v3::ReadDirPlusOk<'_> => nfs3::READDIRPLUS3resok<'_>;
            v3::FsStatOk => nfs3::FSSTAT3resok;
            v3::FsInfoOk => nfs3::FSINFO3resok;
            v3::PathConfOk => nfs3::PATHCONF3resok;
            v3::CommitOk => nfs3::COMMIT3resok;
        }
    }

    #[test]
    fn mount_and_portmapper_agree(drawn in prop::collection::vec(any::<u8>(), 1..600)) {
        check! { &drawn,
            Path<'_> => mount3::dirpath<'_>;
            mount::Mount3Ok<'_> => mount3::mountres3_ok<'_>;
            mount::DumpRes<'_> => mount3::mountlist<'_, '_>;
            mount::ExportRes<'_> => mount3::exports<'_, '_>;
            portmap::Mapping => pmap::mapping;
            portmap::DumpRes<'_> => pmap::pmaplist;
        }
    }

    #[test]
    fn calls_agree(xid: u32, drawn in prop::collection::vec(any::<u8>(), 1..600)) {
        let who: AuthSys<'_> = Sample::sample(&mut Draw::new(&drawn));
        let mut bytes = Vec::new();
        rpc::encode_call(&mut bytes, xid, (100_003, 3), 6, &Credential::system(&who));
        let theirs = onc::rpc_msg {
            xid,
            body: onc::msg_body::CALL(onc::call_body {
                rpcvers: 2,
                prog: 100_003,
                vers: 3,
                proc: 6,
                cred: onc::opaque_auth::auth_unix(&onc::auth_unix {
                    stamp: who.stamp,
                    machinename: Opaque::owned(who.machine.0.to_vec()),
                    uid: who.uid,
                    gid: who.gid,
                    gids: who.gids.iter().collect(),
                }),
                verf: onc::opaque_auth::default(),
            }),
        };
        let mut expected = Vec::new();
        theirs.pack(&mut expected).unwrap();
        prop_assert_eq!(bytes, expected);
    }
}

#[test]
fn heads_of_replies_agree() {
    let accepted = |reply_data| {
        let verf = onc::opaque_auth::default();
        onc::reply_body::MSG_ACCEPTED(onc::accepted_reply { verf, reply_data })
    };
    let denied = onc::reply_body::MSG_DENIED;
    use onc::accept_stat_data as A;
    let too_weak = onc::rejected_reply::AUTH_ERROR(onc::auth_stat::AUTH_TOOWEAK);
    for (outcome, body) in [
        (ReplyOutcome::Success, accepted(A::SUCCESS)),
        (ReplyOutcome::ProgramUnavailable, accepted(A::PROG_UNAVAIL)),
        (
            ReplyOutcome::ProgramMismatch { low: 2, high: 4 },
            accepted(A::PROG_MISMATCH { low: 2, high: 4 }),
        ),
        (ReplyOutcome::ProcedureUnavailable, accepted(A::PROC_UNAVAIL)),
        (ReplyOutcome::GarbageArguments, accepted(A::GARBAGE_ARGS)),
        (ReplyOutcome::SystemError, accepted(A::SYSTEM_ERR)),
        (
            ReplyOutcome::RpcMismatch { low: 2, high: 3 },
            denied(onc::rejected_reply::RPC_MISMATCH { low: 2, high: 3 }),
        ),
        (ReplyOutcome::AuthError(rpc::auth::TOO_WEAK), denied(too_weak)),
    ] {
        let mut bytes = Vec::new();
        onc::rpc_msg { xid: 7, body: onc::msg_body::REPLY(body) }.pack(&mut bytes).unwrap();
        let head = ReplyHead { xid: 7, outcome };
        assert_eq!(encoded(&head), bytes);
        assert_eq!(ReplyHead::decode(&mut XdrIn::new(&bytes)), Ok(head));
    }
}

/// What a field is called there is what it is called here.
#[test]
fn fields_mean_the_same() {
    fn read<T: for<'a> Decode<'a>>(theirs: &impl Pack) -> T {
        let mut bytes = Vec::new();
        theirs.pack(&mut bytes).unwrap();
        let result: Result<T, XdrError> = T::decode(&mut XdrIn::new(&bytes));
        result.unwrap()
    }
    let time = |seconds, nseconds| nfs3::nfstime3 { seconds, nseconds };
    let theirs = nfs3::fattr3 {
        type_: nfs3::ftype3::NF3LNK,
        mode: 1,
        nlink: 2,
        uid: 3,
        gid: 4,
        size: 5,
        used: 6,
        rdev: nfs3::specdata3 { specdata1: 7, specdata2: 8 },
        fsid: 9,
        fileid: 10,
        atime: time(11, 12),
        mtime: time(13, 14),
        ctime: time(15, 16),
    };
    let time = |seconds, nanoseconds| v3::TimeSpec3 { seconds, nanoseconds };
    let ours = v3::FileAttributes {
        kind: v3::FileKind::Symlink,
        mode: 1,
        nlink: 2,
        uid: 3,
        gid: 4,
        size: 5,
        used: 6,
        device: v3::Device { major: 7, minor: 8 },
        fsid: 9,
        fileid: 10,
        atime: time(11, 12),
        mtime: time(13, 14),
        ctime: time(15, 16),
    };
    assert_eq!(read::<v3::FileAttributes>(&theirs), ours);
    let theirs = nfs3::FSINFO3resok {
        obj_attributes: nfs3::post_op_attr::None,
        rtmax: 1,
        rtpref: 2,
        rtmult: 3,
        wtmax: 4,
        wtpref: 5,
        wtmult: 6,
        dtpref: 7,
        maxfilesize: 8,
        time_delta: nfs3::nfstime3 { seconds: 9, nseconds: 10 },
        properties: nfs3::FSF3_SYMLINK,
    };
    let ours = v3::FsInfoOk {
        attributes: None,
        read_max: 1,
        read_preferred: 2,
        read_multiple: 3,
        write_max: 4,
        write_preferred: 5,
        write_multiple: 6,
        readdir_preferred: 7,
        file_bytes_max: 8,
        time_delta: time(9, 10),
        properties: v3::properties::SYMLINK,
    };
    assert_eq!(read::<v3::FsInfoOk>(&theirs), ours);
}

#[test]
fn statuses_have_the_same_names() {
    let mut named = 0;
    for number in 0..20_000u32 {
        let bytes = number.to_be_bytes();
        let theirs = nfs3::nfsstat3::unpack(&mut Cursor::new(&bytes[..])).map(|read| read.0);
        let ours = v3::Status3(number);
        match theirs {
            Ok(theirs) => assert_eq!(ours.to_string(), format!("{theirs:?}")),
            Err(_) => assert_eq!(ours.name(), None),
        }
        named += u32::from(ours.name().is_some());
        let theirs = mount3::mountstat3::unpack(&mut Cursor::new(&bytes[..])).map(|read| read.0);
        let theirs = theirs.ok().map(|status| status.to_string());
        assert_eq!(mount::MountStatus(number).name(), theirs.as_deref());
    }
    assert_eq!(named, 29);
}
