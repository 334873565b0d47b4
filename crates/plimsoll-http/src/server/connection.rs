//! One connection: TLS if wanted, then HTTP/1.1 until either side closes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::content::{Answers, Body};
use super::delayed::{Closing, Requests, Witnessed};
use plimsoll_servers::delay::{DelayLaw, Work};

/// What every connection needs; cloning shares it.
#[derive(Clone)]
pub(super) struct Connections {
    answers: Arc<Answers>,
    tls: Option<TlsAcceptor>,
    delay: Option<Arc<DelayLaw>>,
    work: Work,
}

/// The connections of one thread, so that they can be drained.
pub(super) struct OpenConnections {
    shared: Connections,
    graceful: GracefulShutdown,
}

impl Connections {
    pub(super) fn new(answers: Answers, tls: Option<TlsAcceptor>) -> Self {
        Self { answers: Arc::new(answers), tls, delay: None, work: Work::default() }
    }

    /// Holds every reply by `law`.
    pub(super) fn delayed_by(self, law: Arc<DelayLaw>) -> Self {
        Self { delay: Some(law), ..self }
    }

    /// Does so much work besides for each request.
    pub(super) fn with_work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// On a thread that may stay awake on a core of its own, where replies are held, it does.
    pub(super) fn keep_awake(&self) {
        if let Some(law) = self.delay.clone() {
            tokio::spawn(async move { law.keep_awake().await });
        }
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
        let (answers, work) = (Arc::clone(&self.shared.answers), self.shared.work);
        match &self.shared.delay {
            None => self.serve(
                stream,
                service_fn(move |request| {
                    let answers = Arc::clone(&answers);
                    async move {
                        work.spend();
                        answers.answer(request).await
                    }
                }),
                None,
            ),
            Some(law) => {
                let requests = Requests::new(Arc::clone(law));
                let stream = Witnessed::new(stream, Arc::clone(&requests));
                let held = Some(Arc::clone(&requests));
                self.serve(
                    stream,
                    service_fn(move |request| {
                        let passage = requests.arrive();
                        let (answers, requests) = (Arc::clone(&answers), Arc::clone(&requests));
                        async move {
                            let reply = answers.answer(request).await;
                            requests.hold(passage).await;
                            reply
                        }
                    }),
                    held,
                );
            }
        }
    }

    /// A connection that fails ends; the client has seen it, and nobody here needs to know.
    fn serve<I, S>(&self, stream: I, service: S, held: Option<Arc<Requests>>)
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
        S: Send + 'static,
        S::Future: Send + 'static,
    {
        let watcher = self.graceful.watcher();
        match self.shared.tls.clone() {
            None => {
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                let watched = watcher.watch(served);
                tokio::spawn(async move { drop(watched.await) });
            }
            Some(tls) => {
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let io = TokioIo::new(Closing::new(stream, held));
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
