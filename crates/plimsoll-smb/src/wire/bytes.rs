//! Little-endian fields at fixed offsets, and buffers that a message points to.

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;

/// Why bytes are not the message they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message ends too early.
    #[error("{what} ends too early, after {bytes} bytes")]
    Truncated {
        /// Which part.
        what: &'static str,
        /// Bytes that are there.
        bytes: usize,
    },
    /// Another StructureSize than the message has: it is another message.
    #[error("{what} says that its structure has {size} bytes; it has {expected}")]
    Structure {
        /// The message.
        what: &'static str,
        /// As on the wire.
        size: u16,
        /// As specified.
        expected: u16,
    },
    /// A value that its type does not have.
    #[error("{value:#x} is no value of {what}")]
    Value {
        /// The type.
        what: &'static str,
        /// As on the wire.
        value: u64,
    },
    /// An offset or length that points out of the message, or where it must not.
    #[error("{what} lies at {offset} for {length} bytes, outside of its message")]
    Range {
        /// What is pointed to.
        what: &'static str,
        /// Counted as the message does.
        offset: u64,
        /// Bytes.
        length: u64,
    },
}

/// A field of a fixed number of bytes.
pub trait Field: Sized {
    /// How many.
    const BYTES: usize;

    /// Writes itself over all of `out`, of which there are [`Self::BYTES`].
    fn write(&self, out: &mut [u8]);

    /// Reads itself from all of `bytes`, of which there are [`Self::BYTES`].
    fn get(bytes: &[u8]) -> Result<Self, WireError>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline]
            fn write(&self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn get(bytes: &[u8]) -> Result<Self, WireError> {
                let bytes = bytes.try_into().expect("a field is given as many bytes as it has");
                Ok(Self::from_le_bytes(bytes))
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i64);

impl Field for bool {
    const BYTES: usize = 1;

    #[inline]
    fn write(&self, out: &mut [u8]) {
        out[0] = u8::from(*self);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Result<Self, WireError> {
        Ok(bytes[0] != 0)
    }
}

impl<const N: usize> Field for [u8; N] {
    const BYTES: usize = N;

    #[inline]
    fn write(&self, out: &mut [u8]) {
        out.copy_from_slice(self);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Result<Self, WireError> {
        Ok(bytes.try_into().expect("a field is given as many bytes as it has"))
    }
}

/// Time in 100 ns since 1601-01-01 UTC. MS-FSCC 2.1.1; 0 is "none", or "leave as it is".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub u64);

impl Field for FileTime {
    const BYTES: usize = 8;

    #[inline]
    fn write(&self, out: &mut [u8]) {
        self.0.write(out);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Result<Self, WireError> {
        u64::get(bytes).map(Self)
    }
}

impl FileId {
    /// In a related command of a compound: the open of the command before.
    pub const RELATED: Self = Self { persistent: u64::MAX, volatile: u64::MAX };
}

/// Writes `value` at `at` of a structure.
#[inline]
pub(super) fn write_at<F: Field>(bytes: &mut [u8], at: usize, value: &F) {
    value.write(&mut bytes[at..at + F::BYTES]);
}

/// Reads the field at `at` of a structure that is long enough.
#[inline]
pub(super) fn get<F: Field>(bytes: &[u8], at: usize) -> Result<F, WireError> {
    F::get(&bytes[at..at + F::BYTES])
}

/// The first `N` bytes, or what is cut short.
#[inline]
pub(super) fn fixed<'a, const N: usize>(
    bytes: &'a [u8],
    what: &'static str,
) -> Result<&'a [u8; N], WireError> {
    bytes.first_chunk().ok_or(WireError::Truncated { what, bytes: bytes.len() })
}

/// The fixed part of a command's body, whose StructureSize is `size`.
#[inline]
pub(super) fn structure<'a, const N: usize>(
    body: &'a [u8],
    expected: u16,
    what: &'static str,
) -> Result<&'a [u8; N], WireError> {
    let bytes = fixed::<N>(body, what)?;
    let size = u16::from_le_bytes([bytes[0], bytes[1]]);
    if size == expected { Ok(bytes) } else { Err(WireError::Structure { what, size, expected }) }
}

