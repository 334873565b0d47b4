//! A request of the log as it is kept: numbers alone, in memory and in a temporary file.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use plimsoll_model::units::Nanos;

/// Number of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathId(pub u32);

/// A request of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Since the Unix epoch.
    pub begin: Nanos,
    /// Zero where the log has none.
    pub duration: Nanos,
    /// What was requested.
    pub path: PathId,
    /// Hash of who sent it.
    pub client: u64,
    /// Of the body.
    pub bytes: Option<u64>,
    /// Of the reply.
    pub status: u16,
    /// Its method, as a number.
    pub method: u8,
    /// A program that says so sent it.
    pub is_bot: bool,
}

/// What a reply means for a page of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    /// Content, or what should have been content: failures of the server are no part of its load.
    Good,
    /// To another page.
    Redirect,
    /// A mistake of the client.
    ClientError,
}

/// How many there are.
pub(crate) const OUTCOMES: usize = 3;

impl Request {
    /// nginx closed the connection without a reply.
    const CLOSED: u16 = 444;
    /// The client of nginx went away.
    const GONE: u16 = 499;

    /// When its reply was complete.
    pub fn end(&self) -> Nanos {
        self.begin + self.duration
    }

    /// What its status means.
    pub const fn outcome(&self) -> Outcome {
        match self.status {
            304 | Self::CLOSED | Self::GONE => Outcome::Good,
            300..=399 => Outcome::Redirect,
            400..=499 => Outcome::ClientError,
            _ => Outcome::Good,
        }
    }

    /// The status of a good reply when it is sent again: a failure of the server is none, nor is a
    /// client that did not wait.
    pub fn expected_status(&self) -> u16 {
        match self.status {
            Self::CLOSED | Self::GONE | 500.. => 200,
            status => status,
        }
    }

    /// Its size is that of the whole content.
    pub fn whole_bytes(&self) -> Option<u64> {
        self.bytes.filter(|_| self.status == 200)
    }
}

/// Bytes of a request in the file.
const ENCODED: usize = 40;

/// Requests in a temporary file.
pub(crate) struct Spool {
    file: BufWriter<File>,
    requests: u64,
}

impl Spool {
    /// An empty one in this folder. The file has no name and ends with the process.
    pub fn create(folder: &std::path::Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Self { file: BufWriter::with_capacity(1 << 18, file), requests: 0 })
    }

    /// Appends a request.
    pub fn push(&mut self, request: &Request) -> io::Result<()> {
        let mut bytes = [0; ENCODED];
        bytes[..8].copy_from_slice(&request.begin.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&request.duration.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&request.client.to_le_bytes());
        bytes[24..32].copy_from_slice(&request.bytes.unwrap_or(u64::MAX).to_le_bytes());
        bytes[32..36].copy_from_slice(&request.path.0.to_le_bytes());
        bytes[36..38].copy_from_slice(&request.status.to_le_bytes());
        bytes[38] = request.method;
        bytes[39] = u8::from(request.is_bot);
        self.requests += 1;
        self.file.write_all(&bytes)
    }

    /// Calls `visit` with each request in order.
    pub fn for_each<E: From<io::Error>>(
        &mut self,
        mut visit: impl FnMut(Request) -> Result<(), E>,
    ) -> Result<(), E> {
        self.file.flush()?;
        let mut file = self.file.get_ref();
        file.rewind()?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut bytes = [0; ENCODED];
        for _ in 0..self.requests {
            reader.read_exact(&mut bytes)?;
            visit(decode(&bytes))?;
        }
        Ok(())
    }
}

fn decode(bytes: &[u8; ENCODED]) -> Request {
    let long = |at: usize| {
        let mut field = [0; 8];
        field.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(field)
    };
    Request {
        begin: Nanos(long(0)),
        duration: Nanos(long(8)),
        client: long(16),
        bytes: Some(long(24)).filter(|bytes| *bytes != u64::MAX),
        path: PathId(u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]])),
        status: u16::from_le_bytes([bytes[36], bytes[37]]),
        method: bytes[38],
        is_bot: bytes[39] != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(folder.path()).unwrap();
        let request = |n: u64| Request {
            begin: Nanos(n << 32),
            duration: Nanos(n * 7),
            path: PathId(n as u32 * 3),
            client: u64::MAX - n,
            bytes: n.is_multiple_of(2).then_some(n),
            status: 200 + n as u16,
            method: n as u8,
            is_bot: n == 2,
        };
        for n in 0..3 {
            spool.push(&request(n)).unwrap();
        }
        for _ in 0..2 {
            let mut read = Vec::new();
            let visit = |request| {
                read.push(request);
                io::Result::Ok(())
            };
            spool.for_each(visit).unwrap();
            assert_eq!(read, (0..3).map(request).collect::<Vec<_>>());
        }
    }
}
