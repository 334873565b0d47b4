//! One connection: TLS if configured, then HTTP/1.1 or, if the client begins with its preface,
//! HTTP/2, until either side closes. A delay law may delay its replies.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use plimsoll_servers::delay::{DelayLaw, Work};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::content::Answers;
use super::delayed::{DelayedBody, Requests, STREAMS_MAX, Watched};

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

    /// Does this much extra work for each request.
    pub(super) fn with_work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// If replies are delayed, keeps the thread awake if it may stay awake on its own core.
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
                let delayed = Some(Arc::clone(&requests));
                let stream = match &self.shared.tls {
                    None => Watched::socket(stream, Arc::clone(&requests)),
                    Some(_) => Watched::below_tls(stream, Arc::clone(&requests)),
                };
                self.serve(
                    stream,
                    service_fn(move |request: Request<Incoming>| {
                        let version = request.version();
                        let passage = requests.arrive(version);
                        let (answers, requests) = (Arc::clone(&answers), Arc::clone(&requests));
                        async move {
                            let Ok(reply) = answers.answer(request).await;
                            Ok(match version {
                                Version::HTTP_2 => {
                                    reply.map(|body| requests.delayed_body(passage, body))
                                }
                                _ => {
                                    requests.hold(passage).await;
                                    reply.map(DelayedBody::from)
                                }
                            })
                        }
                    }),
                    delayed,
                );
            }
        }
    }

    /// A connection that fails ends; the client notices, and the server need not report it.
    fn serve<I, S, B>(&self, stream: I, service: S, delayed: Option<Arc<Requests>>)
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        S: Send + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let watcher = self.graceful.watcher();
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http2().max_concurrent_streams(STREAMS_MAX);
        match self.shared.tls.clone() {
            None => {
                let served = http.serve_connection(TokioIo::new(stream), service).into_owned();
                let watched = watcher.watch(served);
                tokio::spawn(async move { drop(watched.await) });
            }
            Some(tls) => {
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let io = TokioIo::new(Watched::tls(stream, delayed));
                    let served = http.serve_connection(io, service).into_owned();
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
