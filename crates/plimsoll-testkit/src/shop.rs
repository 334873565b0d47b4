//! An application with a login form, a session in a cookie, a token for its API, and a log of what it
//! was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long `/slow` and `/landing` take. `/hop` leads to the latter, with a cookie that it wants.
pub const SLOW: Duration = Duration::from_millis(300);

/// A running shop; its threads end with their connections.
pub struct Shop {
    address: SocketAddr,
    state: Arc<Mutex<ShopState>>,
}

#[derive(Default)]
struct ShopState {
    issued: u64,
    forms: BTreeSet<String>,
    sessions: BTreeMap<String, String>,
    tokens: BTreeSet<String>,
    log: BTreeMap<(String, u16), u64>,
    logins: Vec<String>,
    connections: u64,
}

struct ShopReply {
    status: u16,
    fields: Vec<String>,
    body: String,
}

impl ShopReply {
    fn page(body: impl Into<String>) -> Self {
        Self { status: 200, fields: Vec::new(), body: body.into() }
    }

    fn refused(status: u16) -> Self {
        Self { status, ..Self::page("refused") }
    }

    fn leading_to(location: &str) -> Self {
        Self { status: 302, fields: vec![format!("Location: {location}")], ..Self::page("") }
    }

    fn with(mut self, field: String) -> Self {
        self.fields.push(field);
        self
    }
}

/// What the shop looks at.
struct ShopRequest {
    method: String,
    path: String,
    cookies: BTreeMap<String, String>,
    authorization: String,
    body: String,
}

impl Shop {
    /// Starts on a free port. A user's password is `pw of NAME`.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(ShopState::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { address, state }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Requests so far, by method with path and by status.
    pub fn log(&self) -> BTreeMap<(String, u16), u64> {
        lock(&self.state).log.clone()
    }

    /// Names of the users who logged in, in their order.
    pub fn logins(&self) -> Vec<String> {
        lock(&self.state).logins.clone()
    }

    /// Connections that brought a request.
    pub fn connections(&self) -> u64 {
        lock(&self.state).connections
    }

    /// Every token is void from now on, as if its time were over.
    pub fn expire_tokens(&self) {
        lock(&self.state).tokens.clear();
    }
}

fn lock(state: &Mutex<ShopState>) -> std::sync::MutexGuard<'_, ShopState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &TcpStream, state: &Mutex<ShopState>) {
    let mut reader = BufReader::new(stream);
    let mut is_new = true;
    while let Some(request) = read_request(&mut reader) {
        if matches!(request.path.as_str(), "/slow" | "/landing") {
            std::thread::sleep(SLOW);
        }
        let reply = {
            let mut state = lock(state);
            state.connections += u64::from(std::mem::take(&mut is_new));
            let reply = state.answer(&request);
            let line = format!("{} {}", request.method, request.path);
            *state.log.entry((line, reply.status)).or_default() += 1;
            reply
        };
        let fields: String = reply.fields.iter().map(|field| format!("{field}\r\n")).collect();
        let (status, length) = (reply.status, reply.body.len());
        let text = format!(
            "HTTP/1.1 {status} x\r\n{fields}Content-Length: {length}\r\n\r\n{}",
            reply.body
        );
        let mut stream = stream;
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// `None` when the client has left.
fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<ShopRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut parts = line.split_whitespace();
    let (method, path) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let (mut cookies, mut authorization, mut length) = (BTreeMap::new(), String::new(), 0);
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let Some((name, value)) = field.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "cookie" => {
                let pairs = value.split("; ").filter_map(|pair| pair.split_once('='));
                cookies.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            "authorization" => authorization = value.to_owned(),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    Some(ShopRequest { method, path, cookies, authorization, body })
}

impl ShopState {
    fn issue(&mut self, what: &str) -> String {
        self.issued += 1;
        format!("{what}-{}/&", self.issued)
    }

    fn answer(&mut self, request: &ShopRequest) -> ShopReply {
        let session = request.cookies.get("sid").and_then(|sid| self.sessions.get(sid)).cloned();
        match (request.method.as_str(), request.path.as_str(), session) {
            ("GET", "/login", _) => {
                let csrf = self.issue("csrf");
                self.forms.insert(csrf.clone());
                let field = csrf.replace('&', "&amp;");
                let form = format!("<form><input type=hidden name=csrf value=\"{field}\"></form>");
                ShopReply::page(form).with(format!("Set-Cookie: csrf={csrf}; Path=/login"))
            }
            ("POST", "/login", _) => self.log_in(request),
            ("GET", "/account", None) => ShopReply::leading_to("/login"),
            ("GET", "/account", Some(name)) => {
                let token = self.issue("token");
                self.tokens.insert(token.clone());
                ShopReply::page(format!("{{\"name\": \"{name}\", \"token\": \"{token}\"}}"))
            }
            ("GET", "/orders", _) => {
                let token = request.authorization.strip_prefix("Bearer ").unwrap_or_default();
                let is_valid = self.tokens.contains(token);
                if is_valid { ShopReply::page("your orders") } else { ShopReply::refused(401) }
            }
            ("POST", "/logout", Some(_)) => {
                self.sessions.remove(&request.cookies["sid"]);
                ShopReply::leading_to("bye").with("Set-Cookie: sid=; Max-Age=0; Path=/".to_owned())
            }
            ("GET", "/slow", _) => ShopReply::page("at last"),
            ("GET", "/hop", _) => {
                ShopReply::leading_to("/landing").with("Set-Cookie: hop=1; Path=/".to_owned())
            }
            ("GET", "/landing", _) if request.cookies.contains_key("hop") => {
                ShopReply::page("landed")
            }
            ("GET", "/bye", None) => ShopReply::page("bye"),
            _ => ShopReply::refused(404),
        }
    }

    fn log_in(&mut self, request: &ShopRequest) -> ShopReply {
        let decoded = |text: &str| {
            let bytes = plimsoll_protocol::percent_decoded(text);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let pairs = request.body.split('&').filter_map(|pair| pair.split_once('='));
        let form: BTreeMap<&str, String> =
            pairs.map(|(name, value)| (name, decoded(value))).collect();
        let of = |name: &str| form.get(name).cloned().unwrap_or_default();
        let (name, csrf) = (of("name"), of("csrf"));
        let has_form = self.forms.remove(&csrf) && request.cookies.get("csrf") == Some(&csrf);
        if !has_form || of("password") != format!("pw of {name}") {
            return ShopReply::refused(403);
        }
        let sid = self.issue("sid");
        self.logins.push(name.clone());
        self.sessions.insert(sid.clone(), name);
        ShopReply::leading_to("/account").with(format!("Set-Cookie: sid={sid}; Path=/; HttpOnly"))
    }
}
