//! `intervals/*.hlog`: HdrHistogram interval logs, version 1.3 of the format, so that the tools
//! made for it can read them. Times are nanoseconds. Tags read `PHASE/OP.KIND`, for example
//! `measure/class0.response`; characters a tag may not contain are percent-encoded.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
};
use hdrhistogram::serialization::{
    Deserializer, Serializer as _, V2DeflateSerializeError, V2DeflateSerializer, V2Serializer,
};
use serde::{Deserialize, Serialize};

use super::BundleError;
use crate::event::{OpTimes, Phase, TimeKind, Times};
use crate::outcome::OpNames;
use crate::units::{NANOS_PER_SECOND, Nanos};

const FIRST_LINES: &str = "#[Histogram log format version 1.3]\n\
    #[values are nanoseconds; times are seconds from the start of the load point]\n\
    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// One second of a load point over all workers, or the part of it that a phase fills.
#[derive(Clone, Debug)]
pub struct IntervalSlice {
    /// 0, 1, 2 … from the start of the point.
    pub second: u32,
    /// Start, from the start of the point.
    pub start: Nanos,
    /// Length.
    pub length: Nanos,
    /// Phase in which the ops finished.
    pub phase: Phase,
    /// By op kind.
    pub ops: Vec<OpTimes>,
}

impl IntervalSlice {
    /// Adds the same slice of another agent.
    pub fn merge(&mut self, other: &Self) {
        self.length = self.length.max(other.length);
        if self.ops.len() < other.ops.len() {
            self.ops.resize_with(other.ops.len(), OpTimes::new);
        }
        self.ops.iter_mut().zip(&other.ops).for_each(|(sum, times)| sum.add(times));
    }
}

/// One histogram of an interval log. Empty ones are not written.
#[derive(Clone, Debug)]
pub struct IntervalEntry {
    /// 0, 1, 2 … from the start of the point.
    pub second: u32,
    /// Start, from the start of the point, to the millisecond.
    pub start: Nanos,
    /// Length, to the millisecond.
    pub length: Nanos,
    /// Phase in which the ops finished.
    pub phase: Phase,
    /// Index in the workload's list of op names.
    pub op: usize,
    /// Which time.
    pub kind: TimeKind,
    /// The histogram.
    pub times: Times,
}

/// Writes an interval log.
pub struct IntervalLog<W: Write> {
    out: W,
    op_tags: Vec<String>,
    serializer: V2DeflateSerializer,
}

impl<W: Write> IntervalLog<W> {
    /// Begins a log.
    pub fn begin(mut out: W, op_names: &OpNames) -> io::Result<Self> {
        out.write_all(FIRST_LINES.as_bytes())?;
        let op_tags = op_names.0.iter().map(|name| encode_name(name)).collect();
        Ok(Self { out, op_tags, serializer: V2DeflateSerializer::new() })
    }

    /// Writes the histograms of one slice that are not empty.
    pub fn write(&mut self, slice: &IntervalSlice) -> io::Result<()> {
        for (op_tag, times) in self.op_tags.iter().zip(&slice.ops) {
            for kind in TimeKind::all() {
                let Some(times) = kind.times_in(times) else { continue };
                let tag = format!("{}/{op_tag}.{}", slice.phase.as_str(), kind.as_str());
                let tag = Tag::new(&tag).expect("the name is encoded and the rest is constant");
                let mut writer = IntervalLogWriterBuilder::new()
                    .begin_log_with(&mut self.out, &mut self.serializer)?;
                let (start, length) = (duration(slice.start), duration(slice.length));
                writer.write_histogram(times, start, length, Some(tag)).map_err(into_io_error)?;
            }
        }
        Ok(())
    }

    /// Ends the log and gives the writer back.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

const fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.0)
}

fn into_io_error(error: IntervalLogWriterError<V2DeflateSerializeError>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(e) => e,
        IntervalLogWriterError::SerializeError(e) => io::Error::other(e.to_string()),
    }
}

