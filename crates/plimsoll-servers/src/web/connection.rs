//! One connection: TLS if wanted, then HTTP/1.1 until either side closes.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::content::Answers;

/// What every connection needs; cloning shares it.
#[derive(Clone)]
pub(super) struct Connections {
    answers: Arc<Answers>,
    tls: Option<TlsAcceptor>,
}

/// The connections of one thread, so that they can be drained.
pub(super) struct OpenConnections {
    shared: Connections,
    graceful: GracefulShutdown,
}

impl Connections {
    pub(super) fn new(answers: Answers, tls: Option<TlsAcceptor>) -> Self {
        Self { answers: Arc::new(answers), tls }
    }

    pub(super) fn on_this_thread(&self) -> OpenConnections {
        OpenConnections { shared: self.clone(), graceful: GracefulShutdown::new() }
    }
}

impl OpenConnections {
    /// Serves `stream` in a task of its own.
    pub(super) fn start(&self, stream: TcpStream) {
        // Without it a reply in two writes waits for the client's delayed ACK.
        let _ = stream.set_nodelay(true);
        let answers = Arc::clone(&self.shared.answers);
        let watcher = self.graceful.watcher();
        let service = hyper::service::service_fn(move |request| {
            let answers = Arc::clone(&answers);
            async move { answers.answer(request).await }
        });
        // A connection that fails ends; the client has seen it, and nobody here needs to know.
        match self.shared.tls.clone() {
            None => {
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                let watched = watcher.watch(served);
                tokio::spawn(async move { drop(watched.await) });
            }
            Some(tls) => {
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let io = TokioIo::new(stream);
                    let served = http1::Builder::new().serve_connection(io, service);
                    drop(watcher.watch(served).await);
                });
            }
        }
    }

    /// Lets replies in progress finish, for at most `wait`; idle connections close at once.
    pub(super) async fn drain(self, wait: Duration) {
        let _ = tokio::time::timeout(wait, self.graceful.shutdown()).await;
    }
}
