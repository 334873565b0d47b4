//! Replies that a delay law delays, and when each was handed to the kernel: observed at the socket,
//! below TLS.
//!
//! Replies of HTTP/1.1 leave one after the other: a reply ends with the last bytes before the next
//! request. Those of HTTP/2 are told apart by the frames that are written. There the head leaves at
//! once and the body when the law says, so that a client that takes the head for the reply is
//! found out.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::Version;
use hyper::body::{Frame, SizeHint};
use plimsoll_servers::delay::{DelayLaw, Passage, now_ns};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::content::Body;
use crate::h2::frame::{flag, kind};
use crate::h2::reader::{Cut, FrameReader};

/// Requests that a connection of HTTP/2 may have in progress: more than load tools use.
pub(super) const STREAMS_MAX: u32 = 1_000;

/// The requests of one connection.
pub(super) struct Requests {
    law: Arc<DelayLaw>,
    replies: Mutex<Replies>,
}

/// Replies that have not been logged.
struct Replies {
    /// Of HTTP/1.1, one after the other: the one that may be in transmission, and the last instant
    /// at which bytes of it left.
    http1: Option<(Passage, Option<u64>)>,
    /// Of HTTP/2; `None` once a request has come over HTTP/1.1.
    streams: Option<Streams>,
    /// When bytes were last handed to the kernel.
    wrote_ns: u64,
}

/// The streams of a connection, whose numbers are those of a client that leaves none out.
#[derive(Default)]
struct Streams {
    count: u32,
    /// Replies that have not left, by number.
    open: VecDeque<(u32, Passage)>,
    written: FrameReader,
}

impl Requests {
    pub(super) fn new(law: Arc<DelayLaw>) -> Arc<Self> {
        let streams = Some(Streams::default());
        let replies = Replies { http1: None, streams, wrote_ns: 0 };
        Arc::new(Self { law, replies: Mutex::new(replies) })
    }

    /// A request has arrived. Over HTTP/1.1, what left before it was the reply to the one before.
    pub(super) fn arrive(&self, version: Version) -> Passage {
        let is_http2 = version == Version::HTTP_2;
        if !is_http2 {
            self.settle();
        }
        let passage = self.law.arrive();
        let mut replies = self.replies();
        match &mut replies.streams {
            Some(streams) if is_http2 => streams.add(passage),
            _ => replies.streams = None,
        }
        passage
    }

    /// Waits until a reply of HTTP/1.1 leaves; what is written from now on is that reply.
    pub(super) async fn hold(&self, passage: Passage) {
        self.law.hold(passage).await;
        self.replies().http1 = Some((passage, None));
    }

    /// The body of a reply of HTTP/2, which leaves when the law says.
    pub(super) fn delayed_body(&self, passage: Passage, body: Body) -> DelayedBody {
        let law = Arc::clone(&self.law);
        let wait: Wait = Box::pin(async move { law.hold(passage).await });
        DelayedBody { wait: Some(wait), body }
    }

    /// Bytes were handed to the kernel.
    fn wrote(&self) {
        let mut replies = self.replies();
        replies.wrote_ns = now_ns();
        let wrote_ns = replies.wrote_ns;
        if let Some((_, sent_ns)) = &mut replies.http1 {
            *sent_ns = Some(wrote_ns);
        }
    }

    /// These bytes were written before any encryption, which has passed them on already: logs the
    /// replies of HTTP/2 that end in them.
    fn passed<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>) {
        let mut ended = Vec::new();
        let mut replies = self.replies();
        let sent_ns = replies.wrote_ns;
        let Some(streams) = &mut replies.streams else { return };
        pieces.for_each(|piece| streams.take_written(piece, &mut ended));
        drop(replies);
        ended.into_iter().for_each(|passage| self.law.sent(passage, sent_ns));
    }

    /// Logs the reply of HTTP/1.1 that left last, if any did.
    fn settle(&self) {
        if let Some((passage, Some(sent_ns))) = self.replies().http1.take() {
            self.law.sent(passage, sent_ns);
        }
    }

    fn replies(&self) -> MutexGuard<'_, Replies> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    fn add(&mut self, passage: Passage) {
        let number = self.count.saturating_mul(2).saturating_add(1);
        self.count = self.count.saturating_add(1);
        // The oldest are those that the client has reset.
        if self.open.len() >= STREAMS_MAX as usize {
            self.open.pop_front();
        }
        self.open.push_back((number, passage));
    }

    /// Frames that the library wrote: adds the replies that end in them.
    fn take_written(&mut self, mut bytes: &[u8], ended: &mut Vec<Passage>) {
        loop {
            let stream = match self.written.next(&mut bytes) {
                Ok(Cut::Data(data)) => data.ends_stream.then_some(data.stream),
                Ok(Cut::Frame(header, _) | Cut::Kept(header, _)) => {
                    let ends = header.kind == kind::HEADERS && header.has(flag::END_STREAM);
                    ends.then_some(header.stream)
                }
                // A frame that only a client with other settings allows: nothing more is logged.
                Ok(Cut::More) | Err(_) => return,
            };
            let Some(number) = stream else { continue };
            if let Ok(index) = self.open.binary_search_by_key(&number, |(number, _)| *number) {
                ended.extend(self.open.remove(index).map(|(_, passage)| passage));
            }
        }
    }
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body that waits before its first byte.
pub(super) struct DelayedBody {
    wait: Option<Wait>,
    body: Body,
}

impl From<Body> for DelayedBody {
    fn from(body: Body) -> Self {
        Self { wait: None, body }
    }
}

impl hyper::body::Body for DelayedBody {
    type Data = Bytes;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(context));
            self.wait = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.wait.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream of a connection whose replies may be delayed: its socket, which records when bytes were
/// handed to the kernel, or TLS on it, whose alert at its close belongs to no reply.
pub(super) struct Watched<S> {
    stream: S,
    /// Of a connection whose replies are delayed.
    requests: Option<Arc<Requests>>,
    is_socket: bool,
    /// What is written to it is HTTP.
    is_plain: bool,
}

impl Watched<TcpStream> {
    pub(super) fn socket(stream: TcpStream, requests: Arc<Requests>) -> Self {
        Self { stream, requests: Some(requests), is_socket: true, is_plain: true }
    }

    pub(super) fn below_tls(stream: TcpStream, requests: Arc<Requests>) -> Self {
        Self { stream, requests: Some(requests), is_socket: true, is_plain: false }
    }
}

impl<S> Watched<S> {
    pub(super) fn tls(stream: S, requests: Option<Arc<Requests>>) -> Self {
        Self { stream, requests, is_socket: false, is_plain: true }
    }

    /// Takes note of what was written of these pieces.
    fn note_written<'p>(
        &self,
        written: &Poll<io::Result<usize>>,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) {
        let (Poll::Ready(Ok(count)), Some(requests)) = (written, &self.requests) else { return };
        if self.is_socket {
            requests.wrote();
        }
        if self.is_plain {
            let mut left = *count;
            requests.passed(pieces.map(|piece| {
                let (taken, _) = piece.split_at(piece.len().min(left));
                left -= taken.len();
                taken
            }));
        }
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
        self.note_written(&written, std::iter::once(bytes));
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note_written(&written, pieces.iter().map(|piece| &**piece));
        written
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
