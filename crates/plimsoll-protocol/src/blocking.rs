//! A session with a blocking channel in place of the engine: set-up runs the measured state
//! machine, one op at a time or as many as the session takes. Every wait is bounded, and ends soon
//! when the caller raises a flag.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_engine::interface::{Io, Link, LinkError, LinkKind, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind, Outcome};
use plimsoll_model::units::Nanos;

use crate::net::{Channel, ChannelError, NonconformityLog};

/// The one connection of a [`Blocking`].
pub const LINK: Link = Link(0);
/// Silence after which a server counts as hung. Closing a file that was written may take long.
pub const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A wait is cut into pieces this long, so that a stop takes effect.
pub const STOP_HEARD_WITHIN: Duration = Duration::from_millis(100);
/// Each read takes this from the time left, so that a server cannot prolong the wait for ever.
const HEARING_COSTS: Duration = Duration::from_millis(1);
/// Fewer bytes count as silence. A long answer comes in larger pieces.
const CRUMB_BYTES: usize = 512;
/// Most reads of what a peer sent before it stopped taking bytes.
const LAST_READS_MAX: usize = 16;
/// Time does not pass for the session: the silence is the only limit.
const NOW: Nanos = Nanos(0);

/// A session and its channel.
pub struct Blocking<S> {
    session: S,
    wire: Wire,
    stop: Arc<AtomicBool>,
    incoming: Vec<u8>,
    silence_max: Duration,
    log: Option<NonconformityLog>,
}

