//! A client in memory, for tests that call the server's core.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_nfs::server::store::Store;
use plimsoll_nfs::server::{Answered, BackChannel, Link, NfsCore, Peer};
use plimsoll_nfs::wire::rpc::{AuthSys, Credential, ReplyHead, ReplyOutcome, encode_call};
use plimsoll_nfs::wire::xdr::U32List;
use plimsoll_nfs::wire::{Decode, Encode, Name, Path, XdrIn, mount, v2, v3};

pub const NFS: u32 = 100_003;

/// A server without sockets.
pub struct Server {
    pub core: NfsCore,
    pub link: Link,
    pub xid: AtomicU32,
}

/// A server with room for most tests.
pub fn roomy() -> Server {
    in_memory(64 << 20)
}

pub fn in_memory(bytes_max: u64) -> Server {
    let core = NfsCore::new(Store::new(bytes_max));
    Server { core, link: Link::Stream, xid: AtomicU32::new(1) }
}

/// A call's bytes.
pub fn encoded(xid: u32, program: (u32, u32), procedure: u32, arguments: &dyn Encode) -> Vec<u8> {
    let credential = Credential::system(&AuthSys {
        stamp: 1,
        machine: Name::from("test"),
        uid: 1000,
        gid: 100,
        gids: U32List::Values(&[]),
    });
    let mut call = Vec::new();
    encode_call(&mut call, xid, program, procedure, &credential);
    arguments.encode(&mut call);
    call
}

impl Server {
    pub fn next_xid(&self) -> u32 {
        self.xid.fetch_add(1, Ordering::Relaxed)
    }

    /// The reply to a message, `None` where there is none.
    pub fn raw(&self, call: &[u8]) -> Option<Vec<u8>> {
        self.raw_on(None, call)
    }

    /// The same over a connection that carries callbacks.
    pub fn raw_on(&self, back: Option<&Arc<BackChannel>>, call: &[u8]) -> Option<Vec<u8>> {
        let peer = Peer { address: IpAddr::from([127, 0, 0, 1]), link: self.link };
        let mut reply = Vec::new();
        let answered = self.core.answer_on(&peer, back, call, &mut reply);
        (answered == Answered::Replied).then_some(reply)
    }

    /// Outcome and results of a call.
    pub fn call(
        &self,
        program: (u32, u32),
        procedure: u32,
        arguments: &dyn Encode,
    ) -> (ReplyOutcome, Vec<u8>) {
        let xid = self.next_xid();
        let reply = self.raw(&encoded(xid, program, procedure, arguments)).unwrap();
        let mut input = XdrIn::new(&reply);
        let head = ReplyHead::decode(&mut input).unwrap();
        assert_eq!(head.xid, xid);
        (head.outcome, input.rest().to_vec())
    }

    /// Results of a call that the RPC layer lets through.
    pub fn results(&self, program: (u32, u32), procedure: u32, arguments: &dyn Encode) -> Vec<u8> {
        let (outcome, results) = self.call(program, procedure, arguments);
        assert_eq!(outcome, ReplyOutcome::Success);
        results
    }

    pub fn v3(&self, procedure: v3::Procedure, arguments: &dyn Encode) -> Vec<u8> {
        self.results((NFS, 3), procedure.number(), arguments)
    }

    pub fn v2(&self, procedure: v2::Procedure, arguments: &dyn Encode) -> Vec<u8> {
        self.results((NFS, 2), procedure.number(), arguments)
    }

