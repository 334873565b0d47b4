//! Little-endian fields at fixed places, and buffers that a message points to.

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
    fn put(&self, out: &mut [u8]);

    /// Reads itself from all of `bytes`, of which there are [`Self::BYTES`].
    fn get(bytes: &[u8]) -> Result<Self, WireError>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline]
            fn put(&self, out: &mut [u8]) {
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
    fn put(&self, out: &mut [u8]) {
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
    fn put(&self, out: &mut [u8]) {
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
    fn put(&self, out: &mut [u8]) {
        self.0.put(out);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Result<Self, WireError> {
        u64::get(bytes).map(Self)
    }
}

/// What the server calls an open. MS-SMB2 2.2.14.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Stays over a reconnection, where the open does.
    pub persistent: u64,
    /// Of this connection.
    pub volatile: u64,
}

impl FileId {
    /// In a related command of a compound: the open of the command before.
    pub const RELATED: Self = Self { persistent: u64::MAX, volatile: u64::MAX };
}

impl Field for FileId {
    const BYTES: usize = 16;

    #[inline]
    fn put(&self, out: &mut [u8]) {
        self.persistent.put(&mut out[..8]);
        self.volatile.put(&mut out[8..]);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Result<Self, WireError> {
        Ok(Self { persistent: u64::get(&bytes[..8])?, volatile: u64::get(&bytes[8..])? })
    }
}

/// Writes `value` at `at` of a structure.
#[inline]
pub(super) fn put<F: Field>(bytes: &mut [u8], at: usize, value: &F) {
    value.put(&mut bytes[at..at + F::BYTES]);
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
/// start of the SMB2 header. Where nothing is pointed to, the offset is not looked at.
#[inline]
pub(super) fn buffer<'a>(
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

/// A structure of fixed fields, each with its place; what no field covers is zero and not
/// looked at. With `size N`, the first two bytes are its StructureSize.
macro_rules! layout {
    (@encode $bytes:ident) => {};
    (@encode $bytes:ident $size:literal) => { $crate::wire::bytes::put::<u16>(&mut $bytes, 0, &$size); };
    (@decode $body:ident $name:literal) => { $crate::wire::bytes::fixed($body, $name)? };
    (@decode $body:ident $name:literal $size:literal) => {
        $crate::wire::bytes::structure($body, $size, $name)?
    };
    (
        $(#[$attribute:meta])*
        $type:ident $name:literal: $bytes:literal bytes $(, size $size:literal)? {
            $($(#[$field_attribute:meta])* $field:ident: $field_type:ty = $at:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $type {
            $($(#[$field_attribute])* pub $field: $field_type,)*
        }

        impl $type {
            /// Bytes of it on the wire.
            pub const BYTES: usize = $bytes;

            /// Appends itself.
            #[inline]
            pub fn encode(&self, out: &mut Vec<u8>) {
                #[allow(unused_mut, reason = "some have no fields")]
                let mut bytes = [0u8; Self::BYTES];
                layout!(@encode bytes $($size)?);
                $($crate::wire::bytes::put(&mut bytes, $at, &self.$field);)*
                out.extend_from_slice(&bytes);
            }

            /// Reads itself from the front of `body`.
            #[inline]
            pub fn decode(body: &[u8]) -> Result<Self, $crate::wire::bytes::WireError> {
                let _bytes: &[u8; Self::BYTES] = layout!(@decode body $name $($size)?);
                Ok(Self { $($field: $crate::wire::bytes::get(_bytes, $at)?,)* })
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
            pub const ALL: &[Self] = &[$(Self::$value,)*];
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
            fn put(&self, out: &mut [u8]) {
                $crate::wire::bytes::Field::put(&(*self as $repr), out);
            }

            #[inline]
            fn get(bytes: &[u8]) -> Result<Self, $crate::wire::bytes::WireError> {
                <$repr as $crate::wire::bytes::Field>::get(bytes)?.try_into()
            }
        }
    };
}

/// A response that is a buffer and nothing else.
macro_rules! output_response {
    ($(#[$attribute:meta])* $type:ident $name:literal) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $type<'a> {
            /// As the class says.
            pub output: &'a [u8],
        }

        impl<'a> $type<'a> {
            /// Bytes before the output.
            pub const FIXED: usize = 8;

            /// Appends itself behind its header.
            pub fn encode(&self, out: &mut Vec<u8>) {
                let mut bytes = [0; $type::FIXED];
                put(&mut bytes, 0, &9u16);
                put(&mut bytes, 2, &(from_header(Self::FIXED) as u16));
                put(&mut bytes, 4, &(self.output.len() as u32));
                out.extend_from_slice(&bytes);
                out.extend_from_slice(self.output);
            }

            /// Reads itself from a body.
            #[inline]
            pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
                let bytes = structure::<{ $type::FIXED }>(body, 9, $name)?;
                let output = (get::<u16>(bytes, 2)?.into(), get(bytes, 4)?);
                Ok(Self { output: buffer(body, Self::FIXED, output, "the output")? })
            }
        }
    };
}
