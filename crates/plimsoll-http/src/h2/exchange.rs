//! One GET over a connection of its own, for requests that are no load.

use super::connection::Connection;
use super::event::{Event, Tag};
use super::request::{Encoded, encode};
use super::windows::ReceiveWindows;
use crate::wire::reply::Reply;
use crate::wire::request::{Frame, Method, RequestText};

/// Windows that a small body does not fill.
const WINDOWS: ReceiveWindows = ReceiveWindows { stream_bytes: 1 << 20, connection_bytes: 1 << 20 };

/// A request, and the reply that comes.
#[derive(Debug)]
pub struct Exchange {
    connection: Connection,
    request: Encoded,
    is_asked: bool,
    reply: Reply,
}

impl Exchange {
    /// Asks for `path`.
    pub fn new(frame: Frame<'_>, scheme: &str, path: &str) -> Self {
        let text = RequestText::plain(Method::GET, path);
        Self {
            connection: Connection::new(WINDOWS),
            request: encode(frame, scheme, std::iter::once(&text)),
            is_asked: false,
            reply: Reply::default(),
        }
    }

    /// What is to be sent now.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.connection.out)
    }

    /// Takes bytes in as they come from the server. Answers with the reply once it is whole, or its
    /// body over the limit; or with why there is none.
    pub fn take(&mut self, bytes: &[u8], body_bytes_max: usize) -> Result<Option<Reply>, String> {
        let mut rest = bytes;
        while let Some(event) =
            self.connection.next(&mut rest).map_err(|fault| fault.to_string())?
        {
            let is_whole = match event {
                Event::Settings => {
                    self.ask();
                    false
                }
                Event::Window => false,
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

    fn ask(&mut self) {
        let Some(head) = self.request.heads.first().filter(|_| !self.is_asked) else { return };
        if !self.connection.has_room() {
            return;
        }
        self.is_asked = true;
        let shared = &self.request.shared;
        self.connection.open(Tag(0), false, |table, out| {
            head.write((0, 0), (shared, table), &mut Vec::new(), out);
        });
    }
}
