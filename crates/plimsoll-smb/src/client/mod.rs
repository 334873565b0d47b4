//! A blocking client of one share for set-up: a command or compound at a time, or a window of
//! reads or writes. Every wait is bounded, and ends soon when the caller raises a flag.

mod error;
mod files;
mod listing;
#[cfg(test)]
mod tests;
mod transfer;

pub use error::{Doing, SmbError};
pub use files::{Opened, Space};
pub use listing::Listed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::logon::{Established, Logon, LogonProgress, LogonRequest};
use super::wire::frame::{self, Assembler, FrameError};
use super::wire::header::{Command, Header, Parts, UNSOLICITED, chain, flags};
use super::wire::session_setup::LogoffRequest;
use super::wire::tree_connect::TreeDisconnectRequest;
use super::wire::{WireError, status};
use plimsoll_protocol::net::{Channel, ChannelError, Dial, LinkKind, SourcePort};

/// Silence after which the server counts as hung. Closing a file that was written may take long.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long a server may take to say goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(2);
/// A wait is cut into pieces this long, so that a stop is heard.
const STOP_HEARD_WITHIN: Duration = Duration::from_millis(100);
/// What anything heard takes from the wait it ends, so that strangers cannot lengthen it for ever.
const HEARING_COSTS: Duration = Duration::from_millis(1);
/// Fewer bytes that answer nothing count as silence. A long answer comes in larger pieces.
const CRUMB_BYTES: usize = 512;
/// Credits this client wants to hold: four commands of 1 MiB, and some small ones.
const CREDITS_HELD: u32 = 80;
/// Bytes of data that a credit covers.
const CREDIT_BYTES: u32 = 65_536;

/// A client with its session.
pub struct SmbClient {
    link: Link,
    session: Established,
    /// Being composed.
    out: Vec<u8>,
    last_header: Option<usize>,
    /// Numbers of commands without their reply.
    awaited: Vec<u64>,
    /// Replies nobody has taken yet.
    replies: Vec<Reply>,
    plain: Vec<u8>,
}

/// What answers a command.
struct Reply {
    message_id: u64,
    status: u32,
    body: Vec<u8>,
}

impl SmbClient {
    /// Opens a channel and logs on over it. Raising `stop` ends this and all that follows.
    pub fn logon(
        dial: &dyn Dial,
        address: SocketAddr,
        request: &LogonRequest<'_>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, SmbError> {
        let channel = dial.dial(address, LinkKind::Stream, SourcePort::Any)?;
        let mut link = Link { channel, stop, assembler: Assembler::new(), incoming: Vec::new() };
        let session = log_on(&mut link, request)?;
        Ok(Self {
            link,
            session,
            out: Vec::new(),
            last_header: None,
            awaited: Vec::new(),
            replies: Vec::new(),
            plain: Vec::new(),
        })
    }

    /// What was agreed on at the logon.
    pub fn session(&self) -> &Established {
        &self.session
    }

    /// Lets go of the share and ends the session, as far as the server goes along.
    pub fn disconnect(mut self) {
        for command in [Command::TreeDisconnect, Command::Logoff] {
            self.begin();
            let message_id = self.command(command, 0, |out| match command {
                Command::Logoff => LogoffRequest {}.encode(out),
                _ => TreeDisconnectRequest {}.encode(out),
            });
            if self.send().is_err() || self.reply_within(message_id, GOODBYE_MAX).is_err() {
                return;
            }
        }
    }

