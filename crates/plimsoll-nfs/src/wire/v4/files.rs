//! Files: OPEN, CLOSE, and the data between. RFC 8881 §18.1 to §18.3, §18.16, §18.22, §18.32

use super::{Attributes4, Bitmap, OPAQUE_BYTES_MAX, Opaque, StateId, Verifier};
use crate::wire::v3::StableHow;
use crate::wire::xdr::{Decode, Encode, Name, XdrError, XdrIn};

/// What an open is for, and whether a delegation is wanted. RFC 8881 §18.16.3 `share_access`
pub mod share {
    /// To read.
    pub const READ: u32 = 1;
    /// To write.
    pub const WRITE: u32 = 2;
    /// To do both.
    pub const BOTH: u32 = 3;
    /// The bits of the above.
    pub const ACCESS_MASK: u32 = 3;
    /// Whichever delegation the server likes to give.
    pub const WANT_ANY: u32 = 0x300;
    /// No delegation.
    pub const WANT_NONE: u32 = 0x400;
    /// The bits of the two above.
    pub const WANT_MASK: u32 = 0xff00;
}

xdr_struct! {
    /// A directory's `change` before and after. RFC 8881 §3.3.8 `change_info4`
    pub struct ChangeInfo {
        /// Nothing else changed it in between.
        atomic: bool,
        /// Before.
        before: u64,
        /// After.
        after: u64,
    }

    /// Arguments of OPEN. RFC 8881 §18.16
    pub struct OpenArgs<'a> {
        /// Not used in NFSv4.1.
        seqid: u32,
        /// Of [`share`].
        access: u32,
        /// What is denied to others.
        deny: u32,
        /// Of the owner; the server goes by the session.
        client_id: u64,
        /// Which owner of the client.
        owner: Opaque<'a, OPAQUE_BYTES_MAX>,
        /// Whether a file may be made.
        how: OpenHow<'a>,
        /// Which file.
        claim: OpenClaim<'a>,
    }

    /// What OPEN answers.
    pub struct OpenOk<'a> {
        /// The open file.
        state: StateId,
        /// The directory, if a file was made.
        change: ChangeInfo,
        /// Properties of the open file.
        flags: u32,
        /// Attributes that were set.
        set: Bitmap,
        /// What was delegated.
        delegation: Delegation<'a>,
    }

    /// Arguments of CLOSE. RFC 8881 §18.2
    pub struct CloseArgs {
        /// Not used in NFSv4.1.
        seqid: u32,
        /// The open file.
        state: StateId,
    }

    /// Arguments of READ. RFC 8881 §18.22
    pub struct ReadArgs4 {
        /// The open file.
        state: StateId,
        /// First byte.
        offset: u64,
        /// Bytes.
        count: u32,
    }

    /// What READ answers.
    pub struct ReadOk4<'a> {
        /// The file ends here.
        eof: bool,
        /// The bytes.
        data: &'a [u8],
    }

    /// Arguments of WRITE. RFC 8881 §18.32
    pub struct WriteArgs4<'a> {
        /// The open file.
        state: StateId,
        /// First byte.
        offset: u64,
        /// How durable before the answer.
        stable: StableHow,
        /// The bytes.
        data: &'a [u8],
    }

    /// What WRITE answers.
    pub struct WriteOk4 {
        /// Bytes that were written.
        count: u32,
        /// How durable they are.
        committed: StableHow,
        /// Of the server's run.
        verifier: Verifier,
    }

    /// Arguments of COMMIT. RFC 8881 §18.3
    pub struct CommitArgs4 {
        /// First byte.
        offset: u64,
        /// Bytes; 0: to the end.
        count: u32,
    }

    /// Arguments of SETATTR; the answer is a [`Bitmap`], after an error too. RFC 8881 §18.30
    pub struct SetAttrArgs4<'a> {
        /// The open file, for a new size.
        state: StateId,
        /// What is set.
        attributes: Attributes4<'a>,
    }

    /// What ACCESS answers. RFC 8881 §18.1
    pub struct AccessOk4 {
        /// Accesses that the server can judge.
        supported: u32,
        /// Accesses that are granted.
        granted: u32,
    }
}

/// Whether OPEN may make a file. RFC 8881 §18.16 `openflag4`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenHow<'a> {
    /// The file exists.
    NoCreate,
    /// UNCHECKED4: makes it, or takes what is there.
    Unchecked(Attributes4<'a>),
    /// GUARDED4: makes it, or fails.
    Guarded(Attributes4<'a>),
}

impl Encode for OpenHow<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let (mode, attributes) = match self {
            Self::NoCreate => return 0_u32.encode(out),
            Self::Unchecked(attributes) => (0_u32, attributes),
            Self::Guarded(attributes) => (1, attributes),
        };
        1_u32.encode(out);
        mode.encode(out);
        attributes.encode(out);
    }
}

