//! From a connection to a session and back: EXCHANGE_ID, CREATE_SESSION, RECLAIM_COMPLETE; at the
//! end CLOSE of what is open, DESTROY_SESSION, DESTROY_CLIENTID. RFC 8881 §2.10, §18.35 to §18.37

use plimsoll_engine::interface::{ClientContext, Io};
use plimsoll_model::units::Nanos;

use super::super::failure::Failure;
use super::{DELAY_PAUSE, DELAY_PAUSE_MAX, Session4, Task};
use crate::parameters::NfsVersion;
use crate::procedure::{self, v4};
use crate::refusal::RpcRefusal;
use crate::wire::record;
use crate::wire::rpc::{AuthSys, CallWriter, ReplyHead, ReplyOutcome};
use crate::wire::v4::*;
use crate::wire::xdr::{DATA_BYTES_MAX, Decode, Encode, Name, U32List, XdrError, XdrIn};

/// Room for what surrounds the data of a READ or WRITE.
const HEADER_BYTES: u32 = 4 << 10;
/// Operations of the longest compound here.
const OPERATIONS_NEEDED: u32 = 8;
/// Operations asked for.
const OPERATIONS_REQUESTED: u32 = 16;
/// Longest reply that the server is to keep; those that change something are short.
const CACHED_BYTES: u32 = 4 << 10;
/// For callbacks: one slot, and room for their longest handle.
const BACK: ChannelLimits = ChannelLimits {
    header_padding: 0,
    call_bytes_max: 4 << 10,
    reply_bytes_max: 4 << 10,
    cached_bytes_max: 4 << 10,
    operations_max: 2,
    slots: 1,
    rdma_reads: None,
};

/// Who this client is to the server. Two clients with the same owner would be one.
#[derive(Debug)]
pub(super) struct Identity {
    owner: String,
    verifier: Verifier,
}

impl Identity {
    pub(super) fn new(client: &ClientContext) -> Self {
        let owner = format!("plimsoll-{:016x}-{}", client.nonce, client.client);
        Self { owner, verifier: client.nonce.to_be_bytes() }
    }
}

/// How far a session has come.
#[derive(Debug)]
pub(super) enum State {
    /// No client is known to the server, or it has forgotten it.
    Begin,
    /// EXCHANGE_ID is on its way.
    Exchanging,
    /// CREATE_SESSION is on its way.
    Creating,
    /// RECLAIM_COMPLETE is on its way.
    Reclaiming,
    /// Ops can be sent.
    Ready,
    /// The last calls, before the session is destroyed.
    Leaving,
    /// There will be no session any more: with the reason, if that is a failure.
    Gone(Option<String>),
}

impl State {
    /// A call for this may go out.
    pub(super) fn takes(&self, task: Task) -> bool {
        match self {
            // Those of ops are dropped at the end.
            Self::Ready | Self::Leaving => true,
            Self::Reclaiming => task == Task::ReclaimComplete,
            Self::Begin | Self::Exchanging | Self::Creating | Self::Gone(_) => false,
        }
    }

    pub(super) fn has_session(&self) -> bool {
        matches!(self, Self::Reclaiming | Self::Ready | Self::Leaving)
    }

    pub(super) fn wants_links(&self) -> bool {
        !matches!(self, Self::Leaving | Self::Gone(_))
    }
}

/// What the server granted of what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// The server's name of the client.
    pub client_id: u64,
    /// Slots.
    pub slots: u32,
    /// Operations of a compound.
    pub operations_max: u32,
    /// Bytes of a call.
    pub call_bytes_max: u32,
    /// Bytes of a reply.
    pub reply_bytes_max: u32,
    /// It may call back.
    pub back_channel: bool,
}

/// A call outside the slots.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) xid: u32,
    operation: Operation,
    bytes: Vec<u8>,
    /// The connection that it asks the session to use, which has to carry it.
    binds: Option<usize>,
    /// The connection that it was sent on.
    connection: Option<usize>,
    /// When it is sent again because the server asked for time.
    again_at: Option<Nanos>,
    pause: Nanos,
}