/// Bytes that a body points to, behind its fixed part of `fixed` bytes; `offset` counts from the
/// start of the SMB2 header. Without such bytes the offset is ignored.
#[inline]
fn buffer<'a>(
    body: &'a [u8],
    fixed: usize,
    (offset, length): (u32, u32),
    what: &'static str,
) -> Result<&'a [u8], WireError> {
    if length == 0 {
        return Ok(&[]);
    }
    (offset as usize)
        .checked_sub(HEADER_BYTES)
        .filter(|from| *from >= fixed)
        .and_then(|from| body.get(from..from.checked_add(length as usize)?))
        .ok_or(WireError::Range { what, offset: offset.into(), length: length.into() })
}

/// Where `bytes` of a body lie, counted from the start of the SMB2 header.
#[inline]
pub(super) const fn from_header(bytes: usize) -> u32 {
    (HEADER_BYTES + bytes) as u32
}

/// Length of what has been written behind `at`; a message is shorter than 16 MiB.
#[inline]
pub(super) fn since(out: &[u8], at: usize) -> u32 {
    (out.len() - at) as u32
}

/// Zeros until what began at `at` has a length that is a multiple of 8.
#[inline]
pub(super) fn pad8(out: &mut Vec<u8>, at: usize) {
    out.resize(at + (out.len() - at).next_multiple_of(8), 0);
}

/// Begins another part, a multiple of 8 bytes after `start`, and writes its distance to the
/// previous one.
pub(super) fn begin_part(out: &mut Vec<u8>, start: usize, previous: &mut Option<usize>) {
    if let Some(previous) = *previous {
        pad8(out, start);
        let distance = since(out, previous);
        write_at(out, previous, &distance);
    }
    *previous = Some(out.len());
}

/// A number in a structure: where it lies, and how many bytes it has, at most four.
pub(super) type FieldSpan = (usize, usize);

/// A little-endian number.
#[inline]
pub(super) fn number(bytes: &[u8], (at, length): FieldSpan) -> Option<usize> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// What lies behind the fixed part of a structure.
pub(super) trait Tail<'a>: Copy {
    /// Bytes of it, where its length is `count` and `rest` bytes follow in the message.
    #[inline]
    fn wire_bytes(count: u32, _rest: u32) -> u32 {
        count
    }

    /// Reads itself from all of `bytes`; `count` is its length as the structure has it.
    fn from_wire(bytes: &'a [u8], count: u32) -> Result<Self, WireError>;

    /// Appends itself; returns its length as the structure has it.
    fn append(self, out: &mut Vec<u8>) -> u32;
}

impl<'a> Tail<'a> for &'a [u8] {
    #[inline]
    fn from_wire(bytes: &'a [u8], _count: u32) -> Result<Self, WireError> {
        Ok(bytes)
    }

    #[inline]
    fn append(self, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(self);
        self.len() as u32
    }
}

/// How a structure describes a tail without bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// By its offset, and the length 0.
    Described,
    /// The same, and there is one byte of zero.
    ZeroByte,
    /// By zeros. Such a tail begins at a multiple of 8.
    Omitted,
}

/// Where a structure has offset and length of a tail.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Counts from the start of the SMB2 header. `None`: the tail follows the fixed part.
    offset: Option<FieldSpan>,
    length: FieldSpan,
    empty: Empty,
}

impl Span {
    /// A tail that the structure points to.
    pub(super) const fn new(offset: FieldSpan, length: FieldSpan, empty: Empty) -> Self {
        Self { offset: Some(offset), length, empty }
    }

    /// A tail that follows the fixed part.
    pub(super) const fn behind(length: FieldSpan, empty: Empty) -> Self {
        Self { offset: None, length, empty }
    }

