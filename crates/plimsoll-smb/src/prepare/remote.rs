//! The share behind a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::super::client::{Listed, Opened, SmbClient, SmbError};
use super::super::logon::{LogonRequest, Offer};
use super::super::parameters::SmbWorkload;
use super::super::session::SmbSite;
use super::super::target::SmbTarget;
use super::share::{Entry, Found, Kind, Share, ShareError, Space, Text};
use plimsoll_protocol::content::{ContentTable, SLICE_BYTES_MAX};
use plimsoll_protocol::net::{Dial, SetupError};
use plimsoll_protocol::seeded_hash;

/// Bytes of a file that are in memory at once.
const STRETCH_BYTES: u64 = 4 * 1024 * 1024;

/// Connections of this process so far.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// A connection with its session.
pub(super) struct Remote {
    client: SmbClient,
    /// What is being written.
    stretch: Vec<u8>,
}

/// Logs on. What is done over the connection ends soon after the flag is raised.
pub(super) fn open(
    target: &SmbTarget,
    offer: &Offer,
    dial: &dyn Dial,
    stop: Arc<AtomicBool>,
) -> Result<Remote, SetupError> {
    // A server hands a connection of a client that it knows to the process that serves this
    // client, and that one may be about to end: every connection comes from a client of its own.
    let nonce =
        seeded_hash::key(&[dial.caller().nonce, CONNECTIONS.fetch_add(1, Ordering::Relaxed)]);
    let mut offer = offer.clone();
    offer.client_guid[..8].copy_from_slice(&nonce.to_le_bytes());
    offer.client_guid[8..].copy_from_slice(&seeded_hash::key(&[nonce]).to_le_bytes());
    let (credentials, unc) = (&target.credentials, target.unc.as_str());
    let request = LogonRequest { credentials, offer: &offer, unc, nonce };
    let client = SmbClient::logon(dial, target.address, &request, stop)
        .map_err(|error| error.unable_to("log on", &target.name))?;
    Ok(Remote { client, stretch: Vec::new() })
}

/// The share as a client that only tries ops needs it.
pub(super) fn for_trial(
    target: &SmbTarget,
    workload: &SmbWorkload,
    table: &ContentTable,
) -> SmbSite {
    SmbSite {
        credentials: target.credentials.clone(),
        offer: workload.offer(),
        unc: target.unc.clone(),
        prefix: target.base.clone(),
        caching: workload.caching,
        content: table.clone(),
        outstanding_max: 1,
        unexpected_max: u32::MAX,
        buffers: Default::default(),
    }
}

impl Remote {
    /// Ends the session in order.
    pub(super) fn close(self) {
        self.client.disconnect();
    }

    /// The server takes us for a guest, whoever we said we are.
    pub(super) fn is_guest(&self) -> bool {
        self.client.session().guest
    }

    fn write_all(
        &mut self,
        file: &Opened,
        text: &Text<'_>,
        written: &AtomicU64,
    ) -> Result<(), SmbError> {
        // The end is written when all others are there.
        let end = text.bytes().saturating_sub(1) / SLICE_BYTES_MAX as u64 * SLICE_BYTES_MAX as u64;
        let mut at = 0;
        while at < text.bytes() {
            let to = if at < end { end.min(at + STRETCH_BYTES) } else { text.bytes() };
            self.fill(text, at, to);
            self.client.write(file.file_id, at, &self.stretch)?;
            written.fetch_add(to - at, Ordering::Relaxed);
            at = to;
        }
        Ok(())
    }

    fn fill(&mut self, text: &Text<'_>, from: u64, to: u64) {
        self.stretch.clear();
        let mut at = from;
        while at < to {
            let bytes = (to - at).min(SLICE_BYTES_MAX as u64);
            self.stretch.extend_from_slice(text.slice(at, bytes as usize));
            at += bytes;
        }
    }

    /// Closes what was open whatever came of it; the first failure counts.
    fn closing<T>(&mut self, file: &Opened, result: Result<T, SmbError>) -> Result<T, ShareError> {
        match self.client.close(file.file_id) {
            Err(error) if result.is_ok() => Err(error.into()),
            _ => Ok(result?),
        }
    }
}

impl Share for Remote {
    fn pause(&mut self, time: Duration) -> Result<(), ShareError> {
        Ok(self.client.pause(time)?)
    }

    fn find(&mut self, path: &str) -> Result<Option<Found>, ShareError> {
        Ok(self.client.find(path)?.map(|opened| found(opened.is_directory, opened.bytes)))
    }

    fn list(&mut self, path: &str) -> Result<Option<Vec<Entry>>, ShareError> {
        let entry = |Listed { name, bytes, is_directory }| Entry {
            name,
            found: found(is_directory, bytes),
        };
        Ok(self.client.list(path)?.map(|listed| listed.into_iter().map(entry).collect()))
    }

    fn make_dir(&mut self, path: &str) -> Result<(), ShareError> {
        Ok(self.client.make_dir(path)?)
    }

    fn write(
        &mut self,
        path: &str,
        text: &Text<'_>,
        written: &AtomicU64,
    ) -> Result<(), ShareError> {
        let file = self.client.make_file(path)?;
        let result = self.write_all(&file, text, written);
        self.closing(&file, result)
    }

    fn cut(&mut self, path: &str, bytes: u64) -> Result<(), ShareError> {
        Ok(self.client.cut(path, bytes)?)
    }

    fn read(&mut self, path: &str, offset: u64, bytes: u32) -> Result<Vec<u8>, ShareError> {
        let file = self.client.open_to_read(path)?;
        let result = self.client.read(file.file_id, offset, bytes);
        self.closing(&file, result)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), ShareError> {
        Ok(self.client.rename(from, to)?)
    }

    fn remove(&mut self, path: &str, kind: Kind) -> Result<(), ShareError> {
        match kind {
            Kind::File => self.client.delete_file(path)?,
            Kind::Directory => self.client.delete_dir(path)?,
        };
        Ok(())
    }

    fn space(&mut self) -> Result<Space, ShareError> {
        Ok(Space { available_bytes: self.client.space()?.available_bytes })
    }
}

fn found(is_directory: bool, bytes: u64) -> Found {
    Found { kind: if is_directory { Kind::Directory } else { Kind::File }, bytes }
}
