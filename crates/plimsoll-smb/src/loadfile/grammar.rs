//! The grammar of a load file: the operations with their arguments, and statuses: names and numbers
//! of NTSTATUS, and dbench 4's names.

use std::fmt::{self, Write as _};

use crate::op::{Expected, SmbKind};
use crate::wire::status;

/// Arguments of a line at most, the status not counted.
pub(crate) const ARGUMENTS_MAX: usize = 4;

plimsoll_model::named! {
    fn name;
    /// An operation of a load file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Verb {
        NtCreateX = "NTCreateX",
        Close = "Close",
        Flush = "Flush",
        ReadX = "ReadX",
        WriteX = "WriteX",
        Write = "Write",
        LockX = "LockX",
        UnlockX = "UnlockX",
        Rename = "Rename",
        Unlink = "Unlink",
        Mkdir = "Mkdir",
        Rmdir = "Rmdir",
        Deltree = "Deltree",
        QueryPath = "QUERY_PATH_INFORMATION",
        QueryFile = "QUERY_FILE_INFORMATION",
        SetFile = "SET_FILE_INFORMATION",
        QueryFs = "QUERY_FS_INFORMATION",
        FindFirst = "FIND_FIRST",
        Sleep = "Sleep",
    }
}

/// One argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A name below the replay's root.
    Path(&'static str),
    /// A directory and, after the last backslash, a pattern.
    Mask,
    /// A handle.
    Handle,
    /// A number of 32 bits.
    Word(&'static str),
    /// A number of 64 bits.
    Long(&'static str),
    /// Bytes of one transfer.
    Transfer(&'static str),
    /// CreateDisposition.
    Disposition,
    /// Information level, as SMB1 numbers it.
    Level,
}

impl Argument {
    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path(name) | Self::Word(name) | Self::Long(name) | Self::Transfer(name) => name,
            Self::Mask => "mask",
            Self::Handle => "handle",
            Self::Disposition => "disposition",
            Self::Level => "level",
        }
    }

    /// A name, not a number.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Path(_) | Self::Mask)
    }
}

impl Verb {
    /// The verb of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// The arguments between the verb and the status. After a first name or handle there are at
    /// most two numbers of 64 bits, or one and two of 32 bits, as a record has room for.
    pub const fn arguments(self) -> &'static [Argument] {
        use Argument as A;
        const PATH: Argument = A::Path("path");
        match self {
            Self::NtCreateX => &[PATH, A::Word("options"), A::Disposition, A::Handle],
            Self::Close | Self::Flush => &[A::Handle],
            Self::ReadX | Self::WriteX | Self::Write => {
                &[A::Handle, A::Long("offset"), A::Transfer("size"), A::Transfer("expected")]
            }
            Self::LockX | Self::UnlockX => &[A::Handle, A::Long("offset"), A::Long("length")],
            Self::Rename => &[A::Path("old"), A::Path("new")],
            Self::Unlink => &[PATH, A::Word("attributes")],
            Self::Mkdir | Self::Rmdir | Self::Deltree => &[PATH],
            Self::QueryPath => &[PATH, A::Level],
            Self::QueryFile | Self::SetFile => &[A::Handle, A::Level],
            Self::QueryFs => &[A::Level],
            Self::FindFirst => &[A::Mask, A::Level, A::Word("maxcount"), A::Word("count")],
            Self::Sleep => &[A::Long("microseconds")],
        }
    }

    /// The desktop operation it is; none for [`Verb::Sleep`].
    pub const fn kind(self) -> Option<SmbKind> {
        Some(match self {
            Self::NtCreateX => SmbKind::Create,
            Self::Close => SmbKind::Close,
            Self::Flush => SmbKind::Flush,
            Self::ReadX => SmbKind::Read,
            Self::WriteX | Self::Write => SmbKind::Write,
            Self::LockX => SmbKind::Lock,
            Self::UnlockX => SmbKind::Unlock,
            Self::Rename => SmbKind::Rename,
            Self::Unlink => SmbKind::Unlink,
            Self::Mkdir => SmbKind::Mkdir,
            Self::Rmdir => SmbKind::Rmdir,
            Self::Deltree => SmbKind::Deltree,
            Self::QueryPath => SmbKind::QueryPath,
            Self::QueryFile => SmbKind::QueryFile,
            Self::SetFile => SmbKind::SetFile,
            Self::QueryFs => SmbKind::QueryFs,
            Self::FindFirst => SmbKind::Find,
            Self::Sleep => return None,
        })
    }

    /// How such a line is written, for messages.
    pub fn usage(self) -> String {
        let mut usage = self.name().to_owned();
        for argument in self.arguments() {
            let quote = if argument.is_text() { "\"" } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(usage, " {quote}{}{quote}", argument.name());
        }
        usage + if self == Self::Sleep { " [STATUS]" } else { " STATUS" }
    }
}

/// What stands at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// An NTSTATUS; zero is success.
    Code(u32),
    /// `ERROR`: any failure.
    AnyFailure,
    /// `*`: whatever comes.
    Anything,
}

impl Status {
    /// Success.
    pub const OK: Self = Self::Code(0);

    /// Reads `NT_STATUS_…`, `0x…`, `SUCCESS`, `ERROR` or `*`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "SUCCESS" => return Some(Self::OK),
            "ERROR" => return Some(Self::AnyFailure),
            "*" => return Some(Self::Anything),
            _ => {}
        }
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            return u32::from_str_radix(digits, 16).ok().filter(|_| plain).map(Self::Code);
        }
        text.starts_with("NT_").then(|| status::parse(text))?.map(Self::Code)
    }

    /// Every name this version knows, as a load file writes it.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = status::ALL.iter().map(|(number, _)| *number).filter_map(status::name);
        names.chain(["SUCCESS", "ERROR"])
    }

    /// What the session must expect.
    pub const fn expected(self) -> Expected {
        match self {
            Self::Code(0) => Expected::Success,
            Self::Code(code) => Expected::Failure(code),
            Self::AnyFailure => Expected::AnyFailure,
            Self::Anything => Expected::Anything,
        }
    }
}

/// As a load file writes it.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnyFailure => f.write_str("ERROR"),
            Self::Anything => f.write_str("*"),
            Self::Code(code) => match status::name(*code) {
                Some(name) => f.write_str(name),
                None => write!(f, "0x{code:08X}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_status_is_read_and_written() {
        for (text, status) in [
            ("NT_STATUS_OK", Status::OK),
            ("NT_STATUS_OBJECT_NAME_NOT_FOUND", Status::Code(0xC000_0034)),
            ("0xC0FF0001", Status::Code(0xC0FF_0001)),
            ("ERROR", Status::AnyFailure),
            ("*", Status::Anything),
        ] {
            assert_eq!(Status::parse(text), Some(status), "{text}");
            assert_eq!(status.to_string(), text);
        }
        assert_eq!(Status::parse("SUCCESS"), Some(Status::OK));
        assert_eq!(Status::parse("0xc0000022"), Status::parse("NT_STATUS_ACCESS_DENIED"));
        for wrong in ["NT_STATUS_OBJECT_NAME_NOT_FUND", "OK", "12", "0x", "0x+1", "0x1C0000022"] {
            assert_eq!(Status::parse(wrong), None, "{wrong}");
        }
    }
}
