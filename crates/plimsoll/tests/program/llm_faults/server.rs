//! A small server of streamed answers that does what a test says, when it says it, and logs what
//! reaches it. A thread for each connection; the rest is sleep.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_testkit::clock::now;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";

/// One thing that the server does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Wait(Duration),
    /// Writes these bytes at once.
    Write(String),
    /// An event with this text.
    Text(String),
    /// Waits until the client goes.
    Hold,
    /// Closes the connection.
    Close,
}

/// A request for an answer, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// From 0, over all connections.
    pub(crate) index: u64,
    /// From 0, on its connection.
    pub(crate) on_connection: u64,
    pub(crate) at: Instant,
    pub(crate) body: String,
}

/// What has been seen.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) asked: Vec<Asked>,
    /// From a request to the first text of its answer, as the server wrote it.
    pub(crate) first_texts: Vec<Duration>,
    pub(crate) connections: u64,
    open: u64,
    /// Answers under way at once, at most.
    pub(crate) open_max: u64,
}

type Script = dyn Fn(&Asked) -> Vec<Act> + Send + Sync;

pub(crate) struct Staged {
    pub(crate) url: String,
    log: Arc<Mutex<Log>>,
}

struct Shared {
    log: Arc<Mutex<Log>>,
    next: AtomicU64,
    script: Box<Script>,
}

impl Staged {
    /// Answers requests as `script` says; listens until the test's process ends.
    pub(crate) fn new(script: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Log::default()));
        let script: Box<Script> = Box::new(script);
        let shared = Arc::new(Shared { log: Arc::clone(&log), next: AtomicU64::new(0), script });
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { url, log }
    }

    /// What has been seen so far.
    pub(crate) fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }
}

/// A good answer: the first of `chunks` after `first`, the others `gap` apart, a token each.
pub(crate) fn answer(first: Duration, gap: Duration, chunks: u64) -> Vec<Act> {
    let mut acts = vec![Act::Write(HEAD.to_owned()), Act::Wait(first)];
    for chunk in 0..chunks {
        if chunk > 0 {
            acts.push(Act::Wait(gap));
        }
        acts.push(Act::Text(" word".to_owned()));
    }
    acts.push(Act::Write(end(chunks)));
    acts
}

/// A head, and no end.
pub(crate) fn begin() -> Act {
    Act::Write(HEAD.to_owned())
}

/// Finish reason, usage and `[DONE]`, and the end of the body.
pub(crate) fn end(tokens: u64) -> String {
    let finish =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    let usage = format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":512,\"completion_tokens\":{tokens}}}}}\
         \n\ndata: [DONE]\n\n"
    );
    format!("{}0\r\n\r\n", chunk(&format!("{finish}{usage}")))
}

/// A reply that is no stream.
pub(crate) fn plain(status: &str, body: &str) -> Act {
    Act::Write(format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

fn serve(stream: TcpStream, shared: &Shared) {
    shared.log.lock().unwrap().connections += 1;
    let _ = stream.set_nodelay(true);
    let Ok(writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    let mut on_connection = 0;
    while let Some((is_post, body)) = read_request(&mut reader) {
        if !is_post {
            let models = plain("200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}");
            if play(&writer, &[models], &mut || {}).is_none() {
                return;
            }
            continue;
        }
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        let asked = Asked { index, on_connection, at: now(), body };
        on_connection += 1;
        let acts = (shared.script)(&asked);
        let at = asked.at;
        {
            let mut log = shared.log.lock().unwrap();
            log.asked.push(asked);
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

/// Whether it is a POST, and its body.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(bool, String)> {
    let (mut line, mut is_post, mut length) = (String::new(), None, 0);
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        is_post.get_or_insert(line.starts_with("POST"));
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((is_post?, String::from_utf8_lossy(&body).into_owned()))
}

/// `None` once the connection is gone. Calls `writes_text` before each text.
fn play(mut stream: &TcpStream, acts: &[Act], writes_text: &mut dyn FnMut()) -> Option<()> {
    for act in acts {
        match act {
            Act::Wait(span) => std::thread::sleep(*span),
            Act::Write(bytes) => stream.write_all(bytes.as_bytes()).ok()?,
            Act::Text(text) => {
                writes_text();
                let event = format!(
                    "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\
                     \"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\
                     \"finish_reason\":null}}]}}\n\n"
                );
                stream.write_all(chunk(&event).as_bytes()).ok()?;
            }
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
