//! A client of NFSv4.1 in memory, for tests that call the server's core.

use std::cell::RefCell;

use super::calls::{NFS, Server, decoded, encoded};
use plimsoll_nfs::wire::v4::{
    Attributes4, Bitmap, CallbackSecurity, ChannelLimits, CloseArgs, CompoundReply, CompoundWriter,
    CreateSessionArgs, CreateSessionOk, ExchangeIdArgs, ExchangeIdOk, Handle4, NoProtection,
    Opaque, OpenArgs, OpenClaim, OpenHow, OpenOk, Operation, SequenceArgs, SequenceOk, SessionId,
    StateId, Status4, attribute, share,
};
use plimsoll_nfs::wire::{Decode, Encode, Name, XdrIn};

/// What the tests offer: as many slots as the Linux client.
pub const LIMITS: ChannelLimits = ChannelLimits {
    header_padding: 0,
    call_bytes_max: 1 << 21,
    reply_bytes_max: 1 << 21,
    cached_bytes_max: 8_192,
    operations_max: 16,
    slots: 64,
    rdma_reads: None,
};

/// Bytes that are encoded already.
struct Encoded(Vec<u8>);

impl Encode for Encoded {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// Adds operations to a compound.
pub trait Operations: for<'o> FnOnce(CompoundWriter<'o>) -> CompoundWriter<'o> {}
impl<F: for<'o> FnOnce(CompoundWriter<'o>) -> CompoundWriter<'o>> Operations for F {}

fn compound(operations: impl Operations) -> Encoded {
    let mut arguments = Vec::new();
    operations(CompoundWriter::request(&mut arguments)).finish();
    Encoded(arguments)
}

/// The results of a compound, and those that were read so far.
pub struct Results {
    bytes: Vec<u8>,
    read: usize,
}

impl Results {
    /// Status of the whole.
    pub fn status(&self) -> Status4 {
        self.reply().status
    }

    fn reply(&self) -> CompoundReply<'_> {
        CompoundReply::read(XdrIn::new(&self.bytes)).unwrap()
    }

    /// The value of the next operation, which must have succeeded.
    pub fn ok<'a, T: Decode<'a>>(&'a mut self, operation: Operation) -> T {
        let Self { bytes, read } = self;
        let mut input = XdrIn::new(&bytes[*read..]);
        if *read == 0 {
            input = CompoundReply::read(input).unwrap().input;
        }
        assert_eq!(input.u32(), Ok(operation.number()));
        assert_eq!(Status4::decode(&mut input), Ok(Status4::OK), "{operation:?}");
        let value = T::decode(&mut input).unwrap();
        *read = bytes.len() - input.rest().len();
        value
    }
}

impl Server {
    /// A compound without a session.
    pub fn compound(&self, operations: impl Operations) -> Results {
        let bytes = self.results((NFS, 4), 1, &compound(operations));
        Results { bytes, read: 0 }
    }

    pub fn exchange_id(&self, owner: &str, verifier: [u8; 8]) -> (u64, u32, u32) {
        let args = ExchangeIdArgs {
            verifier,
            owner: Opaque(owner.as_bytes()),
            flags: 0,
            protection: NoProtection,
            implementation: None,
        };
        let mut results = self.compound(|w| w.op(Operation::ExchangeId, &args));
        let ok: ExchangeIdOk<'_> = results.ok(Operation::ExchangeId);
        (ok.client_id, ok.sequence, ok.flags)
    }

    pub fn create_session(&self, client_id: u64, sequence: u32, fore: ChannelLimits) -> Results {
        let args = CreateSessionArgs {
            client_id,
            sequence,
            flags: 0,
            fore,
            back: LIMITS,
            callback_program: plimsoll_nfs::wire::v4::CALLBACK_PROGRAM,
            security: CallbackSecurity::None,
        };
        self.compound(|w| w.op(Operation::CreateSession, &args))
    }

    /// A client with a session that has nothing to reclaim.
    pub fn client4(&self, owner: &str) -> Client4<'_> {
        let client = self.new_client4(owner, LIMITS);
        assert_eq!(client.status(|w| w.op(Operation::ReclaimComplete, &false)), Status4::OK);
        client
    }

    /// A client with a session.
    pub fn new_client4(&self, owner: &str, limits: ChannelLimits) -> Client4<'_> {
        let (id, sequence, _) = self.exchange_id(owner, [7; 8]);
        let mut results = self.create_session(id, sequence, limits);
        let ok: CreateSessionOk = results.ok(Operation::CreateSession);
        let sequences = RefCell::new(vec![0; ok.fore.slots as usize]);
        Client4 { server: self, id, session: ok.session, sequences }
    }
}

