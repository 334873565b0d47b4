//! One connection: TLS if configured, then HTTP/1.1 until either side closes. A delay law may
//! delay its replies; when each was handed to the kernel is observed at the socket, below TLS.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use plimsoll_servers::delay::{DelayLaw, Passage, Work, now_ns};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::content::{Answers, Body};

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
                let stream = Watched::socket(stream, Arc::clone(&requests));
                let delayed = Some(Arc::clone(&requests));
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
                    delayed,
                );
            }
        }
    }

    /// A connection that fails ends; the client notices, and the server need not report it.
    fn serve<I, S>(&self, stream: I, service: S, delayed: Option<Arc<Requests>>)
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
                    let io = TokioIo::new(Watched::tls(stream, delayed));
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

/// The requests of one connection, one after the other.
pub(super) struct Requests {
    law: Arc<DelayLaw>,
    /// The reply that may be in transmission, and the last instant at which bytes of it left.
    reply: Mutex<Option<(Passage, Option<u64>)>>,
}

impl Requests {
    pub(super) fn new(law: Arc<DelayLaw>) -> Arc<Self> {
        Arc::new(Self { law, reply: Mutex::new(None) })
    }

    /// A request has arrived. Whatever left before it was the reply to the one before.
    pub(super) fn arrive(&self) -> Passage {
        self.settle();
        self.law.arrive()
    }

    /// Waits until the reply leaves; what is written from now on is that reply.
    pub(super) async fn hold(&self, passage: Passage) {
        self.law.hold(passage).await;
        *self.reply() = Some((passage, None));
    }

    fn wrote(&self) {
        if let Some((_, sent_ns)) = self.reply().as_mut() {
            *sent_ns = Some(now_ns());
        }
    }

    /// Writes down the reply that left last, if any did.
    fn settle(&self) {
        if let Some((passage, Some(sent_ns))) = self.reply().take() {
            self.law.sent(passage, sent_ns);
        }
    }

    fn reply(&self) -> MutexGuard<'_, Option<(Passage, Option<u64>)>> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream of a connection whose replies may be delayed: its socket, which records when bytes were
/// handed to the kernel, or TLS on it, whose alert at its close belongs to no reply.
pub(super) struct Watched<S> {
    stream: S,
    /// Of a connection whose replies are delayed.
    requests: Option<Arc<Requests>>,
    is_socket: bool,
}

impl Watched<TcpStream> {
    pub(super) fn socket(stream: TcpStream, requests: Arc<Requests>) -> Self {
        Self { stream, requests: Some(requests), is_socket: true }
    }
}

impl<S> Watched<S> {
    pub(super) fn tls(stream: S, requests: Option<Arc<Requests>>) -> Self {
        Self { stream, requests, is_socket: false }
    }

    fn note_written(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let requests = self.requests.as_ref().filter(|_| self.is_socket);
        if let (Poll::Ready(Ok(_)), Some(requests)) = (&written, requests) {
            requests.wrote();
        }
        written
    }

    fn settle(&self) {
        if let Some(requests) = &self.requests {
            requests.settle();
        }
    }
}

impl<S> Drop for Watched<S> {
    fn drop(&mut self) {
        self.settle();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note_written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.settle();
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
