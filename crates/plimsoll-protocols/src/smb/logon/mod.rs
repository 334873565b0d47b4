//! From a fresh connection to a share, as a state machine: NEGOTIATE, two SESSION_SETUPs with
//! NTLM, TREE_CONNECT, and in 3.0 and 3.0.2 the proof that NEGOTIATE was not changed on its
//! way. MS-SMB2 §3.2.4.2, §3.2.5
//!
//! Only this module uses the crate `smb2`. No clock is read here; see `exchange.rs` for the one
//! case in which that crate does.

mod agreed;
mod error;
mod exchange;
mod keys;
mod offer;
#[cfg(test)]
mod tests;

pub use error::{LogonError, Step};
pub use exchange::{Identity, TokenError};
pub use offer::{Credentials, Dialect, LogonRequest, Offer, Signing};

use smb2::crypto::kdf::PreauthHasher;

use super::seal::{Cipher, Protection, Seal, SealError, SigningAlgorithm};
use super::wire::bytes::FileId;
use super::wire::frame;
use super::wire::header::{Command, Header, Part, Parts};
use super::wire::ioctl::{
    FSCTL_VALIDATE_NEGOTIATE_INFO, IOCTL_IS_FSCTL, IoctlRequest, IoctlResponse,
    ValidateNegotiateRequest, ValidateNegotiateResponse,
};
use super::wire::negotiate::{Words, capabilities};
use super::wire::session_setup::{SessionSetupRequest, SessionSetupResponse, session_flags};
use super::wire::status;
use super::wire::text::Text;
use super::wire::tree_connect::{
    SHARE_ENCRYPT_DATA, TreeConnectRequest, TreeConnectResponse, share_type,
};
use agreed::Agreed;
use exchange::Exchange;
use keys::Material;

/// Credits asked for with each request.
const CREDITS_WANTED: u16 = 64;

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
    /// Most bytes of one other command.
    pub max_transact: u32,
    /// Requests are charged one credit per 64 KiB (2.1 and later, with large MTU); else every
    /// request is one credit.
    pub large_mtu: bool,
    /// Leases are granted (2.1 and later).
    pub leasing: bool,
    /// As whom we asked.
    pub identity: Identity,
    /// The server treats us as its guest, or as nobody, though a user may have been named.
    pub guest: bool,
    /// How messages are signed; `None`: they are not.
    pub signing: Option<SigningAlgorithm>,
    /// How messages are encrypted; `None`: they are not.
    pub cipher: Option<Cipher>,
}

/// A logon under way.
pub struct Logon {
    credentials: Credentials,
    offer: Offer,
    unc: String,
    nonce: u64,
    stage: Stage,
    message_id_next: u64,
    credits: u32,
    agreed: Option<Agreed>,
    /// After NEGOTIATE, where sessions begin; and with the session's own messages.
    negotiated_hash: PreauthHasher,
    session_hash: PreauthHasher,
    exchange: Exchange,
    session_id: u64,
    tree_id: u32,
    guest: bool,
    seal: Seal,
    scratch: Vec<u8>,
}

/// What the next reply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Negotiating,
    Greeting,
    Proving,
    Connecting,
    Validating,
    Done,
}

impl Stage {
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
            stage: Stage::Negotiating,
            message_id_next: 0,
            credits: 1,
            agreed: None,
            negotiated_hash: PreauthHasher::new(),
            session_hash: PreauthHasher::new(),
            exchange: Exchange::new(identity, request.credentials),
            session_id: 0,
            tree_id: 0,
            guest: false,
            seal: Seal::none(),
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