impl<'a> Decode<'a> for OpenHow<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Ok(Self::NoCreate),
            1 => match input.u32()? {
                0 => Attributes4::decode(input).map(Self::Unchecked),
                1 => Attributes4::decode(input).map(Self::Guarded),
                // EXCLUSIVE4 and EXCLUSIVE4_1, which no call here has.
                value => Err(XdrError::Value { what: "createmode4", value }),
            },
            value => Err(XdrError::Value { what: "opentype4", value }),
        }
    }
}

/// Which file OPEN opens. RFC 8881 §18.16 `open_claim4`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenClaim<'a> {
    /// CLAIM_NULL: of this name in the current directory.
    Null(Name<'a>),
    /// CLAIM_PREVIOUS: the current one, which was open before the server restarted.
    Previous {
        /// Type of the delegation that was held.
        delegation: u32,
    },
    /// CLAIM_FH: the current one.
    Handle,
}

impl Encode for OpenClaim<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null(name) => {
                0_u32.encode(out);
                name.encode(out);
            }
            Self::Previous { delegation } => {
                1_u32.encode(out);
                delegation.encode(out);
            }
            Self::Handle => 4_u32.encode(out),
        }
    }
}

impl<'a> Decode<'a> for OpenClaim<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Name::decode(input).map(Self::Null),
            1 => Ok(Self::Previous { delegation: input.u32()? }),
            4 => Ok(Self::Handle),
            value => Err(XdrError::Value { what: "open_claim_type4", value }),
        }
    }
}

xdr_struct! {
    /// Who else may do something without asking: an entry of an access list. RFC 8881 §6.2.1
    pub struct Ace<'a> {
        /// Allow, deny, audit, alarm.
        kind: u32,
        /// Of inheritance.
        flags: u32,
        /// What.
        mask: u32,
        /// Who.
        who: Name<'a>,
    }

    /// A delegation to read. RFC 8881 §18.16 `open_read_delegation4`
    pub struct ReadDelegation<'a> {
        /// Its state.
        state: StateId,
        /// The server recalls it at once.
        recall: bool,
        /// Who may open the file to read without asking.
        permissions: Ace<'a>,
    }

    /// A delegation to write. RFC 8881 §18.16 `open_write_delegation4`
    pub struct WriteDelegation<'a> {
        /// Its state.
        state: StateId,
        /// The server recalls it at once.
        recall: bool,
        /// How much the file may grow without asking: kind of the limit, and two numbers.
        space_limit: [u8; 12],
        /// Who may open the file without asking.
        permissions: Ace<'a>,
    }
}

/// What OPEN delegates. RFC 8881 §18.16 `open_delegation4`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delegation<'a> {
    /// Nothing.
    None,
    /// Reading.
    Read(ReadDelegation<'a>),
    /// Writing.
    Write(WriteDelegation<'a>),
    /// Nothing, with the reason: `why_no_delegation4`.
    Refused {
        /// The reason.
        why: u32,
    },
}

impl Delegation<'_> {
    /// Reasons that come with a boolean, whether the server will tell when it can delegate:
    /// WND4_CONTENTION and WND4_RESOURCE. It is not kept. RFC 8881 §18.16 `open_none_delegation4`
    const WITH_PROMISE: [u32; 2] = [1, 2];
}

impl Encode for Delegation<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => 0_u32.encode(out),
            Self::Read(read) => {
                1_u32.encode(out);
                read.encode(out);
            }
            Self::Write(write) => {
                2_u32.encode(out);
                write.encode(out);
            }
            Self::Refused { why } => {
                3_u32.encode(out);
                why.encode(out);
                if Self::WITH_PROMISE.contains(why) {
                    false.encode(out);
                }
            }
        }
    }
}

impl<'a> Decode<'a> for Delegation<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Ok(Self::None),
            1 => ReadDelegation::decode(input).map(Self::Read),
            2 => WriteDelegation::decode(input).map(Self::Write),
            3 => {
                let why = input.u32()?;
                if Self::WITH_PROMISE.contains(&why) {
                    input.bool()?;
                }
                Ok(Self::Refused { why })
            }
            value => Err(XdrError::Value { what: "open_delegation_type4", value }),
        }
    }
}
