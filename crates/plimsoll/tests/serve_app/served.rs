//! The server as a child, and a client that does one thing after another.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use plimsoll_app::wire::{
    Hello, REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, VERSION, WELCOME_BYTES,
    Welcome,
};

use plimsoll_testkit::program::{Ended, command, wait_for};

/// Longest a reply may take, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A server that ends with this.
pub struct Served {
    child: Option<Child>,
    out: BufReader<ChildStdout>,
    /// `127.0.0.1:PORT`.
    pub address: String,
}

/// The command of a server on a free port that ends with its standard input.
pub fn serve(flags: &[&str]) -> Command {
    let mut command = command(&["serve", "app", "--listen", "127.0.0.1:0", "--stop-with-stdin"]);
    command.args(flags);
    command
}

impl Served {
    pub fn with(flags: &[&str]) -> Self {
        Self::start(serve(flags))
    }

    /// Starts a command that becomes a server.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        out.read_line(&mut said).unwrap();
        let Some(url) = said.trim().strip_prefix("listening on app://") else {
            let ended = wait_for(child);
            panic!("it said {said:?} and {ended:?}");
        };
        let address = url.trim_end_matches('/').to_owned();
        Self { child: Some(child), out, address }
    }

    /// The next line it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }

    /// What the system says of it, in `/proc/PID/NAME`.
    pub fn proc(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child().id())).unwrap()
    }

    /// Lets it end by itself, as its standard input does.
    pub fn end(mut self) -> Ended {
        let mut child = self.child.take().unwrap();
        drop(child.stdin.take());
        wait_for(child)
    }

    /// Waits for an end that something else brought about.
    pub fn ended(mut self) -> Ended {
        wait_for(self.child.take().unwrap())
    }

    pub fn stranger(&self) -> Client {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
        stream.set_write_timeout(Some(TIME_LIMIT)).unwrap();
        Client { stream }
    }

    /// A client that asks to be let in, and the answer.
    pub fn client(&self, number: u32, segment_bytes: u64) -> (Client, Welcome) {
        let mut client = self.stranger();
        let hello = Hello { version: VERSION, client: number, segment_bytes };
        client.stream.write_all(&hello.encode()).unwrap();
        let mut bytes = [0; WELCOME_BYTES];
        client.stream.read_exact(&mut bytes).unwrap();
        (client, Welcome::decode(&bytes).unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Its standard input ends with the handle; a killed one cannot wait for that.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One connection.
pub struct Client {
    pub stream: TcpStream,
}

impl Client {
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

/// A request of that type that asks for nothing yet.
pub const fn request(kind: RequestType) -> RequestHeader {
    RequestHeader { payload_bytes: 0, kind, id: 1, size: 0, offset: 0, seed: 0, work: 0 }
}
