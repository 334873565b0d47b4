//! Clients, sessions and slots: EXCHANGE_ID, CREATE_SESSION, SEQUENCE and what ends them.
//! RFC 8881 §2.10, §18.34 to §18.37, §18.46, §18.50, §18.51

use super::{OPAQUE_BYTES_MAX, Opaque, SessionId, Time4, Verifier};
use crate::wire::rpc::{AUTH_NONE, AUTH_SYS, AuthSys};
use crate::wire::xdr::{Decode, Encode, XdrError, XdrIn};

/// Bits of EXCHANGE_ID's flags. RFC 8881 §18.35.3
pub mod exchange_flags {
    /// The server may refer to other locations.
    pub const MOVED_REFER: u32 = 0x1;
    /// It serves files, and no layouts.
    pub const NON_PNFS: u32 = 0x1_0000;
    /// What is known of the client is to be updated, and nothing made.
    pub const UPDATE: u32 = 0x4000_0000;
    /// The client has confirmed its id before.
    pub const CONFIRMED: u32 = 0x8000_0000;
}

/// Bits of CREATE_SESSION's flags. RFC 8881 §18.36.3
pub mod session_flags {
    /// The connection carries callbacks too.
    pub const BACK_CHANNEL: u32 = 0x2;
}

/// Bits of SEQUENCE's status flags. RFC 8881 §18.46.3
pub mod sequence_flags {
    /// No connection carries callbacks.
    pub const CB_PATH_DOWN: u32 = 0x1;
    /// The server restarted: state is to be reclaimed.
    pub const RESTART_RECLAIM_NEEDED: u32 = 0x100;
}

/// Directions of a connection. RFC 8881 §18.34.3
pub mod direction {
    /// Asked for: calls.
    pub const FORE: u32 = 0x1;
    /// Asked for: calls and callbacks; one of them will do.
    pub const FORE_OR_BOTH: u32 = 0x3;
    /// Answered: calls and callbacks.
    pub const BOTH: u32 = 0x3;
}

