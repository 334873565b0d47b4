//! Who calls: credentials and verifiers. RFC 5531 §8.2, appendix A.

use crate::wire::text::Name;
use crate::wire::xdr::{Decode, Encode, Words, XdrError, XdrIn, encode_opaque};

/// Longest body of a credential or verifier. RFC 5531 §8.2
pub const AUTH_BYTES_MAX: u32 = 400;
/// Most groups in an AUTH_SYS credential. RFC 5531 appendix A
pub const GROUPS_MAX: u32 = 16;

/// No authentication. RFC 5531 §10.1
pub const AUTH_NONE: u32 = 0;
/// User and groups as the caller says. RFC 5531 appendix A
pub const AUTH_SYS: u32 = 1;

xdr_struct! {
    /// Body of an AUTH_SYS credential. RFC 5531 appendix A
    pub struct AuthSys<'a> {
        /// Any number of the caller's choice.
        stamp: u32,
        /// The caller's host.
        machine: Name<'a>,
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
        /// Further groups.
        gids: Groups<'a>,
    }
}

/// At most [`GROUPS_MAX`] group ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups<'a>(pub Words<'a>);

impl Encode for Groups<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<'a> Decode<'a> for Groups<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        Words::decode(input, GROUPS_MAX).map(Self)
    }
}

/// Credential and verifier as every call of a client carries them, encoded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    pub(super) bytes: Vec<u8>,
}

impl Credential {
    /// AUTH_NONE.
    pub fn none() -> Self {
        Self { bytes: vec![0; 16] }
    }

    /// AUTH_SYS, with an AUTH_NONE verifier.
    pub fn system(body: &AuthSys<'_>) -> Self {
        let mut encoded = Vec::new();
        body.encode(&mut encoded);
        let mut bytes = Vec::with_capacity(encoded.len() + 16);
        Auth { flavor: AUTH_SYS, body: &encoded }.encode(&mut bytes);
        Auth::NONE.encode(&mut bytes);
        Self { bytes }
    }
}

/// A credential or verifier. RFC 5531 §8.2 `opaque_auth`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// What the body is.
    pub flavor: u32,
    /// At most [`AUTH_BYTES_MAX`] bytes.
    pub body: &'a [u8],
}

impl<'a> Auth<'a> {
    /// AUTH_NONE.
    pub const NONE: Self = Auth { flavor: AUTH_NONE, body: &[] };

    /// The body of an AUTH_SYS credential, when it is one.
    pub fn system(&self) -> Option<Result<AuthSys<'a>, XdrError>> {
        (self.flavor == AUTH_SYS).then(|| AuthSys::decode(&mut XdrIn::new(self.body)))
    }
}

impl Encode for Auth<'_> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.flavor.encode(out);
        encode_opaque(self.body, out);
    }
}

impl<'a> Decode<'a> for Auth<'a> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        Ok(Self { flavor: input.u32()?, body: input.opaque(AUTH_BYTES_MAX)? })
    }
}
