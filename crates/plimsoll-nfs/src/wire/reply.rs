//! The result of a procedure, of NFS and of MNT alike: a status, and the fields of that case.

use super::xdr::{Decode, Encode, XdrError, XdrIn};

/// Says first whether a call succeeded.
pub trait Status: Copy + PartialEq {
    /// It did.
    const OK: Self;
}

/// Result of a procedure with statuses `S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<S, T, E = ()> {
    /// Success, and what the procedure answers.
    Ok(T),
    /// Another status, and what comes with it.
    Err(S, E),
}

impl<S: Status, T, E> Reply<S, T, E> {
    /// The status on the wire.
    #[inline]
    pub fn status(&self) -> S {
        match self {
            Self::Ok(_) => S::OK,
            Self::Err(status, _) => *status,
        }
    }

    /// What came with success, or the status.
    #[inline]
    pub fn ok(self) -> Result<T, S> {
        match self {
            Self::Ok(ok) => Ok(ok),
            Self::Err(status, _) => Err(status),
        }
    }
}

impl<S: Status + Encode, T: Encode, E: Encode> Encode for Reply<S, T, E> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.status().encode(out);
        match self {
            Self::Ok(ok) => ok.encode(out),
            Self::Err(_, failure) => failure.encode(out),
        }
    }
}

impl<'a, S: Status + Decode<'a>, T: Decode<'a>, E: Decode<'a>> Decode<'a> for Reply<S, T, E> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match S::decode(input)? {
            status if status == S::OK => T::decode(input).map(Self::Ok),
            status => E::decode(input).map(|failure| Self::Err(status, failure)),
        }
    }
}
