//! The reference web server: HTTP/1.1 with keep-alive and HTTP/2, files from memory or from a
//! directory, TLS if configured. One thread per core; connections are distributed round-robin, so that the cores
//! share them evenly however few they are.

pub mod caddy;
mod connection;
mod content;
mod delayed;
pub mod journey;
pub mod nginx;
mod padded;
mod tls;

use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use connection::Connections;
use plimsoll_servers::clock::Deadline;
use plimsoll_servers::delay::{DelayLaw, Work};
use plimsoll_servers::process::Process;
use plimsoll_servers::{Bounded, ServerError, Software, Stop, cores, listen};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

pub use content::{BYTES_MAX, FindBody, WebContent};
pub use tls::{Pem, TlsSource, self_signed};

/// Connections accepted and not yet taken over by their thread, per thread.
const QUEUED_CONNECTIONS_MAX: usize = 1024;
/// How long to leave accept alone when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// How long replies in progress may take to finish once stopping.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// What to serve and where.
#[derive(Clone, Debug)]
pub struct WebConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What to answer with.
    pub content: WebContent,
    /// One serving thread per core named here, pinned to it; empty: one thread, not pinned.
    pub cores: Vec<u32>,
    /// `https` with this certificate, or plain `http`.
    pub tls: Option<TlsSource>,
}

/// A web server that listens and does not serve yet.
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    scheme: &'static str,
    connections: Connections,
    cores: Vec<u32>,
}

impl WebServer {
    /// Listens. Connections queue up in the kernel until [`WebServer::serve_until`].
    pub fn bind(config: &WebConfig) -> Result<Self, ServerError> {
        let acceptor = |source| tls::acceptor(source, config.listen.ip());
        let tls = config.tls.as_ref().map(acceptor).transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let connections = Connections::new(content::Answers::new(&config.content)?, tls);
        let (listener, address) = listen(config.listen)
            .map_err(|source| ServerError::Listen { address: config.listen, source })?;
        Ok(Self { listener, address, scheme, connections, cores: config.cores.clone() })
    }

    /// The same server, whose replies are delayed by `law`. On cores of its own it never sleeps
    /// while there are requests.
    #[must_use]
    pub fn delayed_by(self, law: Arc<DelayLaw>) -> Self {
        Self { connections: self.connections.delayed_by(law), ..self }
    }