    /// Takes a message from the server, without its four-byte length, and appends what must be
    /// sent next. After an error the connection is of no use any more.
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
        let step = self.stage.step();
        let part = match Parts::new(message).next() {
            Some(part) => part.map_err(|error| LogonError::Garbled { step, error })?,
            None => return Err(self.unfit("nothing")),
        };
        let header = &part.header;
        let answers = header.is_response()
            && header.command == self.stage.command()
            && header.message_id.wrapping_add(1) == self.message_id_next;
        if !answers || self.stage == Stage::Done {
            return Err(self.unfit("the answer to another question"));
        }
        self.credits += u32::from(header.credits);
        if header.status == status::PENDING {
            return Ok(LogonProgress::More);
        }
        match self.stage {
            Stage::Negotiating => self.on_negotiate(&part, out)?,
            Stage::Greeting => self.on_challenge(&part, out)?,
            Stage::Proving => self.on_session(&part, out)?,
            Stage::Connecting => return self.on_tree(&part, out),
            Stage::Validating | Stage::Done => return self.on_validated(&part),
        }
        Ok(LogonProgress::More)
    }

    fn on_negotiate(&mut self, part: &Part<'_>, out: &mut Vec<u8>) -> Result<(), LogonError> {
        self.succeeded(part)?;
        let agreed = Agreed::from_reply(&self.offer, part.body)?;
        if agreed.demands_signing() && self.offer.signing == Signing::Off {
            return Err(LogonError::SigningDemanded);
        }
        if self.offer.encryption && agreed.cipher.is_none() {
            return Err(LogonError::NoCipher { dialect: name(agreed.dialect), by: "the suite" });
        }
        self.negotiated_hash.update(part.bytes);
        self.agreed = Some(agreed);
        self.greet(out);
        Ok(())
    }

    /// Begins a session as the exchange's identity.
    fn greet(&mut self, out: &mut Vec<u8>) {
        self.session_id = 0;
        self.session_hash = self.negotiated_hash.clone();
        let token = self.exchange.first();
        self.send_token(&token, out);
        self.stage = Stage::Greeting;
    }

    fn on_challenge(&mut self, part: &Part<'_>, out: &mut Vec<u8>) -> Result<(), LogonError> {
        if part.header.status != status::MORE_PROCESSING_REQUIRED {
            self.succeeded(part)?;
            return Err(self.unfit("a session before the user was proven"));
        }
        let reply = self.decoded(SessionSetupResponse::decode(part.body))?;
        let token = self.exchange.answer(reply.token)?;
        self.session_id = part.header.session_id;
        self.session_hash.update(part.bytes);
        self.send_token(&token, out);
        self.stage = Stage::Proving;
        Ok(())
    }

    fn send_token(&mut self, token: &[u8], out: &mut Vec<u8>) {
        let at = self.begin(Command::SessionSetup, out);
        let security_mode = agreed::our_security_mode(&self.offer);
        SessionSetupRequest {
            flags: 0,
            security_mode: security_mode as u8,
            capabilities: 0,
            previous_session_id: 0,
            token,
        }
        .encode(out);
        frame::finish(out, at);
        self.session_hash.update(&out[at + frame::FRAME_HEADER..]);
    }

    fn on_session(&mut self, part: &Part<'_>, out: &mut Vec<u8>) -> Result<(), LogonError> {
        if let Err(refused) = self.succeeded(part) {
            // Some servers know no guest, but let nobody in; ask once more.
            if self.exchange.identity() != Identity::Guest {
                return Err(refused);
            }
            self.exchange = Exchange::new(Identity::Anonymous, &self.credentials);
            self.greet(out);
            return Ok(());
        }
        let reply = self.decoded(SessionSetupResponse::decode(part.body))?;
        // Samba does not say of nobody that he is nobody.
        self.guest = reply.flags & (session_flags::GUEST | session_flags::NULL) != 0
            || self.exchange.identity() == Identity::Anonymous;
        if self.guest {
            self.check_keyless()?;
        } else {
            self.adopt_keys(part)?;
            self.choose_protection(reply.flags & session_flags::ENCRYPT_DATA != 0)?;
        }
        self.connect(out);
        Ok(())
    }

    fn check_keyless(&self) -> Result<(), LogonError> {
        let wish = match (self.offer.signing, self.offer.encryption) {
            (_, true) => "encrypted",
            (Signing::Required, false) => "signed",
            (Signing::Off | Signing::WhenAsked, false) => return Ok(()),
        };
        Err(LogonError::Keyless { who: self.who(), wish })
    }

    /// Makes the keys ready, and believes the reply only if they verify it. Before 3.0 a server
    /// need not sign it.
    fn adopt_keys(&mut self, part: &Part<'_>) -> Result<(), LogonError> {
        let keyless = LogonError::Unfit {
            step: Step::SessionSetup,
            what: "a session that is nobody's, without saying so",
        };
        let agreed = self.agreed.as_ref().expect("agreed before any session");
        let material = Material {
            dialect: agreed.dialect,
            session_id: self.session_id,
            session_key: self.exchange.session_key().ok_or(keyless)?,
            preauth: &self.session_hash,
            signing: agreed.signing,
            cipher: agreed.cipher,
        };
        self.seal = material.seal()?;
        if agreed.dialect >= Dialect::V3_0 || part.header.is_signed() {
            self.verify(part)?;
        }
        Ok(())
    }

    fn choose_protection(&mut self, demanded: bool) -> Result<(), LogonError> {
        let agreed = self.agreed.as_ref().expect("agreed before any session");
        let signs = self.offer.signing == Signing::Required || agreed.demands_signing();
        if demanded || self.offer.encryption {
            return self.encrypt_from_now_on();
        }
        if signs && !self.seal.set_protection(Protection::Sign) {
            return Err(LogonError::SigningDemanded);
        }
        Ok(())
    }

    fn encrypt_from_now_on(&mut self) -> Result<(), LogonError> {
        if self.seal.set_protection(Protection::Encrypt) {
            return Ok(());
        }
        if self.guest {
            return Err(LogonError::Keyless { who: self.who(), wish: "encrypted" });
        }
        let dialect = name(self.dialect());
        Err(LogonError::NoCipher { dialect, by: "the server" })
    }

    fn connect(&mut self, out: &mut Vec<u8>) {
        let at = self.begin(Command::TreeConnect, out);
        TreeConnectRequest { flags: 0, path: Text::Utf8(&self.unc) }.encode(out);
        self.finish_signed(at, out);
        self.stage = Stage::Connecting;
    }

    fn on_tree(&mut self, part: &Part<'_>, out: &mut Vec<u8>) -> Result<LogonProgress, LogonError> {
        self.succeeded(part)?;
        self.verify_signed(part)?;
        let reply = self.decoded(TreeConnectResponse::decode(part.body))?;
        if reply.share_type != share_type::DISK {
            return Err(LogonError::NotADisk(self.unc.clone()));
        }
        self.tree_id = part.header.tree_id;
        if reply.share_flags & SHARE_ENCRYPT_DATA != 0
            && self.seal.protection() != Protection::Encrypt
        {
            self.encrypt_from_now_on()?;
        }
        let validated = match self.dialect() {
            Dialect::V3_0 | Dialect::V3_0_2 => self.guest,
            // Older ones cannot, and in 3.1.1 the keys prove it.
            Dialect::V2_0_2 | Dialect::V2_1 | Dialect::V3_1_1 => true,
        };
        if validated {
            return Ok(LogonProgress::Done(Box::new(self.establish())));
        }
        self.validate(out);
        Ok(LogonProgress::More)
    }

    fn validate(&mut self, out: &mut Vec<u8>) {
        let mut input = Vec::new();
        ValidateNegotiateRequest {
            capabilities: agreed::our_capabilities(&self.offer),
            client_guid: agreed::our_guid(&self.offer),
            security_mode: agreed::our_security_mode(&self.offer),
            dialects: Words::Values(&agreed::dialects(&self.offer)),
        }
        .encode(&mut input);
        let at = self.begin(Command::Ioctl, out);
        IoctlRequest {
            code: FSCTL_VALIDATE_NEGOTIATE_INFO,
            file_id: FileId::RELATED,
            input: &input,
            max_input: 0,
            max_output: ValidateNegotiateResponse::BYTES as u32,
            flags: IOCTL_IS_FSCTL,
        }
        .encode(out);
        self.finish_signed(at, out);
        self.stage = Stage::Validating;
    }

    fn on_validated(&mut self, part: &Part<'_>) -> Result<LogonProgress, LogonError> {
        self.succeeded(part)?;
        self.verify_signed(part)?;
        let reply = self.decoded(IoctlResponse::decode(part.body))?;
        let again = self.decoded(ValidateNegotiateResponse::decode(reply.output))?;
        let agreed = self.agreed.as_ref().expect("agreed before any session");
        let same = again.capabilities == agreed.capabilities
            && again.server_guid == agreed.server_guid
            && again.security_mode == agreed.security_mode
            && again.dialect == agreed.dialect.revision();
        if !same {
            return Err(LogonError::Downgraded);
        }
        Ok(LogonProgress::Done(Box::new(self.establish())))
    }

    fn establish(&mut self) -> Established {
        self.stage = Stage::Done;
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
            max_transact: agreed.max_transact,
            large_mtu: newer && agreed.capabilities & capabilities::LARGE_MTU != 0,
            leasing: newer && agreed.capabilities & capabilities::LEASING != 0,
            identity: self.exchange.identity(),
            guest: self.guest,
            signing: (protection == Protection::Sign).then_some(agreed.signing),
            cipher: agreed.cipher.filter(|_| protection == Protection::Encrypt),
        }
    }

    /// Begins a request: its length and header. Answers with where.
    fn begin(&mut self, command: Command, out: &mut Vec<u8>) -> usize {
        let at = frame::begin(out);
        let charge = u16::from(self.agreed.as_ref().is_some_and(|a| a.dialect > Dialect::V2_0_2));
        Header {
            message_id: self.message_id_next,
            credit_charge: charge,
            credits: CREDITS_WANTED,
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
        let who = match self.stage {
            Stage::Negotiating => String::new(),
            Stage::Greeting | Stage::Proving => self.who(),
            Stage::Connecting | Stage::Validating | Stage::Done => {
                format!("{} to {}", self.who(), self.unc)
            }
        };
        LogonError::Refused { step: self.stage.step(), status, who }
    }

    /// A server that no longer knows the session cannot sign; what it says counts then.
    fn unsealed(&self, error: SealError) -> LogonError {
        match error {
            SealError::Unsigned { status, .. } | SealError::Unencrypted { status, .. }
                if status != status::SUCCESS =>
            {
                self.refused(status)
            }
            error => LogonError::Unsealed { step: self.stage.step(), error },
        }
    }

    fn unfit(&self, what: &'static str) -> LogonError {
        LogonError::Unfit { step: self.stage.step(), what }
    }

    fn decoded<T>(&self, decoded: Result<T, super::wire::WireError>) -> Result<T, LogonError> {
        decoded.map_err(|error| LogonError::Garbled { step: self.stage.step(), error })
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

fn name(dialect: Dialect) -> &'static str {
    Dialect::ALL.iter().find(|(_, one)| *one == dialect).map_or("", |(name, _)| name)
}