    /// Sends one command and answers with the body of its reply.
    fn call(
        &mut self,
        command: Command,
        payload_bytes: u32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<u8>, SmbError> {
        self.earn(self.charge(payload_bytes))?;
        self.begin();
        let message_id = self.command(command, payload_bytes, body);
        self.send()?;
        let reply = self.reply(message_id)?;
        if status::is_failure(reply.status) {
            return Err(SmbError::Status { command, status: reply.status });
        }
        Ok(reply.body)
    }

    /// Begins a message.
    fn begin(&mut self) {
        self.out.clear();
        frame::begin(&mut self.out);
        self.last_header = None;
    }

    /// Appends a command, related to the one before it; answers with its number.
    fn command(
        &mut self,
        command: Command,
        payload_bytes: u32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> u64 {
        let related = match self.last_header {
            Some(previous) => {
                chain(&mut self.out, previous);
                flags::RELATED
            }
            None => 0,
        };
        let charge = self.charge(payload_bytes);
        let message_id = self.session.next_message_id;
        self.session.next_message_id += u64::from(charge);
        self.session.credits = self.session.credits.saturating_sub(charge);
        self.last_header = Some(self.out.len());
        let wanted = CREDITS_HELD.saturating_sub(self.session.credits).max(charge);
        Header {
            flags: related,
            message_id,
            // Without large MTU the field is reserved.
            credit_charge: if self.session.large_mtu { charge as u16 } else { 0 },
            credits: wanted as u16,
            tree_id: self.session.tree_id,
            session_id: self.session.session_id,
            ..Header::new(command)
        }
        .encode(&mut self.out);
        body(&mut self.out);
        self.awaited.push(message_id);
        message_id
    }

    /// Sends what has been composed.
    fn send(&mut self) -> Result<(), SmbError> {
        frame::finish(&mut self.out, 0);
        self.session.seal.protect(&mut self.out, 0);
        Ok(self.link.channel.send(&self.out)?)
    }

    /// Credits that a command with so much data takes.
    fn charge(&self, payload_bytes: u32) -> u32 {
        if self.session.large_mtu { payload_bytes.div_ceil(CREDIT_BYTES).max(1) } else { 1 }
    }

    /// Waits until there are as many credits.
    fn earn(&mut self, credits: u32) -> Result<(), SmbError> {
        let mut time_left = SILENCE_MAX;
        while self.session.credits < credits {
            if self.awaited.is_empty() {
                return Err(SmbError::Unfit("no credits for another command"));
            }
            self.receive(&mut time_left)?;
        }
        Ok(())
    }

    fn reply(&mut self, message_id: u64) -> Result<Reply, SmbError> {
        self.reply_within(message_id, SILENCE_MAX)
    }

    fn reply_within(&mut self, message_id: u64, wait: Duration) -> Result<Reply, SmbError> {
        let mut time_left = wait;
        loop {
            if let Some(at) = self.replies.iter().position(|one| one.message_id == message_id) {
                return Ok(self.replies.swap_remove(at));
            }
            self.receive(&mut time_left)?;
        }
    }

    /// Lets the server be for so long; what comes meanwhile is heard.
    pub fn pause(&mut self, time: Duration) -> Result<(), SmbError> {
        let mut time_left = time;
        loop {
            match self.receive(&mut time_left) {
                Ok(()) => {}
                Err(SmbError::Channel(ChannelError::Timeout)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Hears something within `time_left`, and keeps what answers a command.
    fn receive(&mut self, time_left: &mut Duration) -> Result<(), SmbError> {
        self.link.hear(time_left)?;
        let is_crumb = self.link.incoming.len() < CRUMB_BYTES;
        let Self { link, session, awaited, replies, plain, .. } = self;
        let before = awaited.len();
        link.messages(|message| {
            let message = session.seal.open(message, plain)?;
            for part in Parts::new(message) {
                let part = part?;
                let header = &part.header;
                session.credits = session.credits.saturating_add(header.credits.into());
                if header.message_id == UNSOLICITED || header.status == status::PENDING {
                    continue;
                }
                let Some(at) = awaited.iter().position(|id| *id == header.message_id) else {
                    continue;
                };
                awaited.swap_remove(at);
                replies.push(Reply {
                    message_id: header.message_id,
                    status: header.status,
                    body: part.body.to_vec(),
                });
            }
            Ok(())
        })?;
        if is_crumb && awaited.len() == before {
            *time_left = time_left.saturating_sub(STOP_HEARD_WITHIN);
        }
        Ok(())
    }
}

/// A channel, and what has come over it.
struct Link {
    channel: Box<dyn Channel>,
    stop: Arc<AtomicBool>,
    assembler: Assembler,
    incoming: Vec<u8>,
}

impl Link {
    /// Waits for bytes, and takes from `time_left` what that took.
    fn hear(&mut self, time_left: &mut Duration) -> Result<(), SmbError> {
        while !time_left.is_zero() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(SmbError::Stopped);
            }
            let piece = STOP_HEARD_WITHIN.min(*time_left);
            match self.channel.receive(&mut self.incoming, piece) {
                Ok(()) => {
                    *time_left = time_left.saturating_sub(HEARING_COSTS);
                    return Ok(());
                }
                Err(ChannelError::Timeout) => *time_left = time_left.saturating_sub(piece),
                Err(error) => return Err(error.into()),
            }
        }
        Err(ChannelError::Timeout.into())
    }

    /// Hands on every message that is complete.
    fn messages(
        &mut self,
        each: impl FnMut(&[u8]) -> Result<(), SmbError>,
    ) -> Result<(), SmbError> {
        let outcome = self.assembler.push(&self.incoming, each);
        self.incoming.clear();
        outcome
    }
}

fn log_on(link: &mut Link, request: &LogonRequest<'_>) -> Result<Established, SmbError> {
    let mut logon = Logon::new(request);
    let mut out = Vec::new();
    logon.start(&mut out);
    let mut time_left = SILENCE_MAX;
    loop {
        if !out.is_empty() {
            link.channel.send(&out)?;
            out.clear();
        }
        link.hear(&mut time_left)?;
        let mut done = None;
        link.messages(|message| {
            if done.is_none()
                && let LogonProgress::Done(established) = logon.on_message(message, &mut out)?
            {
                done = Some(established);
            }
            Ok(())
        })?;
        if let Some(established) = done {
            return Ok(*established);
        }
        if out.is_empty() {
            // No step of ours came of it.
            time_left = time_left.saturating_sub(STOP_HEARD_WITHIN);
        }
    }
}

impl From<FrameError> for SmbError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<WireError> for SmbError {
    fn from(error: WireError) -> Self {
        Self::Garbled(error)
    }
}
