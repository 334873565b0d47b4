//! From a fresh connection to a share, as a state machine: NEGOTIATE, two SESSION_SETUPs with
//! NTLM, TREE_CONNECT, and in 3.0 and 3.0.2 the proof that NEGOTIATE was not changed on its
//! way. MS-SMB2 §3.2.4.2, §3.2.5
//!
//! Only this module uses the crate `smb2`. No clock is read here; see `offer.rs` for the one
//! case in which that crate does.
//!
//! A logon is long, its cryptography is easy to get wrong, and few suites measure it, so it uses
//! the crate. The measured ops are encoded without it: they must not allocate, and must survive any
//! reply.
//!
//! NTLM tokens are sent without SPNEGO. Within SPNEGO, servers want a signed list of mechanisms,
//! for which the crate has no call. Samba and the reference server accept bare NTLM.

mod agreed;
mod error;
mod offer;
mod steps;
#[cfg(test)]
mod tests;

pub use error::{LogonError, Step};
pub use offer::{Credentials, Dialect, Identity, LogonRequest, Offer, Signing, TokenError};

use std::borrow::Cow;

use plimsoll_model::nonconformity::Nonconformities;
use smb2::crypto::kdf::PreauthHasher;

use super::seal::{Cipher, Protection, Seal, SealError, SigningAlgorithm};
use super::wire::header::{Command, Header, Part, Parts};
use super::wire::negotiate::capabilities;
use super::wire::{frame, lenient, status};
use agreed::Agreed;
use offer::Exchange;

/// Credits requested by each message.
const CREDITS_REQUESTED: u16 = 64;
/// Most interim replies to one logon; a server needs one for each of its requests.
const INTERIMS_MAX: u32 = 64;

/// What became of a reply.
#[derive(Debug)]
pub enum LogonProgress {
    /// The next request has been appended, or the server is still at work.
    More,
    /// The share is reached.
    Done(Box<Established>),
}

/// A session with a share.
#[derive(Debug)]
pub struct Established {
    /// Spoken.
    pub dialect: Dialect,
    /// Goes into every header.
    pub session_id: u64,
    /// Goes into every header.
    pub tree_id: u32,
    /// Signs and encrypts what follows.
    pub seal: Seal,
    /// Of the next request.
    pub next_message_id: u64,
    /// Requests of up to 64 KiB that may be sent now.
    pub credits: u32,
    /// Most bytes of one READ.
    pub max_read: u32,
    /// Most bytes of one WRITE.
    pub max_write: u32,
    /// Requests are charged one credit per 64 KiB (2.1 and later, with large MTU); else every
    /// request is one credit.
    pub large_mtu: bool,
    /// Leases are granted (2.1 and later).
    pub leasing: bool,
    /// The identity that we requested.
    pub identity: Identity,
    /// The server treats us as its guest, or as nobody, though a user may have been named.
    pub guest: bool,
    /// How messages are signed; `None`: they are not.
    pub signing: Option<SigningAlgorithm>,
    /// How messages are encrypted; `None`: they are not.
    pub cipher: Option<Cipher>,
    /// Where the replies so far differ from their specification and mean the same.
    pub nonconformities: Nonconformities,
}

/// A logon under way.
pub struct Logon {
    credentials: Credentials,
    offer: Offer,
    unc: String,
    nonce: u64,
    phase: Phase,
    message_id_next: u64,
    credits: u32,
    interims: u32,
    agreed: Option<Agreed>,
    /// After NEGOTIATE, where sessions begin; and with the session's own messages.
    negotiated_hash: PreauthHasher,
    session_hash: PreauthHasher,
    exchange: Exchange,
    session_id: u64,
    tree_id: u32,
    guest: bool,
    seal: Seal,
    nonconformities: Nonconformities,
    scratch: Vec<u8>,
}

/// What the next reply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Negotiating,
    Greeting,
    Proving,
    Connecting,
    Validating,
    Done,
}

impl Phase {
    fn step(self) -> Step {
        match self {
            Self::Negotiating => Step::Negotiate,
            Self::Greeting | Self::Proving => Step::SessionSetup,
            Self::Connecting => Step::TreeConnect,
            Self::Validating | Self::Done => Step::ValidateNegotiate,
        }
    }

