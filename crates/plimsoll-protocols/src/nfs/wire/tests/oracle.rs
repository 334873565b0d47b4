//! The same messages through another implementation, the `nfs3_types` crate.

use std::io::Cursor;

use nfs3_types::nfs3;
use nfs3_types::xdr_codec::{Pack, Unpack};
use proptest::prelude::*;

use super::{Draw, Sample, encoded};
use crate::nfs::wire::v3;
use crate::nfs::wire::xdr::{Decode, XdrIn};

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
            v3::GetAttrArgs<'_> => nfs3::GETATTR3args;
            v3::SetAttrArgs<'_> => nfs3::SETATTR3args;
            v3::LookupArgs<'_> => nfs3::LOOKUP3args<'_>;
            v3::AccessArgs<'_> => nfs3::ACCESS3args;
            v3::ReadLinkArgs<'_> => nfs3::READLINK3args;
            v3::ReadArgs<'_> => nfs3::READ3args;
            v3::WriteArgs<'_> => nfs3::WRITE3args<'_>;
            v3::CreateArgs<'_> => nfs3::CREATE3args<'_>;
            v3::MkDirArgs<'_> => nfs3::MKDIR3args<'_>;
            v3::SymlinkArgs<'_> => nfs3::SYMLINK3args<'_>;
            v3::RemoveArgs<'_> => nfs3::REMOVE3args<'_>;
            v3::RmDirArgs<'_> => nfs3::RMDIR3args<'_>;
            v3::RenameArgs<'_> => nfs3::RENAME3args<'_, '_>;
            v3::LinkArgs<'_> => nfs3::LINK3args<'_>;
            v3::ReadDirArgs<'_> => nfs3::READDIR3args;
            v3::ReadDirPlusArgs<'_> => nfs3::READDIRPLUS3args;
            v3::FsStatArgs<'_> => nfs3::FSSTAT3args;
            v3::FsInfoArgs<'_> => nfs3::FSINFO3args;
            v3::PathConfArgs<'_> => nfs3::PATHCONF3args;
            v3::CommitArgs<'_> => nfs3::COMMIT3args;
        }
    }

    #[test]
    fn results_agree(drawn in prop::collection::vec(any::<u8>(), 1..600)) {
        check! { &drawn,
            v3::GetAttrOk => nfs3::GETATTR3resok;
            v3::SetAttrOk => nfs3::SETATTR3resok;
            v3::LookupOk<'_> => nfs3::LOOKUP3resok;
            v3::AccessOk => nfs3::ACCESS3resok;
            v3::ReadLinkOk<'_> => nfs3::READLINK3resok<'_>;
            v3::ReadOk<'_> => nfs3::READ3resok<'_>;
            v3::WriteOk => nfs3::WRITE3resok;
            v3::CreateOk<'_> => nfs3::CREATE3resok;
            v3::RemoveOk => nfs3::REMOVE3resok;
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
}
