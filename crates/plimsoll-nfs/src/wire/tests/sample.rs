//! Values of every type, drawn from arbitrary bytes.

use crate::wire::mount::Flavors;
use crate::wire::reply::{Reply, Status};
use crate::wire::v2::{
    ATTRIBUTES2_BYTES, Data2, FileAttributes2, FileKind2, Handle2, SetAttributes2, TimeVal2,
};
use crate::wire::v3::{
    ATTRIBUTES_BYTES, CreateHow, FileAttributes, FileKind, Handle, MkNodData, SetTime,
};
use crate::wire::xdr::{Decode, Encode, List, Name, Path, U32List, XdrIn};

/// Bytes to draw from, round and round.
pub(crate) struct Draw<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Draw<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.at = (self.at + 1) % self.bytes.len();
        self.bytes[self.at]
    }

    fn slice(&mut self, bytes_max: usize) -> &'a [u8] {
        let length = usize::from(self.byte()) % (bytes_max + 1);
        let rest = &self.bytes[self.at..];
        &rest[..length.min(rest.len())]
    }
}

/// What can be drawn.
pub(crate) trait Sample<'a>: Sized {
    fn sample(draw: &mut Draw<'a>) -> Self;
}

/// Values made by an expression.
macro_rules! sample {
    ($( $type:ty: $draw:ident => $value:expr; )*) => {$(
        impl<'a> Sample<'a> for $type {
            fn sample($draw: &mut Draw<'a>) -> Self {
                $value
            }
        }
    )*};
}

sample! {
    (): _draw => ();
    bool: draw => draw.byte() % 2 == 1;
    u32: draw => match draw.byte() {
        0 => u32::MAX,
        1 => 0,
        _ => u32::from_be_bytes(Sample::sample(draw)),
    };
    u64: draw => u64::from_be_bytes(Sample::sample(draw));
    &'a [u8]: draw => draw.slice(255);
    Data2<'a>: draw => Data2(draw.slice(255));
    Name<'a>: draw => Name(draw.slice(255));
    Path<'a>: draw => Path(draw.slice(255));
    Handle<'a>: draw => Handle::new(draw.slice(64)).unwrap();
    Handle2: draw => Handle2(Sample::sample(draw));
    Flavors<'a>: draw => Flavors(Sample::sample(draw));
    FileAttributes: draw => {
        let mut bytes: [u8; ATTRIBUTES_BYTES] = Sample::sample(draw);
        bytes[..4].copy_from_slice(&FileKind::sample(draw).number().to_be_bytes());
        FileAttributes::decode(&mut XdrIn::new(&bytes)).unwrap()
    };
    FileAttributes2: draw => {
        let mut bytes: [u8; ATTRIBUTES2_BYTES] = Sample::sample(draw);
        bytes[..4].copy_from_slice(&FileKind2::sample(draw).number().to_be_bytes());
        FileAttributes2::decode(&mut XdrIn::new(&bytes)).unwrap()
    };
    SetAttributes2: draw => {
        let word = |word: &u32| *word != u32::MAX;
        let time = |time: &TimeVal2| word(&time.seconds) && word(&time.microseconds);
        SetAttributes2 {
            mode: Option::sample(draw).filter(word),
            uid: Option::sample(draw).filter(word),
            gid: Option::sample(draw).filter(word),
            size: Option::sample(draw).filter(word),
            atime: Option::sample(draw).filter(time),
            mtime: Option::sample(draw).filter(time),
        }
    };
    SetTime: draw => match draw.byte() % 3 {
        0 => Self::Keep,
        1 => Self::ServerTime,
        _ => Self::To(Sample::sample(draw)),
    };
    CreateHow: draw => match draw.byte() % 3 {
        0 => Self::Unchecked(Sample::sample(draw)),
        1 => Self::Guarded(Sample::sample(draw)),
        _ => Self::Exclusive(Sample::sample(draw)),
    };
    MkNodData: draw => match FileKind::sample(draw) {
        FileKind::CharacterDevice => {
            Self::CharacterDevice(Sample::sample(draw), Sample::sample(draw))
        }
        FileKind::BlockDevice => Self::BlockDevice(Sample::sample(draw), Sample::sample(draw)),
        FileKind::Socket => Self::Socket(Sample::sample(draw)),
        FileKind::Fifo => Self::Fifo(Sample::sample(draw)),
        other => Self::Other(other),
    };
}

impl<'a, const N: usize> Sample<'a> for [u8; N] {
    fn sample(draw: &mut Draw<'a>) -> Self {
        std::array::from_fn(|_| draw.byte())
    }
}

impl<'a, const MAX: u32> Sample<'a> for U32List<'a, MAX> {
    fn sample(draw: &mut Draw<'a>) -> Self {
        let count = draw.byte() % 17;
        Self::Values(Vec::from_iter((0..count).map(|_| Sample::sample(draw))).leak())
    }
}

impl<'a, T: Sample<'a>> Sample<'a> for Option<T> {
    fn sample(draw: &mut Draw<'a>) -> Self {
        bool::sample(draw).then(|| T::sample(draw))
    }
}

/// Entries as values and entries as bytes.
impl<'a, T: Sample<'a> + Copy + Encode + Decode<'a> + 'a> Sample<'a> for List<'a, T> {
    fn sample(draw: &mut Draw<'a>) -> Self {
        let count = draw.byte() % 6;
        let list = List::new(Vec::from_iter((0..count).map(|_| T::sample(draw))).leak());
        match bool::sample(draw) {
            true => list,
            false => List::decode(&mut XdrIn::new(super::encoded(&list).leak())).unwrap(),
        }
    }
}

impl<'a, S: Status + Sample<'a>, T: Sample<'a>, E: Sample<'a>> Sample<'a> for Reply<S, T, E> {
    fn sample(draw: &mut Draw<'a>) -> Self {
        match S::sample(draw) {
            status if draw.byte().is_multiple_of(4) && status != S::OK => {
                Self::Err(status, E::sample(draw))
            }
            _ => Self::Ok(T::sample(draw)),
        }
    }
}
