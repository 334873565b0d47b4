//! Replies that differ from their specification and mean the same, as other clients accept them:
//! put right before they are decoded, and noted. What the meaning depends on stays as it came, so
//! that its decoder refuses it.

use std::borrow::Cow;

use plimsoll_model::nonconformity::{Nonconformities, Nonconformity, NonconformityKind as Kind};

use super::bytes::{Field, HEADER_BYTES, WireError};
use super::create::{CreateAction, CreateResponse, OplockLevel};
use super::fscc::{
    AllInfo, BasicInfo, EaInfo, Entries, FsAttributeInfo, FsDeviceInfo, FsFullSizeInfo, FsSizeInfo,
    FsVolumeInfo, InternalInfo, NetworkOpenInfo, StandardInfo, Streams,
};
use super::header::{Command, Header, flags};
use super::status::ErrorResponse;
use crate::op::{FileLevel, FindLevel, FsLevel};

const MS_SMB2: &str = "MS-SMB2";
const MS_FSCC: &str = "MS-FSCC";
/// Bits of a header that are defined, the three of its priority among them.
const FLAGS_DEFINED: u32 = flags::RESPONSE
    | flags::ASYNC
    | flags::RELATED
    | flags::SIGNED
    | 0x70
    | flags::DFS
    | flags::REPLAY;
/// Fewer bytes behind a body are its padding: commands of a compound begin at multiples of that,
/// and some servers pad the last one too.
const ALIGNMENT: usize = 8;

/// A number in a body: where it lies, and how many bytes it has.
type Place = (usize, usize);

/// The body of a successful reply. MS-SMB2 2.2
struct Form {
    section: &'static str,
    message: &'static str,
    /// StructureSize.
    size: u16,
    /// Bytes before what has no fixed length.
    fixed: usize,
    /// Of them up to the last that is read here.
    read: usize,
    end: End,
}

/// Where a body ends.
#[derive(Clone, Copy)]
enum End {
    /// With its fixed part.
    Fixed,
    /// With the buffer whose offset and length lie there.
    Buffer(Place, Place),
    /// It is not known here.
    Open,
}

impl Form {
    /// `None`: this client does not ask for it.
    #[inline]
    fn of(command: Command) -> Option<Self> {
        macro_rules! form {
            ($name:literal in $section:literal, size $size:literal: $fixed:literal, $read:literal, $end:expr) => {
                Self {
                    section: $section,
                    message: $name,
                    size: $size,
                    fixed: $fixed,
                    read: $read,
                    end: $end,
                }
            };
        }
        let output = End::Buffer((2, 2), (4, 4));
        let token = End::Buffer((4, 2), (6, 2));
        let data = End::Buffer((2, 1), (4, 4));
        let contexts = End::Buffer((80, 4), (84, 4));
        let controlled = End::Buffer((32, 4), (36, 4));
        Some(match command {
            Command::Negotiate => form!("NEGOTIATE" in "2.2.4", size 65: 64, 64, End::Open),
            Command::SessionSetup => form!("SESSION_SETUP" in "2.2.6", size 9: 8, 8, token),
            Command::Logoff => form!("LOGOFF" in "2.2.8", size 4: 4, 2, End::Fixed),
            Command::TreeConnect => form!("TREE_CONNECT" in "2.2.10", size 16: 16, 8, End::Fixed),
            Command::Create => form!("CREATE" in "2.2.14", size 89: 88, 80, contexts),
            Command::Close => form!("CLOSE" in "2.2.16", size 60: 60, 2, End::Fixed),
            Command::Flush => form!("FLUSH" in "2.2.18", size 4: 4, 2, End::Fixed),
            Command::Read => form!("READ" in "2.2.20", size 17: 16, 8, data),
            Command::Write => form!("WRITE" in "2.2.22", size 17: 16, 8, End::Fixed),
            Command::Lock => form!("LOCK" in "2.2.27", size 4: 4, 2, End::Fixed),
            Command::Echo => form!("ECHO" in "2.2.29", size 4: 4, 2, End::Fixed),
            Command::Ioctl => form!("IOCTL" in "2.2.32", size 49: 48, 40, controlled),
            Command::QueryDirectory => {
                form!("QUERY_DIRECTORY" in "2.2.34", size 9: 8, 8, output)
            }
            Command::QueryInfo => form!("QUERY_INFO" in "2.2.38", size 9: 8, 8, output),
            Command::SetInfo => form!("SET_INFO" in "2.2.40", size 2: 2, 2, End::Fixed),
            _ => return None,
        })
    }

    fn differs(&self, field: Option<&'static str>, kind: Kind) -> Nonconformity {
        Nonconformity::once(MS_SMB2, self.section, self.message, field, kind)
    }

