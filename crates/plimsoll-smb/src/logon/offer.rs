//! What we offer: our identity, our dialects and algorithms, and our NTLM tokens (MS-NLMP).
//!
//! Our tokens travel bare, as those of other small clients do: within SPNEGO (RFC 4178) servers
//! want the list of mechanisms signed as well, for which the NTLM crate has no call. The server's
//! may come in either form.
//!
//! The client's challenge and session key are random, from the operating system: a predictable key
//! would protect nothing. The time in the answer is the server's own from its challenge; only where
//! a server sends none is the local clock read, inside the NTLM crate.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smb2::auth::ntlm::{NtlmAuthenticator, NtlmCredentials};
use smb2::auth::spnego::{NegState, OID_NTLMSSP, parse_neg_token_resp};

use crate::seal::{Cipher, SigningAlgorithm};

/// Who wants to log on.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the account. Empty: guest, or nobody where guests are not used.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Its domain; empty for an account of the server's own.
    pub domain: String,
}

impl Credentials {
    /// No account.
    pub fn guest() -> Self {
        Self::default()
    }

    /// An account of the server's own.
    pub fn named(user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned(), domain: String::new() }
    }

    /// No account is named.
    pub fn is_guest(&self) -> bool {
        self.user.is_empty()
    }
}

impl fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

/// What we can and want to speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The highest dialect offered; all below it are offered too.
    pub dialect_max: Dialect,
    /// Whether messages are to be signed.
    pub signing: Signing,
    /// Whether messages are to be encrypted. Where the server demands it they are in any case.
    pub encryption: bool,
    /// Ciphers offered in 3.1.1, best first. 3.0 and 3.0.2 know AES-128-CCM only.
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms offered in 3.1.1, best first. The other dialects leave no choice.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Identity of this client among the server's clients.
    pub client_guid: [u8; 16],
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            dialect_max: Dialect::default(),
            signing: Signing::default(),
            encryption: false,
            ciphers: vec![
                Cipher::Aes128Gcm,
                Cipher::Aes128Ccm,
                Cipher::Aes256Gcm,
                Cipher::Aes256Ccm,
            ],
            signing_algorithms: vec![
                SigningAlgorithm::AesGmac,
                SigningAlgorithm::AesCmac,
                SigningAlgorithm::HmacSha256,
            ],
            client_guid: [0; 16],
        }
    }
}

/// All that a logon needs to know.
#[derive(Clone, Debug)]
pub struct LogonRequest<'a> {
    /// Who wants to log on.
    pub credentials: &'a Credentials,
    /// What we can and want to speak.
    pub offer: &'a Offer,
    /// The share as `\\host\share`.
    pub unc: &'a str,
    /// Differs from logon to logon.
    pub nonce: u64,
}

plimsoll_model::named! {
    /// Versions of the protocol, rising.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
        JsonSchema,
    )]
    #[expect(missing_docs, reason = "each is the dialect of its name")]
    pub enum Dialect {
        V2_0_2 = "2.0.2",
        V2_1 = "2.1",
        V3_0 = "3.0",
        V3_0_2 = "3.0.2",
        #[default]
        V3_1_1 = "3.1.1",
    }
}

/// When messages are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Signing {
    /// Offered, done when the server requires it.
    #[default]
    WhenAsked,
    /// Always.
    Required,
    /// Never; a server that requires it is refused.
    Off,
}

impl Dialect {
    /// Its number on the wire, MS-SMB2 2.2.3.
    pub const fn revision(self) -> u16 {
        match self {
            Self::V2_0_2 => 0x0202,
            Self::V2_1 => 0x0210,
            Self::V3_0 => 0x0300,
            Self::V3_0_2 => 0x0302,
            Self::V3_1_1 => 0x0311,
        }
    }
}

const NTLM_SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
/// MS-NLMP §2.2.1.3: fields, flags and version, without a MIC.
const AUTHENTICATE_BYTES: u32 = 72;
const NEGOTIATE_ANONYMOUS: u32 = 0x0000_0800;
/// Nobody's messages are neither signed nor sealed, and no key is exchanged for them.
const NOT_FOR_ANONYMOUS: u32 = 0x4000_0000 | 0x0000_8000 | 0x0000_0030;

/// The identity of a requested session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The user of the credentials.
    Named,
    /// The user "Guest" without a password.
    Guest,
    /// Nobody.
    Anonymous,
}

/// The server's token cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not NTLM, but Kerberos perhaps.
    #[error("the server does not take NTLM; allow NTLM there, or name an account that may use it")]
    NotNtlm,
    /// Not to be read.
    #[error(
        "the server's security token cannot be read ({0}); see what the server is, and its log"
    )]
    Garbled(String),
}

/// The exchange of tokens for one session.
pub(super) struct Exchange {
    identity: Identity,
    ntlm: NtlmAuthenticator,
}

impl Exchange {
    pub(super) fn new(identity: Identity, credentials: &Credentials) -> Self {
        let credentials = match identity {
            Identity::Named => NtlmCredentials {
                username: credentials.user.clone(),
                password: credentials.password.clone(),
                domain: credentials.domain.clone(),
            },
            Identity::Guest | Identity::Anonymous => NtlmCredentials {
                username: "Guest".to_owned(),
                password: String::new(),
                domain: String::new(),
            },
        };
        Self { identity, ntlm: NtlmAuthenticator::new(credentials) }
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// The token for the first SESSION_SETUP.
    pub(super) fn first(&mut self) -> Vec<u8> {
        self.ntlm.negotiate()
    }

    /// The token for the second one.
    pub(super) fn answer(&mut self, token: &[u8]) -> Result<Vec<u8>, TokenError> {
        let challenge = challenge(token)?;
        match self.identity {
            Identity::Named | Identity::Guest => self
                .ntlm
                .authenticate(&challenge)
                .map_err(|error| TokenError::Garbled(error.to_string())),
            Identity::Anonymous => anonymous(&challenge),
        }
    }

    /// Known after the answer. `None` for nobody.
    pub(super) fn session_key(&self) -> Option<&[u8]> {
        self.ntlm.session_key()
    }
}

/// The NTLM message in the server's token.
fn challenge(token: &[u8]) -> Result<Vec<u8>, TokenError> {
    if token.starts_with(NTLM_SIGNATURE) {
        return Ok(token.to_vec());
    }
    let response =
        parse_neg_token_resp(token).map_err(|error| TokenError::Garbled(error.to_string()))?;
    let other = response.supported_mech.is_some_and(|mechanism| mechanism != OID_NTLMSSP);
    if other || response.neg_state == Some(NegState::Reject) {
        return Err(TokenError::NotNtlm);
    }
    response.response_token.ok_or(TokenError::NotNtlm)
}

/// MS-NLMP §3.2.5.1.2: no user, no answer to the challenge, one zero byte for LM.
fn anonymous(challenge: &[u8]) -> Result<Vec<u8>, TokenError> {
    let flags = challenge
        .get(20..24)
        .and_then(|flags| flags.try_into().ok())
        .map(u32::from_le_bytes)
        .ok_or_else(|| TokenError::Garbled("the challenge is too short".to_owned()))?;
    let mut out = NTLM_SIGNATURE.to_vec();
    out.extend_from_slice(&3_u32.to_le_bytes());
    for (length, at) in [(1_u16, 0_u32), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)] {
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(AUTHENTICATE_BYTES + at).to_le_bytes());
    }
    let flags = (flags | NEGOTIATE_ANONYMOUS) & !NOT_FOR_ANONYMOUS;
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.push(0);
    Ok(out)
}
