//! `conditioning = "warm"`: every accessed file is read once before the first load point that
//! needs it, one READ after the other on a channel of its own.

use plimsoll_model::suite::Conditioning;
use plimsoll_model::units::Bytes;
use plimsoll_protocol::net::{Dial, GoOn, LinkKind, OnProgress, SetupError, SetupProgress};

use super::super::handles::Handles;
use super::super::mounting::Mounted;
use super::super::op::Accessed;
use super::super::remote::Remote;
use super::{CHUNK_BYTES_MAX, DATAGRAM_CHUNK_BYTES};

/// Files between two words of progress.
const TELL_EVERY: usize = 64;

/// What of a server's files has been read.
#[derive(Debug)]
pub(super) struct Warmth {
    /// What the suite wants.
    pub wanted: Conditioning,
    /// Accessed files from the first on that were read; the numbering grows with the load.
    read: usize,
}

impl Warmth {
    /// Nothing has been read.
    pub(super) const fn new(wanted: Conditioning) -> Self {
        Self { wanted, read: 0 }
    }

    /// Reads what the set has and was not read yet, where the suite wants it warm.
    pub(super) fn warm(
        &mut self,
        mounted: &Mounted,
        handles: &Handles,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let total = handles.files.len();
        if self.wanted != Conditioning::Warm || self.read >= total {
            return Ok(());
        }
        let mut remote = mounted.remote(dial, dial.stop())?;
        let chunk = chunk_bytes(mounted);
        let mut bytes = 0;
        for number in self.read..total {
            if number % TELL_EVERY == 0 {
                let (doing, bytes) = ("reading files", Bytes(bytes));
                let at = SetupProgress { doing, done: number as u64, total: total as u64, bytes };
                if progress(at) == GoOn::No {
                    return Err(SetupError::Stopped);
                }
            }
            bytes += read_file(&mut remote, mounted, handles, Accessed(number as u32), chunk)?;
        }
        self.read = total;
        Ok(())
    }
}

/// Reads a file as it was made; answers with its size.
fn read_file(
    remote: &mut Remote,
    mounted: &Mounted,
    handles: &Handles,
    file: Accessed,
    chunk: u32,
) -> Result<u64, SetupError> {
    let Some(handle) = handles.file(file) else { return Ok(0) };
    let mut offset = 0;
    while offset < file.bytes() {
        let want = u64::from(chunk).min(file.bytes() - offset) as u32;
        let read = remote.read(handle, offset, want);
        let read = read.map_err(|e| e.unable_to("read a file", mounted.place()))?;
        if read.count == 0 {
            break;
        }
        offset += u64::from(read.count);
    }
    Ok(offset)
}

/// Bytes of one READ.
fn chunk_bytes(mounted: &Mounted) -> u32 {
    let most = match mounted.kind {
        LinkKind::Stream => CHUNK_BYTES_MAX,
        LinkKind::Datagram => DATAGRAM_CHUNK_BYTES,
    };
    mounted.limits.read_bytes_max.min(most).max(1)
}
