//! Servers of language models that answer in streams (OpenAI's chat completions and their kin):
//! suites, what their answers say, and servers to measure.

#![warn(unreachable_pub)]

pub mod answer;
pub mod reader;
pub mod wire;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod test_client;
