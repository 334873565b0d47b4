//! Asks servers for their own figures, over a connection apart from the load's: application servers
//! for threads busy and queue, an nginx of ours for its connections. Whoever does not answer, such as a server of somebody else's that knows no
//! status requests, is left alone; the disclosure says so.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_monitor::{NginxStatus, ServerProbe};
use plimsoll_protocols::app::wire::{
    HELLO_BYTES, Hello, REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, Status,
    VERSION, WELCOME_BYTES, Welcome, checksum,
};

use super::clock::Stopwatch;
use super::servers::Target;

/// URL scheme of the servers that can be asked.
const SCHEME: &str = "app";
/// Longest wait for the answers of all targets, connecting included: they are asked one after the
/// other, samples are a second apart, and a server whose processors are full needs a part of it.
const ANSWER_WAIT: Duration = Duration::from_millis(700);

/// The targets that answer, for the monitors. A single one needs no name, of several each has its
/// number among the targets.
pub fn probes(targets: &[Target]) -> Vec<ServerProbe> {
    let answering: Vec<(String, Asked)> = (1u32..)
        .zip(targets)
        .filter_map(|(number, target)| {
            let mut client = Asked::of(target)?;
            client.ask(ANSWER_WAIT)?;
            let key = if targets.len() > 1 { number.to_string() } else { String::new() };
            Some((key, client))
        })
        .collect();
    let wait = share_of_wait(answering.len());
    let probe =
        |(key, mut client): (String, Asked)| ServerProbe::new(key, move || client.ask(wait));
    answering.into_iter().map(probe).collect()
}

/// A server that tells of itself, in its own way.
enum Asked {
    App(StatusClient),
    Nginx(NginxStatus),
}

impl Asked {
    fn of(target: &Target) -> Option<Self> {
        let socket = target.process.as_ref().and_then(|process| process.status.clone());
        let nginx = socket.map(|socket| Self::Nginx(NginxStatus::at_socket(socket)));
        nginx.or_else(|| StatusClient::of(target).map(Self::App))
    }

    fn ask(&mut self, wait: Duration) -> Option<String> {
        match self {
            Self::App(client) => {
                client.wait = wait;
                client.ask()
            }
            Self::Nginx(status) => status.ask(wait),
        }
    }
}

/// What each of so many servers may take, so that no number of silent ones delays a sample by more
/// than a single one would.
fn share_of_wait(servers: usize) -> Duration {
    ANSWER_WAIT / u32::try_from(servers.max(1)).unwrap_or(u32::MAX)
}

/// What cannot be known of targets that do not answer.
pub fn not_told(targets: &[Target]) -> Vec<String> {
    let silent = targets
        .iter()
        .filter(|target| StatusClient::of(target).is_some_and(|mut client| client.ask().is_none()));
    silent
        .map(|target| {
            format!(
                "{}: how busy the server's threads are and how long its queue is, since it \
                 answers no status request",
                target.name()
            )
        })
        .collect()
}

/// One server, asked again and again.
struct StatusClient {
    address: SocketAddr,
    stream: Option<TcpStream>,
    asked: u32,
    /// Longest for an answer.
    wait: Duration,
}

impl StatusClient {
    fn of(target: &Target) -> Option<Self> {
        let resolved = &target.resolved;
        (resolved.url.scheme == SCHEME).then(|| Self::at(resolved.address))
    }

    const fn at(address: SocketAddr) -> Self {
        Self { address, stream: None, asked: 0, wait: ANSWER_WAIT }
    }

    /// The server's figures as Prometheus text, within its wait. After a failure the next
    /// question goes over a new connection.
    fn ask(&mut self) -> Option<String> {
        let bound = Bound { since: Stopwatch::start(), wait: self.wait };
        let answer = self.exchange(bound);
        if answer.is_err() {
            self.stream = None;
        }
        answer.ok()
    }

    fn exchange(&mut self, bound: Bound) -> io::Result<String> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => greet(self.address, bound)?,
        };
        self.asked = self.asked.wrapping_add(1);
        let text = question(&stream, self.asked, bound)?;
        self.stream = Some(stream);
        Ok(text)
    }
}

/// How long may still be waited.
#[derive(Clone, Copy)]
struct Bound {
    since: Stopwatch,
    wait: Duration,
}

impl Bound {
    fn left(self) -> io::Result<Duration> {
        let left = self.wait.saturating_sub(self.since.elapsed());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }

