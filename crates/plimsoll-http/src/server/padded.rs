//! Bodies of any size that take no memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// What follows a text, again and again.
static PADDING: [u8; 64 << 10] = [b' '; 64 << 10];

/// A text, and spaces after it.
#[derive(Debug, Default)]
pub(super) struct Padded {
    text: Bytes,
    spaces: u64,
}

impl Padded {
    /// A body of this size; longer where the text is.
    pub(super) fn to_size(text: Bytes, bytes: u64) -> Self {
        let spaces = bytes.saturating_sub(text.len() as u64);
        Self { text, spaces }
    }
}

impl From<Bytes> for Padded {
    fn from(text: Bytes) -> Self {
        Self { text, spaces: 0 }
    }
}

impl Body for Padded {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.text.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.text)))));
        }
        let chunk = self.spaces.min(PADDING.len() as u64);
        self.spaces -= chunk;
        let chunk = &PADDING[..chunk as usize];
        Poll::Ready((!chunk.is_empty()).then(|| Ok(Frame::data(Bytes::from_static(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty() && self.spaces == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.len() as u64 + self.spaces)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn a_body_has_its_size_and_begins_with_its_text() {
        for (bytes, expected) in [(0, 3), (3, 3), (200_000, 200_000)] {
            let body = Padded::to_size(Bytes::from_static(b"abc"), bytes);
            assert_eq!(body.size_hint().exact(), Some(expected));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let sent = runtime.block_on(body.collect()).unwrap().to_bytes();
            assert_eq!((sent.len() as u64, &sent[..3]), (expected, &b"abc"[..]));
        }
    }
}
