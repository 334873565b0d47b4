//! The requests that are equal for all clients of a load point, and their expected replies.

use std::cell::RefCell;
use std::sync::Arc;

use plimsoll_engine::interface::{Io, Link};
use plimsoll_protocol::content::ContentTable;

use crate::op::{AppKind, AppOp, Segment};
use crate::parameters::AppWorkload;
use crate::wire::{
    PAYLOAD_BYTES_MAX, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, RequestHeader, RequestType,
    checksum, work_block,
};

/// The same for every client of a load point.
#[derive(Clone, Debug)]
pub struct AppSite {
    /// What the segments hold.
    pub content: ContentTable,
    /// Their size.
    pub segment: Segment,
    /// Size a client requests; zero if no transaction needs a segment.
    pub segment_bytes: u64,
    payload_bytes: u32,
    reply_bytes: u32,
    server_client_bytes: u32,
    work: u32,
    after_work: SeedMap,
    after_body: SeedMap,
}

impl AppSite {
    /// For clients of this workload at the profile's `scale`.
    pub fn new(workload: &AppWorkload, scale: f64) -> Self {
        let segment = segment_of(workload, scale);
        let needed = workload.mix.kinds().any(AppKind::needs_segment);
        let body = &work_block()[..workload.server_client_bytes as usize];
        Self {
            content: ContentTable::new(workload.file_set_seed),
            segment,
            segment_bytes: if needed { segment.bytes() } else { 0 },
            payload_bytes: workload.request_bytes - REQUEST_HEADER_BYTES as u32,
            reply_bytes: workload.reply_bytes - REPLY_HEADER_BYTES as u32,
            server_client_bytes: workload.server_client_bytes,
            work: workload.work,
            after_work: SeedMap::from_work(workload.work),
            after_body: SeedMap::from_bytes(body),
        }
    }

    /// The same segments in the largest blocks that a message takes.
    pub fn in_large_blocks(&self) -> Self {
        Self { segment: self.segment.in_blocks_of(PAYLOAD_BYTES_MAX), ..self.clone() }
    }

    /// Bytes of the body of a good reply.
    pub fn body_bytes(&self, kind: AppKind) -> u32 {
        match kind {
            AppKind::ClientServer => self.reply_bytes,
            AppKind::ServerClient => self.server_client_bytes,
            _ => 0,
        }
    }

    /// The body of a good reply, if it is known.
    pub fn body(&self, kind: AppKind) -> Option<&'static [u8]> {
        (kind == AppKind::ServerClient).then(|| &work_block()[..self.server_client_bytes as usize])
    }
}

/// Size and blocks of the segments of a workload at the profile's `scale`.
pub fn segment_of(workload: &AppWorkload, scale: f64) -> Segment {
    let AppWorkload { segment_mib, access_bytes, segment_access_ratio, .. } = *workload;
    Segment::new(segment_mib, scale, access_bytes, segment_access_ratio)
}

/// A transaction with its offset: the content of the request, and of the expected reply.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The transaction.
    pub op: AppOp,
    /// The reply repeats it.
    pub id: u32,
    /// Where in the segment.
    pub offset: u64,
    /// Key of the client's content.
    pub key: u64,
}

/// A worker's side of a site: what its clients build requests in.
#[derive(Debug)]
pub struct WorkerSite {
    /// The site.
    pub site: Arc<AppSite>,
    out: RefCell<Vec<u8>>,
}

impl WorkerSite {
    /// Of one worker.
    pub fn new(site: Arc<AppSite>) -> Self {
        let room = REQUEST_HEADER_BYTES + PAYLOAD_BYTES_MAX as usize;
        Self { site, out: RefCell::new(Vec::with_capacity(room)) }
    }

    /// Sends the request in one piece.
    pub fn send(&self, request: &Request, link: Link, io: &mut impl Io) {
        let payload = self.payload(request);
        let header = self.header(request, payload.len() as u32).encode();
        if payload.is_empty() {
            return io.send(link, &header);
        }
        let mut out = self.out.borrow_mut();
        out.clear();
        out.extend_from_slice(&header);
        out.extend_from_slice(payload);
        io.send(link, &out);
    }

