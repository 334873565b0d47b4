//! The two pipes to an agent: whatever is sent arrives in order, after delays that differ, or not
//! at all.

use plimsoll_fleet::frame::{Decoder, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock::{MS, SECOND};
use super::random::Random;

pub struct Pipe {
    /// Usual delay in one direction.
    delay_ns: u64,
    last_arrival: u64,
    /// Nothing arrives before; what was sent waits.
    pub frozen_until: u64,
    /// Nothing that is sent later arrives.
    pub is_cut: bool,
    /// Messages travel as frames.
    decoder: Option<Decoder>,
}

impl Pipe {
    pub fn any(random: &mut Random, framed: bool) -> Self {
        Self {
            delay_ns: random.between(10_000, 2 * MS),
            last_arrival: 0,
            frozen_until: 0,
            is_cut: false,
            decoder: framed.then(Decoder::default),
        }
    }

    /// When something arrives that is sent now.
    pub fn arrival(&mut self, random: &mut Random, now: u64) -> Option<u64> {
        if self.is_cut {
            return None;
        }
        let more = match random.between(0, 99) {
            0 => random.between(0, SECOND),
            1..5 => random.between(0, 50 * MS),
            _ => random.between(0, self.delay_ns),
        };
        let arrival = (now + self.delay_ns + more).max(self.frozen_until).max(self.last_arrival);
        self.last_arrival = arrival;
        Some(arrival)
    }

    /// A message after transport through the pipe.
    pub fn carried<M: Serialize + DeserializeOwned>(
        &mut self,
        random: &mut Random,
        message: M,
    ) -> M {
        let Some(decoder) = &mut self.decoder else { return message };
        let frame = encode(&message).expect("a short message");
        let cut = random.between(0, frame.len() as u64 - 1) as usize;
        decoder.push(&frame[..cut]);
        assert!(matches!(decoder.next::<M>(), Ok(None)), "a message before its end");
        decoder.push(&frame[cut..]);
        decoder.next().expect("a good frame").expect("a whole frame")
    }
}
