//! A small server of language models that follows a script of acts and instants, and logs its
//! requests. A thread for each connection, which sleeps between acts.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::clock::now;

/// Connections that may wait to be accepted: a load opens hundreds at once.
const WAITING_MAX: i32 = 1_024;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";

/// One thing that the server does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Does nothing for this long.
    Wait(Duration),
    /// Has the kernel hold small packets back until earlier ones are acknowledged.
    Nagle,
    /// Writes these bytes at once.
    Write(String),
    /// An event with this text, which is escaped for JSON already.
    Text(String),
    /// An event with this as its data.
    Event(String),
    /// Waits until the client goes.
    Hold,
    /// Closes the connection.
    Close,
}

/// A request for an answer, as it came.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// From 0, over all connections.
    pub index: u64,
    /// Its connection, from 1 in the order of the server's accepts.
    pub connection: u64,
    /// From 0, on its connection.
    pub on_connection: u64,
    /// When all of it was there.
    pub at: Instant,
    /// Its body.
    pub body: String,
}

/// What was received.
#[derive(Debug, Default)]
pub struct Log {
    /// Requests for answers, in the order in which they came.
    pub requests: Vec<ReceivedRequest>,
    /// From a request to the first text of its answer, as the server wrote it.
    pub first_texts: Vec<Duration>,
    /// Connections that were accepted, with those of probes.
    pub connections: u64,
    open: u64,
    /// Most answers in progress at once.
    pub open_max: u64,
}

impl Log {
    /// Connections on which an answer was requested.
    pub fn connections_used(&self) -> usize {
        self.requests.iter().map(|request| request.connection).collect::<BTreeSet<_>>().len()
    }
}

type Script = dyn Fn(&ReceivedRequest) -> Vec<Act> + Send + Sync;

/// A server; it listens until its process ends.
pub struct Staged {
    /// Where it listens.
    pub url: String,
    log: Arc<Mutex<Log>>,
}

struct Shared {
    log: Arc<Mutex<Log>>,
    next: AtomicU64,
    script: Box<Script>,
}

impl Staged {
    /// Answers requests by `script`.
    pub fn new(script: impl Fn(&ReceivedRequest) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let script: Box<Script> = Box::new(script);
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(WAITING_MAX).unwrap();
        let listener = TcpListener::from(socket);
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Log::default()));
        let shared = Arc::new(Shared { log: Arc::clone(&log), next: AtomicU64::new(0), script });
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                let mut log = shared.log.lock().unwrap();
                log.connections += 1;
                let connection = log.connections;
                drop(log);
                std::thread::spawn(move || serve(stream, connection, &shared));
            }
        });
        Self { url, log }
    }

    /// What was received so far.
    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }
}

/// A good answer: the first of `chunks` after `first`, the others `interval` apart, a token each.
pub fn answer(first: Duration, interval: Duration, chunks: u64) -> Vec<Act> {
    let mut acts = vec![Act::Write(HEAD.to_owned()), Act::Wait(first)];
    for chunk in 0..chunks {
        if chunk > 0 {
            acts.push(Act::Wait(interval));
        }
        acts.push(Act::Text(" word".to_owned()));
    }
    acts.push(Act::Write(end(chunks)));
    acts
}

/// The data of an event with this text, which is escaped for JSON already.
pub fn text_event(text: &str) -> String {
    delta(&format!("{{\"content\":\"{text}\"}}"))
}

/// The data of an event with this `delta`, of servers that write every field of it.
pub fn delta(delta: &str) -> String {
    format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}"
    )
}

/// A head, and no end.
pub fn begin() -> Act {
    Act::Write(HEAD.to_owned())
}

/// Finish reason, usage and `[DONE]`, and the end of the body.
pub fn end(tokens: u64) -> String {
    let finish =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    let usage = format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":512,\"completion_tokens\":{tokens}}}}}\
         \n\ndata: [DONE]\n\n"
    );
    format!("{}0\r\n\r\n", chunk(&format!("{finish}{usage}")))
}

/// A reply that is no stream.
pub fn plain(status: &str, body: &str) -> Act {
    Act::Write(format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// An event with this data as the server writes it.
pub fn event(data: &str) -> String {
    chunk(&format!("data: {data}\n\n"))
}

fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

fn serve(stream: TcpStream, connection: u64, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let Ok(writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    let mut on_connection = 0;
    while let Some((kind, body)) = read_request(&mut reader) {
        let probe = match kind {
            Kind::Answer => None,
            Kind::Other => Some(plain("404 Not Found", "{\"error\":\"not found\"}")),
            Kind::Get => Some(plain("200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}")),
        };
        if let Some(reply) = probe {
            if play(&writer, &[reply], &mut || {}).is_none() {
                return;
            }
            continue;
        }
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        let request = ReceivedRequest { index, connection, on_connection, at: now(), body };
        on_connection += 1;
        let acts = (shared.script)(&request);
        let at = request.at;
        {
            let mut log = shared.log.lock().unwrap();
            log.requests.push(request);
            log.open += 1;
            log.open_max = log.open_max.max(log.open);
        }
        let mut texts = 0;
        let played = play(&writer, &acts, &mut || {
            if texts == 0 {
                shared.log.lock().unwrap().first_texts.push(at.elapsed());
            }
            texts += 1;
        });
        shared.log.lock().unwrap().open -= 1;
        if played.is_none() {
            return;
        }
    }
}

/// The kind of a request.
#[derive(Clone, Copy)]
enum Kind {
    Answer,
    /// Models, for all the server knows.
    Get,
    /// Whatever else a client may try.
    Other,
}

impl Kind {
    fn from_request_line(request_line: &str) -> Self {
        let path = request_line.split(' ').nth(1).unwrap_or_default();
        match (request_line.starts_with("GET"), path.ends_with("completions")) {
            (true, _) => Self::Get,
            (false, true) => Self::Answer,
            (false, false) => Self::Other,
        }
    }
}

/// The kind and the body of a request.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(Kind, String)> {
    let (mut line, mut kind, mut length) = (String::new(), None, 0);
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        kind.get_or_insert_with(|| Kind::from_request_line(&line));
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((kind?, String::from_utf8_lossy(&body).into_owned()))
}

/// `None` once the connection is gone. Calls `writes_text` before each text.
fn play(mut stream: &TcpStream, acts: &[Act], writes_text: &mut dyn FnMut()) -> Option<()> {
    for act in acts {
        match act {
            Act::Nagle => stream.set_nodelay(false).ok()?,
            Act::Wait(span) => std::thread::sleep(*span),
            Act::Write(bytes) => stream.write_all(bytes.as_bytes()).ok()?,
            Act::Text(text) => {
                writes_text();
                stream.write_all(event(&text_event(text)).as_bytes()).ok()?;
            }
            Act::Event(data) => stream.write_all(event(data).as_bytes()).ok()?,
            Act::Hold => {
                let _ = stream.read(&mut [0]);
                return None;
            }
            Act::Close => {
                let _ = stream.shutdown(Shutdown::Both);
                return None;
            }
        }
    }
    Some(())
}
