//! Replies that differ from their specification and mean the same, as other clients accept them:
//! corrected before they are decoded, and noted. Fields that change the meaning stay as they came,
//! so that the decoder refuses them.

use std::borrow::Cow;

use plimsoll_model::nonconformity::{Nonconformities, Nonconformity, NonconformityKind as Kind};

use super::bytes::{Field, FieldSpan, HEADER_BYTES, WireError, number};
use super::create::{CreateAction, CreateResponse, OplockLevel};
use super::fscc::{
    AllInfo, BasicInfo, EaInfo, Entries, FileLevel, FindLevel, FsAttributeInfo, FsDeviceInfo,
    FsFullSizeInfo, FsLevel, FsSizeInfo, FsVolumeInfo, InternalInfo, NetworkOpenInfo, StandardInfo,
    Streams,
};
use super::header::{Command, Header, flags};
use super::status::ErrorResponse;

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
    Buffer(FieldSpan, FieldSpan),
    /// It is not determined here.
    Open,
}

impl Form {
    /// `None`: this client does not ask for it.
    #[inline]
    fn from_command(command: Command) -> Option<Self> {
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

    /// Bytes of the body by its own fields; any after them mean nothing.
    #[inline]
    fn bytes(&self, body: &[u8]) -> Option<usize> {
        // An odd size includes the first byte of a buffer, which may be empty.
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
pub fn body<'b>(
    command: Command,
    body: &'b [u8],
    nonconformities: &mut Nonconformities,
) -> Cow<'b, [u8]> {
    let mut right = Cow::Borrowed(body);
    let Some(form) = Form::from_command(command).filter(|form| body.len() >= form.read) else {
        return right;
    };
    // One of both: with neither size nor length it would be any message.
    let has_size = body.first_chunk() == Some(&form.size.to_le_bytes());
    match (has_size, body.len() >= form.fixed) {
        (true, true) => {}
        (false, true) => {
            nonconformities.note(&form.differs(Some("StructureSize"), Kind::WrongSize));
            right.to_mut()[..2].copy_from_slice(&form.size.to_le_bytes());
        }
        (true, false) => {
            nonconformities.note(&form.differs(None, Kind::MissingPart));
            right.to_mut().resize(form.fixed, 0);
        }
        (false, false) => return right,
    }
    if form.bytes(body).is_some_and(|bytes| body.len() >= bytes.saturating_add(ALIGNMENT)) {
        nonconformities.note(&form.differs(None, Kind::TrailingBytes));
    }
    if command == Command::Create {
        of_create(&form, &mut right, nonconformities);
    }
    right
}

/// A CREATE response whose file was opened: unreadable fields about caching count as none, and
/// nobody uses the action that was taken.
fn of_create(form: &Form, body: &mut Cow<'_, [u8]>, nonconformities: &mut Nonconformities) {
    let mut forget = |body: &mut Cow<'_, [u8]>, (at, bytes): FieldSpan, field, kind| {
        nonconformities.note(&form.differs(Some(field), kind));
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

/// Notes what is wrong with the body of a failed command's reply; nothing else of it is used.
pub fn failed(command: Command, body: &[u8], nonconformities: &mut Nonconformities) {
    let (field, kind) = match ErrorResponse::decode(body) {
        Ok(_) => return,
        Err(WireError::Structure { .. }) => (Some("StructureSize"), Kind::WrongSize),
        Err(_) => (None, Kind::MissingPart),
    };
    nonconformities.note(&Nonconformity::once(MS_SMB2, "2.2.2", name(command), field, kind));
}

/// Flags of a reply's header without a meaning.
#[inline]
pub fn header(header: &Header, nonconformities: &mut Nonconformities) {
    if header.flags & !FLAGS_DEFINED != 0 {
        let (reply, field, kind) = (name(header.command), Some("Flags"), Kind::UndefinedValue);
        nonconformities.note(&Nonconformity::once(MS_SMB2, "2.2.1", reply, field, kind));
    }
}

fn name(command: Command) -> &'static str {
    Form::from_command(command).map_or("another command", |form| form.message)
}

/// The body of a NEGOTIATE response, or of the last SESSION_SETUP response, whose security token
/// nobody reads.
pub fn without_token<'b>(
    command: Command,
    bytes: &'b [u8],
    nonconformities: &mut Nonconformities,
) -> Cow<'b, [u8]> {
    let mut right = body(command, bytes, nonconformities);
    let (offset, length) = match command {
        Command::Negotiate => ((56, 2), (58, 2)),
        _ => ((4, 2), (6, 2)),
    };
    let ends = |span| number(&right, span);
    let end = ends(offset).zip(ends(length)).map(|(offset, length)| offset + length);
    let is_empty = ends(length) == Some(0);
    let Some(form) = Form::from_command(command) else { return right };
    if !is_empty && end.is_some_and(|end| end > HEADER_BYTES + right.len()) {
        nonconformities.note(&form.differs(Some("SecurityBufferLength"), Kind::WrongSize));
        right.to_mut()[length.0..length.0 + length.1].fill(0);
    }
    right
}

