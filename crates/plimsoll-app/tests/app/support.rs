//! A server on a thread, and a client that does one thing after another.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_app::server::{AppConfig, AppServer};
use plimsoll_app::wire::{
    Hello, REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, VERSION, WELCOME_BYTES,
    Welcome, checksum,
};
use plimsoll_testkit::clock::now;
use plimsoll_testkit::program::{ServerThread, wait_until};

/// Longest a reply may take, on a busy machine.
pub const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A server on a free port; it ends with this.
pub struct Running {
    pub address: SocketAddr,
    pub metrics_url: Option<String>,
    pub serving: ServerThread,
}

/// As the command line has it, on a free port.
pub fn config() -> AppConfig {
    AppConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}

pub fn serve(config: &AppConfig) -> Running {
    let server = AppServer::bind(config).unwrap();
    let (address, metrics_url) = (server.address(), server.metrics_url());
    let serving = ServerThread::new(move |stop| server.serve_until(stop));
    Running { address, metrics_url, serving }
}

impl Running {
    /// Ends it, and waits until it has ended.
    pub fn end(self) -> Duration {
        let begun = now();
        drop(self);
        begun.elapsed()
    }

    /// A client that has been let in, with a segment of that many bytes.
    pub fn client(&self, number: u32, segment_bytes: u64) -> Client {
        let mut client = self.stranger();
        client.send(&Hello { version: VERSION, client: number, segment_bytes }.encode());
        let welcome = client.welcome();
        assert_eq!((welcome.refusal, welcome.segment_bytes), (None, segment_bytes));
        client
    }

    /// A connection on which nothing was sent.
    pub fn stranger(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
        stream.set_write_timeout(Some(TIME_LIMIT)).unwrap();
        Client { stream }
    }

    /// The value of a metric, without its prefix, with its labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.client(u32::MAX, 0).status();
        let line = text.lines().find_map(|line| {
            line.strip_prefix("plimsoll_app_")?.strip_prefix(name)?.strip_prefix(' ')
        });
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }
}

/// One connection.
pub struct Client {
    pub stream: TcpStream,
}

impl Client {
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn welcome(&mut self) -> Welcome {
        let mut bytes = [0; WELCOME_BYTES];
        self.stream.read_exact(&mut bytes).unwrap();
        Welcome::decode(&bytes).unwrap()
    }

    pub fn reply(&mut self) -> (ReplyHeader, Vec<u8>) {
        let mut bytes = [0; REPLY_HEADER_BYTES];
        self.stream.read_exact(&mut bytes).unwrap();
        let header = ReplyHeader::decode(&bytes).unwrap();
        let mut payload = vec![0; header.payload_bytes as usize];
        self.stream.read_exact(&mut payload).unwrap();
        (header, payload)
    }

    /// One request and its reply.
    pub fn ask(&mut self, request: RequestHeader, payload: &[u8]) -> (ReplyHeader, Vec<u8>) {
        self.send(&frame(request, payload));
        let (header, answer) = self.reply();
        assert_eq!((header.kind, header.id), (request.kind as u8, request.id));
        (header, answer)
    }

    /// A processor request that takes at least so long, and not much longer on an idle machine;
    /// afterwards no service thread is at work.
    pub fn long_request(&mut self, duration: Duration) -> RequestHeader {
        let trial = RequestHeader { work: 500, ..request(RequestType::Processor) };
        // The shortest: whatever else ran on the machine made the others longer.
        let took_ns = (0..5).map(|_| self.ask(trial, b"").0.server_ns.max(1)).min().unwrap();
        wait_until("all service threads sleep", || {
            self.has_metric_line("plimsoll_app_threads_busy 0")
        });
        let work = u128::from(trial.work) * duration.as_nanos() / u128::from(took_ns);
        RequestHeader { work: work.clamp(1, 1_000_000) as u32, ..trial }
    }

    /// Whether the server's figures have this line.
    pub fn has_metric_line(&mut self, line: &str) -> bool {
        self.status().lines().any(|candidate| candidate == line)
    }

    pub fn status(&mut self) -> String {
        let (header, text) = self.ask(request(RequestType::Status), b"");
        assert_eq!(header.checksum, checksum(SEED, &text));
        String::from_utf8(text).unwrap()
    }

    /// No more is sent from here.
    pub fn hang_up(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Whether the server has ended the connection, without another byte.
    #[track_caller]
    pub fn check_ended(&mut self) {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = self.stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{rest:?}");
    }
}

const SEED: u32 = 0x1876;

/// An empty request of that type.
pub const fn request(kind: RequestType) -> RequestHeader {
    RequestHeader { payload_bytes: 0, kind, id: 77, size: 0, offset: 0, seed: SEED, work: 0 }
}

/// A request with its payload, as bytes.
pub fn frame(request: RequestHeader, payload: &[u8]) -> Vec<u8> {
    let header = RequestHeader { payload_bytes: payload.len() as u32, ..request };
    [&header.encode()[..], payload].concat()
}
