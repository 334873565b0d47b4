//! What a reply may have otherwise than its specification says, and mean the same. Whoever decodes
//! a reply notes it and reads on; calls are held to the letter.

/// One way in which a reply differs from its specification.
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
    /// Attributes that a reply has besides are of a type of file that does not exist.
    FileType,
    /// Attributes that a reply has besides are those of an object of another kind or number.
    OtherObject,
    /// Attributes have bits in their mode that are none of a mode.
    Mode,
    /// ACCESS grants what was not asked about.
    Access,
    /// The server said that it set the mode, and another one was found.
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
