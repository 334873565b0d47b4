//! Asks servers for their own figures, over a connection apart from the load's. A server that does
//! not answer, such as another implementation without status requests, is skipped; the disclosure
//! says so.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_protocol::host::AskStatus;
use plimsoll_servers::Bounded;
use plimsoll_servers::clock::Deadline;

use crate::wire::{
    HELLO_BYTES, Hello, REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, Status,
    VERSION, WELCOME_BYTES, Welcome, checksum,
};

/// One server, polled repeatedly.
pub(super) struct StatusClient {
    address: SocketAddr,
    stream: Option<Bounded<TcpStream>>,
    requests: u32,
}

impl StatusClient {
    pub(super) const fn new(address: SocketAddr) -> Self {
        Self { address, stream: None, requests: 0 }
    }

    fn exchange(&mut self, deadline: Deadline) -> io::Result<String> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => greet(self.address, deadline)?,
        };
        stream.deadline = deadline;
        self.requests = self.requests.wrapping_add(1);
        let text = question(&mut stream, self.requests)?;
        self.stream = Some(stream);
        Ok(text)
    }
}

impl AskStatus for StatusClient {
    /// After a failure the next question goes over a new connection.
    fn ask(&mut self, wait: Duration) -> Option<String> {
        self.exchange(Deadline::after(wait)).ok()
    }
}

fn greet(address: SocketAddr, deadline: Deadline) -> io::Result<Bounded<TcpStream>> {
    let mut stream = Bounded::connect(address, deadline)?;
    let hello: [u8; HELLO_BYTES] = Hello { version: VERSION, client: 0, segment_bytes: 0 }.encode();
    stream.write_all(&hello)?;
    let mut welcome = [0; WELCOME_BYTES];
    stream.read_exact(&mut welcome)?;
    match Welcome::decode(&welcome) {
        Ok(Welcome { refusal: None, .. }) => Ok(stream),
        Ok(_) | Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

fn question(stream: &mut Bounded<TcpStream>, id: u32) -> io::Result<String> {
    let request = RequestHeader {
        payload_bytes: 0,
        kind: RequestType::Status,
        id,
        size: 0,
        offset: 0,
        seed: id,
        work: 0,
    };
    stream.write_all(&request.encode())?;
    let mut header = [0; REPLY_HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let odd = || io::Error::from(io::ErrorKind::InvalidData);
    let header = ReplyHeader::decode(&header).map_err(|_| odd())?;
    let ours = (RequestType::Status as u8, Status::Ok, id);
    if (header.kind, header.status, header.id) != ours {
        return Err(odd());
    }
    // `decode` has checked that it is within the limit of a frame.
    let mut payload = vec![0; header.payload_bytes as usize];
    stream.read_exact(&mut payload)?;
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

    /// Admits one client, answers each request with `answer` of its id, and closes the connection
    /// when that is `None`.
    fn server(
        answer: impl Fn(u32) -> Option<Vec<u8>> + Send + 'static,
    ) -> (StatusClient, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = StatusClient::new(listener.local_addr().unwrap());
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
        let mut client = StatusClient::new(listener.local_addr().unwrap());
        let end = Deadline::after(3 * ANSWER_WAIT);
        assert_eq!(client.ask(ANSWER_WAIT), None);
        assert!(!end.left().is_zero());
        drop(listener);
        assert_eq!(client.ask(ANSWER_WAIT), None);
    }
}
