//! Calls, replies, credentials and verifiers of ONC RPC version 2. RFC 5531 §8.2, §9, appendix A.

use std::fmt;

use super::xdr::{Decode, Encode, Name, U32List, XdrError, XdrIn, encode_opaque};

/// The version of the protocol. RFC 5531 §9
pub const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;

/// Why authentication fails: `auth_stat`. RFC 5531 §9
pub mod auth {
    /// AUTH_BADCRED: the credential is malformed.
    pub const BAD_CREDENTIAL: u32 = 1;
    /// AUTH_REJECTEDCRED: the client must begin a new session.
    pub const REJECTED_CREDENTIAL: u32 = 2;
    /// AUTH_BADVERF: the verifier is malformed.
    pub const BAD_VERIFIER: u32 = 3;
    /// AUTH_REJECTEDVERF: the verifier has expired.
    pub const REJECTED_VERIFIER: u32 = 4;
    /// AUTH_TOOWEAK: the server wants another flavor, or a reserved source port.
    pub const TOO_WEAK: u32 = 5;

    /// Name in the specification.
    pub const fn name(status: u32) -> Option<&'static str> {
        Some(match status {
            0 => "AUTH_OK",
            BAD_CREDENTIAL => "AUTH_BADCRED",
            REJECTED_CREDENTIAL => "AUTH_REJECTEDCRED",
            BAD_VERIFIER => "AUTH_BADVERF",
            REJECTED_VERIFIER => "AUTH_REJECTEDVERF",
            TOO_WEAK => "AUTH_TOOWEAK",
            6 => "AUTH_INVALIDRESP",
            7 => "AUTH_FAILED",
            8 => "AUTH_KERB_GENERIC",
            9 => "AUTH_TIMEEXPIRE",
            10 => "AUTH_TKT_FILE",
            11 => "AUTH_DECODE",
            12 => "AUTH_NET_ADDR",
            13 => "RPCSEC_GSS_CREDPROBLEM",
            14 => "RPCSEC_GSS_CTXPROBLEM",
            _ => return None,
        })
    }
}

/// An RPC program and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Number of the program.
    pub program: u32,
    /// Version of it.
    pub version: u32,
}

/// Writes one call.
pub(crate) struct CallWriter<'o> {
    pub(crate) xid: u32,
    pub(crate) credential: &'o Credential,
    pub(crate) out: &'o mut Vec<u8>,
}

impl CallWriter<'_> {
    /// Appends the message.
    #[inline]
    pub(crate) fn write(self, service: Service, procedure: u32, arguments: &impl Encode) {
        let Service { program, version } = service;
        encode_call(self.out, self.xid, (program, version), procedure, self.credential);
        arguments.encode(self.out);
    }
}

/// Begins a call; its arguments follow. RFC 5531 §9 `call_body`
#[inline]
pub fn encode_call(
    out: &mut Vec<u8>,
    xid: u32,
    (program, version): (u32, u32),
    procedure: u32,
    credential: &Credential,
) {
    let fields = [xid, CALL, RPC_VERSION, program, version, procedure].map(u32::to_be_bytes);
    out.extend_from_slice(fields.as_flattened());
    out.extend_from_slice(&credential.bytes);
}

/// The procedure of an encoded call.
pub(crate) fn procedure_of(call: &[u8]) -> Option<u32> {
    const BEFORE: usize = 20;
    call.get(BEFORE..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Head of a call, as a server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The caller's number for the call.
    pub xid: u32,
    /// What is called.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Procedure of the program.
    pub procedure: u32,
    /// Who calls.
    pub credential: Auth<'a>,
    /// Proof of it.
    pub verifier: Auth<'a>,
}

/// Why bytes are not the head of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is nothing to answer to: too short, or no call.
    #[error("the message is no call: {0}")]
    NoCall(XdrError),
    /// To be answered with this outcome.
    #[error("the call is refused: {outcome}")]
    Answer {
        /// The caller's number for the call.
        xid: u32,
        /// The answer.
        outcome: ReplyOutcome,
    },
}

