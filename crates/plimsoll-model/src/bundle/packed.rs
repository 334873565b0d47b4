//! Interval slices in little memory. A histogram is some 130 KiB of counters, nearly all of them
//! zero; packed it is a byte or two for each that is not.

use std::fmt::Display;
use std::io;

use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use serde::{Deserialize, Serialize};

use super::IntervalSlice;
use crate::event::{OpTimes, Phase, TimeKind};
use crate::units::Nanos;

/// An interval slice that is kept, or sent by an agent, until there is time to write it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PackedSlice {
    second: u32,
    start: Nanos,
    length: Nanos,
    phase: Phase,
    ops: usize,
    /// Histograms that hold anything: op, kind, length in `bytes`.
    parts: Vec<(u32, TimeKind, u32)>,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

/// No workload has more kinds of ops: what comes from elsewhere may not ask for memory for more.
const OPS_MAX: usize = 256;

/// Packs slices, one after the other.
#[derive(Default)]
pub struct SlicePacker(V2Serializer);

impl SlicePacker {
    /// Packs one slice.
    pub fn pack(&mut self, slice: &IntervalSlice) -> io::Result<PackedSlice> {
        let &IntervalSlice { second, start, length, phase, .. } = slice;
        let mut parts = Vec::new();
        let mut bytes = Vec::new();
        for (op, times) in (0..).zip(&slice.ops) {
            for kind in TimeKind::all() {
                let Some(times) = kind.of(times) else { continue };
                let packed = self.0.serialize(times, &mut bytes).map_err(broken)?;
                parts.push((op, kind, packed as u32));
            }
        }
        bytes.shrink_to_fit();
        Ok(PackedSlice { second, start, length, phase, ops: slice.ops.len(), parts, bytes })
    }
}

impl PackedSlice {
    /// The slice as it was.
    pub fn unpack(&self) -> io::Result<IntervalSlice> {
        let &Self { second, start, length, phase, .. } = self;
        if self.ops > OPS_MAX {
            return Err(broken("a packed slice has too many kinds of ops"));
        }
        let mut ops: Vec<OpTimes> = (0..self.ops).map(|_| OpTimes::new()).collect();
        let mut rest = self.bytes.as_slice();
        let mut reader = Deserializer::new();
        for &(op, kind, packed) in &self.parts {
            let (part, after) = rest
                .split_at_checked(packed as usize)
                .ok_or_else(|| broken("a packed histogram is cut"))?;
            let times = reader.deserialize(&mut io::Cursor::new(part)).map_err(broken)?;
            let op = ops.get_mut(op as usize).ok_or_else(|| broken("a packed op has no place"))?;
            *kind.of_mut(op) = times;
            rest = after;
        }
        Ok(IntervalSlice { second, start, length, phase, ops })
    }

    /// Where it belongs among the slices of its load point.
    pub const fn key(&self) -> (Nanos, Phase) {
        (self.start, self.phase)
    }

    /// Memory it takes.
    pub fn memory_bytes(&self) -> usize {
        let parts = self.parts.capacity() * size_of::<(u32, TimeKind, u32)>();
        size_of::<Self>() + parts + self.bytes.capacity()
    }
}

fn broken(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::IntervalLog;
    use crate::outcome::OpNames;

    const KIB: usize = 1_024;
    const MIB: usize = 1_024 * KIB;

    /// `per_second` ops over `kinds` op kinds, a third of them of the first kind, a third of the
    /// rest of the second …: times of some 200 µs that scatter as those of a server do.
    fn slice(kinds: usize, per_second: u32, times: &[TimeKind]) -> IntervalSlice {
        let mut ops: Vec<OpTimes> = (0..kinds).map(|_| OpTimes::new()).collect();
        let mut state = 88_172_645_463_325_252_u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..per_second {
            let mut op = 0;
            while op + 1 < kinds && draw() > 1.0 / 3.0 {
                op += 1;
            }
            for kind in times {
                let scatter = (draw() + draw() + draw() + draw() - 2.0) * 1.2;
                let ns = (200_000.0 * scatter.exp()) as u64;
                kind.of_mut(&mut ops[op]).record(ns).unwrap();
            }
        }
        IntervalSlice {
            second: 3,
            start: Nanos::from_secs(3),
            length: Nanos::from_secs(1),
            phase: Phase::Measure,
            ops,
        }
    }

    fn written(slice: &IntervalSlice) -> Vec<u8> {
        let names = OpNames((0..slice.ops.len()).map(|op| format!("op{op}")).collect());
        let mut log = IntervalLog::begin(Vec::new(), &names).unwrap();
        log.write(slice).unwrap();
        log.finish().unwrap()
    }

    #[test]
    fn a_packed_slice_writes_the_same_log_to_the_byte() {
        let all: Vec<TimeKind> = TimeKind::all().collect();
        let slice = slice(5, 3_000, &all);
        let packed = SlicePacker::default().pack(&slice).unwrap();
        assert_eq!(packed.parts.len(), 5 * TimeKind::all().count());
        assert_eq!(written(&packed.unpack().unwrap()), written(&slice));
        let nothing = IntervalSlice { ops: vec![OpTimes::new(); 2], ..slice };
        let packed = SlicePacker::default().pack(&nothing).unwrap();
        assert!(packed.parts.is_empty() && packed.memory_bytes() < KIB);
        assert_eq!(packed.unpack().unwrap().ops.len(), 2);
    }

    #[test]
    fn ten_minutes_of_twenty_ops_fit_into_a_hundred_mebibytes() {
        let mut packer = SlicePacker::default();
        // Of ops without streams.
        let times: Vec<TimeKind> =
            TimeKind::all().take_while(|kind| *kind != TimeKind::FirstByte).collect();
        for (per_second, at_most) in [(2_000, 50 * MIB), (10_000, 100 * MIB)] {
            let second = packer.pack(&slice(20, per_second, &times)).unwrap().memory_bytes();
            let minutes = 600 * second;
            assert!(minutes < at_most, "{per_second}/s: {} MiB", minutes / MIB);
        }
    }
}
