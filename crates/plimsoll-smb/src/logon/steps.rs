//! What each reply leads to, up to the keys of the session (MS-SMB2 §3.2.5.3.1).

use smb2::crypto::kdf::{PreauthHasher, derive_session_keys};

use super::agreed::{self, Agreed};
use super::error::{LogonError, Step};
use super::offer::{Dialect, Exchange, Identity};
use super::{Logon, LogonProgress, Phase, Signing};
use crate::seal::{
    Cipher, EncryptionKeys, KeyLengthError, Keys, Protection, Role, Seal, SigningAlgorithm,
};
use crate::wire::bytes::FileId;
use crate::wire::header::{Command, Part};
use crate::wire::info::{
    FSCTL_VALIDATE_NEGOTIATE_INFO, IOCTL_IS_FSCTL, IoctlRequest, IoctlResponse,
    ValidateNegotiateRequest, ValidateNegotiateResponse,
};
use crate::wire::negotiate::U16List;
use crate::wire::session::{
    SHARE_ENCRYPT_DATA, SessionSetupRequest, SessionSetupResponse, TreeConnectRequest,
    TreeConnectResponse, session_flags, share_type,
};
use crate::wire::text::Text;
use crate::wire::{frame, status};

impl Logon {
    pub(super) fn on_negotiate(
        &mut self,
        part: &Part<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), LogonError> {
        self.succeeded(part)?;
        let body = self.body_without_token(part);
        let agreed = Agreed::from_reply(&self.offer, &body)?;
        if agreed.demands_signing() && self.offer.signing == Signing::Off {
            return Err(LogonError::SigningDemanded);
        }
        if self.offer.encryption && agreed.cipher.is_none() {
            return Err(LogonError::NoCipher { dialect: agreed.dialect.as_str(), by: "the suite" });
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
        self.phase = Phase::Greeting;
    }

    pub(super) fn on_challenge(
        &mut self,
        part: &Part<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), LogonError> {
        if part.header.status != status::MORE_PROCESSING_REQUIRED {
            self.succeeded(part)?;
            return Err(self.unfit("a session before the user was proven"));
        }
        let body = self.body(part);
        let reply = self.decoded(SessionSetupResponse::decode(&body))?;
        let token = self.exchange.answer(reply.token)?;
        self.session_id = part.header.session_id;
        self.session_hash.update(part.bytes);
        self.send_token(&token, out);
        self.phase = Phase::Proving;
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

    pub(super) fn on_session(
        &mut self,
        part: &Part<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), LogonError> {
        if let Err(refused) = self.succeeded(part) {
            // Some servers have no guest but admit nobody; try once more.
            if self.exchange.identity() != Identity::Guest {
                return Err(refused);
            }
            self.exchange = Exchange::new(Identity::Anonymous, &self.credentials);
            self.greet(out);
            return Ok(());
        }
        let body = self.body_without_token(part);
        let reply = self.decoded(SessionSetupResponse::decode(&body))?;
        // Samba does not set the flag for an anonymous session.
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
        let required = match (self.offer.signing, self.offer.encryption) {
            (_, true) => "encrypted",
            (Signing::Required, false) => "signed",
            (Signing::Off | Signing::WhenAsked, false) => return Ok(()),
        };
        Err(LogonError::Keyless { who: self.who(), required })
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
            return Err(LogonError::Keyless { who: self.who(), required: "encrypted" });
        }
        let dialect = self.dialect().as_str();
        Err(LogonError::NoCipher { dialect, by: "the server" })
    }

    fn connect(&mut self, out: &mut Vec<u8>) {
        let at = self.begin(Command::TreeConnect, out);
        TreeConnectRequest { flags: 0, path: Text::Utf8(&self.unc) }.encode(out);
        self.finish_signed(at, out);
        self.phase = Phase::Connecting;
    }

    pub(super) fn on_tree(
        &mut self,
        part: &Part<'_>,
        out: &mut Vec<u8>,
    ) -> Result<LogonProgress, LogonError> {
        self.succeeded(part)?;
        self.verify_signed(part)?;
        let body = self.body(part);
        let reply = self.decoded(TreeConnectResponse::decode(&body))?;
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
            dialects: U16List::Values(&agreed::dialects(&self.offer)),
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
        self.phase = Phase::Validating;
    }

    pub(super) fn on_validated(&mut self, part: &Part<'_>) -> Result<LogonProgress, LogonError> {
        self.succeeded(part)?;
        self.verify_signed(part)?;
        let body = self.body(part);
        let reply = self.decoded(IoctlResponse::decode(&body))?;
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
}

/// Bits of every signing key.
const SIGNING_BITS: u32 = 128;

/// What keys are made of.
pub(super) struct Material<'a> {
    pub dialect: Dialect,
    pub session_id: u64,
    pub session_key: &'a [u8],
    /// The messages so far; 3.1.1 binds the keys to them.
    pub preauth: &'a PreauthHasher,
    pub signing: SigningAlgorithm,
    pub cipher: Option<Cipher>,
}

impl Material<'_> {
    /// Keys at work, without protection yet.
    pub(super) fn seal(&self) -> Result<Seal, KeyLengthError> {
        let Some(dialect) = with_derived_keys(self.dialect) else {
            return self.seal_with(self.session_key, None);
        };
        let derive =
            |bits| derive_session_keys(self.session_key, dialect, Some(self.preauth.value()), bits);
        let signing = derive(SIGNING_BITS).signing_key;
        let Some(cipher) = self.cipher else { return self.seal_with(&signing, None) };
        let bits = if cipher.key_bytes() == 32 { 256 } else { 128 };
        let keys = derive(bits);
        let encryption = EncryptionKeys {
            cipher,
            sending: &keys.encryption_key,
            receiving: &keys.decryption_key,
        };
        self.seal_with(&signing, Some(encryption))
    }

    fn seal_with(
        &self,
        signing: &[u8],
        encryption: Option<EncryptionKeys<'_>>,
    ) -> Result<Seal, KeyLengthError> {
        Seal::new(&Keys {
            role: Role::Client,
            session_id: self.session_id,
            signing: Some((self.signing, signing)),
            encryption,
        })
    }
}

/// Before 3.0 the session's key itself signs.
fn with_derived_keys(dialect: Dialect) -> Option<smb2::types::Dialect> {
    match dialect {
        Dialect::V2_0_2 | Dialect::V2_1 => None,
        Dialect::V3_0 => Some(smb2::types::Dialect::Smb3_0),
        Dialect::V3_0_2 => Some(smb2::types::Dialect::Smb3_0_2),
        Dialect::V3_1_1 => Some(smb2::types::Dialect::Smb3_1_1),
    }
}