    /// The same server, with this much extra work for each request.
    #[must_use]
    pub fn with_work(self, work: Work) -> Self {
        Self { connections: self.connections.with_work(work), ..self }
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS:PORT/`.
    pub fn url(&self) -> String {
        format!("{}://{}/", self.scheme, self.address)
    }

    /// Serves until `stop` is requested, then lets replies in progress finish for up to a second.
    /// Blocks the calling thread, which becomes the first serving thread.
    pub fn serve_until(self, stop: &Stop) -> Result<(), ServerError> {
        let Self { listener, connections, cores, .. } = self;
        let mut pins = cores.iter().map(|core| vec![*core]);
        let first_pin = pins.next().unwrap_or_default();
        let mut threads = Vec::new();
        let mut senders = Vec::new();
        for pin in pins {
            let (sender, receiver) = mpsc::channel(QUEUED_CONNECTIONS_MAX);
            senders.push(sender);
            let (connections, stop) = (connections.clone(), stop.clone());
            threads.push(std::thread::spawn(move || {
                pinned_runtime(&pin).inspect_err(|_| stop.request())?.block_on(async {
                    connections.keep_awake();
                    serve_queued(receiver, &connections, &stop).await;
                });
                Ok(())
            }));
        }
        let served = pinned_runtime(&first_pin).and_then(|runtime| {
            runtime.block_on(async {
                if !first_pin.is_empty() {
                    connections.keep_awake();
                }
                accept(listener, &connections, &senders, stop).await
            })
        });
        stop.request();
        let mut outcomes: Vec<Result<(), ServerError>> = vec![served];
        for thread in threads {
            outcomes.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        outcomes.into_iter().collect()
    }
}

fn pinned_runtime(core: &[u32]) -> Result<Runtime, ServerError> {
    cores::pin_current_thread(core)
        .map_err(|source| ServerError::Pin { cores: cores::list(core), source })?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| ServerError::System { doing: "set up a serving thread", source })
}

/// Distributes connections round-robin: this thread, then each of `others`, and again.
async fn accept(
    listener: TcpListener,
    connections: &Connections,
    others: &[mpsc::Sender<TcpStream>],
    stop: &Stop,
) -> Result<(), ServerError> {
    let listener = tokio::net::TcpListener::from_std(listener)
        .map_err(|source| ServerError::System { doing: "watch the listening socket", source })?;
    let open = connections.on_this_thread();
    let accept_all = async {
        for index in (0..=others.len()).cycle() {
            let stream = next_connection(&listener).await;
            match index.checked_sub(1) {
                None => open.start(stream),
                Some(other) => {
                    // Errors mean that the stream or its thread is gone; the client sees it close.
                    let Ok(stream) = stream.into_std() else { continue };
                    let _ = others[other].send(stream).await;
                }
            }
        }
    };
    tokio::select! {
        () = accept_all => {}
        () = stop.requested() => {}
    }
    drop(listener);
    open.drain(DRAIN_MAX).await;
    Ok(())
}

async fn next_connection(listener: &tokio::net::TcpListener) -> tokio::net::TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // Out of descriptors, or a client that left while queueing: neither is the end.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_queued(
    mut receiver: mpsc::Receiver<TcpStream>,
    connections: &Connections,
    stop: &Stop,
) {
    let open = connections.on_this_thread();
    let take_all = async {
        while let Some(stream) = receiver.recv().await {
            if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                open.start(stream);
            }
        }
    };
    tokio::select! {
        () = take_all => {}
        () = stop.requested() => {}
    }
    open.drain(DRAIN_MAX).await;
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// How long it may take until it answers; it normally takes some 20 ms.
const START_WAIT: Duration = Duration::from_secs(10);
/// The absolute path, which must be one that a configuration file can name.
pub(super) fn document_root(program: &str, root: &Path) -> Result<String, ServerError> {
    let refused = |source| ServerError::Root { path: root.to_owned(), source };
    let absolute = root.canonicalize().map_err(refused)?;
    if !absolute.is_dir() {
        return Err(refused(io::ErrorKind::NotADirectory.into()));
    }
    let text = absolute.to_str().filter(|text| !text.contains(['$', '"', '\\', '\n']));
    text.map(str::to_owned).ok_or_else(|| {
        let why = format!(
            "{program} cannot take a path with $, quotes, backslashes or bytes outside UTF-8"
        );
        refused(io::Error::new(io::ErrorKind::InvalidInput, why))
    })
}

/// Writes a file of its configuration.
pub(super) fn write(path: &Path, text: &str) -> Result<(), ServerError> {
    std::fs::write(path, text)
        .map_err(|source| ServerError::System { doing: "write a configuration file", source })
}

/// Waits for the process id in its file, and then for an answer. nginx writes the file once all
/// sockets are bound: from then on an answer is from our server.
pub(super) fn wait_until_it_answers(
    process: &mut Process,
    address: SocketAddr,
    pid_file: &Path,
    (software, scheme): (&Software, &str),
) -> Result<(), ServerError> {
    let pid = process.id();
    process.wait_until(software, START_WAIT, |deadline| {
        let written = std::fs::read_to_string(pid_file).unwrap_or_default();
        written.trim().parse() == Ok(pid) && answers(address, scheme, deadline).unwrap_or(false)
    })
}

/// Whether an HTTP reply begins. With TLS an accepted connection has to do.
fn answers(address: SocketAddr, scheme: &str, deadline: Deadline) -> io::Result<bool> {
    let mut stream = Bounded::connect(address, deadline)?;
    if scheme == "https" {
        return Ok(true);
    }
    stream.write_all(
        b"HEAD /plimsoll-fileset.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )?;
    let mut start = [0; 7];
    stream.read_exact(&mut start)?;
    Ok(&start == b"HTTP/1.")
}
