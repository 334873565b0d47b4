//! Who we are, as NTLM tokens. MS-NLMP
//!
//! Ours travel bare, as those of other small clients do: within SPNEGO (RFC 4178) servers want
//! the list of mechanisms signed as well, for which the NTLM crate has no call. The server's may
//! come either way.
//!
//! The client's challenge and session key are random, from the operating system: a predictable
//! key would protect nothing. The time in the answer is the server's own from its challenge; only
//! where a server sends none is the local clock read, inside the NTLM crate.

use smb2::auth::ntlm::{NtlmAuthenticator, NtlmCredentials};
use smb2::auth::spnego::{NegState, OID_NTLMSSP, parse_neg_token_resp};

use super::offer::Credentials;

const NTLM_SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
/// MS-NLMP §2.2.1.3: fields, flags and version, without a MIC.
const AUTHENTICATE_BYTES: u32 = 72;
const NEGOTIATE_ANONYMOUS: u32 = 0x0000_0800;
/// Nobody's messages are neither signed nor sealed, and no key is exchanged for them.
const NOT_FOR_ANONYMOUS: u32 = 0x4000_0000 | 0x0000_8000 | 0x0000_0030;

/// As whom a session is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The user of the credentials.
    Named,
    /// The user "Guest" without a password.
    Guest,
    /// Nobody.
    Anonymous,
}

/// What the server says cannot be answered.
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