    /// Bytes that the body has by what it says itself; what it has behind them says nothing.
    #[inline]
    fn bytes(&self, body: &[u8]) -> Option<usize> {
        // Of an odd size is the first byte of a buffer, which may be empty.
        let fixed = self.fixed.max(self.size.into());
        match self.end {
            End::Open => None,
            End::Fixed => Some(fixed),
            End::Buffer(offset, length) => match number(body, length)? {
                0 => Some(fixed),
                length => number(body, offset)?.checked_sub(HEADER_BYTES)?.checked_add(length),
            },
        }
    }
}

/// The body of a successful reply as its decoder wants it.
#[inline]
pub fn body<'b>(command: Command, body: &'b [u8], seen: &mut Nonconformities) -> Cow<'b, [u8]> {
    let mut right = Cow::Borrowed(body);
    let Some(form) = Form::of(command).filter(|form| body.len() >= form.read) else {
        return right;
    };
    // One of both: with neither size nor length it would be any message.
    let has_size = body.first_chunk() == Some(&form.size.to_le_bytes());
    match (has_size, body.len() >= form.fixed) {
        (true, true) => {}
        (false, true) => {
            seen.note(&form.differs(Some("StructureSize"), Kind::WrongSize));
            right.to_mut()[..2].copy_from_slice(&form.size.to_le_bytes());
        }
        (true, false) => {
            seen.note(&form.differs(None, Kind::MissingPart));
            right.to_mut().resize(form.fixed, 0);
        }
        (false, false) => return right,
    }
    if form.bytes(body).is_some_and(|bytes| body.len() >= bytes.saturating_add(ALIGNMENT)) {
        seen.note(&form.differs(None, Kind::TrailingBytes));
    }
    if command == Command::Create {
        of_create(&form, &mut right, seen);
    }
    right
}

/// A CREATE response whose file was opened: what it says of caching counts as nothing where it
/// cannot be read, and what became of the file nobody asks.
fn of_create(form: &Form, body: &mut Cow<'_, [u8]>, seen: &mut Nonconformities) {
    let mut forget = |body: &mut Cow<'_, [u8]>, (at, bytes): Place, field, kind| {
        seen.note(&form.differs(Some(field), kind));
        body.to_mut()[at..at + bytes].fill(0);
    };
    if OplockLevel::get(&body[2..3]).is_err() {
        forget(body, (2, 1), "OplockLevel", Kind::UndefinedValue);
    }
    if CreateAction::get(&body[4..8]).is_err() {
        forget(body, (4, 4), "CreateAction", Kind::UndefinedValue);
    }
    let has_lease = body[2] == OplockLevel::Lease as u8;
    if !has_lease && !CreateResponse::has_readable_contexts(body) {
        forget(body, (80, 8), "CreateContextsLength", Kind::WrongSize);
    }
}

/// Of a reply whose status says that its command failed, the body says nothing that is read here.
pub fn failed(command: Command, body: &[u8], seen: &mut Nonconformities) {
    let (field, kind) = match ErrorResponse::decode(body) {
        Ok(_) => return,
        Err(WireError::Structure { .. }) => (Some("StructureSize"), Kind::WrongSize),
        Err(_) => (None, Kind::MissingPart),
    };
    seen.note(&Nonconformity::once(MS_SMB2, "2.2.2", name(command), field, kind));
}

/// Flags of a reply's header without a meaning.
#[inline]
pub fn header(header: &Header, seen: &mut Nonconformities) {
    if header.flags & !FLAGS_DEFINED != 0 {
        let field = Some("Flags");
        let kind = Kind::UndefinedValue;
        seen.note(&Nonconformity::once(MS_SMB2, "2.2.1", name(header.command), field, kind));
    }
}

fn name(command: Command) -> &'static str {
    Form::of(command).map_or("another command", |form| form.message)
}

/// The body of a NEGOTIATE response, or of the last SESSION_SETUP response, whose security token
/// nobody reads.
pub fn without_token<'b>(
    command: Command,
    bytes: &'b [u8],
    seen: &mut Nonconformities,
) -> Cow<'b, [u8]> {
    let mut right = body(command, bytes, seen);
    let (offset, length) = match command {
        Command::Negotiate => ((56, 2), (58, 2)),
        _ => ((4, 2), (6, 2)),
    };
    let ends = |place| number(&right, place);
    let end = ends(offset).zip(ends(length)).map(|(offset, length)| offset + length);
    let is_empty = ends(length) == Some(0);
    let Some(form) = Form::of(command) else { return right };
    if !is_empty && end.is_some_and(|end| end > HEADER_BYTES + right.len()) {
        seen.note(&form.differs(Some("SecurityBufferLength"), Kind::WrongSize));
        right.to_mut()[length.0..length.0 + length.1].fill(0);
    }
    right
}

