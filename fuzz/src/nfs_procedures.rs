//! Every procedure of NFS, MOUNT and the portmapper, and every operation of NFSv4.1.

/// Passes the procedures, with the types of their arguments and results, to a macro. The tests of
/// `plimsoll-nfs` use the table too.
#[macro_export]
macro_rules! every_procedure {
    ($take:ident) => {
        $take! {
            portmap Null: (), ();
            portmap Set: portmap::Mapping, bool;
            portmap Unset: portmap::Mapping, bool;
            portmap GetPort: portmap::Mapping, u32;
            portmap Dump: (), portmap::DumpRes;
            portmap CallIt: (), ();
            mount Null: (), ();
            mount Mount: Path, mount::Mount1Res;
            mount Mount: Path, mount::Mount3Res;
            mount Dump: (), mount::DumpRes;
            mount Unmount: Path, ();
            mount UnmountAll: (), ();
            mount Export: (), mount::ExportRes;
            v2 Null: (), ();
            v2 GetAttr: v2::Handle2, v2::Reply2<v2::FileAttributes2>;
            v2 SetAttr: v2::SetAttrArgs, v2::Reply2<v2::FileAttributes2>;
            v2 Root: (), ();
            v2 Lookup: v2::DirOpArgs, v2::Reply2<v2::DirOpOk>;
            v2 ReadLink: v2::Handle2, v2::Reply2<Path>;
            v2 Read: v2::ReadArgs, v2::Reply2<v2::ReadOk>;
            v2 WriteCache: (), ();
            v2 Write: v2::WriteArgs, v2::Reply2<v2::FileAttributes2>;
            v2 Create: v2::CreateArgs, v2::Reply2<v2::DirOpOk>;
            v2 Remove: v2::DirOpArgs, v2::Reply2<()>;
            v2 Rename: v2::RenameArgs, v2::Reply2<()>;
            v2 Link: v2::LinkArgs, v2::Reply2<()>;
            v2 Symlink: v2::SymlinkArgs, v2::Reply2<()>;
            v2 MkDir: v2::CreateArgs, v2::Reply2<v2::DirOpOk>;
            v2 RmDir: v2::DirOpArgs, v2::Reply2<()>;
            v2 ReadDir: v2::ReadDirArgs, v2::Reply2<v2::ReadDirOk>;
            v2 StatFs: v2::Handle2, v2::Reply2<v2::StatFsOk>;
            v3 Null: (), ();
            v3 GetAttr: v3::Handle, v3::GetAttrRes;
            v3 SetAttr: v3::SetAttrArgs, v3::SetAttrRes;
            v3 Lookup: v3::DirOpArgs, v3::LookupRes;
            v3 Access: v3::AccessArgs, v3::AccessRes;
            v3 ReadLink: v3::Handle, v3::ReadLinkRes;
            v3 Read: v3::ReadArgs, v3::ReadRes;
            v3 Write: v3::WriteArgs, v3::WriteRes;
            v3 Create: v3::CreateArgs, v3::CreateRes;
            v3 MkDir: v3::MkDirArgs, v3::CreateRes;
            v3 Symlink: v3::SymlinkArgs, v3::CreateRes;
            v3 MkNod: v3::MkNodArgs, v3::CreateRes;
            v3 Remove: v3::DirOpArgs, v3::RemoveRes;
            v3 RmDir: v3::DirOpArgs, v3::RemoveRes;
            v3 Rename: v3::RenameArgs, v3::RenameRes;
            v3 Link: v3::LinkArgs, v3::LinkRes;
            v3 ReadDir: v3::ReadDirArgs, v3::ReadDirRes;
            v3 ReadDirPlus: v3::ReadDirPlusArgs, v3::ReadDirPlusRes;
            v3 FsStat: v3::Handle, v3::FsStatRes;
            v3 FsInfo: v3::Handle, v3::FsInfoRes;
            v3 PathConf: v3::Handle, v3::PathConfRes;
            v3 Commit: v3::CommitArgs, v3::CommitRes;
        }
    };
}

/// Passes the operations of NFSv4.1 and of its callbacks, with the types of their arguments and of
/// what they answer when they succeed, to a macro. The tests of `plimsoll-nfs` use the table too.
#[macro_export]
macro_rules! every_operation {
    ($take:ident) => {
        $take! {
            Operation Access: u32, v4::AccessOk4;
            Operation Close: v4::CloseArgs, v4::StateId;
            Operation Commit: v4::CommitArgs4, v4::Verifier;
            Operation Create: v4::CreateArgs4, v4::CreateOk4;
            Operation DelegReturn: v4::StateId, ();
            Operation GetAttr: v4::Bitmap, v4::Attributes4;
            Operation GetFh: (), v4::Handle4;
            Operation Lookup: Name, ();
            Operation Open: v4::OpenArgs, v4::OpenOk;
            Operation PutFh: v4::Handle4, ();
            Operation PutRootFh: (), ();
            Operation Read: v4::ReadArgs4, v4::ReadOk4;
            Operation ReadDir: v4::ReadDirArgs4, v4::ReadDirOk4;
            Operation ReadLink: (), Path;
            Operation Remove: Name, v4::ChangeInfo;
            Operation Rename: v4::RenameArgs4, v4::RenameOk4;
            Operation RestoreFh: (), ();
            Operation SaveFh: (), ();
            Operation SetAttr: v4::SetAttrArgs4, v4::Bitmap;
            Operation Write: v4::WriteArgs4, v4::WriteOk4;
            Operation BindConnToSession: v4::BindConnection, v4::BindConnection;
            Operation ExchangeId: v4::ExchangeIdArgs, v4::ExchangeIdOk;
            Operation CreateSession: v4::CreateSessionArgs, v4::CreateSessionOk;
            Operation DestroySession: v4::SessionId, ();
            Operation Sequence: v4::SequenceArgs, v4::SequenceOk;
            Operation DestroyClientId: u64, ();
            Operation ReclaimComplete: bool, ();
            Operation Illegal: (), ();
            CallbackOperation Recall: v4::CbRecallArgs, ();
            CallbackOperation Sequence: v4::CbSequenceArgs, v4::CbSequenceOk;
        }
    };
}