impl Control {
    /// No connection carries it, and none is to carry it later.
    fn is_unsent(&self) -> bool {
        self.connection.is_none() && self.again_at.is_none()
    }
}

impl Session4 {
    /// A connection is there.
    pub(super) fn on_link_up(&mut self, io: &mut impl Io) {
        match (&self.state, &self.control) {
            (State::Begin, _) => self.exchange_id(io),
            (_, Some(control)) if control.is_unsent() => self.send_control(io),
            _ => self.bind_connections(io),
        }
    }

    /// Asks the server to use a connection for the session, for callbacks too, if there is one that
    /// it does not use.
    pub(super) fn bind_connections(&mut self, io: &mut impl Io) {
        if self.control.is_some() || !self.state.has_session() {
            return;
        }
        if let Some(at) = self.links.take_unbound() {
            let (session, direction) = (self.session, direction::FORE_OR_BOTH);
            let bind = BindConnection { session, direction, rdma: false };
            self.new_control(Operation::BindConnToSession, &bind, Some(at));
            self.send_control(io);
        }
    }

    /// A connection is gone. What it carried outside the slots goes over another one.
    pub(super) fn control_lost(&mut self, at: usize, io: &mut impl Io) {
        let Some(control) = &mut self.control else { return };
        if control.binds == Some(at) {
            self.control = None;
            self.bind_connections(io);
        } else if control.connection == Some(at) {
            control.connection = None;
            if control.is_unsent() {
                self.send_control(io);
            }
        }
    }

    fn exchange_id(&mut self, io: &mut impl Io) {
        self.state = State::Exchanging;
        let owner = std::mem::take(&mut self.identity.owner);
        let arguments = ExchangeIdArgs {
            verifier: self.identity.verifier,
            owner: Opaque(owner.as_bytes()),
            flags: exchange_flags::NON_PNFS,
            protection: NoProtection,
            implementation: None,
        };
        self.control_call(Operation::ExchangeId, &arguments, io);
        self.identity.owner = owner;
    }

    pub(super) fn create_session(&mut self, io: &mut impl Io) {
        self.state = State::Creating;
        let fore = ChannelLimits {
            header_padding: 0,
            call_bytes_max: DATA_BYTES_MAX + HEADER_BYTES,
            reply_bytes_max: DATA_BYTES_MAX + HEADER_BYTES,
            cached_bytes_max: CACHED_BYTES,
            operations_max: OPERATIONS_REQUESTED,
            slots: self.site.session.slots,
            rdma_reads: None,
        };
        let nobody = AuthSys {
            stamp: 0,
            machine: Name(b"plimsoll"),
            uid: 0,
            gid: 0,
            gids: U32List::Values(&[]),
        };
        let arguments = CreateSessionArgs {
            client_id: self.client_id,
            sequence: self.create_sequence,
            flags: session_flags::BACK_CHANNEL,
            fore,
            back: BACK,
            callback_program: CALLBACK_PROGRAM,
            security: CallbackSecurity::System(nobody),
        };
        self.control_call(Operation::CreateSession, &arguments, io);
    }

    fn control_call(&mut self, operation: Operation, arguments: &impl Encode, io: &mut impl Io) {
        self.new_control(operation, arguments, None);
        self.send_control(io);
    }

    fn new_control(&mut self, operation: Operation, arguments: &impl Encode, binds: Option<usize>) {
        let xid = self.slots.control_xid();
        let mut bytes = Vec::new();
        let at = record::begin(&mut bytes);
        let to = CallWriter { xid, credential: &self.site.credential, out: &mut bytes };
        v4::encode_alone(operation, arguments, to);
        record::finish(&mut bytes, at);
        let (connection, again_at, pause) = (None, None, DELAY_PAUSE);
        self.control = Some(Control { xid, operation, bytes, binds, connection, again_at, pause });
    }

    fn send_control(&mut self, io: &mut impl Io) {
        let Some(control) = &mut self.control else { return };
        let up = match control.binds {
            Some(at) => self.links.up(at),
            None => self.links.first_up(),
        };
        (control.again_at, control.connection) = (None, up.map(|(at, _)| at));
        if let Some((_, link)) = up {
            io.send(link, &control.bytes);
        }
    }

