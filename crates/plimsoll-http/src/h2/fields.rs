//! Interpretation of a reply's header fields. RFC 9113 §8.2, §8.3.2.

use std::fmt;

/// All fields of one reply together, as RFC 9113 §6.5.2 counts them; as with HTTP/1.1.
pub const LIST_BYTES_MAX: u32 = 64 * 1024;
/// Size of a field in addition to its name and value. RFC 7541 §4.1
const FIELD_BYTES: u32 = 32;
/// Longest name that means something here: `transfer-encoding`.
const TEXT_BYTES_MAX: usize = 20;

/// Why a reply's header is not one, although its block could be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The fields together are over [`LIST_BYTES_MAX`].
    #[error("the reply's header is longer than {LIST_BYTES_MAX} bytes")]
    TooLong,
    /// No `:status`, or more than one.
    #[error("the reply's header has no status, or several")]
    Status,
    /// A field whose name begins with a colon, at the wrong position or unknown.
    #[error("the reply's header has a field that only requests have")]
    Pseudo,
    /// A name or value with bytes that no field may have, such as capital letters in a name.
    #[error("a field of the reply's header has bytes that none may have")]
    Bytes,
    /// A field of HTTP/1.1's connections.
    #[error("the reply's header has a field that HTTP/2 does not allow")]
    Connection,
    /// `content-length` is no number of bytes, or occurs twice.
    #[error("content-length is not a number of bytes")]
    Length,
}

/// A string, of which only the start is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    start: [u8; TEXT_BYTES_MAX],
    bytes: u32,
    /// Has bytes that no value may have.
    is_odd: bool,
    /// Has bytes that no name may have.
    is_no_name: bool,
}

impl Text {
    /// One byte more.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        if let Some(slot) = self.start.get_mut(self.bytes as usize) {
            *slot = byte;
        }
        self.bytes = self.bytes.saturating_add(1);
        self.is_odd |= matches!(byte, 0 | b'\r' | b'\n');
        self.is_no_name |= matches!(byte, 0..=b' ' | b'A'..=b'Z' | 0x7f..);
    }

    /// A whole string.
    pub fn from_string(string: &str) -> Self {
        let mut text = Self::default();
        string.bytes().for_each(|byte| text.push(byte));
        text
    }

    /// The string; `None` if it is longer than any meaningful one.
    fn whole(&self) -> Option<&[u8]> {
        self.start.get(..self.bytes as usize)
    }

    fn number(&self) -> Option<u64> {
        let digits = self.whole().filter(|digits| !digits.is_empty())?;
        let add = |sum: u64, digit: &u8| {
            let digit = digit.wrapping_sub(b'0');
            sum.checked_mul(10)?.checked_add(u64::from(digit)).filter(|_| digit <= 9)
        };
        digits.iter().try_fold(0, add)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Status,
    Length,
    GrpcStatus,
    /// Of the connection, in HTTP/1.1.
    Connection,
    OtherPseudo,
    Wrong,
    Other,
}

/// One field: what it means, and what it counts.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name: Name,
    name_bytes: u32,
    value_bytes: u32,
    /// The value, where it is a number.
    number: Option<u64>,
    is_odd: bool,
}

impl Field {
    /// A field of this name, without a value.
    pub fn named(name: &Text) -> Self {
        let meant = match name.whole() {
            Some(b":status") => Name::Status,
            Some(b"content-length") => Name::Length,
            Some(b"grpc-status") => Name::GrpcStatus,
            Some(
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
                | b"upgrade",
            ) => Name::Connection,
            Some(b"") => Name::Wrong,
            _ if name.start[0] == b':' => Name::OtherPseudo,
            _ if name.is_no_name => Name::Wrong,
            _ => Name::Other,
        };
        Self { name: meant, name_bytes: name.bytes, value_bytes: 0, number: None, is_odd: false }
    }

    /// The same field with this value.
    pub fn with_value(self, value: &Text) -> Self {
        let number = match self.name {
            // RFC 9110 §15: three digits.
            Name::Status => value.number().filter(|_| value.bytes == 3),
            Name::Length | Name::GrpcStatus => value.number(),
            _ => None,
        };
        Self { value_bytes: value.bytes, number, is_odd: value.is_odd, ..self }
    }

    /// What it takes in a table. RFC 7541 §4.1
    pub fn bytes(&self) -> u32 {
        self.name_bytes.saturating_add(self.value_bytes).saturating_add(FIELD_BYTES)
    }
}

/// All fields of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    status: Option<u16>,
    length: Option<u64>,
    grpc_status: Option<u64>,
    count: u32,
    bytes: u32,
    /// A field that is no pseudo-header came.
    is_past_pseudo: bool,
    error: Option<HeaderError>,
}

impl Fields {
    /// How many.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// They are no longer than they may be.
    pub fn is_within_limits(&self) -> bool {
        self.bytes <= LIST_BYTES_MAX
    }

    /// One more.
    pub fn add(&mut self, field: Field) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(field.bytes());
        if let Err(error) = self.take(field) {
            self.error.get_or_insert(error);
        }
    }

    fn take(&mut self, field: Field) -> Result<(), HeaderError> {
        if self.bytes > LIST_BYTES_MAX {
            return Err(HeaderError::TooLong);
        }
        if field.is_odd {
            return Err(HeaderError::Bytes);
        }
        let is_pseudo = matches!(field.name, Name::Status | Name::OtherPseudo);
        if is_pseudo && self.is_past_pseudo {
            return Err(HeaderError::Pseudo);
        }
        self.is_past_pseudo |= !is_pseudo;
        match field.name {
            Name::Status => match field.number {
                Some(code @ 100..) if self.status.is_none() => self.status = Some(code as u16),
                _ => return Err(HeaderError::Status),
            },
            Name::Length => match field.number {
                Some(bytes) if self.length.is_none() => self.length = Some(bytes),
                _ => return Err(HeaderError::Length),
            },
            Name::Connection => return Err(HeaderError::Connection),
            Name::OtherPseudo => return Err(HeaderError::Pseudo),
            Name::Wrong => return Err(HeaderError::Bytes),
            Name::GrpcStatus => self.grpc_status = field.number,
            Name::Other => {}
        }
        Ok(())
    }

    /// As the header of a reply: its status, and its `content-length`.
    pub fn reply(&self) -> Result<(u16, Option<u64>), HeaderError> {
        match (self.error, self.status) {
            (Some(error), _) => Err(error),
            (None, None) => Err(HeaderError::Status),
            (None, Some(status)) => Ok((status, self.length)),
        }
    }

    /// The error that they report for a failed call.
    pub fn grpc_error(&self) -> Option<GrpcCode> {
        self.grpc_status.filter(|code| *code != 0).map(GrpcCode)
    }

    /// As the fields behind a reply's body.
    pub fn check_trailer(&self) -> Result<(), HeaderError> {
        match (self.error, self.status) {
            (Some(error), _) => Err(error),
            (None, Some(_)) => Err(HeaderError::Pseudo),
            (None, None) => Ok(()),
        }
    }
}
/// A `grpc-status` other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcCode(pub u64);

/// Of the status codes of gRPC, from 0.
const GRPC_NAMES: &str = "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND \
    ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE \
    UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED";

impl fmt::Display for GrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = usize::try_from(self.0).unwrap_or(usize::MAX);
        let name = GRPC_NAMES.split(' ').nth(index).unwrap_or("not defined");
        write!(f, "grpc-status {} ({name})", self.0)
    }
}
