//! The reference server's core behind a [`Dial`]: set-up and server joined in memory, with faults
//! of networks and servers where a test needs them.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_nfs::server::store::Store;
use plimsoll_nfs::server::{Link, NfsCore, Peer, Registered};
use plimsoll_nfs::wire::rpc::{Call, ReplyOutcome, encode_reply};
use plimsoll_nfs::wire::{XdrIn, mount, portmap, record};
use plimsoll_protocol::net::{
    Caller, Channel, ChannelError, Dial, LinkKind, NonconformityLog, SourcePort,
};

/// The port that the server reports.
pub const PORT: u16 = 2049;
/// Where it is.
pub const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// What a server does with a request instead of its core. `None` leaves it to the core; an answer
/// of no bytes is silence.
pub type Fault = dyn Fn(&Request<'_>, &mut Vec<u8>) -> Option<()> + Send + Sync;

/// A request a test may look at.
pub struct Request<'a> {
    /// Its head.
    pub call: Call<'a>,
    /// All of it.
    pub bytes: &'a [u8],
    /// Ports of the channel it came on.
    pub source: SourcePort,
    /// The honest server.
    pub core: &'a NfsCore,
    /// The client.
    pub peer: Peer,
}

impl Request<'_> {
    /// What the honest server replies.
    pub fn honest(&self, reply: &mut Vec<u8>) {
        self.core.answer(&self.peer, self.bytes, reply);
    }

    /// Program and procedure.
    pub fn is(&self, program: u32, procedure: u32) -> bool {
        (self.call.program, self.call.procedure) == (program, procedure)
    }
}

/// A host with an NFS server, in memory.
pub struct Host {
    core: Arc<NfsCore>,
    has_portmapper: bool,
    has_mount: bool,
    fault: Option<Arc<Fault>>,
    /// In each direction one in this many datagrams is lost, and another one comes twice.
    pub unreliable_one_in: Option<u64>,
    /// Bytes of a fragment of a reply, and of what arrives at once, on streams.
    pub fragment_bytes: usize,
    datagrams: Arc<AtomicU64>,
    /// What set-up notes of its replies.
    pub log: NonconformityLog,
}

impl Host {
    /// With `bytes` bytes of memory.
    pub fn new(bytes: u64) -> Self {
        let core = NfsCore::new(Store::new(bytes));
        Self::serving(Arc::new(core.with_portmapper(Registered { port: PORT })))
    }

    /// With this server.
    pub fn serving(core: Arc<NfsCore>) -> Self {
        Self {
            core,
            has_portmapper: true,
            has_mount: true,
            fault: None,
            unreliable_one_in: None,
            fragment_bytes: usize::MAX,
            datagrams: Arc::default(),
            log: NonconformityLog::default(),
        }
    }

    /// Nobody listens on port 111.
    pub fn without_portmapper(mut self) -> Self {
        self.has_portmapper = false;
        self
    }

    /// Nor is there a MOUNT service at the port of NFS.
    pub fn without_mount(mut self) -> Self {
        self.has_mount = false;
        self
    }

