//! NFS, MOUNT and the portmapper without sockets: a request's bytes in, a reply's bytes out.

mod mount;
mod portmap;
mod replay;
mod v2;
mod v3;
mod v4;

use std::net::IpAddr;
use std::sync::Arc;

use plimsoll_servers::delay::Work;

use self::mount::Mounts;
use self::replay::{Begun, Key, Replays};
use super::store::{Caller, Object, Status3, Store};
use crate::wire::rpc::{
    AUTH_NONE, AUTH_SYS, Call, CallError, ReplyOutcome, auth, encode_reply, encode_reply_success,
};
use crate::wire::{Decode, XdrIn, mount as mount_wire, portmap as portmap_wire};

pub use self::portmap::Registered;
pub use self::v4::{Counts, FewerSlots, Nfs4, Nfs4Config};

/// The one export.
pub const EXPORT: &str = "/export";

/// Program number of NFS.
const NFS: u32 = 100_003;

/// Versions of NFS that come over TCP and UDP.
const NFS_VERSIONS: [u32; 2] = [2, 3];
/// The one that comes over TCP alone: version 4.1.
const NFS_STREAM_VERSION: u32 = 4;
/// Versions of MOUNT here; 2 is 1 with PATHCONF, which nobody requests.
const MOUNT_VERSIONS: [u32; 2] = [1, 3];

/// User and group of callers without credentials.
const NOBODY: u32 = 65_534;

/// Most data bytes of a READ or WRITE on a stream.
pub(super) const STREAM_DATA_BYTES_MAX: u32 = 1 << 20;
/// Most data bytes of a READ or WRITE in a datagram, of which UDP carries 64 KiB.
pub(super) const DATAGRAM_DATA_BYTES_MAX: u32 = 32 << 10;

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Address of the client. Its port does not count: a client that reconnects has another one,
    /// and its repeated calls must still be recognised.
    pub address: IpAddr,
    /// How it came.
    pub link: Link,
}

/// How a request came; this limits the length of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
}

impl Link {
    fn data_bytes_max(self) -> u32 {
        match self {
            Self::Stream => STREAM_DATA_BYTES_MAX,
            Self::Datagram => DATAGRAM_DATA_BYTES_MAX,
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The reply has been appended.
    Replied,
    /// It is no RPC call, so there is no caller to answer.
    NoCall,
}

/// The server without sockets. Called from many threads at once.
pub struct NfsCore {
    store: Store,
    mounts: Mounts,
    replays: Replays,
    registered: Option<Registered>,
    work: Work,
    /// The only version of NFS that is served.
    version: Option<u32>,
    v4: Arc<Nfs4>,
}

/// A call with its program and its caller.
struct CallContext<'a> {
    peer: &'a Peer,
    caller: Caller,
    procedure: u32,
    arguments: XdrIn<'a>,
    /// Bytes of the whole call.
    message_bytes: usize,
}

impl<'a> CallContext<'a> {
    /// The whole of the arguments, or GARBAGE_ARGS.
    fn arguments<T: Decode<'a>>(&self) -> Result<T, ReplyOutcome> {
        let mut input = self.arguments;
        let decoded = T::decode(&mut input).map_err(|_| ReplyOutcome::GarbageArguments)?;
        input.finish().map_err(|_| ReplyOutcome::GarbageArguments)?;
        Ok(decoded)
    }
}

impl NfsCore {
    /// Serves `store` as [`EXPORT`].
    pub fn new(store: Store) -> Self {
        let (mounts, replays) = (Mounts::default(), Replays::new());
        let v4 = Arc::new(Nfs4::new(store.instance(), Nfs4Config::default()));
        let (registered, work, version) = (None, Work::default(), None);
        Self { store, mounts, replays, registered, work, version, v4 }
    }

    /// Serves version 4.1 in this manner.
    pub fn with_v4(self, config: Nfs4Config) -> Self {
        Self { v4: Arc::new(Nfs4::new(self.store.instance(), config)), ..self }
    }

    /// Serves no other version of NFS; `None`: all.
    pub fn with_version(self, version: Option<u32>) -> Self {
        Self { version, ..self }
    }

    /// The sessions of version 4.1.
    pub fn v4(&self) -> &Arc<Nfs4> {
        &self.v4
    }

    /// Answers for the portmapper as well.
    pub fn with_portmapper(mut self, registered: Registered) -> Self {
        self.registered = Some(registered);
        self
    }

    /// Does additional work for each call.
    pub fn with_work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// Appends the reply to one message; record marking is the caller's.
    pub fn answer(&self, peer: &Peer, request: &[u8], reply: &mut Vec<u8>) -> Answered {
        let mut input = XdrIn::new(request);
        let call = match Call::decode(&mut input) {
            Ok(call) => call,
            Err(CallError::NoCall(_)) => return Answered::NoCall,
            Err(CallError::Answer { xid, outcome }) => {
                encode_reply(reply, xid, outcome);
                return Answered::Replied;
            }
        };
        let message_bytes = request.len();
        if !is_remembered(&call) {
            self.execute(peer, &call, (input, message_bytes), reply);
            return Answered::Replied;
        }
        let key = Key::new(peer.address, &call, input.rest());
        match self.replays.begin(key) {
            Begun::Cached(cached) => reply.extend_from_slice(&cached),
            Begun::First(execution) => {
                let start = reply.len();
                self.execute(peer, &call, (input, message_bytes), reply);
                execution.done(&reply[start..]);
            }
        }
        Answered::Replied
    }

