//! A web server that answers every request, and records it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers every request with 200, or, where its path begins with a number, with that status.
pub struct Listening {
    pub url: String,
    traffic: Arc<Mutex<Traffic>>,
}

/// Received requests.
#[derive(Default)]
struct Traffic {
    /// How often each `METHOD target` came with each body.
    requests: BTreeMap<(String, String), u64>,
    /// Lines of all headers.
    fields: BTreeSet<String>,
    connections: u64,
}

impl Listening {
    pub fn start() -> Self {
        Self::start_slow(Duration::ZERO)
    }

    /// Each reply is delayed by this.
    pub fn start_slow(delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let traffic = Arc::<Mutex<Traffic>>::default();
        let all = Arc::clone(&traffic);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                all.lock().unwrap().connections += 1;
                let all = Arc::clone(&all);
                std::thread::spawn(move || answer(stream, &all, delay));
            }
        });
        Self { url, traffic }
    }

    #[track_caller]
    pub fn saw(&self, line: &str) {
        let traffic = self.traffic.lock().unwrap();
        assert!(traffic.fields.contains(line), "{line:?} is not among {:?}", traffic.fields);
    }

    /// How often each request came with each body.
    pub fn requests(&self) -> BTreeMap<(String, String), u64> {
        self.traffic.lock().unwrap().requests.clone()
    }

    pub fn connections(&self) -> u64 {
        self.traffic.lock().unwrap().connections
    }
}

fn answer(mut stream: TcpStream, traffic: &Mutex<Traffic>, delay: Duration) {
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        received.extend_from_slice(&buffer[..count]);
        while let Some((head, body, whole)) = request(&received) {
            let mut lines = head.lines();
            let request_line =
                lines.next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
            let has_body = !request_line.starts_with("HEAD ");
            let path = request_line.split(' ').nth(1).unwrap_or_default().to_owned();
            {
                let mut traffic = traffic.lock().unwrap();
                traffic.fields.extend(lines.map(str::to_owned));
                *traffic.requests.entry((request_line, body)).or_default() += 1;
            }
            received.drain(..whole);
            std::thread::sleep(delay);
            let reply = format!("HTTP/1.1 {} X\r\nContent-Length: 2\r\n\r\nok", status(&path));
            let length = if has_body { reply.len() } else { reply.len() - 2 };
            if stream.write_all(&reply.as_bytes()[..length]).is_err() {
                return;
            }
        }
    }
}

/// The first request, when it is complete: header, body, and its size in bytes.
fn request(received: &[u8]) -> Option<(String, String, usize)> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let whole = end + 4 + length.map_or(0, |text| text.parse::<usize>().unwrap());
    let body = received.get(end + 4..whole)?;
    Some((head, String::from_utf8_lossy(body).into_owned(), whole))
}

fn status(path: &str) -> u16 {
    let number = path.trim_start_matches('/').split(['/', '?']).next();
    number
        .and_then(|text| text.parse().ok())
        .filter(|code| (200..600).contains(code))
        .unwrap_or(200)
}
