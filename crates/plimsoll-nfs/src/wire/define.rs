//! How messages are written down: a struct, the procedures of a program, the values of a status.

/// Structs whose fields lie on the wire one after the other.
macro_rules! xdr_struct {
    () => {};
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$lt:lifetime> { $($fields:tt)* }
        $($rest:tt)*
    ) => {
        xdr_struct! { @one [$(#[$meta])*] [$name<$lt>] $lt { $($fields)* } }
        xdr_struct! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($fields:tt)* }
        $($rest:tt)*
    ) => {
        xdr_struct! { @one [$(#[$meta])*] [$name] 'a { $($fields)* } }
        xdr_struct! { $($rest)* }
    };
    (
        @one [$($meta:tt)*] [$name:ident $(<$own:lifetime>)?] $lt:lifetime
        { $( $(#[$field_meta:meta])* $field:ident: $type:ty, )* }
    ) => {
        $($meta)*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name$(<$own>)? { $( $(#[$field_meta])* pub $field: $type, )* }

        impl$(<$own>)? $crate::wire::xdr::Encode for $name$(<$own>)? {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $( $crate::wire::xdr::Encode::encode(&self.$field, out); )*
            }
        }

        impl<$lt> $crate::wire::xdr::Decode<$lt> for $name$(<$own>)? {
            #[inline]
            fn decode(
                input: &mut $crate::wire::xdr::XdrIn<$lt>,
            ) -> Result<Self, $crate::wire::xdr::XdrError> {
                Ok(Self { $( $field: $crate::wire::xdr::Decode::decode(input)?, )* })
            }
        }

        #[cfg(test)]
        impl<$lt> $crate::wire::tests::Sample<$lt> for $name$(<$own>)? {
            fn sample(draw: &mut $crate::wire::tests::Draw<$lt>) -> Self {
                Self { $( $field: $crate::wire::tests::Sample::sample(draw), )* }
            }
        }
    };
}

/// A struct of a fixed number of bytes. Its length is looked at once, and not for every field.
macro_rules! xdr_fixed {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $bytes:ident {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[$field_meta])* pub $field: $type, )* }

        impl $crate::wire::xdr::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let mut bytes = [0; $bytes];
                let _rest = &mut bytes[..];
                $(
                    let field = self.$field.to_be_bytes();
                    let (place, _rest) = _rest.split_at_mut(field.len());
                    place.copy_from_slice(&field);
                )*
                out.extend_from_slice(&bytes);
            }
        }

        impl $name {
            #[inline]
            fn decode_fields(
                input: &mut $crate::wire::xdr::XdrIn<'_>,
            ) -> Result<Self, $crate::wire::xdr::XdrError> {
                let bytes = input.fixed::<$bytes>()?;
                input.within(bytes, |input| {
                    Ok(Self { $( $field: $crate::wire::xdr::Decode::decode(input)?, )* })
                })
            }
        }
    };
}

/// Values of an enumeration by their numbers.
macro_rules! numbered {
    ($name:ident { $( $value:ident = $number:literal, )* }) => {
        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[ $( Self::$value, )* ];

            /// The one of that number.
            #[inline]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $( $number => Some(Self::$value), )*
                    _ => None,
                }
            }

            /// Its number on the wire.
            #[inline]
            pub const fn number(self) -> u32 {
                self as u32
            }
        }
    };
}

/// Enumerations of which no other value may occur.
macro_rules! xdr_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $what:literal {
            $( $(#[$value_meta:meta])* $value:ident = $number:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name { $( $(#[$value_meta])* $value = $number, )* }

        numbered! { $name { $( $value = $number, )* } }

        impl $name {
            #[inline]
            fn to_be_bytes(self) -> [u8; 4] {
                self.number().to_be_bytes()
            }
        }

        impl $crate::wire::xdr::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }

        impl<'a> $crate::wire::xdr::Decode<'a> for $name {
            #[inline]
            fn decode(
                input: &mut $crate::wire::xdr::XdrIn<'a>,
            ) -> Result<Self, $crate::wire::xdr::XdrError> {
                let value = input.u32()?;
                Self::from_number(value)
                    .ok_or($crate::wire::xdr::XdrError::Value { what: $what, value })
            }
        }

        #[cfg(test)]
        impl<'a> $crate::wire::tests::Sample<'a> for $name {
            fn sample(draw: &mut $crate::wire::tests::Draw<'a>) -> Self {
                Self::ALL[usize::from(draw.byte()) % Self::ALL.len()]
            }
        }
    };
}

/// Procedures of a program, with the names of the specification.
macro_rules! procedures {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $value:ident = $number:literal $text:literal, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name { $( #[doc = $text] $value = $number, )* }

        numbered! { $name { $( $value = $number, )* } }

        impl $name {
            /// Its name in the specification.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$value => $text, )* }
            }
        }
    };
}

/// Statuses: numbers with names. Others than these may come, and survive.
macro_rules! statuses {
    (
        $(#[$meta:meta])*
        pub struct $name:ident else $other:literal {
            $( $value:ident = $number:literal $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            $( #[doc = $text] pub const $value: Self = Self($number); )*

            /// Name in the specification.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $number => Some($text), )*
                    _ => None,
                }
            }

        }

        impl $crate::wire::reply::Status for $name {
            const OK: Self = Self(0);
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{} {}", $other, self.0),
                }
            }
        }

        impl $crate::wire::xdr::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $crate::wire::xdr::Encode::encode(&self.0, out);
            }
        }

        impl<'a> $crate::wire::xdr::Decode<'a> for $name {
            #[inline]
            fn decode(
                input: &mut $crate::wire::xdr::XdrIn<'a>,
            ) -> Result<Self, $crate::wire::xdr::XdrError> {
                input.u32().map(Self)
            }
        }

        #[cfg(test)]
        impl<'a> $crate::wire::tests::Sample<'a> for $name {
            fn sample(draw: &mut $crate::wire::tests::Draw<'a>) -> Self {
                Self($crate::wire::tests::Sample::sample(draw))
            }
        }
    };
}
