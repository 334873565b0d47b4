//! A session with a blocking channel in place of the engine: set-up asks a server by the state
//! machine that is measured, one op at a time or as many as the session takes. Every wait is
//! bounded, and ends soon when the caller raises a flag.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_engine::seam::{Io, Link, LinkError, LinkKind, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind, Outcome};
use plimsoll_model::units::Nanos;

use crate::net::{Channel, ChannelError, NonconformityLog};

/// The one connection of a [`Blocking`].
pub const LINK: Link = Link(0);
/// Silence after which a server counts as hung. Closing a file that was written may take long.
pub const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A wait is cut into pieces this long, so that a stop is heard.
pub const STOP_HEARD_WITHIN: Duration = Duration::from_millis(100);
/// What anything heard takes from the silence, so that a server cannot lengthen it for ever.
const HEARING_COSTS: Duration = Duration::from_millis(1);
/// Fewer bytes count as a piece of silence. A long answer comes in larger ones.
const CRUMB_BYTES: usize = 512;
/// Reads of what a peer said before it stopped taking bytes.
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
    /// What the session says of a failure.
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
        let mut time_left = self.silence_max;
        loop {
            if let Some(ended) = self.wire.ended.pop_front() {
                if let Some(log) = &self.log {
                    log.add(&self.session.take_counters().nonconformities);
                }
                return Ok(ended);
            }
            self.turn(&mut time_left)?;
        }
    }

    /// Lets the server be for so long; what comes meanwhile is heard.
    pub fn pause(&mut self, time: Duration) -> Result<(), BlockingError> {
        let mut time_left = time;
        loop {
            match self.turn(&mut time_left) {
                Ok(()) => {}
                Err(BlockingError::Channel(ChannelError::Timeout)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Tells the session what happens next within `time_left`.
    fn turn(&mut self, time_left: &mut Duration) -> Result<(), BlockingError> {
        let Self { session, wire, stop, incoming, .. } = self;
        if let Some(error) = wire.failure.take() {
            self.hear_last(time_left)?;
            return self.break_off(error);
        }
        let Some(channel) = &mut wire.channel else { return Err(ChannelError::Closed.into()) };
        if std::mem::take(&mut wire.is_wanted) {
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

    /// Tells the session what a peer that takes no more bytes said before: the answer to a request
    /// that it did not want to read to the end. The kernel keeps it.
    fn hear_last(&mut self, time_left: &mut Duration) -> Result<(), BlockingError> {
        let Self { session, wire, stop, incoming, .. } = self;
        for _ in 0..LAST_READS_MAX {
            let Some(channel) = &mut wire.channel else { return Ok(()) };
            incoming.clear();
            match hear(&mut **channel, stop, time_left, incoming) {
                Ok(()) if !incoming.is_empty() => session.on_bytes(LINK, incoming, NOW, wire),
                Err(BlockingError::Stopped) => return Err(BlockingError::Stopped),
                // How it ended is known already, and better.
                Ok(()) | Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Tells the session that its connection broke, unless it has closed it meanwhile. The error
    /// is the caller's where no op ends by that.
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
        match wire.ended.is_empty() {
            true => Err(error.into()),
            false => Ok(()),
        }
    }
}

/// Waits for bytes, for one piece of `time_left`, and takes from that what it took. Nothing may
/// have come.
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
    is_wanted: bool,
    /// Of the last send.
    failure: Option<ChannelError>,
    detail: String,
    ended: VecDeque<Ended>,
}

impl Io for Wire {
    fn connect(&mut self, _: LinkKind) -> Link {
        self.is_wanted = true;
        LINK
    }

    fn send(&mut self, _: Link, bytes: &[u8]) {
        if let Some(channel) = &mut self.channel
            && let Err(error) = channel.send(bytes)
        {
            self.failure = Some(error);
        }
    }

    fn discard(&mut self, _: Link, _: u64) {
        // What is not wanted is handed over all the same.
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

    fn surplus(&mut self, _: OpKind) {
        // Whatever followed has ended the connection.
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use plimsoll_model::outcome::OpStatus;

    use super::*;

    const EPIPE: i32 = 32;
    const ECONNRESET: i32 = 104;

    /// Sends a byte and wants it back; several may be in flight.
    #[derive(Default)]
    struct Echo {
        link: Option<Link>,
        asked: VecDeque<(Ticket, u8)>,
    }

    fn outcome(status: OpStatus) -> Outcome {
        let (bytes_read, bytes_written) = (0, 0);
        Outcome { kind: OpKind(0), status, bytes_read, bytes_written, ambiguous: false }
    }

    impl Session for Echo {
        type Op = u8;

        fn kind(&self, _: &u8) -> OpKind {
            OpKind(0)
        }
        fn has_room(&self) -> bool {
            self.asked.len() < 8
        }
        fn issue(&mut self, ticket: Ticket, op: u8, _: Nanos, io: &mut impl Io) {
            self.asked.push_back((ticket, op));
            match self.link {
                Some(link) => io.send(link, &[op]),
                None => assert_eq!(io.connect(LinkKind::Stream), LINK),
            }
        }
        fn on_connected(&mut self, link: Link, _: Nanos, io: &mut impl Io) {
            self.link = Some(link);
            self.asked.iter().for_each(|(_, op)| io.send(link, &[*op]));
        }
        fn on_bytes(&mut self, _: Link, bytes: &[u8], _: Nanos, io: &mut impl Io) {
            // Zeros are chatter.
            for byte in bytes.iter().filter(|byte| **byte != 0) {
                let Some((ticket, asked)) = self.asked.pop_front() else { return };
                if asked != *byte {
                    io.explain(format_args!("{byte} is not {asked}"));
                    io.complete(ticket, outcome(OpStatus::Failed(ErrorClass::Corrupt)));
                } else {
                    io.complete(ticket, outcome(OpStatus::Ok));
                }
            }
        }
        fn on_discarded(&mut self, _: Link, _: u64, _: Nanos, _: &mut impl Io) {}
        fn on_eof(&mut self, link: Link, _: Nanos, io: &mut impl Io) {
            io.close(link);
            if let Some((ticket, _)) = self.asked.pop_front() {
                io.explain(format_args!("closed"));
                io.complete(ticket, outcome(OpStatus::Failed(ErrorClass::Transport)));
            }
        }
        fn on_failed(&mut self, _: Link, error: LinkError, _: Nanos, io: &mut impl Io) {
            if let Some((ticket, _)) = self.asked.pop_front() {
                io.explain(format_args!("{error}"));
                io.complete(ticket, outcome(OpStatus::Failed(error.class)));
            }
        }
        fn next_deadline(&self) -> Option<Nanos> {
            None
        }
        fn on_timer(&mut self, _: Nanos, _: &mut impl Io) {}
    }

    /// What a server does when it is listened to.
    type Answer = Box<dyn FnMut(&mut Vec<u8>) -> Result<Vec<u8>, ChannelError> + Send>;

    struct Fake {
        sent: Vec<u8>,
        takes_bytes: bool,
        answer: Answer,
        heard: Arc<Mutex<u32>>,
    }

    impl Channel for Fake {
        fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
            self.sent.extend_from_slice(bytes);
            match self.takes_bytes {
                true => Ok(()),
                false => Err(ChannelError::Failed(io::Error::from_raw_os_error(EPIPE))),
            }
        }
        fn receive(&mut self, into: &mut Vec<u8>, wait: Duration) -> Result<(), ChannelError> {
            assert!(wait <= STOP_HEARD_WITHIN);
            *self.heard.lock().unwrap() += 1;
            into.extend((self.answer)(&mut self.sent)?);
            Ok(())
        }
    }

    type Heard = Arc<Mutex<u32>>;

    fn blocking(
        answer: impl FnMut(&mut Vec<u8>) -> Result<Vec<u8>, ChannelError> + Send + 'static,
    ) -> (Blocking<Echo>, Heard, Arc<AtomicBool>) {
        let (heard, stop) = (Heard::default(), Arc::new(AtomicBool::new(false)));
        let (sent, answer) = (Vec::new(), Box::new(answer));
        let fake = Fake { sent, takes_bytes: true, answer, heard: Arc::clone(&heard) };
        (Blocking::new(Echo::default(), Box::new(fake), Arc::clone(&stop)), heard, stop)
    }

    /// The server takes no bytes, and these pieces lie in the socket.
    fn broken(pieces: &[&'static [u8]]) -> Blocking<Echo> {
        let mut pieces: VecDeque<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let answer =
            Box::new(move |_: &mut Vec<u8>| pieces.pop_front().ok_or(ChannelError::Closed));
        let fake = Fake { sent: Vec::new(), takes_bytes: false, answer, heard: Heard::default() };
        Blocking::new(Echo::default(), Box::new(fake), Arc::default())
    }

    fn echo(sent: &mut Vec<u8>) -> Result<Vec<u8>, ChannelError> {
        match sent.is_empty() {
            true => Err(ChannelError::Timeout),
            false => Ok(std::mem::take(sent)),
        }
    }

    fn is(result: Result<Ended, BlockingError>, part: &str) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn ops_are_done_one_by_one_or_several_at_once() {
        let (mut client, ..) = blocking(echo);
        assert_eq!(client.run(7).unwrap().outcome.status, OpStatus::Ok);
        for n in 1..4 {
            client.issue(Ticket(n), n as u8);
        }
        for n in 1..4 {
            assert_eq!(client.next_end().unwrap().ticket, Ticket(n));
        }
        client.pause(Duration::from_millis(250)).unwrap();
    }

    #[test]
    fn a_failure_is_told_in_the_sessions_words() {
        let (mut client, ..) = blocking(|_| Ok(vec![9]));
        let ended = client.run(7).unwrap();
        let failed = OpStatus::Failed(ErrorClass::Corrupt);
        assert_eq!((ended.outcome.status, &*ended.detail), (failed, "9 is not 7"));
        assert_eq!(client.run(9).unwrap().detail, "");
    }

    #[test]
    fn a_server_that_is_silent_or_merely_chats_is_given_up_after_the_same_time() {
        let pieces = (SILENCE_MAX.as_millis() / STOP_HEARD_WITHIN.as_millis()) as u32;
        let (mut silent, heard, _) = blocking(|_| Err(ChannelError::Timeout));
        is(silent.run(7), "no answer in time");
        assert_eq!(*heard.lock().unwrap(), pieces);
        let (mut chats, heard, _) = blocking(|_| Ok(vec![0; 9]));
        is(chats.run(7), "no answer in time");
        assert_eq!(*heard.lock().unwrap(), pieces);
        // Much that ends nothing is bounded too, however fast it comes.
        let (mut floods, heard, _) = blocking(|_| Ok(vec![0; 4_096]));
        is(floods.run(7), "no answer in time");
        assert_eq!(*heard.lock().unwrap(), 30_000);
    }

    #[test]
    fn a_stop_is_heard_within_one_piece_of_silence() {
        let (mut client, heard, stop) = blocking(|_| Err(ChannelError::Timeout));
        let raised = Arc::clone(&stop);
        let (mut stopped, ..) = blocking(move |_| {
            raised.store(true, Ordering::Relaxed);
            Err(ChannelError::Timeout)
        });
        stopped.stop = Arc::clone(&stop);
        is(stopped.run(7), "stopped");
        is(client.run(7), "stopped");
        assert_eq!(*heard.lock().unwrap(), 0);
    }

    #[test]
    fn what_becomes_of_the_connection_is_told_to_the_session_or_the_caller() {
        let (mut client, ..) = blocking(|_| Err(ChannelError::Closed));
        assert_eq!(client.run(7).unwrap().detail, "closed");
        is(client.run(7), "the server closed the connection");
        let reset = || ChannelError::Failed(io::Error::from_raw_os_error(ECONNRESET));
        let (mut client, ..) = blocking(move |_| Err(reset()));
        assert!(client.run(7).unwrap().detail.contains("Connection reset"));
        is(client.run(7), "the server closed the connection");
        let (mut client, ..) = blocking(|_| Err(ChannelError::Failed(io::Error::other("odd"))));
        is(client.run(7), "odd");
    }

    #[test]
    fn what_a_peer_said_before_it_took_no_more_bytes_is_heard() {
        let mut answered = broken(&[&[0], &[7]]);
        assert_eq!(answered.run(7).unwrap().outcome.status, OpStatus::Ok);
        is(answered.run(7), "the server closed the connection");
        for nothing in [&[][..], &[&[0][..]]] {
            assert!(broken(nothing).run(7).unwrap().detail.contains("Broken pipe"));
        }
        // Of chatter no more is read than a few pieces.
        let mut chats = broken(&[&[0][..]; LAST_READS_MAX + 1]);
        assert!(chats.run(7).unwrap().detail.contains("Broken pipe"));
    }
}
