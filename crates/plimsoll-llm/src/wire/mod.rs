//! What a server of language models sends, cut into events and read. No I/O, no clock.

pub mod json;
pub mod picks;
pub mod sse;
