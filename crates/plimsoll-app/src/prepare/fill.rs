//! Segments of one server, several at once: each is read by its checksums, and what differs is
//! written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_model::units::Bytes;

use super::client::{AppClient, AppError, Range};
use super::points::Site;
use crate::segment::content_key;
use crate::session::AppSite;
use crate::wire::{PAYLOAD_BYTES_MAX, checksum};
use plimsoll_protocol::channel_pool::{ChannelPool, Overseer};
use plimsoll_protocol::net::{Dial, GoOn, OnProgress, SetupError, SetupProgress};

/// Connections that fill segments at once: enough to keep a disk busy that must write each block
/// before it answers.
const CHANNELS: usize = 8;
/// Bytes looked at, or written, at once.
const CHUNK_BYTES: u32 = PAYLOAD_BYTES_MAX;

/// How far all of them are.
#[derive(Debug, Default)]
struct Tally {
    chunks: AtomicU64,
    bytes_written: AtomicU64,
}

/// Brings the segments of these clients into order.
pub(super) fn fill(
    at: &Site,
    data: &AppSite,
    clients: &[u32],
    dial: &dyn Dial,
    progress: &mut OnProgress<'_>,
) -> Result<(), SetupError> {
    let tally = Tally::default();
    let chunks = data.segment.bytes().div_ceil(u64::from(CHUNK_BYTES)) * clients.len() as u64;
    let mut watch = Watch { tally: &tally, chunks, progress };
    if !clients.is_empty() {
        let each = |stop: &mut Arc<AtomicBool>, client: &u32| {
            let number = *client;
            let bytes = data.segment.bytes();
            AppClient::open(dial, at.address, (number, bytes), Arc::clone(stop))
                .and_then(|(mut client, _)| fill_one(&mut client, data, number, &tally))
                .map_err(|e| e.unable_to("fill the data segments", &at.name))
        };
        let open = |stop: &Arc<AtomicBool>| Ok(Arc::clone(stop));
        ChannelPool { open: &open, channels: CHANNELS }.work(clients, each, &mut watch)?;
    }
    // The caller hears the last figures, whose answer no longer matters.
    let _: GoOn = watch.tick();
    Ok(())
}

fn fill_one(
    client: &mut AppClient,
    data: &AppSite,
    number: u32,
    tally: &Tally,
) -> Result<(), AppError> {
    let key = content_key(&data.content, number);
    let mut offset = 0;
    while offset < data.segment.bytes() {
        let bytes = (data.segment.bytes() - offset).min(u64::from(CHUNK_BYTES)) as u32;
        let content = data.content.bytes(key, offset, bytes as usize);
        // Any seed serves; the offset keeps two blocks alike apart.
        let seed = offset as u32 ^ number;
        let found = client.read(Range { offset, bytes }, seed)?;
        if found != checksum(seed, content) {
            client.write(offset, content, seed)?;
            tally.bytes_written.fetch_add(u64::from(bytes), Ordering::Relaxed);
        }
        tally.chunks.fetch_add(1, Ordering::Relaxed);
        offset += u64::from(bytes);
    }
    Ok(())
}

struct Watch<'a, 'p> {
    tally: &'a Tally,
    chunks: u64,
    progress: &'a mut OnProgress<'p>,
}

impl Overseer<()> for Watch<'_, '_> {
    fn on_done(&mut self, _: usize, (): ()) -> Result<(), SetupError> {
        Ok(())
    }

    fn tick(&mut self) -> GoOn {
        (self.progress)(SetupProgress {
            doing: "filling data segments",
            done: self.tally.chunks.load(Ordering::Relaxed),
            total: self.chunks,
            bytes: Bytes(self.tally.bytes_written.load(Ordering::Relaxed)),
        })
    }
}