    /// Reads the tail of a structure with a fixed part of `fixed` bytes.
    #[inline]
    pub(super) fn read<'a, T: Tail<'a>>(
        self,
        body: &'a [u8],
        fixed: usize,
        what: &'static str,
    ) -> Result<T, WireError> {
        let truncated = WireError::Truncated { what, bytes: body.len() };
        let field = |span| number(body, span).map(|number| number as u32).ok_or(truncated);
        let count = field(self.length)?;
        let bytes = match self.offset {
            None => {
                let length = T::wire_bytes(count, 0) as usize;
                body.get(fixed..fixed.saturating_add(length)).ok_or(truncated)?
            }
            Some(offset) => {
                let offset = field(offset)?;
                let rest = from_header(body.len()).saturating_sub(offset);
                buffer(body, fixed, (offset, T::wire_bytes(count, rest)), what)?
            }
        };
        T::from_wire(bytes, count)
    }

    /// Appends the tail of the structure that began at `at`.
    #[inline]
    pub(super) fn append<'a>(self, tail: impl Tail<'a>, out: &mut Vec<u8>, at: usize) {
        let before = out.len();
        if self.empty == Empty::Omitted {
            pad8(out, at);
        }
        let start = out.len();
        let count = tail.append(out);
        if count == 0 && self.empty == Empty::Omitted {
            return out.truncate(before);
        }
        if out.len() == start && self.empty == Empty::ZeroByte {
            out.push(0);
        }
        let fields = [self.offset.map(|offset| (offset, from_header(start - at)))];
        for ((field, length), value) in fields.into_iter().flatten().chain([(self.length, count)]) {
            // A length that is too long stays invalid.
            let value = value.min(u32::MAX >> (32 - 8 * length));
            out[at + field..][..length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
    }
}

/// A structure of fixed fields, each with its offset; what no field covers is zero and not looked
/// at. With `size N`, the first two bytes are its StructureSize. `and 1`: another byte of zero
/// follows. `with` are numbers that are written and not read. A `tail` lies behind the fixed part,
/// where its [`Span`] says; `if`: unless this holds, there is none.
macro_rules! layout {
    (@decode $body:ident $name:literal) => { $crate::wire::bytes::fixed($body, $name)? };
    (@decode $body:ident $name:literal $size:literal) => {
        $crate::wire::bytes::structure($body, $size, $name)?
    };
    (@tail $tail:expr) => { $tail };
    (@tail $tail:expr, $condition:expr) => {
        if $condition { $tail } else { Default::default() }
    };
    (
        $(#[$attribute:meta])*
        $type:ident $name:literal: $bytes:literal bytes $(and $more:literal)?
            $(, size $size:literal)? $(, with ($constant_at:literal: $constant:expr))?
        {
            $($(#[$field_attribute:meta])* $field:ident: $field_type:ty = $at:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $type {
            $($(#[$field_attribute])* pub $field: $field_type,)*
        }

        impl $crate::wire::bytes::Field for $type {
            const BYTES: usize = $bytes;

            #[inline]
            fn write(&self, _out: &mut [u8]) {
                $($crate::wire::bytes::write_at::<u16>(_out, 0, &$size);)?
                $($crate::wire::bytes::write_at(_out, $constant_at, &$constant);)?
                $($crate::wire::bytes::write_at(_out, $at, &self.$field);)*
            }

            #[inline]
            fn get(_bytes: &[u8]) -> Result<Self, $crate::wire::bytes::WireError> {
                Ok(Self { $($field: $crate::wire::bytes::get(_bytes, $at)?,)* })
            }
        }

        impl $type {
            /// Bytes of it on the wire.
            pub const BYTES: usize = $bytes;

            /// Appends itself.
            #[inline]
            pub fn encode(&self, out: &mut Vec<u8>) {
                let mut bytes = [0; $bytes $(+ $more)?];
                $crate::wire::bytes::write_at(&mut bytes, 0, self);
                out.extend_from_slice(&bytes);
            }

            /// Reads itself from the front of `body`.
            #[inline]
            pub fn decode(body: &[u8]) -> Result<Self, $crate::wire::bytes::WireError> {
                let bytes: &[u8; $bytes] = layout!(@decode body $name $($size)?);
                $crate::wire::bytes::get(bytes, 0)
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $type:ident $(<$life:lifetime>)? $name:literal: $bytes:literal bytes
            $(, size $size:literal)? $(, with ($constant_at:literal: $constant:expr))?
        {
            $($(#[$field_attribute:meta])* $field:ident: $field_type:ty = $at:literal,)*
        } tail {
            $(
                $(#[$tail_attribute:meta])*
                $tail:ident: $tail_type:ty = $what:expr, $span:expr $(, if $condition:expr)?;
            )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type $(<$life>)? {
            $($(#[$field_attribute])* pub $field: $field_type,)*
            $($(#[$tail_attribute])* pub $tail: $tail_type,)*
        }

        impl $(<$life>)? $type $(<$life>)? {
            /// Bytes of it before what has no fixed length.
            pub const FIXED: usize = $bytes;

            /// Appends itself.
            #[inline]
            pub fn encode(&self, out: &mut Vec<u8>) {
                let at = out.len();
                let mut bytes = [0; $bytes];
                $($crate::wire::bytes::write_at::<u16>(&mut bytes, 0, &$size);)?
                $($crate::wire::bytes::write_at(&mut bytes, $constant_at, &$constant);)?
                $($crate::wire::bytes::write_at(&mut bytes, $at, &self.$field);)*
                out.extend_from_slice(&bytes);
                $($span.append(self.$tail, out, at);)*
            }

            /// Reads itself from a body.
            #[inline]
            pub fn decode(body: & $($life)? [u8]) -> Result<Self, $crate::wire::bytes::WireError> {
                let _bytes: &[u8; $bytes] = layout!(@decode body $name $($size)?);
                $(let $field: $field_type = $crate::wire::bytes::get(_bytes, $at)?;)*
                $(let $tail: $tail_type = layout!(@tail $span.read(body, $bytes, $what)? $(, $condition)?);)*
                Ok(Self { $($field,)* $($tail,)* })
            }
        }
    };
}

/// An enumeration with a number for each value on the wire.
macro_rules! numbers {
    (
        $(#[$attribute:meta])*
        $type:ident: $repr:ident $name:literal {
            $($(#[$value_attribute:meta])* $value:ident = $number:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr($repr)]
        pub enum $type {
            $($(#[$value_attribute])* $value = $number,)*
        }

        impl $type {
            /// All, in order.
            pub const ALL: [Self; [$($number,)*].len()] = [$(Self::$value,)*];
        }

        impl TryFrom<$repr> for $type {
            type Error = $crate::wire::bytes::WireError;

            #[inline]
            fn try_from(value: $repr) -> Result<Self, Self::Error> {
                match value {
                    $($number => Ok(Self::$value),)*
                    _ => Err($crate::wire::bytes::WireError::Value { what: $name, value: value.into() }),
                }
            }
        }

        impl $crate::wire::bytes::Field for $type {
            const BYTES: usize = size_of::<$repr>();

            #[inline]
            fn write(&self, out: &mut [u8]) {
                $crate::wire::bytes::Field::write(&(*self as $repr), out);
            }

            #[inline]
            fn get(bytes: &[u8]) -> Result<Self, $crate::wire::bytes::WireError> {
                <$repr as $crate::wire::bytes::Field>::get(bytes)?.try_into()
            }
        }
    };
}

layout! {
    /// The server's id of an open. MS-SMB2 2.2.14.1
    #[derive(Hash)]
    FileId "a file id": 16 bytes {
        /// Stays over a reconnection, where the open does.
        persistent: u64 = 0,
        /// Of this connection.
        volatile: u64 = 8,
    }
}
