//! Signing and encryption of one session: keyed once, done in place, nothing allocated per
//! message. MS-SMB2 §3.1.4.1 (signing), §3.1.4.3 (encrypting), §3.2.5.1 (receiving).
//!
//! GCM and HMAC come from ring, which is fast and already a dependency of rustls. It lacks CMAC and
//! CCM, which older dialects need; those come from RustCrypto.

mod cipher;
mod signing;

use crate::wire::frame::{self, FRAME_HEADER};
use crate::wire::header::{PROTOCOL_ID, SIGNATURE_AT, TRANSFORM_ID, UNSOLICITED, flags};
use crate::wire::{self, HEADER_BYTES, status};
use cipher::Encryption;
use signing::Signer;

pub use cipher::Cipher;
pub use signing::SigningAlgorithm;

/// Protection of a session's requests, also required of its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    None,
    /// Every command carries a signature.
    Sign,
    /// Every message or compound is encrypted as a whole, which also authenticates it.
    Encrypt,
}

/// Which end of the connection seals. The other end's messages are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Seals requests.
    Client,
    /// Seals replies; for servers made for tests.
    Server,
}

/// Why a received message was not let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Shorter than its own header, or than its parts say.
    #[error("the message's parts do not fit into its {0} bytes")]
    Malformed(usize),
    /// Neither a message nor an encrypted one.
    #[error("the message begins with {0:02x?}, which is not SMB2 (compression was not offered)")]
    NotSmb2([u8; 4]),
    /// A reply without the signature this session demands.
    #[error("the reply to {} is not signed (NTSTATUS 0x{status:08X})", command_name(*.command))]
    Unsigned {
        /// Code of the command.
        command: u16,
        /// The status in the unprotected reply.
        status: u32,
    },
    /// A signature that the session's key does not produce.
    #[error("the signature of the reply to {} {message_id} is wrong", command_name(*.command))]
    BadSignature {
        /// Code of the command.
        command: u16,
        /// Number of the message.
        message_id: u64,
    },
    /// A reply in clear within an encrypted session.
    #[error("the reply to {} is not encrypted (NTSTATUS 0x{status:08X})", command_name(*.command))]
    Unencrypted {
        /// Code of the command.
        command: u16,
        /// The status in the unprotected reply.
        status: u32,
    },
    /// An encrypted message that was changed, or is not for this session.
    #[error("an encrypted reply does not decrypt with the session's key")]
    Undecryptable,
}

/// Keys of a session before they are put to work.
pub struct Keys<'a> {
    /// Our end.
    pub role: Role,
    /// Id of the session, which encrypted messages carry.
    pub session_id: u64,
    /// How and with what to sign; 16 bytes. `None`: a session that cannot sign (guest).
    pub signing: Option<(SigningAlgorithm, &'a [u8])>,
    /// How to encrypt. `None`: a session that cannot.
    pub encryption: Option<EncryptionKeys<'a>>,
}

/// A cipher and its two keys, as long as the cipher wants them.
pub struct EncryptionKeys<'a> {
    /// The cipher.
    pub cipher: Cipher,
    /// Encrypts what our end sends.
    pub sending: &'a [u8],
    /// Decrypts what our end receives.
    pub receiving: &'a [u8],
}

/// A key whose length its algorithm does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of {bytes} bytes does not fit {algorithm}")]
pub struct KeyLengthError {
    /// What the key was for.
    pub algorithm: &'static str,
    /// Its length.
    pub bytes: usize,
}

/// The keys of one session at work.
pub struct Seal {
    protection: Protection,
    signer: Option<Signer>,
    encryption: Option<Encryption>,
}

impl std::fmt::Debug for Seal {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").field("protection", &self.protection).finish_non_exhaustive()
    }
}

impl Seal {
    /// No keys, no protection: a connection before its session, or a guest's.
    pub fn none() -> Self {
        Self { protection: Protection::None, signer: None, encryption: None }
    }

    /// Makes the keys ready. Protection begins as [`Protection::None`].
    pub fn new(keys: &Keys<'_>) -> Result<Self, KeyLengthError> {
        let signer = match keys.signing {
            Some((algorithm, key)) => Some(Signer::new(algorithm, key, keys.role)?),
            None => None,
        };
        let encryption = match &keys.encryption {
            Some(encryption) => Some(Encryption::new(encryption, keys.session_id)?),
            None => None,
        };
        Ok(Self { protection: Protection::None, signer, encryption })
    }

    /// Applies and requires `protection` from now on. `false`: the session has no key for it, and
    /// nothing changes.
    #[must_use]
    pub fn set_protection(&mut self, protection: Protection) -> bool {
        let able = match protection {
            Protection::None => true,
            Protection::Sign => self.signer.is_some(),
            Protection::Encrypt => self.encryption.is_some(),
        };
        if able {
            self.protection = protection;
        }
        able
    }

    /// What is demanded and given.
    pub fn protection(&self) -> Protection {
        self.protection
    }

    /// `out[at..]` is one framed message or compound of ours, `at` the start of its four-byte
    /// length: signs each command in place, or encrypts the whole behind a transform header and
    /// writes the length anew.
    ///
    /// # Panics
    /// If our own compound is not a chain of commands, or after 2^64 encrypted messages.
    pub fn protect(&mut self, out: &mut Vec<u8>, at: usize) {
        match self.protection {
            Protection::None => {}
            Protection::Sign => self.sign(&mut out[at + FRAME_HEADER..]),
            Protection::Encrypt => {
                if let Some(encryption) = &mut self.encryption {
                    encryption.encrypt(out, at + FRAME_HEADER);
                    frame::finish(out, at);
                }
            }
        }
    }

