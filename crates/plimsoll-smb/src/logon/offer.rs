//! What we come with: who we are, and what we can and want to speak.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::seal::{Cipher, SigningAlgorithm};

/// Who wants to log on.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the account. Empty: guest, or nobody where guests are not wanted.
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
    /// Who this client is among the server's clients.
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

/// Versions of the protocol.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[expect(missing_docs, reason = "each is the dialect of its name")]
pub enum Dialect {
    #[serde(rename = "2.0.2")]
    V2_0_2,
    #[serde(rename = "2.1")]
    V2_1,
    #[serde(rename = "3.0")]
    V3_0,
    #[serde(rename = "3.0.2")]
    V3_0_2,
    #[default]
    #[serde(rename = "3.1.1")]
    V3_1_1,
}

/// When messages are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Signing {
    /// Offered, done when the server asks for it.
    #[default]
    WhenAsked,
    /// Always.
    Required,
    /// Never; a server that requires it is refused.
    Off,
}

impl Dialect {
    /// All, rising, with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("2.0.2", Self::V2_0_2),
        ("2.1", Self::V2_1),
        ("3.0", Self::V3_0),
        ("3.0.2", Self::V3_0_2),
        ("3.1.1", Self::V3_1_1),
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }

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