xdr_struct! {
    /// Which program calls. RFC 8881 §3.3.21 `nfs_impl_id4`
    pub struct ImplementationId<'a> {
        /// Domain of its makers.
        domain: Opaque<'a, OPAQUE_BYTES_MAX>,
        /// Its name.
        name: Opaque<'a, OPAQUE_BYTES_MAX>,
        /// When it was made.
        date: Time4,
    }

    /// Arguments of EXCHANGE_ID, without protection of state. RFC 8881 §18.35
    pub struct ExchangeIdArgs<'a> {
        /// Another one after each start of the client.
        verifier: Verifier,
        /// Which client.
        owner: Opaque<'a, OPAQUE_BYTES_MAX>,
        /// Of [`exchange_flags`].
        flags: u32,
        /// SP4_NONE.
        protection: NoProtection,
        /// The client's program.
        implementation: Option<ImplementationId<'a>>,
    }

    /// What EXCHANGE_ID answers.
    pub struct ExchangeIdOk<'a> {
        /// What the server calls the client.
        client_id: u64,
        /// Number of the first CREATE_SESSION.
        sequence: u32,
        /// Of [`exchange_flags`].
        flags: u32,
        /// SP4_NONE.
        protection: NoProtection,
        /// Of the server's identity, the half of this address.
        minor_id: u64,
        /// The half of all its addresses.
        major_id: Opaque<'a, OPAQUE_BYTES_MAX>,
        /// Where its names are valid.
        scope: Opaque<'a, OPAQUE_BYTES_MAX>,
        /// The server's program.
        implementation: Option<ImplementationId<'a>>,
    }

    /// Limits of a channel. RFC 8881 §18.36 `channel_attrs4`
    pub struct ChannelLimits {
        /// Bytes in front of calls, for RDMA.
        header_padding: u32,
        /// Longest call.
        call_bytes_max: u32,
        /// Longest reply.
        reply_bytes_max: u32,
        /// Longest reply that is kept for repetition.
        cached_bytes_max: u32,
        /// Most operations of a compound.
        operations_max: u32,
        /// Slots.
        slots: u32,
        /// Of RDMA.
        rdma_reads: Option<u32>,
    }

    /// Arguments of CREATE_SESSION. RFC 8881 §18.36
    pub struct CreateSessionArgs<'a> {
        /// From EXCHANGE_ID.
        client_id: u64,
        /// Counts the calls of this client.
        sequence: u32,
        /// Of [`session_flags`].
        flags: u32,
        /// For calls.
        fore: ChannelLimits,
        /// For callbacks.
        back: ChannelLimits,
        /// Program number of the callbacks.
        callback_program: u32,
        /// Who the server is in callbacks.
        security: CallbackSecurity<'a>,
    }

    /// What CREATE_SESSION answers.
    pub struct CreateSessionOk {
        /// The session.
        session: SessionId,
        /// As in the call.
        sequence: u32,
        /// Of [`session_flags`].
        flags: u32,
        /// For calls.
        fore: ChannelLimits,
        /// For callbacks.
        back: ChannelLimits,
    }

    /// Arguments of SEQUENCE. RFC 8881 §18.46
    pub struct SequenceArgs {
        /// The session.
        session: SessionId,
        /// Counts the calls of the slot.
        sequence: u32,
        /// The slot.
        slot: u32,
        /// The highest slot that is in use.
        highest_slot: u32,
        /// The server is to keep the reply for a repetition.
        cache: bool,
    }

    /// What SEQUENCE answers.
    pub struct SequenceOk {
        /// As in the call.
        session: SessionId,
        /// As in the call.
        sequence: u32,
        /// As in the call.
        slot: u32,
        /// The highest slot the server takes.
        highest_slot: u32,
        /// The highest slot it would like to be used.
        target_highest_slot: u32,
        /// Of [`sequence_flags`].
        status_flags: u32,
    }

    /// Arguments of BIND_CONN_TO_SESSION, and what it answers. RFC 8881 §18.34
    pub struct BindConnection {
        /// The session.
        session: SessionId,
        /// Of [`direction`].
        direction: u32,
        /// Over RDMA.
        rdma: bool,
    }
}

/// Bytes of SEQUENCE's arguments.
pub const SEQUENCE_BYTES: usize = 32;

/// SP4_NONE: state is not protected by more than AUTH_SYS. RFC 8881 §2.10.8.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoProtection;

impl Encode for NoProtection {
    fn encode(&self, out: &mut Vec<u8>) {
        0_u32.encode(out);
    }
}

impl<'a> Decode<'a> for NoProtection {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Ok(Self),
            value => Err(XdrError::Value { what: "SP4_NONE", value }),
        }
    }
}

/// Most ways to authenticate callbacks that are read.
const SECURITY_MAX: u32 = 8;

/// How the server authenticates callbacks: the first of the client's offers that is known here.
/// RFC 8881 §18.36 `callback_sec_parms4`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackSecurity<'a> {
    /// AUTH_NONE.
    None,
    /// AUTH_SYS.
    System(AuthSys<'a>),
}

impl Encode for CallbackSecurity<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        1_u32.encode(out);
        match self {
            Self::None => AUTH_NONE.encode(out),
            Self::System(system) => {
                AUTH_SYS.encode(out);
                system.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for CallbackSecurity<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let count = input.u32()?;
        if count > SECURITY_MAX {
            return Err(XdrError::TooLong { bytes: count, max: SECURITY_MAX });
        }
        let mut first = None;
        for _ in 0..count {
            let one = match input.u32()? {
                AUTH_NONE => Self::None,
                AUTH_SYS => Self::System(AuthSys::decode(input)?),
                value => return Err(XdrError::Value { what: "callback security", value }),
            };
            first = first.or(Some(one));
        }
        Ok(first.unwrap_or(Self::None))
    }
}
