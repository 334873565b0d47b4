//! Enums whose variants have names, declared once for files, command lines and texts.

/// Declares an enum with the name of each variant. `ALL` has every variant in order, and `as_str`
/// gives the name, which serde writes too; with `fn METHOD;` in front METHOD gives it, and serde is
/// left alone.
#[macro_export]
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
        $crate::named!(@names as_str $name $($variant $text)*);
    };
    (
        fn $method:ident;
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$of:meta])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$of])* $variant,)*
        }
        $crate::named!(@names $method $name $($variant $text)*);
    };
    (@names $method:ident $name:ident $($variant:ident $text:literal)*) => {
        impl $name {
            /// Every one, in order.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Its name, as files and users write it.
            pub const fn $method(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

pub(crate) use named;
