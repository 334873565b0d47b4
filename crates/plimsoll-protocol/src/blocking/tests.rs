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
    expected: VecDeque<(Ticket, u8)>,
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
        self.expected.len() < 8
    }
    fn issue(&mut self, ticket: Ticket, op: u8, _: Nanos, io: &mut impl Io) {
        self.expected.push_back((ticket, op));
        match self.link {
            Some(link) => io.send(link, &[op]),
            None => assert_eq!(io.connect(LinkKind::Stream), LINK),
        }
    }
    fn on_connected(&mut self, link: Link, _: Nanos, io: &mut impl Io) {
        self.link = Some(link);
        self.expected.iter().for_each(|(_, op)| io.send(link, &[*op]));
    }
    fn on_bytes(&mut self, _: Link, bytes: &[u8], _: Nanos, io: &mut impl Io) {
        // Zeros are chatter.
        for byte in bytes.iter().filter(|byte| **byte != 0) {
            let Some((ticket, expected)) = self.expected.pop_front() else { return };
            if expected != *byte {
                io.explain(format_args!("{byte} is not {expected}"));
                io.complete(ticket, outcome(OpStatus::Failed(ErrorClass::Corrupt)));
            } else {
                io.complete(ticket, outcome(OpStatus::Ok));
            }
        }
    }
    fn on_discarded(&mut self, _: Link, _: u64, _: Nanos, _: &mut impl Io) {}
    fn on_eof(&mut self, link: Link, _: Nanos, io: &mut impl Io) {
        io.close(link);
        if let Some((ticket, _)) = self.expected.pop_front() {
            io.explain(format_args!("closed"));
            io.complete(ticket, outcome(OpStatus::Failed(ErrorClass::Transport)));
        }
    }
    fn on_failed(&mut self, _: Link, error: LinkError, _: Nanos, io: &mut impl Io) {
        if let Some((ticket, _)) = self.expected.pop_front() {
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
    let answer = Box::new(move |_: &mut Vec<u8>| pieces.pop_front().ok_or(ChannelError::Closed));
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
