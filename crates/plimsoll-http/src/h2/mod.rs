//! HTTP/2, the client's side. RFC 9113, RFC 7541.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`frame`], [`reader`] | frames to bytes and back |
//! | [`request`] | header blocks of requests, encoded in advance |
//! | [`hpack`], [`fields`], `huffman`, `static_table` | header blocks of replies |
//! | [`windows`] | flow control and the server's settings |
//! | [`connection`], `streams`, [`event`] | the state machine of one connection |
//! | [`fault`] | what ends one |
//! | [`exchange`] | one request on a connection of its own |
//!
//! # Why frames and HPACK of our own
//!
//! The sans-IO crates there are (their sources were read in November 2026, their speed was not
//! measured: `ringline-h2` 0.6, `shiguredo_http2` 2026.1.0-canary.16) copy every DATA frame and
//! allocate each name and value of each header block; the second has no stable release, and no fuzz
//! target was found in either. HPACK crates (`loona-hpack` 0.4, `httlib-hpack` 0.1) hand out owned
//! names and values, too. A load generator needs a status and a length of each reply, and must not
//! be what limits the load: [`hpack`] keeps no strings at all, which also bounds what a server can
//! make it hold, and knows a repeated block by its bytes.
//!
//! Our `SETTINGS_HEADER_TABLE_SIZE` is the default, 4,096 bytes, which browsers and other load tools
//! say, too: with 0 a server would write every field of every reply in full, so that it would work
//! more than with real clients, and a block of 100 bytes would have to be compared instead of
//! one of 6.

pub mod connection;
pub mod event;
pub mod exchange;
pub mod fault;
pub mod fields;
pub mod frame;
pub mod hpack;
mod huffman;
pub mod reader;
pub mod request;
mod static_table;
mod streams;
pub mod windows;

#[cfg(test)]
mod connection_tests;
#[cfg(test)]
mod hpack_tests;
#[cfg(test)]
mod request_tests;
