//! Real servers of language models, and arbitrary streams.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod fuzz_entries;
mod llama;
