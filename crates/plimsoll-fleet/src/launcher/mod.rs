//! `--agents`: which program starts an agent, and its child process.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`spec`] | the values of `--agents`, read |
//! | [`command`] | from a value to the command of ssh, srun, kubectl or another program |
//! | [`child`] | the command as a process: bytes in and out, lines of standard error, its end |
//! | [`explain`] | what the end of such a process means |
//! | [`gate`] | how many may start at once |
//! | [`deploy`] | sends this program to a host that lacks it |
//! | [`allow`] | what the owner of an agent's host permits |

pub mod allow;
pub mod child;
pub mod command;
mod command_line;
pub mod deploy;
pub mod explain;
pub mod gate;
mod lines;
pub mod spec;

pub use command_line::{SplitError, split as split_words};
