//! What a server says of itself, before anything is asked of it.

use super::error::AppError;
use super::site::Site;
use crate::refusal;
use crate::wire::{Hello, VERSION, Welcome};
use plimsoll_protocol::blocking::{SILENCE_MAX, hear};
use plimsoll_protocol::net::{Dial, LinkKind, SetupError, SourcePort};

/// Asks a server what it is, without a segment.
pub(crate) fn greet(site: &Site, dial: &dyn Dial) -> Result<Welcome, SetupError> {
    welcome(site, dial).map_err(|e| e.unable_to("greet the server", &site.name))
}

fn welcome(site: &Site, dial: &dyn Dial) -> Result<Welcome, AppError> {
    let mut channel = dial.dial(site.address, LinkKind::Stream, SourcePort::Any)?;
    let hello = Hello { version: VERSION, client: 0, segment_bytes: 0 };
    channel.send(&hello.encode())?;
    let (stop, mut time_left, mut incoming) = (dial.stop(), SILENCE_MAX, Vec::new());
    loop {
        if let Some(greeting) = incoming.first_chunk() {
            let welcome = Welcome::decode(greeting)?;
            return match refusal::words(&welcome, hello.segment_bytes) {
                Some(words) => Err(AppError::Refused(words)),
                None => Ok(welcome),
            };
        }
        hear(&mut *channel, &stop, &mut time_left, &mut incoming)?;
    }
}
