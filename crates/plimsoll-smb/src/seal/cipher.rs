//! Encryption behind the transform header. MS-SMB2 §2.2.41, §3.1.4.3

use aes::{Aes128, Aes256};
use ccm::aead::inout::InOutBuf;
use ccm::aead::{AeadInOut, KeyInit};
use ccm::consts::{U11, U16};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::{EncryptionKeys, KeyLengthError, SealError};
use crate::wire::bytes::Field;
use crate::wire::header::{AUTHENTICATED_AT, TransformHeader};

const TAG_BYTES: usize = 16;
const CCM_NONCE_BYTES: usize = 11;
/// The only flag, or in 3.0 the only algorithm number: both say "encrypted".
const FLAG_ENCRYPTED: u16 = 1;

type Ccm128 = ccm::Ccm<Aes128, U16, U11>;
type Ccm256 = ccm::Ccm<Aes256, U16, U11>;

/// How messages are encrypted, by its number on the wire. MS-SMB2 §2.2.3.1.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Cipher {
    /// AES-128-CCM, the only one of 3.0 and 3.0.2.
    Aes128Ccm = 1,
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-CCM.
    Aes256Ccm,
    /// AES-256-GCM.
    Aes256Gcm,
}

impl Cipher {
    /// Its name for the disclosure.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Ccm => "AES-128-CCM",
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Ccm => "AES-256-CCM",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }

    /// Length of each of its keys.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }
}

/// The two keys of a session at work.
pub(super) struct Encryption {
    session_id: u64,
    sending: Key,
    receiving: Key,
    /// Number of the next message we encrypt. The keys belong to this value alone, so no nonce
    /// is ever used twice.
    nonce_next: u64,
}

enum Key {
    Gcm(Box<LessSafeKey>),
    Ccm128(Box<Ccm128>),
    Ccm256(Box<Ccm256>),
}

impl Encryption {
    pub(super) fn new(keys: &EncryptionKeys<'_>, session_id: u64) -> Result<Self, KeyLengthError> {
        Ok(Self {
            session_id,
            sending: Key::new(keys.cipher, keys.sending)?,
            receiving: Key::new(keys.cipher, keys.receiving)?,
            nonce_next: 1,
        })
    }

    /// Encrypts `out[at..]`, a message without its four-byte length, and puts the transform header
    /// before it.
    pub(super) fn encrypt(&mut self, out: &mut Vec<u8>, at: usize) {
        let plain_bytes = out.len() - at;
        out.resize(out.len() + TransformHeader::BYTES, 0);
        out.copy_within(at..at + plain_bytes, at + TransformHeader::BYTES);
        let (header, message) = out[at..].split_at_mut(TransformHeader::BYTES);
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.nonce_next.to_le_bytes());
        let unsigned = TransformHeader {
            nonce,
            message_bytes: u32::try_from(plain_bytes).expect("our messages are below 16 MiB"),
            flags: FLAG_ENCRYPTED,
            session_id: self.session_id,
            ..TransformHeader::default()
        };
        unsigned.write(header);
        self.nonce_next = self.nonce_next.checked_add(1).expect("2^64 messages take millennia");
        let tag = self.sending.encrypt(&header[AUTHENTICATED_AT..], message);
        header[AUTHENTICATED_AT - TAG_BYTES..AUTHENTICATED_AT].copy_from_slice(&tag);
    }

    /// Decrypts `message` into `plain`.
    pub(super) fn decrypt<'a>(
        &self,
        message: &[u8],
        plain: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SealError> {
        let malformed = SealError::Malformed(message.len());
        if message.len() <= TransformHeader::BYTES {
            return Err(malformed);
        }
        let (bytes, encrypted) = message.split_at(TransformHeader::BYTES);
        let header = TransformHeader::decode(bytes).map_err(|_| malformed.clone())?;
        if header.message_bytes as usize != encrypted.len() {
            return Err(malformed);
        }
        if header.session_id != self.session_id || header.flags != FLAG_ENCRYPTED {
            return Err(SealError::Undecryptable);
        }
        plain.clear();
        plain.extend_from_slice(encrypted);
        self.receiving.decrypt(&bytes[AUTHENTICATED_AT..], header.signature, plain)?;
        Ok(plain)
    }
}

impl Key {
    fn new(cipher: Cipher, key: &[u8]) -> Result<Self, KeyLengthError> {
        let wrong = KeyLengthError { algorithm: cipher.name(), bytes: key.len() };
        let gcm = |algorithm| {
            let key = UnboundKey::new(algorithm, key).map_err(|_| wrong)?;
            Ok(Self::Gcm(Box::new(LessSafeKey::new(key))))
        };
        match cipher {
            Cipher::Aes128Gcm => gcm(&AES_128_GCM),
            Cipher::Aes256Gcm => gcm(&AES_256_GCM),
            Cipher::Aes128Ccm => {
                let key = Ccm128::new_from_slice(key).map_err(|_| wrong)?;
                Ok(Self::Ccm128(Box::new(key)))
            }
            Cipher::Aes256Ccm => {
                let key = Ccm256::new_from_slice(key).map_err(|_| wrong)?;
                Ok(Self::Ccm256(Box::new(key)))
            }
        }
    }

    /// `associated` is the transform header from its nonce on.
    fn encrypt(&self, associated: &[u8], message: &mut [u8]) -> [u8; TAG_BYTES] {
        let fits = "a message is far below the limits of the cipher";
        let mut tag = [0; TAG_BYTES];
        let (nonce, buffer) = (ccm_nonce(associated), message);
        match self {
            Self::Gcm(key) => {
                let made = key
                    .seal_in_place_separate_tag(
                        gcm_nonce(associated),
                        Aad::from(associated),
                        buffer,
                    )
                    .expect(fits);
                tag.copy_from_slice(made.as_ref());
            }
            Self::Ccm128(key) => {
                let buffer = InOutBuf::from(buffer);
                let made = key.encrypt_inout_detached(&nonce.into(), associated, buffer);
                tag.copy_from_slice(&made.expect(fits));
            }
            Self::Ccm256(key) => {
                let buffer = InOutBuf::from(buffer);
                let made = key.encrypt_inout_detached(&nonce.into(), associated, buffer);
                tag.copy_from_slice(&made.expect(fits));
            }
        }
        tag
    }

    fn decrypt(
        &self,
        associated: &[u8],
        tag: [u8; TAG_BYTES],
        message: &mut [u8],
    ) -> Result<(), SealError> {
        let nonce = ccm_nonce(associated);
        let opened = match self {
            Self::Gcm(key) => key
                .open_in_place_separate_tag(
                    gcm_nonce(associated),
                    Aad::from(associated),
                    tag.into(),
                    message,
                    0..,
                )
                .is_ok(),
            Self::Ccm128(key) => {
                let buffer = InOutBuf::from(message);
                key.decrypt_inout_detached(&nonce.into(), associated, buffer, &tag.into()).is_ok()
            }
            Self::Ccm256(key) => {
                let buffer = InOutBuf::from(message);
                key.decrypt_inout_detached(&nonce.into(), associated, buffer, &tag.into()).is_ok()
            }
        };
        if opened { Ok(()) } else { Err(SealError::Undecryptable) }
    }
}

fn gcm_nonce(associated: &[u8]) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&associated[..NONCE_LEN]);
    Nonce::assume_unique_for_key(nonce)
}

fn ccm_nonce(associated: &[u8]) -> [u8; CCM_NONCE_BYTES] {
    let mut nonce = [0; CCM_NONCE_BYTES];
    nonce.copy_from_slice(&associated[..CCM_NONCE_BYTES]);
    nonce
}
