//! HTTP/2, the client's side. RFC 9113, RFC 7541.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`frame`], [`reader`] | frames to bytes and back |
//! | [`request`] | header blocks of requests, encoded in advance |
//! | [`hpack`], [`fields`] | header blocks of replies |
//! | [`windows`] | flow control, the server's settings, streams |
//! | [`connection`], [`event`] | the state machine of one connection, and what ends it |
//! | [`Exchange`] | one request on a connection of its own |
//!
//! # Why frames and HPACK of our own
//!
//! The sans-IO crates there are (their sources were read in November 2026, their speed was not
//! measured: `ringline-h2` 0.6, `shiguredo_http2` 2026.1.0-canary.16) copy every DATA frame and
//! allocate each name and value of each header block; the second has no stable release, and no fuzz
//! target was found in either. HPACK crates (`loona-hpack` 0.4, `httlib-hpack` 0.1) hand out owned
//! names and values, too. A load generator needs a status and a length of each reply, and must not
//! be what limits the load: [`hpack`] keeps no strings, but for clients that follow what a reply's
//! header says, and recognises a repeated block by its bytes.
//!
//! Our `SETTINGS_HEADER_TABLE_SIZE` is the default, 4,096 bytes, which browsers and other load
//! tools use, too: with 0 a server would write every field of every reply in full, so that it would
//! work more than with real clients, and a block of 100 bytes would have to be compared instead of
//! one of 6.

pub mod connection;
#[cfg(test)]
mod connection_tests;
pub mod event;
pub mod fields;
pub mod frame;
pub mod hpack;
#[cfg(test)]
mod hpack_tests;
pub mod reader;
pub mod request;
#[cfg(test)]
mod request_tests;
mod static_table;
pub mod windows;

use crate::wire::reply::Reply;
use crate::wire::request::{Frame, Method, RequestText};
use crate::wire::template::NoVariables;
use connection::Connection;
use event::{Event, Tag};
use request::{Encoded, encode};
use windows::ReceiveWindows;

/// Windows that a small body does not fill.
const WINDOWS: ReceiveWindows = ReceiveWindows { stream_bytes: 1 << 20, connection_bytes: 1 << 20 };

/// A request, and the reply that comes.
#[derive(Debug)]
pub struct Exchange {
    connection: Connection,
    reply: Reply,
}

impl Exchange {
    /// Requests `path`.
    pub fn new(frame: Frame<'_>, scheme: &str, path: &str) -> Self {
        let text = RequestText::plain(Method::GET, path);
        let Encoded { shared, heads } = encode(frame, scheme, std::iter::once(&text));
        let mut connection = Connection::new(WINDOWS);
        if let Some(head) = heads.first() {
            connection.open(Tag(0), false, |table, out| {
                head.write((0, 0, &NoVariables), (&shared, table), &mut Vec::new(), out);
            });
        }
        Self { connection, reply: Reply::default() }
    }

    /// What is to be sent now.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.connection.out)
    }

    /// Takes bytes from the server. Returns the reply once it is complete or its body exceeds the
    /// limit, or the reason why there is none.
    pub fn take(&mut self, bytes: &[u8], body_bytes_max: usize) -> Result<Option<Reply>, String> {
        let mut rest = bytes;
        while let Some(event) =
            self.connection.next(&mut rest).map_err(|fault| fault.to_string())?
        {
            let is_whole = match event {
                Event::Settings | Event::Window => false,
                Event::CallFailed(_, code) => return Err(format!("the server answers {code}")),
                Event::Head { status, ends, .. } => {
                    self.reply.status = status;
                    ends
                }
                Event::Data { payload, ends, .. } => {
                    self.reply.body.extend_from_slice(payload);
                    ends || self.reply.body.len() > body_bytes_max
                }
                Event::Reset(_, code) => {
                    return Err(format!("the server reset the stream ({code})"));
                }
                Event::Wrong(_, why) => return Err(why.to_string()),
                Event::GoAway => match self.connection.take_unprocessed() {
                    None => false,
                    Some(_) => return Err("the server refused the stream (GOAWAY)".to_owned()),
                },
            };
            if is_whole {
                return Ok(Some(std::mem::take(&mut self.reply)));
            }
        }
        Ok(None)
    }
}
