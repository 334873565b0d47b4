//! Application transactions: a protocol of our own, its clients and what they ask for.

pub mod wire;
