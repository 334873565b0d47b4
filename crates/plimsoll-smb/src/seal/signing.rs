//! Signatures. MS-SMB2 §3.1.4.1

use aes::Aes128;
use cmac::{Cmac, KeyInit, Mac};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;

use super::{
    FLAG_SIGNED, FLAGS_AT, HEADER_BYTES, KeyLengthError, Role, SIGNATURE_AT, SIGNATURE_BYTES,
    is_cancel, message_id,
};

const SIGNATURE_END: usize = SIGNATURE_AT + SIGNATURE_BYTES;
const UNSIGNED: [u8; SIGNATURE_BYTES] = [0; SIGNATURE_BYTES];
/// Bytes of every signing key.
const KEY_BYTES: usize = 16;

type Signature = [u8; SIGNATURE_BYTES];

/// How messages are signed, by its number on the wire. MS-SMB2 §2.2.3.1.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum SigningAlgorithm {
    /// HMAC-SHA256, the first half of it: 2.0.2 and 2.1, or negotiated.
    HmacSha256 = 0,
    /// AES-128-CMAC: 3.0 and later.
    AesCmac,
    /// AES-128-GMAC, where 3.1.1 negotiates it.
    AesGmac,
}

impl SigningAlgorithm {
    /// Its name for the disclosure.
    pub fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "HMAC-SHA256",
            Self::AesCmac => "AES-128-CMAC",
            Self::AesGmac => "AES-128-GMAC",
        }
    }
}

/// A signing key at work.
pub(super) struct Signer {
    key: Key,
    role: Role,
}

enum Key {
    HmacSha256(hmac::Key),
    AesCmac(Box<Cmac<Aes128>>),
    AesGmac(Box<LessSafeKey>),
}

impl Signer {
    pub(super) fn new(
        algorithm: SigningAlgorithm,
        key: &[u8],
        role: Role,
    ) -> Result<Self, KeyLengthError> {
        let wrong = KeyLengthError { algorithm: algorithm.name(), bytes: key.len() };
        if key.len() != KEY_BYTES {
            return Err(wrong);
        }
        let key = match algorithm {
            SigningAlgorithm::HmacSha256 => Key::HmacSha256(hmac::Key::new(hmac::HMAC_SHA256, key)),
            SigningAlgorithm::AesCmac => {
                Key::AesCmac(Box::new(Cmac::new_from_slice(key).map_err(|_| wrong)?))
            }
            SigningAlgorithm::AesGmac => {
                let key = UnboundKey::new(&AES_128_GCM, key).map_err(|_| wrong)?;
                Key::AesGmac(Box::new(LessSafeKey::new(key)))
            }
        };
        Ok(Self { key, role })
    }

    /// Signs one command of ours in place.
    pub(super) fn sign(&self, command: &mut [u8]) {
        command[FLAGS_AT] |= FLAG_SIGNED;
        command[SIGNATURE_AT..SIGNATURE_END].copy_from_slice(&UNSIGNED);
        let signature = match &self.key {
            Key::AesGmac(key) => gmac(key, command, self.role),
            Key::HmacSha256(_) | Key::AesCmac(_) => self.pieces(command),
        };
        command[SIGNATURE_AT..SIGNATURE_END].copy_from_slice(&signature);
    }

    /// Whether the peer signed this command.
    pub(super) fn verifies(&self, command: &[u8], scratch: &mut Vec<u8>) -> bool {
        let expected = match &self.key {
            Key::AesGmac(key) => {
                scratch.clear();
                scratch.extend_from_slice(command);
                scratch[SIGNATURE_AT..SIGNATURE_END].copy_from_slice(&UNSIGNED);
                let peer = match self.role {
                    Role::Client => Role::Server,
                    Role::Server => Role::Client,
                };
                gmac(key, scratch, peer)
            }
            Key::HmacSha256(_) | Key::AesCmac(_) => self.pieces(command),
        };
        let received = &command[SIGNATURE_AT..SIGNATURE_END];
        // Looks at every byte, so that the time taken does not reveal the first wrong one.
        expected
            .iter()
            .zip(received)
            .fold(0, |difference, (ours, theirs)| difference | (ours ^ theirs))
            == 0
    }

    /// The signature over the command with zeros in place of its signature, without touching it.
    fn pieces(&self, command: &[u8]) -> Signature {
        let (head, rest) = (&command[..SIGNATURE_AT], &command[HEADER_BYTES..]);
        let mut signature = UNSIGNED;
        match &self.key {
            Key::HmacSha256(key) => {
                let mut mac = hmac::Context::with_key(key);
                mac.update(head);
                mac.update(&UNSIGNED);
                mac.update(rest);
                signature.copy_from_slice(&mac.sign().as_ref()[..SIGNATURE_BYTES]);
            }
            Key::AesCmac(keyed) => {
                let mut mac = Cmac::clone(keyed);
                mac.update(head);
                mac.update(&UNSIGNED);
                mac.update(rest);
                signature.copy_from_slice(&mac.finalize().into_bytes());
            }
            Key::AesGmac(_) => unreachable!("a GMAC takes its input in one piece"),
        }
        signature
    }
}

/// AES-GCM of nothing, with the command as associated data. The nonce is made of the message's
/// number, its sender and whether it is a CANCEL, so it never repeats under one key.
fn gmac(key: &LessSafeKey, unsigned: &[u8], sender: Role) -> Signature {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&message_id(unsigned).to_le_bytes());
    nonce[8] = u8::from(sender == Role::Server) | u8::from(is_cancel(unsigned)) << 1;
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key
        .seal_in_place_separate_tag(nonce, Aad::from(unsigned), &mut [])
        .expect("a message is far below the limits of GCM");
    let mut signature = UNSIGNED;
    signature.copy_from_slice(tag.as_ref());
    signature
}