/// How an op ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which op.
    pub ticket: Ticket,
    /// As the engine would hear it.
    pub outcome: Outcome,
    /// The session's description of a failure.
    pub detail: String,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum BlockingError {
    /// The caller wants everything to end.
    #[error("stopped")]
    Stopped,
    /// Silence, or the connection broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl<S: Session> Blocking<S> {
    /// A session that connects with its first op: then `channel` is its connection. Raising `stop`
    /// ends this and all that follows.
    pub fn new(session: S, channel: Box<dyn Channel>, stop: Arc<AtomicBool>) -> Self {
        let wire = Wire { channel: Some(channel), ..Wire::default() };
        Self { session, wire, stop, incoming: Vec::new(), silence_max: SILENCE_MAX, log: None }
    }

    /// The same with another bound on the server's silence.
    pub fn silent_for(self, silence_max: Duration) -> Self {
        Self { silence_max, ..self }
    }

    /// The same; what its session counts of replies that differ from their specification goes to
    /// `log`, op by op.
    pub fn noting(self, log: NonconformityLog) -> Self {
        Self { log: Some(log), ..self }
    }

    /// The session within.
    pub fn session(&self) -> &S {
        &self.session
    }

    /// The session within.
    pub fn session_mut(&mut self) -> &mut S {
        &mut self.session
    }

    /// Does it and waits for its end. No other op is in flight.
    pub fn run(&mut self, op: S::Op) -> Result<Ended, BlockingError> {
        self.issue(Ticket(0), op);
        self.next_end()
    }

    /// Begins it; only where the session has room.
    pub fn issue(&mut self, ticket: Ticket, op: S::Op) {
        self.session.issue(ticket, op, NOW, &mut self.wire);
    }

    /// Waits until an op ends.
    pub fn next_end(&mut self) -> Result<Ended, BlockingError> {
        self.next_end_within(self.silence_max)
    }

    /// The same with another bound on the server's silence this time.
    pub fn next_end_within(&mut self, silence_max: Duration) -> Result<Ended, BlockingError> {
        let mut time_left = silence_max;
        loop {
            if let Some(ended) = self.wire.ended.pop_front() {
                if let Some(log) = &self.log {
                    log.add(&self.session.take_counters().nonconformities);
                }
                return Ok(ended);
            }
            self.step(&mut time_left)?;
        }
    }

    /// The server was silent for too long. Returns how the waiting op ends.
    pub fn time_out(&mut self) -> Option<Ended> {
        let deadline = self.session.next_deadline()?;
        self.session.on_timer(deadline, &mut self.wire);
        self.wire.ended.pop_front()
    }

    /// Waits this long without a request; handles what arrives meanwhile.
    pub fn pause(&mut self, time: Duration) -> Result<(), BlockingError> {
        let mut time_left = time;
        loop {
            match self.step(&mut time_left) {
                Ok(()) => {}
                Err(BlockingError::Channel(ChannelError::Timeout)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Has the session log off, and waits for the end of that, at most so long.
    pub fn log_off(&mut self, at_most: Duration) {
        self.session.log_off(NOW, &mut self.wire);
        let mut time_left = at_most;
        while !self.session.has_logged_off() && self.step(&mut time_left).is_ok() {}
    }

    /// Tells the session what happens next within `time_left`.
    fn step(&mut self, time_left: &mut Duration) -> Result<(), BlockingError> {
        let Self { session, wire, stop, incoming, .. } = self;
        if let Some(error) = wire.failure.take() {
            self.hear_last(time_left)?;
            return self.break_off(error);
        }
        let Some(channel) = &mut wire.channel else { return Err(ChannelError::Closed.into()) };
        if std::mem::take(&mut wire.is_connecting) {
            session.on_connected(LINK, NOW, wire);
            return Ok(());
        }
        incoming.clear();
        match hear(&mut **channel, stop, time_left, incoming) {
            Ok(()) if incoming.is_empty() => {}
            Ok(()) => session.on_bytes(LINK, incoming, NOW, wire),
            Err(BlockingError::Channel(ChannelError::Closed)) => {
                session.on_eof(LINK, NOW, wire);
                wire.channel = None;
            }
            Err(BlockingError::Channel(error @ ChannelError::Failed(_))) => {
                return self.break_off(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Passes on what a peer sent before it stopped taking bytes: the answer to a request that it
    /// did not read to the end. The kernel keeps it.
    fn hear_last(&mut self, time_left: &mut Duration) -> Result<(), BlockingError> {
        let Self { session, wire, stop, incoming, .. } = self;
        for _ in 0..LAST_READS_MAX {
            let Some(channel) = &mut wire.channel else { return Ok(()) };
            incoming.clear();
            match hear(&mut **channel, stop, time_left, incoming) {
                Ok(()) if !incoming.is_empty() => session.on_bytes(LINK, incoming, NOW, wire),
                Err(BlockingError::Stopped) => return Err(BlockingError::Stopped),
                // The caller already has a better reason for the end.
                Ok(()) | Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Tells the session that its connection broke, unless it has closed it meanwhile. If no op
    /// ends by that, the caller gets the error.
    fn break_off(&mut self, error: ChannelError) -> Result<(), BlockingError> {
        let Self { session, wire, .. } = self;
        let errno = match &error {
            ChannelError::Failed(error) => error.raw_os_error(),
            ChannelError::Timeout | ChannelError::Closed => None,
        };
        if let (Some(_), Some(errno)) = (wire.channel.take(), errno) {
            let class = ErrorClass::Transport;
            session.on_failed(LINK, LinkError { class, errno }, NOW, wire);
        }
        wire.failure = None;
        if wire.ended.is_empty() { Err(error.into()) } else { Ok(()) }
    }
}

/// Waits for bytes for at most one piece of `time_left`, and subtracts the time. No bytes may have
/// come.
pub fn hear(
    channel: &mut dyn Channel,
    stop: &AtomicBool,
    time_left: &mut Duration,
    into: &mut Vec<u8>,
) -> Result<(), BlockingError> {
    if stop.load(Ordering::Relaxed) {
        return Err(BlockingError::Stopped);
    }
    if time_left.is_zero() {
        return Err(ChannelError::Timeout.into());
    }
    let (piece, before) = (STOP_HEARD_WITHIN.min(*time_left), into.len());
    let took = match channel.receive(into, piece) {
        Ok(()) if into.len() - before < CRUMB_BYTES => STOP_HEARD_WITHIN,
        Ok(()) => HEARING_COSTS,
        Err(ChannelError::Timeout) => piece,
        Err(error) => return Err(error.into()),
    };
    *time_left = time_left.saturating_sub(took);
    Ok(())
}

/// What the session sees of the channel.
#[derive(Default)]
struct Wire {
    /// `None` when it is closed.
    channel: Option<Box<dyn Channel>>,
    /// The session waits for its connection.
    is_connecting: bool,
    /// Of the last send.
    failure: Option<ChannelError>,
    detail: String,
    ended: VecDeque<Ended>,
}

impl Io for Wire {
    fn connect(&mut self, _: LinkKind) -> Link {
        self.is_connecting = true;
        LINK
    }

    fn send(&mut self, _: Link, bytes: &[u8]) {
        // The first failure is the reason, and what follows a cut message is none.
        if self.failure.is_none()
            && let Some(channel) = &mut self.channel
            && let Err(error) = channel.send(bytes)
        {
            self.failure = Some(error);
        }
    }

    fn discard(&mut self, _: Link, _: u64) {
        // Bytes to discard are handed over all the same.
    }

    fn close(&mut self, _: Link) {
        self.channel = None;
    }

    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }

    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        let detail = std::mem::take(&mut self.detail);
        self.ended.push_back(Ended { ticket, outcome, detail });
    }

    fn report_trailing_bytes(&mut self, _: OpKind) {
        // Whatever followed has ended the connection.
    }
}

#[cfg(test)]
mod tests;
