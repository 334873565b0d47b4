//! A connection whose replies are held by a delay law: when each was handed to the kernel is seen
//! where that happens, at the socket, below TLS.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use plimsoll_servers::delay::{DelayLaw, Passage, now_ns};

/// The requests of one connection, one after the other.
pub(super) struct Requests {
    law: Arc<DelayLaw>,
    /// The reply that may be on its way out, and the last instant at which bytes of it left.
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

/// A socket that says when bytes were handed to the kernel.
pub(super) struct Witnessed {
    stream: TcpStream,
    requests: Arc<Requests>,
}

impl Witnessed {
    pub(super) fn new(stream: TcpStream, requests: Arc<Requests>) -> Self {
        Self { stream, requests }
    }

    fn seen(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(_))) {
            self.requests.wrote();
        }
        written
    }
}

/// A TLS connection: the alert it writes when it closes belongs to no reply.
pub(super) struct Closing<S> {
    stream: S,
    /// Of a connection whose replies are held.
    requests: Option<Arc<Requests>>,
}

impl<S> Closing<S> {
    pub(super) fn new(stream: S, requests: Option<Arc<Requests>>) -> Self {
        Self { stream, requests }
    }
}

impl Drop for Witnessed {
    fn drop(&mut self) {
        self.requests.settle();
    }
}

impl AsyncRead for Witnessed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Witnessed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.seen(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.seen(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Closing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Closing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(requests) = &self.requests {
            requests.settle();
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
