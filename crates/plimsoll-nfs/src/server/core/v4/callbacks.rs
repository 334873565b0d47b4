//! Callbacks: what the server sends over a connection that the client made, to recall delegations.
//! RFC 8881 §2.10.3.1, §20.2, §20.9

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::server::core::write_handle;
use crate::server::store::Object;
use crate::wire::rpc::{Credential, encode_call};
use crate::wire::v4::{
    CALLBACK_VERSION, CallbackProcedure, CallbackSecurity, CbRecallArgs, CbSequenceArgs,
    CreateSessionArgs, Opaque, ReferringCalls, SessionId, StateId, encode_recall,
};

/// A connection of a client, over which the server can call it.
pub struct BackChannel(pub(super) Box<SendMessage>);

/// Sends a message.
pub(super) type SendMessage = dyn Fn(&[u8]) + Send + Sync;

impl BackChannel {
    /// `send` sends a message; record marking is its part. It is lost if the client is gone.
    pub fn new(send: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self(Box::new(send))
    }
}

impl std::fmt::Debug for BackChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackChannel")
    }
}

/// A delegation that is recalled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recall {
    pub(super) object: Object,
    pub(super) state: StateId,
}

/// The slot of a session for callbacks, which are sent one after the other.
#[derive(Debug)]
pub(super) struct CallbackSlot {
    channel: Weak<BackChannel>,
    program: u32,
    credential: Credential,
    sequence: u32,
    pub(super) in_flight: Option<Recall>,
    pub(super) waiting: VecDeque<Recall>,
}

impl CallbackSlot {
    pub(super) fn new(args: &CreateSessionArgs<'_>, channel: &Arc<BackChannel>) -> Self {
        Self {
            channel: Arc::downgrade(channel),
            program: args.callback_program,
            credential: match &args.security {
                CallbackSecurity::None => Credential::none(),
                CallbackSecurity::System(system) => Credential::system(system),
            },
            sequence: 0,
            in_flight: None,
            waiting: VecDeque::new(),
        }
    }

    /// Whether the connection is still there.
    pub(super) fn is_up(&self) -> bool {
        self.channel.strong_count() > 0
    }

    /// Uses another connection. A call without a reply goes there again.
    pub(super) fn bind(&mut self, channel: &Arc<BackChannel>) {
        self.channel = Arc::downgrade(channel);
        if let Some(lost) = self.in_flight.take() {
            self.sequence = self.sequence.wrapping_sub(1);
            self.waiting.push_front(lost);
        }
    }

    /// The next call to send, if the one before has its reply.
    pub(super) fn next_call(
        &mut self,
        session: SessionId,
        xid: u32,
        instance: u64,
    ) -> Option<(Arc<BackChannel>, Vec<u8>)> {
        if self.in_flight.is_some() {
            return None;
        }
        let channel = self.channel.upgrade()?;
        let Recall { object, state } = *self.in_flight.insert(self.waiting.pop_front()?);
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = CbSequenceArgs {
            session,
            sequence: self.sequence,
            slot: 0,
            highest_slot: 0,
            cache: false,
            referring: ReferringCalls(0),
        };
        let handle = write_handle(instance, object);
        let recall = CbRecallArgs { state, truncate: false, handle: Opaque(&handle) };
        let mut message = Vec::new();
        let (service, compound) = ((self.program, CALLBACK_VERSION), CallbackProcedure::Compound);
        encode_call(&mut message, xid, service, compound.number(), &self.credential);
        encode_recall(&sequence, &recall, &mut message);
        Some((channel, message))
    }
}