/// What QUERY_INFO answers at a level. MS-FSCC 2.4, 2.5
struct InfoForm {
    section: &'static str,
    message: &'static str,
    /// Bytes before its name.
    fixed: usize,
    /// Of them up to the last that means something.
    read: usize,
    /// Where the length of the name lies that it ends with, and the field's.
    name: Option<(usize, &'static str)>,
}

macro_rules! info {
    ($name:literal in $section:literal: $fixed:expr, $read:expr, $text:expr) => {
        InfoForm {
            section: $section,
            message: concat!("QUERY_INFO of ", $name),
            fixed: $fixed,
            read: $read,
            name: $text,
        }
    };
    ($name:literal in $section:literal: $fixed:expr) => {
        info!($name in $section: $fixed, $fixed, None)
    };
    ($name:literal in $section:literal: $fixed:expr, $read:literal) => {
        info!($name in $section: $fixed, $read, None)
    };
    ($name:literal in $section:literal: $fixed:expr; $field:literal at $at:literal) => {
        info!($name in $section: $fixed, $fixed, Some(($at, $field)))
    };
}

impl InfoForm {
    /// `None`: a list of its own.
    fn of_file(level: FileLevel) -> Option<Self> {
        Some(match level {
            FileLevel::Basic => info!("FileBasicInformation" in "2.4.7": BasicInfo::BYTES, 36),
            FileLevel::Standard => {
                info!("FileStandardInformation" in "2.4.47": StandardInfo::BYTES, 22)
            }
            FileLevel::Internal => {
                info!("FileInternalInformation" in "2.4.26": InternalInfo::BYTES)
            }
            FileLevel::Ea => info!("FileEaInformation" in "2.4.13": EaInfo::BYTES),
            FileLevel::NetworkOpen => {
                info!("FileNetworkOpenInformation" in "2.4.33": NetworkOpenInfo::BYTES, 52)
            }
            FileLevel::All => {
                info!("FileAllInformation" in "2.4.2": AllInfo::FIXED; "FileNameLength" at 96)
            }
            FileLevel::Stream => return None,
        })
    }

    fn of_volume(level: FsLevel) -> Self {
        match level {
            FsLevel::Size => info!("FileFsSizeInformation" in "2.5.8": FsSizeInfo::BYTES),
            FsLevel::Device => info!("FileFsDeviceInformation" in "2.5.10": FsDeviceInfo::BYTES),
            FsLevel::FullSize => {
                info!("FileFsFullSizeInformation" in "2.5.4": FsFullSizeInfo::BYTES)
            }
            FsLevel::Volume => info!(
                "FileFsVolumeInformation" in "2.5.9": FsVolumeInfo::FIXED; "VolumeLabelLength" at 12
            ),
            FsLevel::Attribute => info!(
                "FileFsAttributeInformation" in "2.5.1":
                    FsAttributeInfo::FIXED; "FileSystemNameLength" at 8
            ),
        }
    }

    fn check(&self, output: &[u8], nonconformities: &mut Nonconformities) -> Result<(), WireError> {
        if output.len() < self.read {
            return Err(WireError::Truncated { what: self.message, bytes: output.len() });
        }
        let mut differs = |field, kind| {
            let Self { section, message, .. } = *self;
            nonconformities.note(&Nonconformity::once(MS_FSCC, section, message, field, kind));
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

/// Bytes of the information about a file; `None`: it ends with a name, or is a list.
pub fn file_info_bytes(level: FileLevel) -> Option<usize> {
    InfoForm::of_file(level).filter(|form| form.name.is_none()).map(|form| form.fixed)
}

/// The same of a volume.
pub fn volume_info_bytes(level: FsLevel) -> Option<usize> {
    let form = InfoForm::of_volume(level);
    form.name.is_none().then_some(form.fixed)
}

/// Checks that the information about a file has the form of its level. Nobody reads the values.
pub fn check_file_info(
    level: FileLevel,
    output: &[u8],
    nonconformities: &mut Nonconformities,
) -> Result<(), WireError> {
    match InfoForm::of_file(level) {
        Some(form) => form.check(output, nonconformities),
        None => Streams::new(output).try_for_each(|stream| stream.map(drop)),
    }
}

/// The same of a volume.
pub fn check_volume_info(
    level: FsLevel,
    output: &[u8],
    nonconformities: &mut Nonconformities,
) -> Result<(), WireError> {
    InfoForm::of_volume(level).check(output, nonconformities)
}

/// Entries that were read: a short name that is longer than its field counts as none.
pub fn listed(level: FindLevel, entries: &Entries<'_>, nonconformities: &mut Nonconformities) {
    let (section, message) = match level {
        FindLevel::IdBoth => ("2.4.22", "QUERY_DIRECTORY"),
        _ => ("2.4.8", "QUERY_DIRECTORY"),
    };
    if entries.wrong_short_names > 0 {
        let (field, kind) = (Some("ShortNameLength"), Kind::WrongSize);
        nonconformities.note(&Nonconformity::once(MS_FSCC, section, message, field, kind));
    }
}