impl<'a> Call<'a> {
    /// Takes the head of a call; `input` then stands at the arguments.
    pub fn decode(input: &mut XdrIn<'a>) -> Result<Self, CallError> {
        let xid = input.u32().map_err(CallError::NoCall)?;
        match input.u32().map_err(CallError::NoCall)? {
            CALL => {}
            value => return Err(CallError::NoCall(XdrError::Value { what: "CALL", value })),
        }
        if input.u32().map_err(CallError::NoCall)? != RPC_VERSION {
            let outcome = ReplyOutcome::RpcMismatch { low: RPC_VERSION, high: RPC_VERSION };
            return Err(CallError::Answer { xid, outcome });
        }
        let mut number = || input.u32().map_err(CallError::NoCall);
        let (program, version, procedure) = (number()?, number()?, number()?);
        let refused = |status| CallError::Answer { xid, outcome: ReplyOutcome::AuthError(status) };
        let credential = Auth::decode(input).map_err(|_| refused(auth::BAD_CREDENTIAL))?;
        let verifier = Auth::decode(input).map_err(|_| refused(auth::BAD_VERIFIER))?;
        Ok(Self { xid, program, version, procedure, credential, verifier })
    }
}

impl Encode for Call<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        for word in [self.xid, CALL, RPC_VERSION, self.program, self.version, self.procedure] {
            word.encode(out);
        }
        self.credential.encode(out);
        self.verifier.encode(out);
    }
}

/// Head of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHead {
    /// Of the call.
    pub xid: u32,
    /// The outcome in the RPC layer.
    pub outcome: ReplyOutcome,
}

/// The outcome of a call in the RPC layer. RFC 5531 §9 `reply_body`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// The results follow.
    Success,
    /// PROG_UNAVAIL
    ProgramUnavailable,
    /// PROG_MISMATCH: the server has other versions.
    ProgramMismatch {
        /// Lowest version.
        low: u32,
        /// Highest version.
        high: u32,
    },
    /// PROC_UNAVAIL
    ProcedureUnavailable,
    /// GARBAGE_ARGS
    GarbageArguments,
    /// SYSTEM_ERR
    SystemError,
    /// RPC_MISMATCH: the server speaks other versions of RPC.
    RpcMismatch {
        /// Lowest version.
        low: u32,
        /// Highest version.
        high: u32,
    },
    /// AUTH_ERROR, with one of [`auth`].
    AuthError(u32),
}

impl fmt::Display for ReplyOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Success => f.write_str("SUCCESS"),
            Self::ProgramUnavailable => f.write_str("PROG_UNAVAIL"),
            Self::ProgramMismatch { low, high } => {
                write!(f, "PROG_MISMATCH (the server has versions {low} to {high})")
            }
            Self::ProcedureUnavailable => f.write_str("PROC_UNAVAIL"),
            Self::GarbageArguments => f.write_str("GARBAGE_ARGS"),
            Self::SystemError => f.write_str("SYSTEM_ERR"),
            Self::RpcMismatch { low, high } => {
                write!(f, "RPC_MISMATCH (the server has RPC versions {low} to {high})")
            }
            Self::AuthError(status) => match auth::name(status) {
                Some(name) => write!(f, "AUTH_ERROR {name}"),
                None => write!(f, "AUTH_ERROR {status}"),
            },
        }
    }
}

impl<'a> Decode<'a> for ReplyHead {
    /// Takes the head of a reply; after `Success` `input` stands at the results.
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let xid = input.u32()?;
        match input.u32()? {
            REPLY => {}
            value => return Err(XdrError::Value { what: "REPLY", value }),
        }
        let outcome = match input.u32()? {
            ACCEPTED => accepted(input)?,
            DENIED => denied(input)?,
            value => return Err(XdrError::Value { what: "reply_stat", value }),
        };
        Ok(Self { xid, outcome })
    }
}

#[inline]
fn accepted(input: &mut XdrIn<'_>) -> Result<ReplyOutcome, XdrError> {
    Auth::decode(input)?;
    Ok(match input.u32()? {
        0 => ReplyOutcome::Success,
        1 => ReplyOutcome::ProgramUnavailable,
        2 => ReplyOutcome::ProgramMismatch { low: input.u32()?, high: input.u32()? },
        3 => ReplyOutcome::ProcedureUnavailable,
        4 => ReplyOutcome::GarbageArguments,
        5 => ReplyOutcome::SystemError,
        value => return Err(XdrError::Value { what: "accept_stat", value }),
    })
}

fn denied(input: &mut XdrIn<'_>) -> Result<ReplyOutcome, XdrError> {
    Ok(match input.u32()? {
        0 => ReplyOutcome::RpcMismatch { low: input.u32()?, high: input.u32()? },
        1 => ReplyOutcome::AuthError(input.u32()?),
        value => return Err(XdrError::Value { what: "reject_stat", value }),
    })
}

