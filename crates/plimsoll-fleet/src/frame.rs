//! Messages as bytes. A frame is `PLMS`, the version of the format (2 bytes), the length of the
//! payload (4 bytes), and the payload: a message in MessagePack, with the names of its fields.
//! Numbers of the header are big-endian.

mod hint;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of the format, and of the messages in it.
pub const FRAME_VERSION: u16 = 1;
/// Longest payload. A plan with the files that a suite names is the longest message.
pub const FRAME_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// What every frame begins with.
pub(crate) const MAGIC: [u8; 4] = *b"PLMS";
const HEADER_BYTES: usize = 10;
/// Bytes of a stream that are shown when they are no frame: a line of a terminal.
const SHOWN_BYTES_MAX: usize = 80;
/// Memory that a decoder keeps after a long message.
const KEPT_BYTES: usize = 1_024 * 1_024;
/// No message is nested deeper; the default of the codec would need more stack.
const DEPTH_MAX: usize = 64;

/// Why a stream of frames cannot be read or written. Nothing can be read after it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Something else is written to the stream.
    #[error(
        "expected a message of Plimsoll, got \"{}\"; {}",
        .first.escape_ascii(),
        hint::suggest(.first, *.frames)
    )]
    NotAFrame {
        /// The first bytes found instead.
        first: Vec<u8>,
        /// Frames before it.
        frames: u64,
    },
    /// The other end has another format.
    #[error(
        "its messages have format {theirs}, those of this program {FRAME_VERSION}; use the same release on every host"
    )]
    Version {
        /// Version of its format.
        theirs: u16,
    },
    /// A message is longer than any may be.
    #[error("a message of {bytes} bytes is longer than the limit of {FRAME_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A frame holds no message.
    #[error("a message cannot be read: {why}; use the same release on every host")]
    Broken {
        /// The codec's reason.
        why: String,
    },
    /// The stream ended within a frame.
    #[error("the stream ended within a message")]
    Cut,
}

/// A message as a frame.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, FrameError> {
    let mut frame = Vec::from(MAGIC);
    frame.extend(FRAME_VERSION.to_be_bytes());
    frame.extend([0; 4]);
    let mut codec = rmp_serde::Serializer::new(&mut frame).with_struct_map().with_human_readable();
    message.serialize(&mut codec).map_err(|e| FrameError::Broken { why: e.to_string() })?;
    let bytes = frame.len() - HEADER_BYTES;
    if bytes > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong { bytes });
    }
    frame[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&(bytes as u32).to_be_bytes());
    Ok(frame)
}

/// Finds the messages in a stream that arrives in pieces. Its memory grows with the bytes that
/// arrived, never with a length that a frame claims.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Bytes of `bytes` that were read.
    read: usize,
    frames: u64,
    failed: Option<FrameError>,
}

impl Decoder {
    /// Takes in what has arrived. Take out every message before more is pushed.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.read = 0;
        } else if self.read > self.bytes.len() / 2 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None` until it has arrived whole.
    #[allow(clippy::should_implement_trait, reason = "the caller chooses the type of a message")]
    pub fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match decode(&self.bytes[self.read..], self.frames) {
            Ok(Some((message, length))) => {
                self.read += length;
                self.frames += 1;
                Ok(Some(message))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.bytes = Vec::new();
                self.read = 0;
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Whether the stream may end here: not within a frame.
    pub fn end(&self) -> Result<(), FrameError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.read < self.bytes.len() => Err(FrameError::Cut),
            None => Ok(()),
        }
    }
}

/// The message at the start of `bytes`, and the length of its frame.
fn decode<M: DeserializeOwned>(
    bytes: &[u8],
    frames: u64,
) -> Result<Option<(M, usize)>, FrameError> {
    let compared = bytes.len().min(MAGIC.len());
    if bytes[..compared] != MAGIC[..compared] {
        let first = bytes[..bytes.len().min(SHOWN_BYTES_MAX)].to_vec();
        return Err(FrameError::NotAFrame { first, frames });
    }
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let [_, _, _, _, v0, v1, l0, l1, l2, l3] = *header;
    let theirs = u16::from_be_bytes([v0, v1]);
    if theirs != FRAME_VERSION {
        return Err(FrameError::Version { theirs });
    }
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong { bytes: length });
    }
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    Ok(Some((read(payload)?, HEADER_BYTES + length)))
}

fn read<M: DeserializeOwned>(payload: &[u8]) -> Result<M, FrameError> {
    let mut rest = payload;
    let mut codec = rmp_serde::Deserializer::new(&mut rest).with_human_readable();
    codec.set_max_depth(DEPTH_MAX);
    let message =
        M::deserialize(&mut codec).map_err(|e| FrameError::Broken { why: e.to_string() })?;
    match rest.len() {
        0 => Ok(message),
        more => Err(FrameError::Broken { why: format!("{more} bytes after its end") }),
    }
}