    /// Signs a message or compound without its four-byte length, whatever the protection is: the
    /// requests that must be signed anyway (MS-SMB2 §3.2.4.1.1).
    pub fn sign(&mut self, message: &mut [u8]) {
        let Some(signer) = &self.signer else { return };
        let mut at = 0;
        while at < message.len() {
            let end = Command::parse_at(message, at).expect("our own compound is a chain").end();
            signer.sign(&mut message[at..end]);
            at = end;
        }
    }

    /// A message as received, without its four-byte length: verified where it lies, or decrypted
    /// into `scratch`. Answers with the plain message or compound.
    ///
    /// Interim replies (`STATUS_PENDING`) and oplock breaks need no signature, and a break that is
    /// a message of its own no encryption: servers send them so (MS-SMB2 §3.2.5.1.3, §3.3.4.1.4).
    /// Verifying a GMAC needs a copy in `scratch`, since the fast implementation takes its input
    /// in one piece.
    pub fn open<'a>(
        &mut self,
        message: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SealError> {
        match message.first_chunk::<4>() {
            None => Err(SealError::Malformed(message.len())),
            Some(&PROTOCOL_ID) => {
                self.check_plain(message, scratch)?;
                Ok(message)
            }
            Some(&TRANSFORM_ID) => {
                let encryption = self.encryption.as_ref().ok_or(SealError::Undecryptable)?;
                let plain = encryption.decrypt(message, scratch)?;
                check_chain(plain)?;
                Ok(plain)
            }
            Some(&first) => Err(SealError::NotSmb2(first)),
        }
    }

    fn check_plain(&self, message: &[u8], scratch: &mut Vec<u8>) -> Result<(), SealError> {
        match self.protection {
            Protection::None => check_chain(message),
            Protection::Sign => self.verify(message, scratch),
            Protection::Encrypt => {
                let first = Command::parse_at(message, 0)?;
                // Nothing may travel in clear behind it: it would be taken for a reply.
                if first.is_break() && first.end() == message.len() {
                    return Ok(());
                }
                let (command, status) = (first.command(), first.status());
                Err(SealError::Unencrypted { command, status })
            }
        }
    }

    /// Verifies every command of a compound, whatever the protection is.
    pub fn verify(&self, message: &[u8], scratch: &mut Vec<u8>) -> Result<(), SealError> {
        let mut at = 0;
        while at < message.len() {
            let command = Command::parse_at(message, at)?;
            at = command.end();
            if command.needs_no_signature() {
                continue;
            }
            let signer = self.signer.as_ref().filter(|_| command.is_signed()).ok_or_else(|| {
                SealError::Unsigned { command: command.command(), status: command.status() }
            })?;
            if !signer.verifies(command.bytes(), scratch) {
                return Err(SealError::BadSignature {
                    command: command.command(),
                    message_id: command.message_id(),
                });
            }
        }
        Ok(())
    }
}

fn check_chain(message: &[u8]) -> Result<(), SealError> {
    let mut at = 0;
    while at < message.len() {
        at = Command::parse_at(message, at)?.end();
    }
    Ok(())
}

/// As MS-SMB2 §2.2.1.2 writes it.
fn command_name(code: u16) -> String {
    let Ok(command) = wire::Command::try_from(code) else { return "an unknown command".to_owned() };
    let mut name = String::new();
    for char in format!("{command:?}").chars() {
        if char.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(char.to_ascii_uppercase());
    }
    name
}

/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 16;
/// Where the flags lie in a header; the one of the signature is in the first byte.
const FLAGS_AT: usize = 16;
const FLAG_SIGNED: u8 = flags::SIGNED as u8;

/// One command of a compound: the few fields of its header that sealing looks at.
/// MS-SMB2 §2.2.1.2
struct Command<'a> {
    start: usize,
    bytes: &'a [u8],
}

impl<'a> Command<'a> {
    /// The command that begins at `start` of the compound.
    fn parse_at(compound: &'a [u8], start: usize) -> Result<Self, SealError> {
        let malformed = SealError::Malformed(compound.len());
        let rest = &compound[start..];
        if rest.len() < HEADER_BYTES || !rest.starts_with(&PROTOCOL_ID) {
            return Err(malformed);
        }
        let next = u32::from_le_bytes(field(rest, 20)) as usize;
        let fits = next >= HEADER_BYTES && next.is_multiple_of(8) && next < rest.len();
        match next {
            0 => Ok(Self { start, bytes: rest }),
            next if fits => Ok(Self { start, bytes: &rest[..next] }),
            _ => Err(malformed),
        }
    }

    /// Where the next command would begin.
    fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// All of it, padding before the next one included.
    fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn status(&self) -> u32 {
        u32::from_le_bytes(field(self.bytes, 8))
    }

    fn command(&self) -> u16 {
        u16::from_le_bytes(field(self.bytes, 12))
    }

    fn message_id(&self) -> u64 {
        message_id(self.bytes)
    }

    fn is_signed(&self) -> bool {
        self.bytes[FLAGS_AT] & FLAG_SIGNED != 0
    }

    /// A break of an oplock or a lease: the only unsolicited message.
    fn is_break(&self) -> bool {
        self.command() == wire::Command::OplockBreak as u16 && self.message_id() == UNSOLICITED
    }

    /// MS-SMB2 §3.2.5.1.3
    fn needs_no_signature(&self) -> bool {
        self.status() == status::PENDING || self.is_break()
    }
}

/// Number of the message with this header.
fn message_id(header: &[u8]) -> u64 {
    u64::from_le_bytes(field(header, 24))
}

/// Whether this header is a CANCEL's.
fn is_cancel(header: &[u8]) -> bool {
    u16::from_le_bytes(field(header, 12)) == wire::Command::Cancel as u16
}

fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests;
