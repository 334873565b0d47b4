//! What a service thread does for each type of request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::wire::{RequestHeader, RequestType, Status, checksum, work_block, work_checksum};

use super::exchange::Exchange;
use super::metrics::Metrics;
use super::segments::{Durability, Segment};
use super::troubles::Troubles;
use plimsoll_servers::clock::monotonic_ns;
use plimsoll_servers::delay::Work;

/// Units of work between two looks whether to give up: about a millisecond, see [`WORK_MAX`].
///
/// [`WORK_MAX`]: crate::wire::WORK_MAX
const WORK_STEP: u32 = 256;

/// Memory of a service thread: as much as a frame.
pub(super) type Scratch = Box<[u8]>;

/// What all work needs.
#[derive(Debug)]
pub(super) struct Means {
    pub(super) metrics: Metrics,
    pub(super) troubles: Troubles,
    pub(super) durability: Durability,
    /// Done for each request, besides what it asks for.
    pub(super) besides: Work,
    /// Long work is given up.
    pub(super) hurry: AtomicBool,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) checksum: u32,
    /// Bytes of the work block that go back.
    pub(super) payload_bytes: u32,
}

/// Does what `request`, the one in the inbox of `exchange`, asks for.
pub(super) fn perform(
    request: &RequestHeader,
    exchange: &mut Exchange,
    means: &Means,
    scratch: &mut Scratch,
) -> Result<Done, Status> {
    means.besides.spend();
    let RequestHeader { size, seed, offset, .. } = *request;
    let payload = exchange.inbox.payload();
    match request.kind {
        RequestType::ClientServer => {
            Ok(Done { checksum: checksum(seed, payload), payload_bytes: size })
        }
        RequestType::Processor => means.work(seed, request.work),
        RequestType::ServerClient => {
            let sum = checksum(seed, &work_block()[..size as usize]);
            Ok(Done { checksum: sum, payload_bytes: size })
        }
        RequestType::Read => {
            let segment = within(&exchange.segment, offset, size as usize)?;
            let buffer = &mut scratch[..size as usize];
            segment.read(buffer, offset, &means.troubles)?;
            means.metrics.read_bytes.add(u64::from(size));
            Ok(no_payload(checksum(seed, buffer)))
        }
        RequestType::Write => {
            let segment = within(&exchange.segment, offset, payload.len())?;
            means.write(segment, payload, offset)?;
            Ok(no_payload(checksum(seed, payload)))
        }
        RequestType::Append => {
            let room = within(&exchange.segment, 0, payload.len())?;
            let fits = room.holds(exchange.append_at, payload.len());
            let at = if fits { exchange.append_at } else { 0 };
            means.write(room, payload, at)?;
            let sum = checksum(seed, payload);
            exchange.append_at = at + payload.len() as u64;
            Ok(no_payload(sum))
        }
        // The multiplexer answers these, so that they never wait for a thread.
        RequestType::Status => Err(Status::BadRequest),
    }
}

const fn no_payload(checksum: u32) -> Done {
    Done { checksum, payload_bytes: 0 }
}

fn within(segment: &Option<Arc<Segment>>, offset: u64, bytes: usize) -> Result<&Segment, Status> {
    let segment = segment.as_deref().ok_or(Status::OutOfRange)?;
    if segment.holds(offset, bytes) { Ok(segment) } else { Err(Status::OutOfRange) }
}

impl Means {
    fn work(&self, seed: u32, work: u32) -> Result<Done, Status> {
        let (mut sum, mut left) = (seed, work);
        while left > 0 {
            if self.hurry.load(Ordering::Relaxed) {
                return Err(Status::Ending);
            }
            let step = left.min(WORK_STEP);
            sum = work_checksum(sum, step);
            left -= step;
        }
        Ok(no_payload(sum))
    }

