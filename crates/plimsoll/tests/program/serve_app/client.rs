//! A client that does one thing after another.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_app::wire::{
    Hello, REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, VERSION, WELCOME_BYTES,
    Welcome,
};

use plimsoll_testkit::program::Served;

/// Longest a reply may take, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// One connection.
pub struct Client {
    pub stream: TcpStream,
}

impl Client {
    /// Sends the greeting and reads the answer.
    pub fn greeted(server: &Served, number: u32, segment_bytes: u64) -> (Self, Welcome) {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
        stream.set_write_timeout(Some(TIME_LIMIT)).unwrap();
        let hello = Hello { version: VERSION, client: number, segment_bytes };
        stream.write_all(&hello.encode()).unwrap();
        let mut bytes = [0; WELCOME_BYTES];
        stream.read_exact(&mut bytes).unwrap();
        (Self { stream }, Welcome::decode(&bytes).unwrap())
    }

    /// One request and the head of its reply.
    pub fn ask(&mut self, request: RequestHeader, payload: &[u8]) -> ReplyHeader {
        self.exchange(request, payload).0
    }

    /// The server's figures.
    pub fn status(&mut self) -> String {
        String::from_utf8(self.exchange(request(RequestType::Status), b"").1).unwrap()
    }

    fn exchange(&mut self, request: RequestHeader, payload: &[u8]) -> (ReplyHeader, Vec<u8>) {
        let request = RequestHeader { payload_bytes: payload.len() as u32, ..request };
        self.stream.write_all(&[&request.encode()[..], payload].concat()).unwrap();
        let mut bytes = [0; REPLY_HEADER_BYTES];
        self.stream.read_exact(&mut bytes).unwrap();
        let header = ReplyHeader::decode(&bytes).unwrap();
        let mut rest = vec![0; header.payload_bytes as usize];
        self.stream.read_exact(&mut rest).unwrap();
        (header, rest)
    }
}

/// A request of that type, without parameters.
pub const fn request(kind: RequestType) -> RequestHeader {
    RequestHeader { payload_bytes: 0, kind, id: 1, size: 0, offset: 0, seed: 0, work: 0 }
}
