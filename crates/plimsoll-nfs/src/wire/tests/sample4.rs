//! Values of the types of NFSv4.1 that have a form of their own.

use super::{Draw, Sample};
use crate::wire::v4::*;

sample! {
    Bitmap: draw => {
        let word: u32 = Sample::sample(draw);
        Self::from_numbers(&[word % 96, word / 96 % 96, word / 96 / 96 % 96])
    };
    Attributes4<'a>: draw => Attributes4::sample_values(draw);
    OpenHow<'a>: draw => match draw.byte() % 3 {
        0 => Self::NoCreate,
        1 => Self::Unchecked(Sample::sample(draw)),
        _ => Self::Guarded(Sample::sample(draw)),
    };
    OpenClaim<'a>: draw => match draw.byte() % 3 {
        0 => Self::Null(Sample::sample(draw)),
        1 => Self::Previous { delegation: Sample::sample(draw) },
        _ => Self::Handle,
    };
    Delegation<'a>: draw => match draw.byte() % 4 {
        0 => Self::None,
        1 => Self::Read(Sample::sample(draw)),
        2 => Self::Write(Sample::sample(draw)),
        _ => Self::Refused { why: u32::from(draw.byte() % 10) },
    };
    CreateKind<'a>: draw => match draw.byte() % 3 {
        0 => Self::Directory,
        1 => Self::Link(Sample::sample(draw)),
        _ => match FileKind4::sample(draw) {
            FileKind4::Directory | FileKind4::Symlink => Self::Directory,
            other => Self::Other(other),
        },
    };
    CallbackSecurity<'a>: draw => match draw.byte() % 2 {
        0 => Self::None,
        _ => Self::System(Sample::sample(draw)),
    };
    CompoundHead<'a>: draw => CompoundHead {
        tag: Sample::sample(draw),
        minor_version: Sample::sample(draw),
        operations: Sample::sample(draw),
    };
    NoProtection: _draw => Self;
    ReferringCalls: _draw => Self(0);
}

impl<'a, const MAX: u32> Sample<'a> for Opaque<'a, MAX> {
    fn sample(draw: &mut Draw<'a>) -> Self {
        let bytes: &[u8] = Sample::sample(draw);
        Self(&bytes[..bytes.len().min(MAX as usize)])
    }
}
