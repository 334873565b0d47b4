//! Data of open files, with several commands in flight.

use super::{CREDIT_BYTES, SmbClient, SmbError};
use crate::wire::header::Command;
use crate::wire::read::{ReadRequest, ReadResponse};
use crate::wire::write::{WriteRequest, WriteResponse};
use crate::wire::{FileId, status};

/// Bytes of one READ or WRITE: as many credits as a server gives soon.
const PIECE_BYTES: u32 = 1024 * 1024;
/// Least of that, whatever the server says it can take: nothing would be asked for ever.
const PIECE_BYTES_MIN: u32 = 4_096;
/// Commands in flight.
const WINDOW: usize = 4;

/// A stretch of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    message_id: u64,
    offset: u64,
    bytes: u32,
}

impl SmbClient {
    /// Most bytes asked of a content at once.
    pub fn piece_bytes_max(&self) -> u32 {
        self.session.max_write.min(self.session.max_read).clamp(PIECE_BYTES_MIN, PIECE_BYTES)
    }

    /// Writes `data` at `offset`.
    pub fn write(&mut self, file_id: FileId, offset: u64, data: &[u8]) -> Result<(), SmbError> {
        let content = |at: u64, bytes: usize| &data[(at - offset) as usize..][..bytes];
        self.write_content(file_id, offset..offset + data.len() as u64, content)
    }

    /// Writes a stretch of a file from a content that knows its bytes: those at an offset, at
    /// most [`Self::piece_bytes_max`] at a time.
    pub fn write_content<'c>(
        &mut self,
        file_id: FileId,
        stretch: std::ops::Range<u64>,
        content: impl Fn(u64, usize) -> &'c [u8],
    ) -> Result<(), SmbError> {
        let mut in_flight: Vec<Piece> = Vec::new();
        let mut offset = stretch.start;
        loop {
            while in_flight.len() < WINDOW && offset < stretch.end {
                let Some(bytes) = self.affordable(stretch.end - offset, in_flight.is_empty())?
                else {
                    break;
                };
                let data = content(offset, bytes as usize);
                let request = WriteRequest { offset, file_id, data, ..WriteRequest::default() };
                let message_id = self.post(Command::Write, bytes, |out| request.encode(out))?;
                in_flight.push(Piece { message_id, offset, bytes });
                offset += u64::from(bytes);
            }
            if in_flight.is_empty() {
                return Ok(());
            }
            let piece = in_flight.remove(0);
            let body = self.body(Command::Write, piece.message_id)?;
            let written = WriteResponse::decode(&body)?.count;
            if written != piece.bytes {
                return Err(SmbError::Unfit("a WRITE that took less than all"));
            }
        }
    }

    /// The bytes at `offset`, fewer at the end of the file.
    pub fn read(&mut self, file_id: FileId, offset: u64, bytes: u32) -> Result<Vec<u8>, SmbError> {
        let end = offset + u64::from(bytes);
        let mut data: Vec<u8> = Vec::new();
        let mut in_flight: Vec<Piece> = Vec::new();
        let mut asked = offset;
        loop {
            while in_flight.len() < WINDOW && asked < end {
                let Some(bytes) = self.affordable(end - asked, in_flight.is_empty())? else {
                    break;
                };
                let request =
                    ReadRequest { length: bytes, offset: asked, file_id, ..ReadRequest::default() };
                let message_id = self.post(Command::Read, bytes, |out| request.encode(out))?;
                in_flight.push(Piece { message_id, offset: asked, bytes });
                asked += u64::from(bytes);
            }
            if in_flight.is_empty() {
                return Ok(data);
            }
            let piece = in_flight.remove(0);
            let body = match self.body(Command::Read, piece.message_id) {
                Ok(body) => body,
                Err(SmbError::Status { status: status::END_OF_FILE, .. }) => {
                    self.forget(&in_flight)?;
                    return Ok(data);
                }
                Err(error) => return Err(error),
            };
            let got = ReadResponse::decode(&body)?.data;
            if got.len() > piece.bytes as usize {
                return Err(SmbError::Unfit("more bytes than were asked for"));
            }
            data.extend_from_slice(got);
            if got.len() < piece.bytes as usize {
                // The end of the file, or a server that gives less: ask from there on.
                self.forget(&in_flight)?;
                in_flight.clear();
                asked = piece.offset + got.len() as u64;
                if got.is_empty() {
                    return Ok(data);
                }
            }
        }
    }

    /// How many of `left` bytes the credits allow now. `None`: wait for the replies first.
    fn affordable(&mut self, left: u64, idle: bool) -> Result<Option<u32>, SmbError> {
        let piece = u64::from(self.piece_bytes_max()).min(left) as u32;
        let charge = self.charge(piece);
        if self.session.credits >= charge {
            return Ok(Some(piece));
        }
        if !idle {
            return Ok(None);
        }
        self.earn(1)?;
        Ok(Some(piece.min(self.session.credits.saturating_mul(CREDIT_BYTES))))
    }

    fn post(
        &mut self,
        command: Command,
        bytes: u32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<u64, SmbError> {
        self.begin();
        let message_id = self.command(command, bytes, body);
        self.send()?;
        Ok(message_id)
    }

    fn body(&mut self, command: Command, message_id: u64) -> Result<Vec<u8>, SmbError> {
        let reply = self.reply(message_id)?;
        if status::is_failure(reply.status) {
            return Err(SmbError::Status { command, status: reply.status });
        }
        Ok(reply.body)
    }

    /// Waits for replies that do not matter any more.
    fn forget(&mut self, pieces: &[Piece]) -> Result<(), SmbError> {
        for piece in pieces {
            self.reply(piece.message_id)?;
        }
        Ok(())
    }
}
