//! Servers of language models that answer in streams (OpenAI's chat completions and their kin):
//! suites, what their answers say, and servers to measure.

#![warn(unreachable_pub)]

mod offers;
pub mod parameters;
mod prompts;