    fn command(self) -> Command {
        match self {
            Self::Negotiating => Command::Negotiate,
            Self::Greeting | Self::Proving => Command::SessionSetup,
            Self::Connecting => Command::TreeConnect,
            Self::Validating | Self::Done => Command::Ioctl,
        }
    }
}

impl Logon {
    /// Nothing is sent yet.
    pub fn new(request: &LogonRequest<'_>) -> Self {
        let identity =
            if request.credentials.is_guest() { Identity::Guest } else { Identity::Named };
        Self {
            credentials: request.credentials.clone(),
            offer: request.offer.clone(),
            unc: request.unc.to_owned(),
            nonce: request.nonce,
            phase: Phase::Negotiating,
            message_id_next: 0,
            credits: 1,
            interims: 0,
            agreed: None,
            negotiated_hash: PreauthHasher::new(),
            session_hash: PreauthHasher::new(),
            exchange: Exchange::new(identity, request.credentials),
            session_id: 0,
            tree_id: 0,
            guest: false,
            seal: Seal::none(),
            nonconformities: Nonconformities::default(),
            scratch: Vec::new(),
        }
    }

    /// Appends the first request, with its four-byte length.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        let at = self.begin(Command::Negotiate, out);
        agreed::encode_body(&self.offer, self.nonce, out);
        frame::finish(out, at);
        self.negotiated_hash.update(&out[at + frame::FRAME_HEADER..]);
    }

    /// Takes a message from the server, without its four-byte length, and appends what must be sent
    /// next. After an error the connection is unusable.
    pub fn on_message(
        &mut self,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<LogonProgress, LogonError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let progress = match self.seal.open(message, &mut scratch) {
            Ok(plain) => self.on_plain(plain, out),
            Err(error) => Err(self.unsealed(error)),
        };
        self.scratch = scratch;
        progress
    }

    fn on_plain(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<LogonProgress, LogonError> {
        let step = self.phase.step();
        let part = match Parts::new(message).next() {
            Some(part) => part.map_err(|error| LogonError::Garbled { step, error })?,
            None => return Err(self.unfit("nothing")),
        };
        let header = &part.header;
        let answers = header.is_response()
            && header.command == self.phase.command()
            && header.message_id.wrapping_add(1) == self.message_id_next;
        if !answers || self.phase == Phase::Done {
            return Err(self.unfit("the answer to another question"));
        }
        self.credits = self.credits.saturating_add(header.credits.into());
        lenient::header(header, &mut self.nonconformities);
        if header.status == status::PENDING {
            return self.wait_on();
        }
        match self.phase {
            Phase::Negotiating => self.on_negotiate(&part, out)?,
            Phase::Greeting => self.on_challenge(&part, out)?,
            Phase::Proving => self.on_session(&part, out)?,
            Phase::Connecting => return self.on_tree(&part, out),
            Phase::Validating | Phase::Done => return self.on_validated(&part),
        }
        Ok(LogonProgress::More)
    }

    /// The server is still at work, but not for ever.
    fn wait_on(&mut self) -> Result<LogonProgress, LogonError> {
        self.interims += 1;
        match self.interims {
            ..=INTERIMS_MAX => Ok(LogonProgress::More),
            _ => Err(self.unfit("nothing but STATUS_PENDING, over and over")),
        }
    }

    fn establish(&mut self) -> Established {
        self.phase = Phase::Done;
        let agreed = self.agreed.as_ref().expect("agreed before any session");
        let newer = agreed.dialect > Dialect::V2_0_2;
        let protection = self.seal.protection();
        Established {
            dialect: agreed.dialect,
            session_id: self.session_id,
            tree_id: self.tree_id,
            seal: std::mem::replace(&mut self.seal, Seal::none()),
            next_message_id: self.message_id_next,
            credits: self.credits,
            max_read: agreed.max_read,
            max_write: agreed.max_write,
            large_mtu: newer && agreed.capabilities & capabilities::LARGE_MTU != 0,
            leasing: newer && agreed.capabilities & capabilities::LEASING != 0,
            identity: self.exchange.identity(),
            guest: self.guest,
            signing: (protection == Protection::Sign).then_some(agreed.signing),
            cipher: agreed.cipher.filter(|_| protection == Protection::Encrypt),
            nonconformities: std::mem::take(&mut self.nonconformities),
        }
    }

    /// Begins a request: its length and header. Answers with where.
    fn begin(&mut self, command: Command, out: &mut Vec<u8>) -> usize {
        let at = frame::begin(out);
        let charge = u16::from(self.agreed.as_ref().is_some_and(|a| a.dialect > Dialect::V2_0_2));
        Header {
            message_id: self.message_id_next,
            credit_charge: charge,
            credits: CREDITS_REQUESTED,
            session_id: self.session_id,
            tree_id: self.tree_id,
            ..Header::new(command)
        }
        .encode(out);
        self.message_id_next += 1;
        self.credits = self.credits.saturating_sub(1);
        at
    }

    /// Ends a request that must be signed if it is not encrypted: TREE_CONNECT in 3.1.1, and the
    /// question what was negotiated.
    fn finish_signed(&mut self, at: usize, out: &mut Vec<u8>) {
        frame::finish(out, at);
        match self.seal.protection() {
            Protection::None if self.dialect() >= Dialect::V3_0 => {
                self.seal.sign(&mut out[at + frame::FRAME_HEADER..]);
            }
            Protection::None | Protection::Sign | Protection::Encrypt => {
                self.seal.protect(out, at);
            }
        }
    }

    /// The reply to such a request is signed too.
    fn verify_signed(&mut self, part: &Part<'_>) -> Result<(), LogonError> {
        let signed_by_hand =
            self.seal.protection() == Protection::None && self.dialect() >= Dialect::V3_0;
        if signed_by_hand && !self.guest { self.verify(part) } else { Ok(()) }
    }

    fn verify(&self, part: &Part<'_>) -> Result<(), LogonError> {
        let mut scratch = Vec::new();
        self.seal.verify(part.bytes, &mut scratch).map_err(|error| self.unsealed(error))
    }

    fn succeeded(&self, part: &Part<'_>) -> Result<(), LogonError> {
        match part.header.status {
            status::SUCCESS => Ok(()),
            status => Err(self.refused(status)),
        }
    }

    fn refused(&self, status: u32) -> LogonError {
        let who = match self.phase {
            Phase::Negotiating => String::new(),
            Phase::Greeting | Phase::Proving => self.who(),
            Phase::Connecting | Phase::Validating | Phase::Done => {
                format!("{} to {}", self.who(), self.unc)
            }
        };
        LogonError::Refused { step: self.phase.step(), status, who }
    }

    /// A server that no longer knows the session cannot sign; its status counts then.
    fn unsealed(&self, error: SealError) -> LogonError {
        match error {
            SealError::Unsigned { status, .. } | SealError::Unencrypted { status, .. }
                if status != status::SUCCESS =>
            {
                self.refused(status)
            }
            error => LogonError::Unsealed { step: self.phase.step(), error },
        }
    }

    fn unfit(&self, what: &'static str) -> LogonError {
        LogonError::Unfit { step: self.phase.step(), what }
    }

    /// The body of a reply that succeeded, as its decoder wants it.
    fn body<'p>(&mut self, part: &Part<'p>) -> Cow<'p, [u8]> {
        lenient::body(part.header.command, part.body, &mut self.nonconformities)
    }

    /// The same where nobody reads its security token.
    fn body_without_token<'p>(&mut self, part: &Part<'p>) -> Cow<'p, [u8]> {
        lenient::without_token(part.header.command, part.body, &mut self.nonconformities)
    }

    fn decoded<T>(&self, decoded: Result<T, super::wire::WireError>) -> Result<T, LogonError> {
        decoded.map_err(|error| LogonError::Garbled { step: self.phase.step(), error })
    }

    fn dialect(&self) -> Dialect {
        self.agreed.as_ref().expect("agreed before any session").dialect
    }

    fn who(&self) -> String {
        match self.exchange.identity() {
            Identity::Named if self.credentials.domain.is_empty() => {
                format!("user {:?}", self.credentials.user)
            }
            Identity::Named => {
                format!("user {:?} of {:?}", self.credentials.user, self.credentials.domain)
            }
            Identity::Guest => "the guest".to_owned(),
            Identity::Anonymous => "nobody (no user is named)".to_owned(),
        }
    }
}
