//! Sends recalls of delegations, and takes the replies of the clients. RFC 8881 §20.2

use std::sync::Arc;

use super::Nfs4;
use super::callbacks::{BackChannel, CallbackSlot, Recall};
use super::slots::Session;
use crate::wire::rpc::{ReplyHead, ReplyOutcome};
use crate::wire::v4::{CompoundReply, Status4};
use crate::wire::{Decode as _, XdrIn};

impl Nfs4 {
    /// Recalls a delegation of a client over any of its sessions. If none has a connection, the
    /// delegation is revoked in the end.
    pub(super) fn recall(&self, client_id: u64, recall: Recall) {
        let session = self.sessions.find(|session| {
            session.client.id == client_id
                && session.callbacks().as_ref().is_some_and(CallbackSlot::is_up)
        });
        if let Some(session) = session {
            if let Some(slot) = session.callbacks().as_mut() {
                slot.waiting.push_back(recall);
            }
            self.call_back(&session);
        }
    }

    /// Sends the next call of a session, unless one is in flight.
    fn call_back(&self, session: &Session) {
        let (id, xid) = (session.id, callback_xid(session));
        let mut callbacks = session.callbacks();
        let next = callbacks.as_mut().and_then(|slot| slot.next_call(id, xid, self.instance));
        drop(callbacks);
        if let Some((channel, message)) = next {
            (channel.0)(&message);
        }
    }

    /// The session uses this connection for its callbacks; false: it has none.
    pub(super) fn bind(&self, session: &Session, channel: &Arc<BackChannel>) -> bool {
        let mut callbacks = session.callbacks();
        let Some(slot) = callbacks.as_mut() else { return false };
        slot.bind(channel);
        drop(callbacks);
        self.call_back(session);
        true
    }

    /// Takes a client's reply to a callback.
    pub(in super::super) fn take_reply(&self, reply: &[u8]) {
        let mut input = XdrIn::new(reply);
        let Ok(head) = ReplyHead::decode(&mut input) else { return };
        let session = self.sessions.find(|session| callback_xid(session) == head.xid);
        let Some(session) = session else { return };
        let mut callbacks = session.callbacks();
        let answered = callbacks.as_mut().and_then(|slot| slot.in_flight.take());
        drop(callbacks);
        let is_accepted = head.outcome == ReplyOutcome::Success
            && CompoundReply::read(input).is_ok_and(|reply| reply.status == Status4::OK);
        if let (Some(recall), false) = (answered, is_accepted) {
            self.recall_failed(&recall);
        }
        self.call_back(&session);
    }
}

/// A session has one call in flight, which has this number.
fn callback_xid(session: &Session) -> u32 {
    session.number() as u32
}
