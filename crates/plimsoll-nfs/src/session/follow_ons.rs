//! The further blocks of a READ or WRITE, each an op that follows when the one before has ended.

use plimsoll_engine::interface::Ticket;

use crate::fileset::BLOCK_BYTES;
use crate::op::{NfsCall, NfsOp, Span};

/// By ticket: the follow-on of the op that ended there.
#[derive(Debug, Default)]
pub(super) struct FollowOns(Vec<Option<NfsOp>>);

impl FollowOns {
    /// `op` follows the op that has just ended.
    pub(super) fn keep(&mut self, ended: Ticket, op: Option<NfsOp>) {
        let at = ended.0 as usize;
        // Tickets are small and dense, but for those of set-up, which has no follow-ons.
        if self.0.len() <= at && op.is_some() {
            self.0.resize(at + 1, None);
        }
        if let Some(follow_on) = self.0.get_mut(at) {
            *follow_on = op;
        }
    }

    /// What follows the op that has just ended.
    pub(super) fn take(&mut self, ended: Ticket) -> Option<NfsOp> {
        self.0.get_mut(ended.0 as usize)?.take()
    }
}

/// The next block of the same read or write.
pub(super) fn next_block(op: NfsOp) -> Option<NfsOp> {
    let next = |span: Span| {
        let blocks_left = span.blocks_left.checked_sub(1)?;
        let offset = span.offset + u64::from(span.bytes);
        Some(Span { offset, bytes: BLOCK_BYTES, blocks_left, ..span })
    };
    let call = match op.call {
        NfsCall::Read(span, verify) => NfsCall::Read(next(span)?, verify),
        NfsCall::Write(span, stability) => NfsCall::Write(next(span)?, stability),
        _ => return None,
    };
    Some(NfsOp { call, ..op })
}