    /// Handle of the export.
    pub fn root(&self) -> Vec<u8> {
        let arguments = Path::from("/export");
        let results = self.results((mount::PROGRAM, 3), 1, &arguments);
        match decoded::<mount::Mount3Res<'_>>(&results) {
            mount::Mount3Res::Ok(ok) => ok.handle.bytes().to_vec(),
            mount::Mount3Res::Err(status, ()) => panic!("{status}"),
        }
    }

    /// Makes a file and gives its handle.
    pub fn create(&self, dir: &[u8], name: &str) -> Vec<u8> {
        self.try_create(dir, name).unwrap()
    }

    pub fn try_create(&self, dir: &[u8], name: &str) -> Result<Vec<u8>, v3::Status3> {
        let how = v3::CreateHow::Unchecked(v3::SetAttributes::default());
        let arguments = v3::CreateArgs { dir: handle(dir), name: Name::from(name), how };
        created(&self.v3(v3::Procedure::Create, &arguments))
    }

    /// Whether the beginning of a directory could be listed with attributes.
    pub fn list_some(&self, dir: &[u8]) -> v3::Status3 {
        let arguments = v3::ReadDirPlusArgs {
            dir: handle(dir),
            cookie: 0,
            verifier: [0; 8],
            dir_count: 4096,
            max_count: 8192,
        };
        let results = self.v3(v3::Procedure::ReadDirPlus, &arguments);
        decoded::<v3::ReadDirPlusRes<'_>>(&results).status()
    }

    pub fn make_directory(&self, dir: &[u8], name: &str) -> Vec<u8> {
        let attributes = v3::SetAttributes::default();
        let arguments = v3::MkDirArgs { dir: handle(dir), name: Name::from(name), attributes };
        created(&self.v3(v3::Procedure::MkDir, &arguments)).unwrap()
    }

    pub fn symlink(&self, dir: &[u8], name: &str, text: &str) -> Vec<u8> {
        let arguments = v3::SymlinkArgs {
            dir: handle(dir),
            name: Name::from(name),
            attributes: v3::SetAttributes::default(),
            path: Path::from(text),
        };
        created(&self.v3(v3::Procedure::Symlink, &arguments)).unwrap()
    }

    pub fn lookup(&self, dir: &[u8], name: &[u8]) -> Result<Vec<u8>, v3::Status3> {
        let arguments = v3::DirOpArgs { dir: handle(dir), name: Name(name) };
        let results = self.v3(v3::Procedure::Lookup, &arguments);
        decoded::<v3::LookupRes<'_>>(&results).ok().map(|ok| ok.object.bytes().to_vec())
    }

    pub fn attributes(&self, object: &[u8]) -> Result<v3::FileAttributes, v3::Status3> {
        let arguments = handle(object);
        let results = self.v3(v3::Procedure::GetAttr, &arguments);
        decoded::<v3::GetAttrRes>(&results).ok()
    }

    pub fn write(&self, file: &[u8], offset: u64, data: &[u8]) -> Result<v3::WriteOk, v3::Status3> {
        let arguments = v3::WriteArgs {
            file: handle(file),
            offset,
            count: data.len() as u32,
            stable: v3::StableHow::Unstable,
            data,
        };
        decoded::<v3::WriteRes>(&self.v3(v3::Procedure::Write, &arguments)).ok()
    }

    /// Data and whether the file ends behind it.
    pub fn read(
        &self,
        file: &[u8],
        offset: u64,
        count: u32,
    ) -> Result<(Vec<u8>, bool), v3::Status3> {
        let arguments = v3::ReadArgs { file: handle(file), offset, count };
        let results = self.v3(v3::Procedure::Read, &arguments);
        decoded::<v3::ReadRes<'_>>(&results).ok().map(|ok| {
            assert_eq!(ok.count as usize, ok.data.len());
            (ok.data.to_vec(), ok.eof)
        })
    }

    pub fn remove(&self, dir: &[u8], name: &str) -> v3::Status3 {
        let arguments = v3::DirOpArgs { dir: handle(dir), name: Name::from(name) };
        decoded::<v3::RemoveRes>(&self.v3(v3::Procedure::Remove, &arguments)).status()
    }

    pub fn remove_directory(&self, dir: &[u8], name: &str) -> v3::Status3 {
        let arguments = v3::DirOpArgs { dir: handle(dir), name: Name::from(name) };
        decoded::<v3::RemoveRes>(&self.v3(v3::Procedure::RmDir, &arguments)).status()
    }

    pub fn rename(&self, from: (&[u8], &str), to: (&[u8], &str)) -> v3::Status3 {
        let arguments = v3::RenameArgs {
            from_dir: handle(from.0),
            from_name: Name::from(from.1),
            to_dir: handle(to.0),
            to_name: Name::from(to.1),
        };
        decoded::<v3::RenameRes>(&self.v3(v3::Procedure::Rename, &arguments)).status()
    }

    /// All names of a directory, `count` bytes at a time.
    pub fn names(&self, dir: &[u8], count: u32) -> Vec<String> {
        let (mut cookie, mut verifier, mut names) = (0, [0; 8], Vec::new());
        loop {
            let arguments = v3::ReadDirArgs { dir: handle(dir), cookie, verifier, count };
            let results = self.v3(v3::Procedure::ReadDir, &arguments);
            assert!(results.len() <= count as usize + 8, "{} > {count}", results.len());
            let ok = decoded::<v3::ReadDirRes<'_>>(&results).ok().unwrap();
            for entry in ok.entries.iter() {
                names.push(entry.name.to_string());
                cookie = entry.cookie;
            }
            if ok.eof {
                return names;
            }
            verifier = ok.verifier;
        }
    }
}

pub fn handle(bytes: &[u8]) -> v3::Handle<'_> {
    v3::Handle::new(bytes).unwrap()
}

/// The whole of some bytes.
pub fn decoded<'a, T: Decode<'a>>(bytes: &'a [u8]) -> T {
    let mut input = XdrIn::new(bytes);
    let value = T::decode(&mut input).unwrap();
    input.finish().unwrap();
    value
}

/// Handle of what CREATE, MKDIR, SYMLINK or MKNOD made.
pub fn created(results: &[u8]) -> Result<Vec<u8>, v3::Status3> {
    decoded::<v3::CreateRes<'_>>(results).ok().map(|ok| ok.object.unwrap().bytes().to_vec())
}