/// A little-endian number.
#[inline]
fn number(body: &[u8], (at, bytes): Place) -> Option<usize> {
    let bytes = body.get(at..at + bytes)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// What QUERY_INFO answers at a level. MS-FSCC 2.4, 2.5
struct Told {
    section: &'static str,
    message: &'static str,
    /// Bytes before its name.
    fixed: usize,
    /// Of them up to the last that means something.
    read: usize,
    /// Where the length of the name lies that it ends with, and the field's.
    name: Option<(usize, &'static str)>,
}

impl Told {
    /// `None`: a list of its own.
    fn of_file(level: FileLevel) -> Option<Self> {
        let told = |section, message, fixed, read| {
            Some(Self { section, message, fixed, read, name: None })
        };
        match level {
            FileLevel::Basic => {
                told("2.4.7", "QUERY_INFO of FileBasicInformation", BasicInfo::BYTES, 36)
            }
            FileLevel::Standard => {
                told("2.4.47", "QUERY_INFO of FileStandardInformation", StandardInfo::BYTES, 22)
            }
            FileLevel::Internal => told(
                "2.4.26",
                "QUERY_INFO of FileInternalInformation",
                InternalInfo::BYTES,
                InternalInfo::BYTES,
            ),
            FileLevel::Ea => {
                told("2.4.13", "QUERY_INFO of FileEaInformation", EaInfo::BYTES, EaInfo::BYTES)
            }
            FileLevel::NetworkOpen => told(
                "2.4.33",
                "QUERY_INFO of FileNetworkOpenInformation",
                NetworkOpenInfo::BYTES,
                52,
            ),
            FileLevel::All => {
                let name = Some((96, "FileNameLength"));
                let (fixed, read) = (AllInfo::FIXED, AllInfo::FIXED);
                Some(Self {
                    section: "2.4.2",
                    message: "QUERY_INFO of FileAllInformation",
                    fixed,
                    read,
                    name,
                })
            }
            FileLevel::Stream => None,
        }
    }

    fn of_volume(level: FsLevel) -> Self {
        let (section, message, fixed, name) = match level {
            FsLevel::Size => {
                ("2.5.8", "QUERY_INFO of FileFsSizeInformation", FsSizeInfo::BYTES, None)
            }
            FsLevel::Device => {
                ("2.5.10", "QUERY_INFO of FileFsDeviceInformation", FsDeviceInfo::BYTES, None)
            }
            FsLevel::FullSize => {
                ("2.5.4", "QUERY_INFO of FileFsFullSizeInformation", FsFullSizeInfo::BYTES, None)
            }
            FsLevel::Volume => {
                let name = Some((12, "VolumeLabelLength"));
                ("2.5.9", "QUERY_INFO of FileFsVolumeInformation", FsVolumeInfo::FIXED, name)
            }
            FsLevel::Attribute => {
                let name = Some((8, "FileSystemNameLength"));
                ("2.5.1", "QUERY_INFO of FileFsAttributeInformation", FsAttributeInfo::FIXED, name)
            }
        };
        Self { section, message, fixed, read: fixed, name }
    }

    fn check(&self, output: &[u8], seen: &mut Nonconformities) -> Result<(), WireError> {
        if output.len() < self.read {
            return Err(WireError::Truncated { what: self.message, bytes: output.len() });
        }
        let mut differs = |field, kind| {
            let Self { section, message, .. } = *self;
            seen.note(&Nonconformity::once(MS_FSCC, section, message, field, kind));
        };
        match self.name {
            _ if output.len() < self.fixed => differs(None, Kind::MissingPart),
            None if output.len() > self.fixed => differs(None, Kind::TrailingBytes),
            None => {}
            Some((at, field)) => {
                let name = number(output, (at, 4)).unwrap_or(usize::MAX);
                if output.len() - self.fixed < name {
                    differs(Some(field), Kind::WrongSize);
                }
            }
        }
        Ok(())
    }
}

/// What is told of a file has what its level has. Nobody reads what it is.
pub fn told_of_file(
    level: FileLevel,
    output: &[u8],
    seen: &mut Nonconformities,
) -> Result<(), WireError> {
    match Told::of_file(level) {
        Some(told) => told.check(output, seen),
        None => Streams::new(output).try_for_each(|stream| stream.map(drop)),
    }
}

/// The same of a volume.
pub fn told_of_volume(
    level: FsLevel,
    output: &[u8],
    seen: &mut Nonconformities,
) -> Result<(), WireError> {
    Told::of_volume(level).check(output, seen)
}

/// Entries that were read: a short name that is longer than its place is none.
pub fn listed(level: FindLevel, entries: &Entries<'_>, seen: &mut Nonconformities) {
    let (section, message) = match level {
        FindLevel::IdBoth => ("2.4.22", "QUERY_DIRECTORY"),
        _ => ("2.4.8", "QUERY_DIRECTORY"),
    };
    if entries.wrong_short_names > 0 {
        let field = Some("ShortNameLength");
        seen.note(&Nonconformity::once(MS_FSCC, section, message, field, Kind::WrongSize));
    }
}
