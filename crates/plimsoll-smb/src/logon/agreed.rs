//! NEGOTIATE: the offer, and the result that both ends agree on. MS-SMB2 §3.2.4.2.2, §3.2.5.2

use super::error::{LogonError, Step};
use super::offer::{Dialect, Offer, Signing};
use crate::seal::{Cipher, SigningAlgorithm};
use crate::wire::negotiate::{
    NegotiateContext, NegotiateContexts, NegotiateRequest, NegotiateResponse, U16List,
    capabilities, security_mode,
};

const SHA_512: u16 = 1;
const SALT_BYTES: usize = 32;
/// Largest request without large MTU, and of 2.0.2.
const SMALL_MTU: u32 = 65_536;
/// Largest data of one command that is used: a message stays below its 16 MiB, and below what is
/// taken from the stream.
const DATA_BYTES_MAX: u32 = 8 * 1024 * 1024;

/// What both ends agree on.
pub(super) struct Agreed {
    pub dialect: Dialect,
    pub server_guid: [u8; 16],
    pub security_mode: u16,
    pub capabilities: u32,
    pub max_read: u32,
    pub max_write: u32,
    pub signing: SigningAlgorithm,
    pub cipher: Option<Cipher>,
}

impl Agreed {
    /// From the body of the server's reply.
    pub(super) fn from_reply(offer: &Offer, body: &[u8]) -> Result<Self, LogonError> {
        let reply = NegotiateResponse::decode(body)
            .map_err(|error| LogonError::Garbled { step: Step::Negotiate, error })?;
        let dialect = offered(offer)
            .find(|dialect| dialect.revision() == reply.dialect)
            .ok_or(LogonError::DialectNotOffered(reply.dialect))?;
        let large = dialect > Dialect::V2_0_2 && has(&reply, capabilities::LARGE_MTU);
        let most = if large { DATA_BYTES_MAX } else { SMALL_MTU };
        let mut agreed = Self {
            dialect,
            server_guid: reply.server_guid,
            security_mode: reply.security_mode,
            capabilities: reply.capabilities,
            max_read: reply.max_read.min(most),
            max_write: reply.max_write.min(most),
            signing: match dialect {
                Dialect::V2_0_2 | Dialect::V2_1 => SigningAlgorithm::HmacSha256,
                Dialect::V3_0 | Dialect::V3_0_2 | Dialect::V3_1_1 => SigningAlgorithm::AesCmac,
            },
            cipher: None,
        };
        match dialect {
            Dialect::V2_0_2 | Dialect::V2_1 => {}
            Dialect::V3_0 | Dialect::V3_0_2 => {
                agreed.cipher = has(&reply, capabilities::ENCRYPTION).then_some(Cipher::Aes128Ccm);
            }
            Dialect::V3_1_1 => agreed.read_contexts(offer, &reply)?,
        }
        Ok(agreed)
    }

    fn read_contexts(
        &mut self,
        offer: &Offer,
        reply: &NegotiateResponse<'_>,
    ) -> Result<(), LogonError> {
        let mut hashed = false;
        for context in reply.contexts.iter() {
            match context {
                NegotiateContext::PreauthIntegrity { algorithms, .. } => {
                    hashed = algorithms.iter().eq([SHA_512]);
                }
                NegotiateContext::Encryption { ciphers } => {
                    self.cipher = chosen(&offer.ciphers, ciphers, |cipher| cipher as u16);
                }
                NegotiateContext::Signing { algorithms } => {
                    self.signing = chosen(&offer.signing_algorithms, algorithms, |one| one as u16)
                        .ok_or(LogonError::Unfit {
                            step: Step::Negotiate,
                            what: "a signing algorithm that was not offered",
                        })?;
                }
                NegotiateContext::Other { .. } => {}
            }
        }
        if hashed {
            return Ok(());
        }
        let what = "no hash algorithm for the integrity of what comes before the keys";
        Err(LogonError::Unfit { step: Step::Negotiate, what })
    }

    /// The server insists on signed messages.
    pub(super) fn demands_signing(&self) -> bool {
        self.security_mode & security_mode::SIGNING_REQUIRED != 0
    }
}

/// The entry of our own list that the server chose.
fn chosen<T: Copy>(offered: &[T], answer: U16List<'_>, code: impl Fn(T) -> u16) -> Option<T> {
    let answer = answer.iter().next()?;
    offered.iter().copied().find(|one| code(*one) == answer)
}

fn has(reply: &NegotiateResponse<'_>, capability: u32) -> bool {
    reply.capabilities & capability != 0
}

/// The dialects offered, the oldest first.
fn offered(offer: &Offer) -> impl Iterator<Item = Dialect> {
    let dialect_max = offer.dialect_max;
    Dialect::ALL.into_iter().filter(move |one| *one <= dialect_max)
}

/// The same, as on the wire.
pub(super) fn dialects(offer: &Offer) -> Vec<u16> {
    offered(offer).map(Dialect::revision).collect()
}

/// SecurityMode of our requests. Signing counts as possible even where it is off, as the
/// protocol wants it.
pub(super) fn our_security_mode(offer: &Offer) -> u16 {
    match offer.signing {
        Signing::Off | Signing::WhenAsked => security_mode::SIGNING_ENABLED,
        Signing::Required => security_mode::SIGNING_ENABLED | security_mode::SIGNING_REQUIRED,
    }
}

/// Capabilities of our NEGOTIATE; before 3.0 a client has none.
pub(super) fn our_capabilities(offer: &Offer) -> u32 {
    if offer.dialect_max < Dialect::V3_0 {
        return 0;
    }
    capabilities::LEASING | capabilities::LARGE_MTU | capabilities::ENCRYPTION
}

/// The client's id; 2.0.2 knows none.
pub(super) fn our_guid(offer: &Offer) -> [u8; 16] {
    if offer.dialect_max < Dialect::V2_1 { [0; 16] } else { offer.client_guid }
}

/// Appends the body of our NEGOTIATE.
pub(super) fn encode_body(offer: &Offer, nonce: u64, out: &mut Vec<u8>) {
    let ciphers: Vec<u16> = offer.ciphers.iter().map(|cipher| *cipher as u16).collect();
    let algorithms: Vec<u16> =
        offer.signing_algorithms.iter().map(|algorithm| *algorithm as u16).collect();
    let salt = salt(nonce);
    let mut contexts = vec![NegotiateContext::PreauthIntegrity {
        algorithms: U16List::Values(&[SHA_512]),
        salt: &salt,
    }];
    if !ciphers.is_empty() {
        contexts.push(NegotiateContext::Encryption { ciphers: U16List::Values(&ciphers) });
    }
    if !algorithms.is_empty() {
        contexts.push(NegotiateContext::Signing { algorithms: U16List::Values(&algorithms) });
    }
    if offer.dialect_max < Dialect::V3_1_1 {
        contexts.clear();
    }
    NegotiateRequest {
        security_mode: our_security_mode(offer),
        capabilities: our_capabilities(offer),
        client_guid: our_guid(offer),
        dialects: U16List::Values(&dialects(offer)),
        contexts: NegotiateContexts::Values(&contexts),
    }
    .encode(out);
}

/// Keeps the hashes of two logons apart; it protects nothing.
fn salt(nonce: u64) -> [u8; SALT_BYTES] {
    let mut salt = [0; SALT_BYTES];
    let mut state = nonce;
    for word in salt.as_chunks_mut::<8>().0 {
        // SplitMix64, Steele, Lea and Flood 2014.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *word = (mixed ^ (mixed >> 31)).to_le_bytes();
    }
    salt
}