/// Reads an interval log, one histogram at a time: a long point has more of them than fit into
/// memory. `path` names the file in errors.
pub fn read_intervals(
    path: &Path,
    bytes: &[u8],
    op_names: &OpNames,
    mut each: impl FnMut(IntervalEntry),
) -> Result<(), BundleError> {
    let malformed = |line: usize, message: &str| BundleError::Malformed {
        path: path.to_owned(),
        line,
        message: message.to_owned(),
    };
    // The reader of the format knows comments but not the column titles.
    let titles = FIRST_LINES.lines().last().unwrap_or_default();
    let body = match find(bytes, titles.as_bytes()) {
        Some(at) => &bytes[at + titles.len() + 1..],
        None => return Err(malformed(1, "not an interval log of this program")),
    };
    let skipped = FIRST_LINES.lines().count();
    let mut deserializer = Deserializer::new();
    for (index, entry) in IntervalLogIterator::new(body).enumerate() {
        let line = skipped + index + 1;
        let entry = entry.map_err(|_| malformed(line, "not a line of an interval log"))?;
        let LogEntry::Interval(interval) = entry else { continue };
        let tag = interval.tag().map(|t| t.as_str()).unwrap_or_default();
        let (phase, op, kind) =
            parse_tag(tag, op_names).ok_or_else(|| malformed(line, "unknown tag"))?;
        let packed = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|e| malformed(line, &e.to_string()))?;
        let times = deserializer
            .deserialize(&mut io::Cursor::new(packed))
            .map_err(|e| malformed(line, &e.to_string()))?;
        let start = to_nanos(interval.start_timestamp());
        each(IntervalEntry {
            second: (start.0 / NANOS_PER_SECOND) as u32,
            start,
            length: to_nanos(interval.duration()),
            phase,
            op,
            kind,
            times,
        });
    }
    Ok(())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The log keeps three decimals; what the detour through a float adds is rounded off.
fn to_nanos(span: Duration) -> Nanos {
    Nanos::from_millis((span.as_secs_f64() * 1e3).round() as u64)
}

fn parse_tag(tag: &str, op_names: &OpNames) -> Option<(Phase, usize, TimeKind)> {
    let (phase, rest) = tag.split_once('/')?;
    let (op, kind) = rest.rsplit_once('.')?;
    let phase = [Phase::WarmUp, Phase::Measure, Phase::Drain]
        .into_iter()
        .find(|candidate| candidate.as_str() == phase)?;
    let op = op_names.0.iter().position(|name| encode_name(name) == op)?;
    Some((phase, op, TimeKind::parse(kind)?))
}

/// Percent-encodes what separates columns, lines and the parts of a tag.
fn encode_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c == ',' || c == '%' || c.is_whitespace() || c.is_control() {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// An interval slice that is kept, or sent by an agent, until there is time to write it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PackedSlice {
    /// Window of the load point, from 0.
    pub window: u32,
    second: u32,
    start: Nanos,
    length: Nanos,
    phase: Phase,
    ops: usize,
    /// Histograms that are not empty: op, kind, length in `bytes`.
    parts: Vec<(u32, TimeKind, u32)>,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

/// No workload has more kinds of ops: foreign input cannot make this program allocate memory for
/// more.
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
                let Some(times) = kind.times_in(times) else { continue };
                let packed = self.0.serialize(times, &mut bytes).map_err(broken)?;
                parts.push((op, kind, packed as u32));
            }
        }
        bytes.shrink_to_fit();
        Ok(PackedSlice {
            window: 0,
            second,
            start,
            length,
            phase,
            ops: slice.ops.len(),
            parts,
            bytes,
        })
    }
}

impl PackedSlice {
    /// The same slice of this window.
    pub fn in_window(self, window: u32) -> Self {
        Self { window, ..self }
    }

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
mod tests;
