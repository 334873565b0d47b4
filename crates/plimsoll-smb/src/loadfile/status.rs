//! Statuses of a load file: names and numbers of NTSTATUS, and dbench 4's words.

use std::fmt;

use crate::op::Expected;
use crate::wire::status;

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
        let named = text.starts_with("NT_").then(|| status::parse(text))?;
        named.map(Self::Code)
    }

    /// Every name this version knows, as a load file writes it.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = status::ALL.iter().map(|(number, _)| *number).filter_map(status::name);
        names.chain(["SUCCESS", "ERROR"])
    }

    /// What the session is told to expect.
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