    fn header(&self, request: &Request, payload_bytes: u32) -> RequestHeader {
        let kind = request.op.kind.request_type();
        let site = &*self.site;
        let size = match kind {
            RequestType::Read => site.segment.block_bytes(),
            _ => site.body_bytes(request.op.kind),
        };
        let has_offset = matches!(kind, RequestType::Read | RequestType::Write);
        RequestHeader {
            payload_bytes,
            kind,
            id: request.id,
            size,
            offset: if has_offset { request.offset } else { 0 },
            seed: request.op.seed,
            work: if kind == RequestType::Processor { site.work } else { 0 },
        }
    }

    /// Bytes of the request's payload.
    pub fn payload_bytes(&self, kind: AppKind) -> u32 {
        match kind.request_type() {
            RequestType::ClientServer => self.site.payload_bytes,
            RequestType::Write | RequestType::Append => self.site.segment.block_bytes(),
            _ => 0,
        }
    }

    fn payload(&self, request: &Request) -> &[u8] {
        let bytes = self.payload_bytes(request.op.kind) as usize;
        self.site.content.bytes(request.key, request.offset, bytes)
    }

    /// The checksum of a good reply.
    pub fn checksum(&self, request: &Request) -> u32 {
        let (site, seed) = (&*self.site, request.op.seed);
        match request.op.kind.request_type() {
            RequestType::Processor => site.after_work.apply(seed),
            RequestType::ServerClient => site.after_body.apply(seed),
            RequestType::Read => {
                let bytes = site.segment.block_bytes() as usize;
                checksum(seed, site.content.bytes(request.key, request.offset, bytes))
            }
            _ => checksum(seed, self.payload(request)),
        }
    }
}

/// The checksum over constant bytes for any seed, without reading them again.
///
/// CRC-32 is linear: what a seed becomes over given bytes is `M · seed ⊕ c` over the two-element
/// field. So the answer to work that keeps a server busy for a millisecond, or over a body that is
/// not read, is known in nanoseconds for every seed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeedMap {
    of_zero: u32,
    /// What each bit of the seed changes.
    bits: [u32; 32],
}

impl SeedMap {
    /// Over `bytes`.
    fn from_bytes(bytes: &[u8]) -> Self {
        let of_zero = checksum(0, bytes);
        Self { of_zero, bits: std::array::from_fn(|bit| checksum(1 << bit, bytes) ^ of_zero) }
    }

    /// Over this many units of work.
    fn from_work(units: u32) -> Self {
        let mut unit = Self::from_bytes(work_block());
        let mut all = Self::from_bytes(&[]);
        let mut left = units;
        while left > 0 {
            if left & 1 == 1 {
                all = all.then(&unit);
            }
            unit = unit.then(&unit);
            left >>= 1;
        }
        all
    }

    /// The checksum that goes on from `seed`.
    fn apply(&self, seed: u32) -> u32 {
        self.linear(seed) ^ self.of_zero
    }

    fn linear(&self, seed: u32) -> u32 {
        let one = |(at, bit): (usize, &u32)| bit & (seed >> at & 1).wrapping_neg();
        self.bits.iter().enumerate().map(one).fold(0, |sum, bit| sum ^ bit)
    }

    /// Over what this goes over, then over what `next` does.
    fn then(&self, next: &Self) -> Self {
        Self { of_zero: next.apply(self.of_zero), bits: self.bits.map(|bit| next.linear(bit)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::work_checksum;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_seed_becomes_what_the_checksum_says(
            seed: u32,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            prop_assert_eq!(SeedMap::from_bytes(&bytes).apply(seed), checksum(seed, &bytes));
        }

        #[test]
        fn work_is_known_without_doing_it(seed: u32, units in 0_u32..40) {
            prop_assert_eq!(SeedMap::from_work(units).apply(seed), work_checksum(seed, units));
        }
    }
}