    /// The same files behind a server that gives wrong replies.
    pub fn with_fault(
        mut self,
        fault: impl Fn(&Request<'_>, &mut Vec<u8>) -> Option<()> + Send + Sync + 'static,
    ) -> Self {
        self.fault = Some(Arc::new(fault));
        self
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

impl Dial for Host {
    fn dial(
        &self,
        address: SocketAddr,
        kind: LinkKind,
        source: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        let is_open =
            address.port() == PORT || (self.has_portmapper && address.port() == portmap::PORT);
        if !is_open {
            return Err(ChannelError::Failed(io::ErrorKind::ConnectionRefused.into()));
        }
        let link = match kind {
            LinkKind::Stream => Link::Stream,
            LinkKind::Datagram => Link::Datagram,
        };
        Ok(Box::new(Wire {
            core: Arc::clone(&self.core),
            fault: self.fault.clone(),
            has_mount: self.has_mount,
            peer: Peer { address: HOST, link },
            source,
            kind,
            requests: record::Assembler::new(),
            stream: Vec::new(),
            replies: Vec::new(),
            fragment_bytes: self.fragment_bytes,
            unreliable_one_in: self.unreliable_one_in,
            datagrams: Arc::clone(&self.datagrams),
        }))
    }

    fn nonconformities(&self) -> NonconformityLog {
        self.log.clone()
    }

    fn caller(&self) -> Caller {
        Caller { host: "client".to_owned(), may_reserve_ports: true, nonce: 7, ..Caller::default() }
    }
}

/// One channel.
struct Wire {
    core: Arc<NfsCore>,
    fault: Option<Arc<Fault>>,
    has_mount: bool,
    peer: Peer,
    source: SourcePort,
    kind: LinkKind,
    requests: record::Assembler,
    /// Replies on a stream, not yet received.
    stream: Vec<u8>,
    /// Replies as datagrams, the next one last.
    replies: Vec<Vec<u8>>,
    fragment_bytes: usize,
    unreliable_one_in: Option<u64>,
    datagrams: Arc<AtomicU64>,
}

impl Wire {
    fn answer(&self, bytes: &[u8]) -> Vec<u8> {
        let mut reply = Vec::new();
        let call = Call::decode(&mut XdrIn::new(bytes)).unwrap();
        let request =
            Request { call, bytes, source: self.source, core: &self.core, peer: self.peer };
        if call.program == mount::PROGRAM && !self.has_mount {
            let outcome = ReplyOutcome::ProgramUnavailable;
            encode_reply(&mut reply, call.xid, outcome);
            return reply;
        }
        let deceived = self.fault.as_ref().and_then(|fault| fault(&request, &mut reply));
        if deceived.is_none() {
            request.honest(&mut reply);
        }
        reply
    }

    fn put_on_stream(&mut self, reply: &[u8]) {
        let mut rest = reply;
        while !rest.is_empty() {
            let (fragment, after) = rest.split_at(rest.len().min(self.fragment_bytes));
            let last = if after.is_empty() { 1 << 31 } else { 0 };
            let head = last | fragment.len() as u32;
            self.stream.extend_from_slice(&head.to_be_bytes());
            self.stream.extend_from_slice(fragment);
            rest = after;
        }
    }

    /// 0: lost, 1: once, 2: twice.
    fn copies(&self) -> usize {
        let number = self.datagrams.fetch_add(1, Ordering::Relaxed);
        match self.unreliable_one_in.map(|n| number % n) {
            Some(0) => 0,
            Some(3) => 2,
            _ => 1,
        }
    }
}

impl Channel for Wire {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        if self.kind == LinkKind::Stream {
            let mut requests = Vec::new();
            let each = |request: &[u8]| {
                requests.push(request.to_vec());
                Ok::<_, record::RecordTooLong>(())
            };
            self.requests.push(bytes, each).unwrap();
            for request in requests {
                let reply = self.answer(&request);
                self.put_on_stream(&reply);
            }
            return Ok(());
        }
        for _ in 0..self.copies() {
            let reply = self.answer(bytes);
            for _ in 0..self.copies() {
                if !reply.is_empty() {
                    self.replies.insert(0, reply.clone());
                }
            }
        }
        Ok(())
    }

    /// Time does not pass: nothing more arrives.
    fn receive(&mut self, into: &mut Vec<u8>, _: Duration) -> Result<(), ChannelError> {
        if self.kind == LinkKind::Datagram {
            into.extend(self.replies.pop().ok_or(ChannelError::Timeout)?);
            return Ok(());
        }
        if self.stream.is_empty() {
            return Err(ChannelError::Timeout);
        }
        let bytes = self.stream.len().min(self.fragment_bytes.saturating_add(3));
        into.extend(self.stream.drain(..bytes));
        Ok(())
    }
}