    /// The server asked for time, and it has passed.
    pub(super) fn repeat_control(&mut self, now: Nanos, io: &mut impl Io) {
        match self.control.as_ref().and_then(|control| control.again_at) {
            Some(at) if at <= now => self.send_control(io),
            Some(at) => self.wake = self.wake.min(at),
            None => {}
        }
    }

    pub(super) fn on_control_reply(&mut self, message: &[u8], now: Nanos, io: &mut impl Io) {
        let Some(mut control) = self.control.take() else { return };
        let operation = control.operation;
        match self.read_control(operation, message, now, io) {
            Ok(Status4::OK) => {}
            Ok(Status4::DELAY) => {
                self.counters.delays += 1;
                let at = now.saturating_add(control.pause);
                let pause = control.pause.saturating_add(control.pause);
                control.pause = pause.min(DELAY_PAUSE_MAX);
                control.again_at = Some(at);
                self.wake = self.wake.min(at);
                self.control = Some(control);
            }
            Ok(status) => self.on_control_failure(operation, status, now, io),
            Err(reason) => self.give_up(reason, now, io),
        }
    }

    /// The status of the operation; what it means if that is OK has been done.
    fn read_control(
        &mut self,
        operation: Operation,
        message: &[u8],
        now: Nanos,
        io: &mut impl Io,
    ) -> Result<Status4, String> {
        let unreadable = |error: XdrError| format!("{}: {error}", operation.name());
        let mut input = XdrIn::tolerant(message);
        let head = ReplyHead::decode(&mut input).map_err(unreadable)?;
        if head.outcome != ReplyOutcome::Success {
            let service = procedure::service(NfsVersion::V4_1);
            return Err(RpcRefusal { service, outcome: head.outcome }.to_string());
        }
        let mut reply = CompoundReply::read(input).map_err(unreadable)?;
        self.count_compound(reply.results);
        let status = reply.next(operation).map_err(unreadable)?;
        if status != Status4::OK {
            return Ok(status);
        }
        let input = &mut reply.input;
        match operation {
            Operation::ExchangeId => {
                let ok = ExchangeIdOk::decode(input).map_err(unreadable)?;
                (self.client_id, self.create_sequence) = (ok.client_id, ok.sequence);
                self.has_reclaimed = false;
                self.reset_slots(0, now, io);
                self.forget_state(now, io);
                self.create_session(io);
            }
            Operation::CreateSession => {
                let ok = CreateSessionOk::decode(input).map_err(unreadable)?;
                self.on_created(&ok, now, io)?;
            }
            Operation::DestroySession => {
                self.control_call(Operation::DestroyClientId, &self.client_id.clone(), io);
            }
            Operation::DestroyClientId => self.state = State::Gone(None),
            Operation::BindConnToSession => {
                self.send_unsent(now, io);
                self.bind_connections(io);
            }
            _ => {}
        }
        Ok(status)
    }

    /// The session is there.
    fn on_created(
        &mut self,
        ok: &CreateSessionOk,
        now: Nanos,
        io: &mut impl Io,
    ) -> Result<(), String> {
        let ChannelLimits { slots, operations_max, call_bytes_max, reply_bytes_max, .. } = ok.fore;
        if operations_max < OPERATIONS_NEEDED || slots == 0 {
            return Err(format!(
                "the server grants {slots} slots and {operations_max} operations a compound; \
                 {OPERATIONS_NEEDED} operations are needed: raise its limit"
            ));
        }
        let back_channel = ok.flags & session_flags::BACK_CHANNEL != 0;
        let client_id = self.client_id;
        self.granted = Granted {
            client_id,
            slots,
            operations_max,
            call_bytes_max,
            reply_bytes_max,
            back_channel,
        };
        self.create_sequence = self.create_sequence.wrapping_add(1);
        self.session = ok.session;
        self.back.reset();
        self.state = State::Reclaiming;
        self.renewed = now;
        self.reset_slots(slots.min(self.site.session.slots) as usize, now, io);
        match self.has_reclaimed {
            true => self.on_reclaimed(now, io),
            false => self.send_first(Task::ReclaimComplete, now, io),
        }
        Ok(())
    }

