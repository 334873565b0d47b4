//! Asks servers for their own figures, over a connection apart from the load's. Whoever does not
//! answer, such as a server of somebody else's that knows no status requests, is left alone; the
//! disclosure says so.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_protocol::host::AskStatus;
use plimsoll_servers::clock::Deadline;

use crate::wire::{
    HELLO_BYTES, Hello, REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, Status,
    VERSION, WELCOME_BYTES, Welcome, checksum,
};

/// One server, asked again and again.
pub(super) struct StatusClient {
    address: SocketAddr,
    stream: Option<TcpStream>,
    asked: u32,
}

impl StatusClient {
    pub(super) const fn at(address: SocketAddr) -> Self {
        Self { address, stream: None, asked: 0 }
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

impl AskStatus for StatusClient {
    /// After a failure the next question goes over a new connection.
    fn ask(&mut self, wait: Duration) -> Option<String> {
        let answer = self.exchange(Bound(Deadline::after(wait)));
        if answer.is_err() {
            self.stream = None;
        }
        answer.ok()
    }
}

/// How long may still be waited.
#[derive(Clone, Copy)]
struct Bound(Deadline);

impl Bound {
    fn left(self) -> io::Result<Duration> {
        let left = self.0.left();
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

    const ANSWER_WAIT: Duration = Duration::from_millis(700);
    const TEXT: &str = "plimsoll_app_threads 4\n";

    fn welcome() -> [u8; WELCOME_BYTES] {
        let refused = Welcome::refused(crate::wire::Refusal::Full);
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
            let mut request = [0; crate::wire::REQUEST_HEADER_BYTES];
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
        assert_eq!(client.ask(ANSWER_WAIT).as_deref(), Some(TEXT));
        assert_eq!(client.ask(ANSWER_WAIT).as_deref(), Some(TEXT));
        drop(client);
        thread.join().unwrap();
    }

    #[test]
    fn answers_to_other_questions_and_broken_ones_are_none() {
        let (mut client, thread) = server(|id| Some(reply(id + 1, checksum(id, TEXT.as_bytes()))));
        assert_eq!(client.ask(ANSWER_WAIT), None);
        thread.join().unwrap();
        let (mut client, thread) = server(|id| Some(reply(id, 7)));
        assert_eq!(client.ask(ANSWER_WAIT), None);
        thread.join().unwrap();
        let (mut client, thread) = server(|_| None);
        assert_eq!(client.ask(ANSWER_WAIT), None);
        thread.join().unwrap();
    }

    #[test]
    fn a_server_that_is_silent_or_away_holds_nobody_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = StatusClient::at(listener.local_addr().unwrap());
        let end = Deadline::after(3 * ANSWER_WAIT);
        assert_eq!(client.ask(ANSWER_WAIT), None);
        assert!(!end.left().is_zero());
        drop(listener);
        assert_eq!(client.ask(ANSWER_WAIT), None);
    }
}