    /// `read_exact` with an end, however slowly the bytes come.
    fn read(self, mut stream: &TcpStream, bytes: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            stream.set_read_timeout(Some(self.left()?))?;
            match stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// What is sent fits into any socket's buffer.
    fn write(self, mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
        stream.set_write_timeout(Some(self.left()?))?;
        stream.write_all(bytes)
    }
}

fn greet(address: SocketAddr, bound: Bound) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, bound.left()?)?;
    stream.set_nodelay(true)?;
    let hello: [u8; HELLO_BYTES] = Hello { version: VERSION, client: 0, segment_bytes: 0 }.encode();
    bound.write(&stream, &hello)?;
    let mut welcome = [0; WELCOME_BYTES];
    bound.read(&stream, &mut welcome)?;
    match Welcome::decode(&welcome) {
        Ok(Welcome { refusal: None, .. }) => Ok(stream),
        Ok(_) | Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

fn question(stream: &TcpStream, id: u32, bound: Bound) -> io::Result<String> {
    let request = RequestHeader {
        payload_bytes: 0,
        kind: RequestType::Status,
        id,
        size: 0,
        offset: 0,
        seed: id,
        work: 0,
    };
    bound.write(stream, &request.encode())?;
    let mut header = [0; REPLY_HEADER_BYTES];
    bound.read(stream, &mut header)?;
    let odd = || io::Error::from(io::ErrorKind::InvalidData);
    let header = ReplyHeader::decode(&header).map_err(|_| odd())?;
    let ours = (RequestType::Status as u8, Status::Ok, id);
    if (header.kind, header.status, header.id) != ours {
        return Err(odd());
    }
    // Within the limit of a frame, as `decode` has seen to.
    let mut payload = vec![0; header.payload_bytes as usize];
    bound.read(stream, &mut payload)?;
    if header.checksum != checksum(id, &payload) {
        return Err(odd());
    }
    String::from_utf8(payload).map_err(|_| odd())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    const TEXT: &str = "plimsoll_app_threads 4\n";

    fn welcome() -> [u8; WELCOME_BYTES] {
        let refused = Welcome::refused(plimsoll_protocols::app::wire::Refusal::Full);
        Welcome { refusal: None, ..refused }.encode()
    }

    fn reply(id: u32, sum: u32) -> Vec<u8> {
        let header = ReplyHeader {
            payload_bytes: TEXT.len() as u32,
            kind: RequestType::Status as u8,
            status: Status::Ok,
            id,
            checksum: sum,
            server_ns: 0,
        };
        [&header.encode()[..], TEXT.as_bytes()].concat()
    }

    /// Lets one client in, then answers each question with what `answer` gives for its id, and
    /// ends the connection when that is nothing.
    fn server(
        answer: impl Fn(u32) -> Option<Vec<u8>> + Send + 'static,
    ) -> (StatusClient, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = StatusClient::at(listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = [0; HELLO_BYTES];
            stream.read_exact(&mut hello).unwrap();
            assert_eq!(Hello::decode(&hello).unwrap().segment_bytes, 0, "no segment is made");
            stream.write_all(&welcome()).unwrap();
            let mut request = [0; plimsoll_protocols::app::wire::REQUEST_HEADER_BYTES];
            while stream.read_exact(&mut request).is_ok() {
                let request = RequestHeader::decode(&request).unwrap();
                assert_eq!(request.kind, RequestType::Status);
                let Some(bytes) = answer(request.id) else { return };
                stream.write_all(&bytes).unwrap();
            }
        });
        (client, thread)
    }

    #[test]
    fn a_server_is_asked_again_over_the_same_connection() {
        let (mut client, thread) = server(|id| Some(reply(id, checksum(id, TEXT.as_bytes()))));
        assert_eq!(client.ask().as_deref(), Some(TEXT));
        assert_eq!(client.ask().as_deref(), Some(TEXT));
        drop(client);
        thread.join().unwrap();
    }

    #[test]
    fn answers_to_other_questions_and_broken_ones_are_none() {
        let (mut client, thread) = server(|id| Some(reply(id + 1, checksum(id, TEXT.as_bytes()))));
        assert_eq!(client.ask(), None);
        thread.join().unwrap();
        let (mut client, thread) = server(|id| Some(reply(id, 7)));
        assert_eq!(client.ask(), None);
        thread.join().unwrap();
        let (mut client, thread) = server(|_| None);
        assert_eq!(client.ask(), None);
        thread.join().unwrap();
    }

    #[test]
    fn servers_share_the_time_that_one_may_take() {
        assert_eq!(share_of_wait(0), ANSWER_WAIT);
        assert_eq!(share_of_wait(1), ANSWER_WAIT);
        for servers in [2, 7, 100] {
            assert!(share_of_wait(servers) * servers as u32 <= ANSWER_WAIT, "{servers}");
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = StatusClient::at(listener.local_addr().unwrap());
        let mut client = StatusClient { wait: share_of_wait(10), ..client };
        let waiting = Stopwatch::start();
        assert_eq!(client.ask(), None);
        let waited = waiting.elapsed();
        // The least is what matters; at most, a busy machine wakes it late.
        assert!(waited >= share_of_wait(10) && waited < 10 * ANSWER_WAIT, "{waited:?}");
    }

    #[test]
    fn a_server_that_is_silent_or_away_holds_nobody_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = StatusClient::at(listener.local_addr().unwrap());
        let waiting = Stopwatch::start();
        assert_eq!(client.ask(), None);
        assert!(waiting.elapsed() < 3 * ANSWER_WAIT, "{:?}", waiting.elapsed());
        drop(listener);
        assert_eq!(client.ask(), None);
    }
}