    /// The session of the slots is lost, and the next one has `granted` of them.
    fn reset_slots(&mut self, granted: usize, now: Nanos, io: &mut impl Io) {
        for flying in self.slots.reset(granted).into_iter().rev() {
            self.repeat_in_new_session(flying, now, io);
        }
    }

    /// The client has nothing to reclaim, and may open files.
    pub(super) fn on_reclaimed(&mut self, now: Nanos, io: &mut impl Io) {
        if !matches!(self.state, State::Reclaiming) {
            return;
        }
        self.has_reclaimed = true;
        self.state = State::Ready;
        self.wake = self.wake.min(self.renewal_at());
        self.reach_out(now, io);
        self.pump(now, io);
    }

    fn on_control_failure(
        &mut self,
        operation: Operation,
        status: Status4,
        now: Nanos,
        io: &mut impl Io,
    ) {
        match (operation, status) {
            (Operation::CreateSession, Status4::STALE_CLIENTID) => self.exchange_id(io),
            (Operation::DestroySession, _) => {
                self.control_call(Operation::DestroyClientId, &self.client_id.clone(), io);
            }
            (Operation::DestroyClientId, _) => self.state = State::Gone(None),
            (Operation::BindConnToSession, Status4::BADSESSION | Status4::DEADSESSION) => {
                self.rebuild(io);
            }
            (Operation::BindConnToSession, _) if self.slots.has_unsent() => self.rebuild(io),
            // Callbacks do not come then, and delegations are recalled by their lease.
            (Operation::BindConnToSession, _) => self.bind_connections(io),
            _ => self.give_up(format!("{}: {status}", operation.name()), now, io),
        }
    }

    /// The server has forgotten the session; it may still know the client.
    pub(super) fn rebuild(&mut self, io: &mut impl Io) {
        if matches!(self.state, State::Ready | State::Reclaiming) {
            self.counters.sessions_rebuilt += 1;
            self.create_session(io);
        }
    }

    /// There is no session, and there will be none.
    fn give_up(&mut self, reason: String, now: Nanos, io: &mut impl Io) {
        self.fail_all(Failure::NoSession(&reason), now, io);
        self.state = State::Gone(Some(reason));
    }

    /// When the lease has to be renewed if nothing is sent until then.
    fn renewal_at(&self) -> Nanos {
        self.renewed.saturating_add(Nanos(self.site.session.lease.0 / 3 * 2))
    }

    /// A client that has nothing to do says that it is there.
    pub(super) fn renew_lease(&mut self, now: Nanos, io: &mut impl Io) {
        if !matches!(self.state, State::Ready) {
            return;
        }
        if self.renewal_at() <= now {
            self.renewed = now;
            self.start(Task::Renew, now, io);
        }
        self.wake = self.wake.min(self.renewal_at());
    }

    /// Closes what is open, and then the session and the client, if they can be reached.
    pub(super) fn leave(&mut self, now: Nanos, io: &mut impl Io) {
        if !matches!(self.state, State::Ready) || self.links.first_up().is_none() {
            self.control = None;
            self.state = State::Gone(None);
            return;
        }
        self.state = State::Leaving;
        for op in self.ops.all() {
            self.abandon(op, now, io);
        }
        for open in self.files.all() {
            // An op whose call is under way closes its file itself.
            if self.files.is_kept_open(open) || !self.ops.use_file(open) {
                self.close(open, now, io);
            }
        }
        for delegated in self.files.take_delegations() {
            self.give_back(delegated, now, io);
        }
        self.pump(now, io);
    }

    /// Destroys the session when its last call has been answered.
    pub(super) fn leave_if_idle(&mut self, io: &mut impl Io) {
        let has_ended = matches!(self.state, State::Leaving)
            && self.control.is_none()
            && self.waiting.is_empty()
            && self.slots.are_idle();
        if has_ended {
            let session = self.session;
            self.control_call(Operation::DestroySession, &session, io);
        }
    }
}
