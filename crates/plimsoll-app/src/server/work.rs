//! What a service thread does for each type of request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::wire::{RequestHeader, RequestType, Status, checksum, work_block, work_checksum};

use super::client::ClientState;
use super::metrics::Metrics;
use super::segments::{Durability, Segment};
use plimsoll_servers::clock::monotonic_ns;
use plimsoll_servers::delay::Work;

/// Units of work between two looks whether to give up: about a millisecond, see [`WORK_MAX`].
///
/// [`WORK_MAX`]: crate::wire::WORK_MAX
const WORK_STEP: u32 = 256;

/// What all work needs.
#[derive(Debug)]
pub(super) struct Means {
    pub(super) metrics: Metrics,
    pub(super) durability: Durability,
    /// Done for each request, in addition to what it requests.
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

/// Carries out `request`, which has arrived on the channel of `client`. `scratch` has room for a
/// frame.
pub(super) fn perform(
    request: &RequestHeader,
    client: &mut ClientState,
    means: &Means,
    scratch: &mut [u8],
) -> Result<Done, Status> {
    means.besides.spend();
    let RequestHeader { size, seed, offset, .. } = *request;
    let payload = client.channel.payload();
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
            let segment = within(&client.segment, offset, size as usize)?;
            let buffer = &mut scratch[..size as usize];
            segment.read(buffer, offset)?;
            means.metrics.read_bytes.add(u64::from(size));
            Ok(no_payload(checksum(seed, buffer)))
        }
        RequestType::Write => {
            let segment = within(&client.segment, offset, payload.len())?;
            means.write(segment, payload, offset)?;
            Ok(no_payload(checksum(seed, payload)))
        }
        RequestType::Append => {
            let segment = within(&client.segment, 0, payload.len())?;
            let fits = segment.holds(client.append_at, payload.len());
            let at = if fits { client.append_at } else { 0 };
            means.write(segment, payload, at)?;
            client.append_at = at + payload.len() as u64;
            Ok(no_payload(checksum(seed, payload)))
        }
        // The channel's thread answers these, so that they never wait for a thread.
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
        segment.write(bytes, offset)?;
        self.metrics.written_bytes.add(bytes.len() as u64);
        if self.durability == Durability::Fdatasync {
            let begun = monotonic_ns();
            let durable = segment.make_durable();
            self.metrics.fdatasyncs.add(1);
            self.metrics.fdatasync_ns.add(monotonic_ns().saturating_sub(begun));
            durable?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use crate::wire::inbox::Arrived;
    use crate::wire::{Hello, Refusal, Welcome};

    use super::super::channel::{Channel, Step};
    use super::super::root::{Root, SegmentsRoot};
    use super::super::segments::{PageCache, Segments};
    use super::super::troubles::Troubles;
    use super::*;

    fn means() -> Means {
        Means {
            metrics: Metrics::default(),
            durability: Durability::None,
            besides: Work::default(),
            hurry: AtomicBool::new(false),
        }
    }

    struct Peer {
        client: ClientState,
        ours: UnixStream,
        theirs: UnixStream,
    }

    /// Sends a request, and does it.
    fn ask(
        Peer { client, ours, theirs }: &mut Peer,
        request: RequestHeader,
        payload: &[u8],
    ) -> Result<Done, Status> {
        let header = RequestHeader { payload_bytes: payload.len() as u32, ..request };
        theirs.write_all(&[&header.encode()[..], payload].concat()).unwrap();
        let mut scratch = vec![0; 65_576];
        client.channel.hear(false);
        let step = client.channel.advance(&*ours, &mut scratch);
        assert_eq!(step, Step::Arrived(Arrived::Request(header)));
        let done = perform(&header, client, &means(), &mut scratch);
        client.channel.reply_with_text(&header, String::new());
        client.channel.send(&*ours);
        done
    }

    /// One that has been greeted.
    fn peer() -> Peer {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut client = ClientState::new(Channel::new(u64::MAX, 0));
        theirs.write_all(&Hello { version: 1, client: 1, segment_bytes: 0 }.encode()).unwrap();
        client.channel.hear(false);
        client.channel.advance(&ours, &mut [0; 65_576]);
        client.channel.welcome(&Welcome { refusal: None, ..Welcome::refused(Refusal::Full) });
        client.channel.send(&ours);
        Peer { client, ours, theirs }
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
        let mut peer = peer();
        let request = RequestHeader { size: 100, ..PLAIN };
        let done = ask(&mut peer, request, b"123456789").unwrap();
        assert_eq!(done, Done { checksum: checksum(5, b"123456789"), payload_bytes: 100 });
        let request = RequestHeader { kind: RequestType::Processor, work: 600, ..PLAIN };
        let done = ask(&mut peer, request, b"").unwrap();
        assert_eq!(done, Done { checksum: work_checksum(5, 600), payload_bytes: 0 });
        let request = RequestHeader { kind: RequestType::ServerClient, size: 65_536, ..PLAIN };
        let done = ask(&mut peer, request, b"").unwrap();
        assert_eq!(done, Done { checksum: checksum(5, work_block()), payload_bytes: 65_536 });
        for kind in [RequestType::Read, RequestType::Write, RequestType::Append] {
            let request = RequestHeader { kind, ..PLAIN };
            assert_eq!(ask(&mut peer, request, b"").unwrap_err(), Status::OutOfRange);
        }
    }

    #[test]
    fn reads_writes_and_appends_stay_within_the_segment() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&SegmentsRoot::Kept(dir.path().to_owned())).unwrap();
        let segments =
            Segments::new(root, 1 << 20, Durability::None, PageCache::AsItIs, Troubles::unheard());
        let mut peer = peer();
        peer.client.segment = Some(segments.open(1, 10).unwrap());
        let at = |kind, offset, size| RequestHeader { kind, offset, size, ..PLAIN };
        let write = at(RequestType::Write, 4, 0);
        assert_eq!(ask(&mut peer, write, b"abcdef").unwrap().checksum, checksum(5, b"abcdef"));
        assert_eq!(ask(&mut peer, write, b"abcdefg"), Err(Status::OutOfRange));
        let read = at(RequestType::Read, 5, 5);
        assert_eq!(ask(&mut peer, read, b"").unwrap().checksum, checksum(5, b"bcdef"));
        let beyond = at(RequestType::Read, u64::MAX, 5);
        assert_eq!(ask(&mut peer, beyond, b""), Err(Status::OutOfRange));
        let append = at(RequestType::Append, 99, 0);
        for (bytes, ends_at) in [(&b"1234"[..], 4), (b"5678", 8), (b"90x", 3)] {
            ask(&mut peer, append, bytes).unwrap();
            assert_eq!(peer.client.append_at, ends_at);
        }
        assert_eq!(std::fs::read(dir.path().join("client-000001.segment")).unwrap(), b"90x45678ef");
        assert_eq!(ask(&mut peer, append, &[0; 11]), Err(Status::OutOfRange));
    }
}