    fn execute(
        &self,
        peer: &Peer,
        call: &Call<'_>,
        (arguments, message_bytes): (XdrIn<'_>, usize),
        reply: &mut Vec<u8>,
    ) {
        self.work.spend();
        let start = reply.len();
        encode_reply_success(reply, call.xid);
        let dispatched = caller_of(call).and_then(|caller| {
            let procedure = call.procedure;
            let context = CallContext { peer, caller, procedure, arguments, message_bytes };
            self.dispatch(call, &context, reply)
        });
        if let Err(outcome) = dispatched {
            reply.truncate(start);
            encode_reply(reply, call.xid, outcome);
        }
    }

    fn dispatch(
        &self,
        call: &Call<'_>,
        context: &CallContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ReplyOutcome> {
        match (call.program, call.version) {
            (NFS, version) => {
                let [low, high] = self.nfs_versions(context.peer.link);
                match version {
                    _ if version < low || version > high => Err(mismatch([low, high])),
                    2 => v2::answer(self, context, out),
                    3 => v3::answer(self, context, out),
                    _ => v4::answer(self, context, out),
                }
            }
            (mount_wire::PROGRAM, version) if MOUNT_VERSIONS.contains(&version) => {
                mount::answer(self, version, context, out)
            }
            (mount_wire::PROGRAM, _) => Err(mismatch(MOUNT_VERSIONS)),
            (portmap_wire::PROGRAM, version) => match &self.registered {
                Some(registered) if version == portmap_wire::VERSION => {
                    portmap::answer(registered, context, out)
                }
                Some(_) => Err(mismatch([portmap_wire::VERSION; 2])),
                None => Err(ReplyOutcome::ProgramUnavailable),
            },
            _ => Err(ReplyOutcome::ProgramUnavailable),
        }
    }

    /// Lowest and highest version of NFS that is served there.
    fn nfs_versions(&self, link: Link) -> [u32; 2] {
        match (self.version, link) {
            (Some(version), _) => [version; 2],
            (None, Link::Stream) => [NFS_VERSIONS[0], NFS_STREAM_VERSION],
            (None, Link::Datagram) => NFS_VERSIONS,
        }
    }

    fn handle_of(&self, object: Object) -> [u8; HANDLE_BYTES] {
        write_handle(self.store.instance(), object)
    }

    fn object_of(&self, handle: &[u8]) -> Result<Object, Status3> {
        read_handle(self.store.instance(), handle)
    }
}

impl std::fmt::Debug for NfsCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NfsCore").field("registered", &self.registered).finish_non_exhaustive()
    }
}

fn mismatch([low, high]: [u32; 2]) -> ReplyOutcome {
    ReplyOutcome::ProgramMismatch { low, high }
}

/// Who calls. NULL needs no credentials.
fn caller_of(call: &Call<'_>) -> Result<Caller, ReplyOutcome> {
    let nobody = Caller { uid: NOBODY, gid: NOBODY };
    match call.credential.flavor {
        _ if call.procedure == 0 => Ok(nobody),
        AUTH_NONE => Ok(nobody),
        AUTH_SYS => match call.credential.system() {
            Some(Ok(system)) => Ok(Caller { uid: system.uid, gid: system.gid }),
            _ => Err(ReplyOutcome::AuthError(auth::BAD_CREDENTIAL)),
        },
        _ => Err(ReplyOutcome::AuthError(auth::TOO_WEAK)),
    }
}

/// Whether a second execution of a call would have another effect than the first.
fn is_remembered(call: &Call<'_>) -> bool {
    match (call.program, call.version) {
        (NFS, 3) => v3::is_remembered(call.procedure),
        (NFS, 2) => v2::is_remembered(call.procedure),
        _ => false,
    }
}

/// Bytes of a handle in both versions, which is all that NFSv2 has room for.
///
/// instance (8) · id (8) · generation (8) · nothing (8). The instance tells starts of the server
/// apart, the generation tells objects that had the same id apart. Nothing in a handle is secret: a
/// forged one reaches only what any client can reach.
const HANDLE_BYTES: usize = 32;

fn write_handle(instance: u64, object: Object) -> [u8; HANDLE_BYTES] {
    let mut bytes = [0; HANDLE_BYTES];
    let fields = [instance, object.id, object.generation];
    for (part, word) in bytes.chunks_exact_mut(8).zip(fields) {
        part.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

fn read_handle(instance: u64, handle: &[u8]) -> Result<Object, Status3> {
    let handle: &[u8; HANDLE_BYTES] = handle.try_into().map_err(|_| Status3::BADHANDLE)?;
    let (fields, _) = handle.as_chunks::<8>();
    let [handle_instance, id, generation] = [0, 1, 2].map(|at| u64::from_be_bytes(fields[at]));
    if handle_instance != instance { Err(Status3::STALE) } else { Ok(Object { id, generation }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_and_a_foreign_one_does_not() {
        let object = Object { id: 7, generation: 8 };
        let handle = write_handle(3, object);
        assert_eq!(read_handle(3, &handle), Ok(object));
        assert_eq!(read_handle(4, &handle), Err(Status3::STALE));
        for wrong in [0, 31, 33, 64] {
            assert_eq!(read_handle(3, &vec![0; wrong]), Err(Status3::BADHANDLE));
        }
    }
}