impl Encode for ReplyHead {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_reply(out, self.xid, self.outcome);
    }
}

/// A successful reply; the results follow.
#[inline]
pub fn encode_reply_success(out: &mut Vec<u8>, xid: u32) {
    let mut head = [0; 24];
    head[..4].copy_from_slice(&xid.to_be_bytes());
    // ACCEPTED, an AUTH_NONE verifier and SUCCESS are all zeros.
    head[7] = REPLY as u8;
    out.extend_from_slice(&head);
}

/// A reply without results; after `Success` they follow. RFC 5531 §9
pub fn encode_reply(out: &mut Vec<u8>, xid: u32, outcome: ReplyOutcome) {
    let mut put = |values: &[u32]| {
        [xid, REPLY].iter().chain(values).for_each(|word| word.encode(out));
    };
    // After ACCEPTED an AUTH_NONE verifier.
    match outcome {
        ReplyOutcome::Success => put(&[ACCEPTED, AUTH_NONE, 0, 0]),
        ReplyOutcome::ProgramUnavailable => put(&[ACCEPTED, AUTH_NONE, 0, 1]),
        ReplyOutcome::ProgramMismatch { low, high } => {
            put(&[ACCEPTED, AUTH_NONE, 0, 2, low, high]);
        }
        ReplyOutcome::ProcedureUnavailable => put(&[ACCEPTED, AUTH_NONE, 0, 3]),
        ReplyOutcome::GarbageArguments => put(&[ACCEPTED, AUTH_NONE, 0, 4]),
        ReplyOutcome::SystemError => put(&[ACCEPTED, AUTH_NONE, 0, 5]),
        ReplyOutcome::RpcMismatch { low, high } => put(&[DENIED, 0, low, high]),
        ReplyOutcome::AuthError(status) => put(&[DENIED, 1, status]),
    }
}

/// Longest body of a credential or verifier. RFC 5531 §8.2
pub const AUTH_BYTES_MAX: u32 = 400;
/// Most groups in an AUTH_SYS credential. RFC 5531 appendix A
pub const GROUPS_MAX: u32 = 16;

/// No authentication. RFC 5531 §10.1
pub const AUTH_NONE: u32 = 0;
/// User and groups as the caller claims. RFC 5531 appendix A
pub const AUTH_SYS: u32 = 1;

xdr_struct! {
    /// Body of an AUTH_SYS credential. RFC 5531 appendix A
    pub struct AuthSys<'a> {
        /// Any number of the caller's choice.
        stamp: u32,
        /// The caller's host.
        machine: Name<'a>,
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
        /// Further groups.
        gids: U32List<'a, GROUPS_MAX>,
    }
}

/// Credential and verifier as every call of a client carries them, encoded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    bytes: Vec<u8>,
}

impl Credential {
    /// Bytes on the wire.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// AUTH_NONE.
    pub fn none() -> Self {
        Self { bytes: vec![0; 16] }
    }

    /// AUTH_SYS, with an AUTH_NONE verifier.
    pub fn system(body: &AuthSys<'_>) -> Self {
        let mut encoded = Vec::new();
        body.encode(&mut encoded);
        let mut bytes = Vec::with_capacity(encoded.len() + 16);
        Auth { flavor: AUTH_SYS, body: &encoded }.encode(&mut bytes);
        Auth::NONE.encode(&mut bytes);
        Self { bytes }
    }
}

/// A credential or verifier. RFC 5531 §8.2 `opaque_auth`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// What the body is.
    pub flavor: u32,
    /// At most [`AUTH_BYTES_MAX`] bytes.
    pub body: &'a [u8],
}

impl<'a> Auth<'a> {
    /// AUTH_NONE.
    pub const NONE: Self = Auth { flavor: AUTH_NONE, body: &[] };

    /// The body of an AUTH_SYS credential, when it is one.
    pub fn system(&self) -> Option<Result<AuthSys<'a>, XdrError>> {
        (self.flavor == AUTH_SYS).then(|| AuthSys::decode(&mut XdrIn::new(self.body)))
    }
}

impl Encode for Auth<'_> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.flavor.encode(out);
        encode_opaque(self.body, out);
    }
}

impl<'a> Decode<'a> for Auth<'a> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        Ok(Self { flavor: input.u32()?, body: input.opaque(AUTH_BYTES_MAX)? })
    }
}
