//! How a reply may differ from its specification and mean the same. The decoder of a reply notes
//! the flaw and reads on; calls must conform exactly.

/// One difference between a reply and its specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flaw {
    /// Bytes follow the end of the message.
    TrailingBytes,
    /// The status says that the call failed; what should come behind it cannot be read.
    FailureBody,
    /// Opaque data at the end of the message is not filled up to a whole word.
    MissingPadding,
    /// What fills opaque data up is not zero.
    NonzeroPadding,
    /// A boolean is neither 0 nor 1; every other client takes it for true.
    Boolean,
    /// Additional attributes of a reply have a file type that does not exist.
    FileType,
    /// Additional attributes of a reply are those of an object of another kind or number.
    OtherObject,
    /// Attributes have undefined bits in their mode.
    Mode,
    /// ACCESS grants what was not requested.
    Access,
    /// The server reported that it set the mode, but the object has another one.
    ModeNotKept,
    /// The flavors of authentication behind a handle of MOUNT cannot be read.
    Flavors,
}

impl Flaw {
    const ALL: [Self; 11] = [
        Self::TrailingBytes,
        Self::FailureBody,
        Self::MissingPadding,
        Self::NonzeroPadding,
        Self::Boolean,
        Self::FileType,
        Self::OtherObject,
        Self::Mode,
        Self::Access,
        Self::ModeNotKept,
        Self::Flavors,
    ];
}

/// Those of one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws(u16);

impl Flaws {
    /// It is as it should be.
    pub const NONE: Self = Self(0);

    /// Adds one.
    #[inline]
    pub fn note(&mut self, flaw: Flaw) {
        self.0 |= 1 << flaw as u8;
    }

    /// With those of another part of the reply.
    #[inline]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// There are none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Flaw> {
        Flaw::ALL.into_iter().filter(move |flaw| self.0 & (1 << *flaw as u8) != 0)
    }
}

impl From<Flaw> for Flaws {
    fn from(flaw: Flaw) -> Self {
        let mut flaws = Self::NONE;
        flaws.note(flaw);
        flaws
    }
}
