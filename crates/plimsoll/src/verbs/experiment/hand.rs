//! Levels that only a person can set: a clock, a RAID level, processors.

use std::io;
use std::os::fd::AsFd as _;

use plimsoll_run::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::design::{Factor, HandSet};
use crate::exit::Failure;
use crate::terminal;

/// Interval of checks for Ctrl-C while waiting for the user.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Sets levels by hand.
pub(crate) trait Person {
    /// Requests a level and waits until it is set; false if the user requests the end. `before` is
    /// the current level, as far as this process knows.
    fn sets(
        &mut self,
        factor: &Factor,
        level_and_before: (usize, Option<usize>),
        block: u32,
        signals: &Signals,
    ) -> Result<bool, Failure>;
}

/// The user at the terminal.
pub(crate) struct AtTheTerminal;

impl Person for AtTheTerminal {
    fn sets(
        &mut self,
        factor: &Factor,
        (level, before): (usize, Option<usize>),
        block: u32,
        signals: &Signals,
    ) -> Result<bool, Failure> {
        terminal::note(&request(factor, level, before, block));
        answer(factor, signals)
    }
}

/// The request to the user.
fn request(factor: &Factor, level: usize, before: Option<usize>, block: u32) -> String {
    let text = |level: usize| factor.level_text(level);
    let what = match before {
        None => format!("set {}; if it is so already, leave it", text(level)),
        Some(before) if before == level => format!(
            "set {} anew, for repeat {block}: set something else first, then this again, so that \
             the scatter between repeats holds what setting it does",
            text(level)
        ),
        Some(before) => format!("set {} (so far {})", text(level), factor.levels[before].name),
    };
    let once = match factor.hand {
        Some(HandSet::Once) => "; it stays for all repeats",
        _ => "",
    };
    format!("\nBy hand: {what}{once}.\nPress Enter when it is set, Ctrl-C to go on another day: ")
}

/// Waits for a line on standard input.
fn answer(factor: &Factor, signals: &Signals) -> Result<bool, Failure> {
    let input = io::stdin();
    loop {
        if signals.is_stop_requested() {
            return Ok(false);
        }
        let mut ready = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&LOOK_AGAIN)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(e) => return Err(nobody(factor, &e.to_string())),
        }
        // Byte by byte: buffered bytes would be lost for the next request.
        let mut byte = [0];
        match rustix::io::read(&input, &mut byte) {
            Ok(0) => return Err(nobody(factor, "it has ended")),
            Ok(_) if byte == *b"\n" => return Ok(true),
            Ok(_) => {}
            Err(e) => return Err(nobody(factor, &e.to_string())),
        }
    }
}

fn nobody(factor: &Factor, why: &str) -> Failure {
    Failure::wrong(format!(
        "factor {} is set by hand, and nobody answers on standard input ({why}); run the experiment \
         on a terminal",
        factor.name
    ))
}

#[cfg(test)]
mod tests {
    use super::super::design::Level;
    use super::*;

    #[test]
    fn the_user_is_told_what_to_set_and_what_stood() {
        let level = |name: &str| Level { name: name.into(), value: None, changes: Vec::new() };
        let factor = Factor {
            name: "clock".into(),
            unit: Some("MHz".into()),
            levels: vec![level("350"), level("450")],
            hand: Some(HandSet::EachBlock),
            undo: None,
        };
        assert!(request(&factor, 1, None, 1).contains("set clock = 450 MHz; if it is so"));
        assert!(request(&factor, 1, Some(0), 1).contains("clock = 450 MHz (so far 350)"));
        assert!(request(&factor, 1, Some(1), 2).contains("anew, for repeat 2"));
    }
}
