//! Segments of one server, several at once: each is read by its checksums, and what differs is
//! written.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_engine::seam::{ClientSeat, LinkKind, Session as _};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use super::error::AppError;
use super::site::Site;
use crate::op::{AppKind, AppOp};
use crate::segment::Segment;
use crate::session::{AppSession, AppSite, WorkerSite};
use crate::wire::Status;
use plimsoll_protocol::blocking::Blocking;
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::net::{ChannelError, Dial, OnProgress, SetupError, SourcePort};

/// Connections that fill segments at once: enough to keep a disk busy that must write each block
/// before it answers.
const CHANNELS: usize = 8;

/// Brings the segments of these clients into order.
pub(super) fn fill(
    at: &Site,
    data: &AppSite,
    clients: &[u32],
    dial: &dyn Dial,
    progress: &mut OnProgress<'_>,
) -> Result<(), SetupError> {
    let tally = Tally::default();
    let site = Arc::new(data.in_large_blocks());
    let segment = site.segment;
    let chunks = segment.blocks_used() * clients.len() as u64;
    let each = |stop: &mut Arc<AtomicBool>, client: &u32| {
        let channel = dial.dial(at.address, LinkKind::Stream, SourcePort::Any);
        let (client, op_timeout) = (*client, Nanos::MAX);
        let seat = ClientSeat { client, endpoint: 0, seed: 0, op_timeout, nonce: 0 };
        let session = AppSession::new(Rc::new(WorkerSite::new(Arc::clone(&site))), &seat);
        let open = |channel| Blocking::new(session, channel, Arc::clone(stop));
        let filled = channel.map(open).map_err(AppError::Channel);
        filled
            .and_then(|mut session| fill_one(&mut session, segment, client, &tally))
            .map_err(|e| e.unable_to("fill the data segments", &at.name))
    };
    let pool = ChannelPool { open: &|stop| Ok(Arc::clone(stop)), channels: CHANNELS };
    let report = Report { tally: &tally, doing: "filling data segments", total: chunks, progress };
    pool.collect(clients, each, report).map(drop)
}

fn fill_one(
    session: &mut Blocking<AppSession>,
    segment: Segment,
    client: u32,
    tally: &Tally,
) -> Result<(), AppError> {
    for block in 0..segment.blocks_used() {
        // Any seed serves; the block keeps two alike apart.
        let op = |kind| AppOp { kind, seed: block as u32 ^ client, block, compare: false };
        if !is_right(session, op(AppKind::RandomRead))? {
            if !is_right(session, op(AppKind::RandomWrite))? {
                return Err(AppError::Unfit("a wrong checksum of what it was to write".to_owned()));
            }
            tally.bytes.fetch_add(segment.block_bytes().into(), Ordering::Relaxed);
        }
        tally.step();
    }
    Ok(())
}

/// Does it; false when the checksum is another.
fn is_right(session: &mut Blocking<AppSession>, op: AppOp) -> Result<bool, AppError> {
    let ended = session.run(op)?;
    match ended.outcome.status {
        OpStatus::Ok | OpStatus::ExpectedFailure => Ok(true),
        OpStatus::Failed(ErrorClass::Corrupt) => Ok(false),
        OpStatus::Unexpected { actual, .. } => {
            let status = u8::try_from(actual).ok().and_then(Status::from_code);
            Err(AppError::Status(status.unwrap_or(Status::BadRequest)))
        }
        OpStatus::Failed(class) => Err(match session.session().lost() {
            Some(words) => AppError::Refused(words),
            None if class == ErrorClass::Transport => AppError::Channel(ChannelError::Closed),
            None => AppError::Unfit(ended.detail),
        }),
    }
}
