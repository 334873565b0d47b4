//! Flags of `plimsoll scale`.

use clap::Args;

use super::RunArgs;
use super::values::parse_over;

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    /// What the server gets, step by step: cores=0.5,1,2 (a fraction is a quota),
    /// memory=256MiB,1GiB, or threads=1,4,16 (of the reference server of transactions)
    #[arg(long, required = true, value_name = "WHAT=LIST", value_parser = parse_over)]
    pub over: Over,
    /// Take invalid runs too; every output is marked
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What is scaled, and its steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Over {
    /// Cores of the server.
    Cores(Vec<f64>),
    /// Bytes of memory.
    Memory(Vec<u64>),
    /// Service threads.
    Threads(Vec<u32>),
}

impl Over {
    /// What the server gets more of.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Cores(_) => "cores",
            Self::Memory(_) => "memory",
            Self::Threads(_) => "threads",
        }
    }
}