/// A client with a session.
pub struct Client4<'s> {
    pub server: &'s Server,
    pub id: u64,
    pub session: SessionId,
    sequences: RefCell<Vec<u32>>,
}

impl Client4<'_> {
    pub fn sequence(&self, slot: u32, sequence: u32) -> SequenceArgs {
        let (session, highest_slot) = (self.session, slot);
        SequenceArgs { session, sequence, slot, highest_slot, cache: false }
    }

    /// The next call of slot 0.
    pub fn next(&self) -> SequenceArgs {
        self.sequences.borrow_mut()[0] += 1;
        self.sequence(0, self.sequences.borrow()[0])
    }

    /// Results after SEQUENCE.
    pub fn call(&self, operations: impl Operations) -> Results {
        let mut results = self.call_as(self.next(), operations);
        let _: SequenceOk = results.ok(Operation::Sequence);
        results
    }

    pub fn call_as(&self, sequence: SequenceArgs, operations: impl Operations) -> Results {
        self.server.compound(|w| operations(w.op(Operation::Sequence, &sequence)))
    }

    pub fn status(&self, operations: impl Operations) -> Status4 {
        self.call(operations).status()
    }

    /// The bytes of a call, to send them again.
    pub fn bytes(&self, sequence: SequenceArgs, operations: impl Operations) -> Vec<u8> {
        let call = compound(|w| operations(w.op(Operation::Sequence, &sequence)));
        encoded(self.server.next_xid(), (NFS, 4), 1, &call)
    }

    /// The handle that some operations lead to.
    pub fn handle(&self, operations: impl Operations) -> Vec<u8> {
        let mut results = self.call(|w| operations(w).op(Operation::GetFh, &()));
        let bytes = std::mem::take(&mut results.bytes);
        let mut input = XdrIn::new(&bytes[bytes.len() - 36..]);
        Handle4::decode(&mut input).unwrap().0.to_vec()
    }

    pub fn root(&self) -> Vec<u8> {
        self.handle(|w| {
            w.op(Operation::PutRootFh, &()).op(Operation::Lookup, &Name::from("export"))
        })
    }

    /// Opens a name of a directory; gives its stateid and handle.
    pub fn open(
        &self,
        directory: &[u8],
        name: &str,
        access: u32,
        how: OpenHow<'_>,
    ) -> Result<(StateId, Vec<u8>), Status4> {
        let args = OpenArgs { access, how, ..self.open_args(OpenClaim::Null(Name::from(name))) };
        let mut results = self.call(|w| {
            let w = w.op(Operation::PutFh, &Opaque::<128>(directory));
            w.op(Operation::Open, &args).op(Operation::GetFh, &())
        });
        match results.status() {
            Status4::OK => {}
            failed => return Err(failed),
        }
        let () = results.ok(Operation::PutFh);
        let state = results.ok::<OpenOk<'_>>(Operation::Open).state;
        Ok((state, results.ok::<Handle4<'_>>(Operation::GetFh).0.to_vec()))
    }

    pub fn open_args<'a>(&self, claim: OpenClaim<'a>) -> OpenArgs<'a> {
        OpenArgs {
            seqid: 0,
            access: share::BOTH | share::WANT_NONE,
            deny: 0,
            client_id: self.id,
            owner: Opaque(b"owner"),
            how: OpenHow::NoCreate,
            claim,
        }
    }

    /// A new file that is open.
    pub fn create(&self, directory: &[u8], name: &str) -> (StateId, Vec<u8>) {
        let how = OpenHow::Guarded(Attributes4::default());
        self.open(directory, name, share::BOTH | share::WANT_NONE, how).unwrap()
    }

    pub fn close(&self, file: &[u8], state: StateId) -> Status4 {
        let args = CloseArgs { seqid: 0, state };
        self.status(|w| w.op(Operation::PutFh, &Opaque::<128>(file)).op(Operation::Close, &args))
    }

    /// Size and change of an object.
    pub fn size_and_change(&self, object: &[u8]) -> (u64, u64) {
        let requested = Bitmap::from_numbers(&[attribute::SIZE, attribute::CHANGE]);
        let mut results = self.call(|w| {
            w.op(Operation::PutFh, &Opaque::<128>(object)).op(Operation::GetAttr, &requested)
        });
        let () = results.ok(Operation::PutFh);
        let attributes: Attributes4<'_> = results.ok(Operation::GetAttr);
        (attributes.size.unwrap(), attributes.change.unwrap())
    }
}

/// The whole reply to a call, without its head.
pub fn results_of(reply: &[u8]) -> &[u8] {
    let _: [u8; 24] = decoded(&reply[..24]);
    &reply[24..]
}