    fn write(&self, segment: &Segment, bytes: &[u8], offset: u64) -> Result<(), Status> {
        segment.write(bytes, offset, &self.troubles)?;
        self.metrics.written_bytes.add(bytes.len() as u64);
        if self.durability == Durability::Fdatasync {
            let begun = monotonic_ns();
            let durable = segment.make_durable(&self.troubles);
            self.metrics.fdatasyncs.add(1);
            self.metrics.fdatasync_ns.add(monotonic_ns().saturating_sub(begun));
            durable?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::outbox::Outbox;
    use super::super::root::{Root, SegmentsRoot};
    use super::super::segments::{PageCache, Segments};
    use super::*;

    fn means() -> Means {
        Means {
            metrics: Metrics::default(),
            troubles: Troubles::unheard(),
            durability: Durability::None,
            besides: Work::default(),
            hurry: AtomicBool::new(false),
        }
    }

    /// Puts a request in the inbox, as it would have come, and does it.
    fn ask(
        exchange: &mut Exchange,
        request: RequestHeader,
        payload: &[u8],
    ) -> Result<Done, Status> {
        let header = RequestHeader { payload_bytes: payload.len() as u32, ..request };
        let frame = [&header.encode()[..], payload].concat();
        exchange.inbox.push(&frame);
        exchange.inbox.next_message().unwrap().unwrap();
        let done = perform(&header, exchange, &means(), &mut vec![0; 65_536].into());
        exchange.inbox.finish();
        done
    }

    fn exchange() -> Exchange {
        use crate::wire::Hello;
        let mut exchange = Exchange::new(0, Outbox::default());
        let hello = Hello { version: 1, client: 1, segment_bytes: 0 }.encode();
        exchange.inbox.push(&hello);
        exchange.inbox.next_message().unwrap();
        exchange
    }

    const PLAIN: RequestHeader = RequestHeader {
        payload_bytes: 0,
        kind: RequestType::ClientServer,
        id: 1,
        size: 0,
        offset: 0,
        seed: 5,
        work: 0,
    };

    #[test]
    fn requests_without_a_segment_have_their_checksums() {
        let mut exchange = exchange();
        let request = RequestHeader { size: 100, ..PLAIN };
        let done = ask(&mut exchange, request, b"123456789").unwrap();
        assert_eq!(done, Done { checksum: checksum(5, b"123456789"), payload_bytes: 100 });
        let request = RequestHeader { kind: RequestType::Processor, work: 600, ..PLAIN };
        let done = ask(&mut exchange, request, b"").unwrap();
        assert_eq!(done, Done { checksum: work_checksum(5, 600), payload_bytes: 0 });
        let request = RequestHeader { kind: RequestType::ServerClient, size: 65_536, ..PLAIN };
        let done = ask(&mut exchange, request, b"").unwrap();
        assert_eq!(done, Done { checksum: checksum(5, work_block()), payload_bytes: 65_536 });
        for kind in [RequestType::Read, RequestType::Write, RequestType::Append] {
            let request = RequestHeader { kind, ..PLAIN };
            assert_eq!(ask(&mut exchange, request, b"").unwrap_err(), Status::OutOfRange);
        }
    }

    #[test]
    fn reads_writes_and_appends_stay_within_the_segment() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&SegmentsRoot::Kept(dir.path().to_owned())).unwrap();
        let segments = Segments::new(root, 1 << 20, Durability::None, PageCache::AsItIs);
        let mut exchange = exchange();
        exchange.segment = Some(segments.open(1, 10, &Troubles::unheard()).unwrap());
        let at = |kind, offset, size| RequestHeader { kind, offset, size, ..PLAIN };
        let write = at(RequestType::Write, 4, 0);
        assert_eq!(ask(&mut exchange, write, b"abcdef").unwrap().checksum, checksum(5, b"abcdef"));
        assert_eq!(ask(&mut exchange, write, b"abcdefg"), Err(Status::OutOfRange));
        let read = at(RequestType::Read, 5, 5);
        assert_eq!(ask(&mut exchange, read, b"").unwrap().checksum, checksum(5, b"bcdef"));
        let beyond = at(RequestType::Read, u64::MAX, 5);
        assert_eq!(ask(&mut exchange, beyond, b""), Err(Status::OutOfRange));
        let append = at(RequestType::Append, 99, 0);
        for (bytes, ends_at) in [(&b"1234"[..], 4), (b"5678", 8), (b"90x", 3)] {
            ask(&mut exchange, append, bytes).unwrap();
            assert_eq!(exchange.append_at, ends_at);
        }
        assert_eq!(std::fs::read(dir.path().join("client-000001.segment")).unwrap(), b"90x45678ef");
        assert_eq!(ask(&mut exchange, append, &[0; 11]), Err(Status::OutOfRange));
    }
}
