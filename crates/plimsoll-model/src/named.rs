//! Enums whose variants have a name each: said once, for files, command lines and texts.

/// Declares an enum with the name of each variant: serde writes it, `as_str` gives it, and `ALL` has
/// every variant in order.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$of:meta])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$of])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every one.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Its name, as files and users write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

pub(crate) use named;
