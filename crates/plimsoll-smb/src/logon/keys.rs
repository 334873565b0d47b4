//! From the session's key to a [`Seal`]. MS-SMB2 §3.2.5.3.1

use smb2::crypto::kdf::{PreauthHasher, derive_session_keys};

use super::offer::Dialect;
use crate::seal::{Cipher, EncryptionKeys, KeyLengthError, Keys, Role, Seal, SigningAlgorithm};

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
